"""A profile in memory: how much of a program's time each function took itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Unit = Literal["percent", "period", "samples"]
Region = Literal["timed", "process", "unknown"]

NO_SYMBOL: Final = "[unknown]"
"""The symbol of an address that no symbol table covers, as perf writes it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One function's own time, without what it called."""

    object: str
    """File name or path of what the address lies in, or perf's word for it, such as [JIT] or [kernel.kallsyms]."""
    symbol: str
    weight: float
    """In the profile's unit; finite and not negative."""
    pid: int | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """Where one benchmark's time went."""

    name: str
    rows: tuple[Row, ...]
    unit: Unit
    region: Region = "unknown"
    """timed: only the benchmark's timed region was sampled; process: whole processes."""
    problems: tuple[str, ...] = ()
    """What could not be used, a line each; the profile is partial then."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know, a line each."""

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return sum(row.weight for row in self.rows)


def merge(name: str, profiles: Iterable[Profile]) -> Profile:
    """The profile of several recordings of one benchmark together; all in one unit."""
    parts = list(profiles)
    units, regions = {part.unit for part in parts}, {part.region for part in parts}
    if len(units) != 1:
        raise ValueError(f"{name}: profiles in {' and '.join(sorted(units)) or 'no unit'} cannot be added")
    region: Region = regions.pop() if len(regions) == 1 else "unknown"
    return Profile(
        name,
        tuple(row for part in parts for row in part.rows),
        units.pop(),
        region,
        tuple(dict.fromkeys(problem for part in parts for problem in part.problems)),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
