"""The text of `perf report --stdio`, whatever its columns (`-s pid,symbol,dso`, `--show-total-period`, with or without children)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tierup.lab.errors import ReadError
from tierup.lab.profile.model import Profile, Row, Unit
from tierup.lab.profile.readers.text import Complaints, finish, rows_of, weight

_RULE: Final = re.compile(r"#\s*\.{2,}(\s+\.+)*\s*$")
_LEVEL: Final = re.compile(r"\[[.kguHh]\]\s+")
"""What perf writes before a symbol: the mode that the processor was in."""
_EVENT: Final = re.compile(r"# Samples: .* of event '(.+)'")
_SHARES: Final = ("period", "self", "overhead")
"""Columns with a function's own time, the most exact first."""


def is_report(text: str) -> bool:
    """Whether the text looks like such a report."""
    return any(_RULE.match(line) for line in text[:20_000].splitlines())


def parse(name: str, text: str, problems: Sequence[str] = ()) -> Profile:
    """The profile of a report's text; of several events the first. Raises ReadError where nothing of it can be used."""
    lines = text.splitlines()
    at = next((k for k, line in enumerate(lines) if _RULE.match(line)), None)
    if not at:
        raise ReadError("there is no head of columns in it")
    columns = _columns(lines[at - 1], lines[at])
    share = next((column for column in _SHARES if column in columns), None)
    if share is None or "symbol" not in columns:
        raise ReadError("it has no column of shares with symbols; make it by: perf report --stdio -g none -s pid,symbol,dso")
    if "shared object" not in columns:
        raise ReadError("it does not say the objects of its symbols; make it by: perf report --stdio -g none -s pid,symbol,dso")
    events = [found.group(1) for line in lines if (found := _EVENT.match(line))]
    complaints = Complaints()
    rows = rows_of(_table(lines, at + 1), lambda line: _row(line, columns, share), complaints)
    unit: Unit = "period" if share == "period" else "percent"
    more = [f"of the events {', '.join(events)} only the first was read"] if len(events) > 1 else []
    return finish(name, rows, unit, (*problems, *complaints.summary(), *more))


def _columns(head: str, rule: str) -> Mapping[str, slice]:
    """The place of each column: from its dots to those of the next; the first from the line's beginning."""
    starts = [match.start() for match in re.finditer(r"\.+", rule)]
    ends = [*starts[1:], None]
    names = [head[start:end].strip(" #").lower() for start, end in zip(starts, ends, strict=True)]
    return {name: slice(0 if k == 0 else starts[k], ends[k]) for k, name in enumerate(names)}


def _table(lines: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    """The numbered lines of the first table."""
    rows = False
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith("#"):
            if rows:
                return
            continue
        # Lines of call chains hold no percentage at their beginning; a table's rows do.
        if line.strip() and re.match(r"\s*[-+]?[\d.]+|\s*-?(nan|inf)", line):
            rows = True
            yield number, line


def _row(line: str, columns: Mapping[str, slice], share: str) -> Row:
    value = weight(line[columns[share]].strip() or "nothing")
    symbol = _LEVEL.sub("", line[columns["symbol"]].strip(), count=1)
    obj = line[columns["shared object"]].strip()
    if not symbol or not obj:
        raise ValueError("there is no symbol or no object (the file may be cut off)")
    pid, command = _process(line, columns)
    return Row(obj, symbol, value, pid, command)


def _process(line: str, columns: Mapping[str, slice]) -> tuple[int | None, str]:
    """Number and command of the process, from the columns `Pid:Command` or `Command`."""
    if (place := columns.get("pid:command")) is not None:
        number, _, command = line[place].strip().partition(":")
        return (int(number) if number.isdecimal() else None), command
    place = columns.get("command")
    return None, "" if place is None else line[place].strip()
