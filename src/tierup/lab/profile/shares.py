"""A profile's time by category."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tierup.lab.profile.categories import UNKNOWN, Table, file_name
from tierup.lab.profile.model import Profile, Region, Row
from tierup.lab.profile.symbols import has_name, printable

STRIPPED: Final = 0.1
"""An interpreter with more of its own time than this at addresses without a name is called stripped."""
_VERSION: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class Symbol:
    """One function's part in a profile."""

    object: str
    name: str
    category: str
    share: float
    """Of the benchmark's time."""


@dataclass(frozen=True)
class Shares:
    """Where a benchmark's time went."""

    name: str
    categories: Mapping[str, float]
    """Category → share of the time, the largest first; they sum up to 1. "unknown" is among them."""
    symbols: tuple[Symbol, ...]
    """Functions, the largest first."""
    region: Region
    excluded: Mapping[str, float]
    """Share of what was sampled that belongs to other programs, such as an older Python that drives the benchmark, and is left out."""
    stripped: Mapping[str, float]
    """Object of CPython → the part of its own time for which it has no names."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def top(self) -> str | None:
        """The category with the largest share; None where no function is known."""
        return next((category for category, share in self.categories.items() if category != UNKNOWN and share > 0), None)

    def largest(self, category: str, count: int) -> list[Symbol]:
        """The functions of a category that took the most time."""
        return [symbol for symbol in self.symbols if symbol.category == category][:count]


def compute(profile: Profile, table: Table) -> Shares:
    """Sorts a profile's time into the table's categories."""
    kept, excluded = _own(profile, table)
    total = sum(row.weight for row in kept)
    weights = defaultdict[tuple[str, str], float](float)
    for row in kept:
        weights[row.object, row.symbol] += row.weight
    symbols = sorted(
        (Symbol(obj, name, table.category(obj, name), weight / total) for (obj, name), weight in weights.items()),
        key=lambda symbol: -symbol.share,
    )
    by_category = defaultdict[str, float](float)
    for symbol in symbols:
        by_category[symbol.category] += symbol.share
    order = sorted(by_category, key=lambda category: (-by_category[category], table.names.index(category)))
    stripped = _stripped(symbols, table)
    whole = profile.total
    return Shares(
        profile.name,
        {category: by_category[category] for category in order},
        tuple(symbols),
        profile.region,
        {what: weight / whole for what, weight in excluded.items()},
        stripped,
        profile.problems,
        (*profile.notes, *(_say_stripped(obj, part) for obj, part in stripped.items())),
    )


def _own(profile: Profile, table: Table) -> tuple[list[Row], Mapping[str, float]]:
    """The rows of the benchmark's own interpreter, and the weight of what else was sampled, by program.

    Where the profile has pids, whole processes are kept or left out; else only the other interpreters' own functions can be told.
    """
    rows = [row for row in profile.rows if row.weight > 0]
    owner = _Owner(rows, table)
    kept = []
    excluded = defaultdict[str, float](float)
    for row in rows:
        foreign = owner.foreign(row)
        if foreign is None:
            kept.append(row)
        else:
            excluded[foreign] += row.weight
    return kept, dict(sorted(excluded.items(), key=lambda item: -item[1]))


class _Owner:
    """Knows which rows belong to the interpreter that took the most time, the benchmark's."""

    def __init__(self, rows: Sequence[Row], table: Table) -> None:
        self._table = table
        weights = defaultdict[str, float](float)
        self._interpreters: dict[int, set[str]] = defaultdict(set)
        for row in rows:
            if table.is_python(row.object):
                weights[_interpreter(row.object)] += row.weight
                if row.pid is not None:
                    self._interpreters[row.pid].add(_interpreter(row.object))
        main = max(weights, key=lambda name: (weights[name], name), default=None)
        # `python` and its `libpython3.13.so.1.0` are in one process.
        self._own: set[str] = set() if main is None else {main}.union(*(names for names in self._interpreters.values() if main in names))
        self._commands = {row.command for row in rows if row.pid is not None and self._interpreters.get(row.pid, set()) & self._own}

    def foreign(self, row: Row) -> str | None:
        """The program that a row belongs to, or None where it is the benchmark's."""
        if not self._own:
            return None
        if row.pid is None:
            other = self._table.is_python(row.object) and _interpreter(row.object) not in self._own
            return file_name(row.object) if other else None
        names = self._interpreters.get(row.pid)
        # What perf calls a pid may be a thread, which need not run the interpreter; it has its process's command.
        own = bool(names & self._own) if names else row.command in self._commands
        return None if own else (row.command or f"process {row.pid}")


def _interpreter(obj: str) -> str:
    """What is equal for a `python3.13` and its `libpython3.13.so.1.0`."""
    name = file_name(obj)
    version = _VERSION.search(name)
    return version[0] if version else name


def _stripped(symbols: Iterable[Symbol], table: Table) -> dict[str, float]:
    whole, nameless = (defaultdict[str, float](float) for _ in range(2))
    for symbol in symbols:
        if table.is_python(symbol.object):
            name = file_name(symbol.object)
            whole[name] += symbol.share
            nameless[name] += 0.0 if has_name(symbol.name) else symbol.share
    return {name: nameless[name] / whole[name] for name in whole if whole[name] > 0 and nameless[name] > STRIPPED * whole[name]}


def _say_stripped(obj: str, part: float) -> str:
    return f"{printable(obj)} has no names for {part:.0%} of its own time (it is stripped): install its debug symbols, and record again"
