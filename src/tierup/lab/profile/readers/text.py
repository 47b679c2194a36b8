"""Text of any origin, and what was wrong with its lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tierup.lab.errors import ReadError
from tierup.lab.profile.model import Profile, Region, Row, Unit
from tierup.lab.profile.symbols import printable

_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
PROFILES: Final = "a profile is a CSV report, the text of perf report or perf script, or perf.data"
_SUM: Final = (90.0, 110.0)
"""Between these the percentages of a whole report lie: perf rounds each to two digits, so that thousands of small ones are lost."""


@dataclass
class Complaints:
    """What is wrong with the lines of one file."""

    lines: list[str] = field(default_factory=list)

    def line(self, number: int, what: str) -> None:
        """A line was left out. number: from 1."""
        self.lines.append(f"line {number}: {what}")

    def summary(self) -> tuple[str, ...]:
        """One line for all of them."""
        if not self.lines:
            return ()
        if len(self.lines) == 1:
            return (f"left out {self.lines[0]}",)
        return (f"left out {len(self.lines)} lines, the first is {self.lines[0]}",)


def read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """A file's text, and what is wrong with its encoding. Raises ReadError where it cannot be read, is empty or is no text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"cannot read {str(path)!r}: {error.strerror}") from None
    if not data.strip():
        raise ReadError(f"{printable(str(path))} is empty: record the profile again")
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    problems: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = data.decode(encoding, errors="replace")
        problems = (f"line {data[: error.start].count(10) + 1}: bytes that are not {encoding.upper()} were replaced",)
    if "\0" in text:
        raise ReadError(f"{printable(str(path))} is no text: {PROFILES}")
    return text, problems


def weight(text: str) -> float:
    """A share or period as written in a report. Raises ValueError with what is wrong with it."""
    try:
        value = float(text.strip().removesuffix("%").replace(",", ""))
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no number") from None
    if not math.isfinite(value):
        raise ValueError(f"the share {text.strip()} is not finite")
    if value < 0:
        raise ValueError(f"the share {text.strip()} is negative")
    return value


def finish(name: str, rows: Iterable[Row], unit: Unit, problems: Iterable[str], region: Region = "unknown") -> Profile:
    """The profile of a report's rows, with a word where the shares cannot be all. Raises ReadError if there is no time in it."""
    profile = Profile(name, tuple(rows), unit, region, tuple(problems))
    if profile.total <= 0:
        first = f" ({profile.problems[0]})" if profile.problems else ""
        raise ReadError(f"there is no function with time of its own in it{first}")
    if unit != "percent" or _SUM[0] <= profile.total <= _SUM[1]:
        return profile
    what = "it is cut off" if profile.total < _SUM[0] else "it holds rows twice"
    problem = f"the shares add up to {profile.total:.1f} %: probably {what}"
    return Profile(name, profile.rows, unit, region, (*profile.problems, problem))


def rows_of(lines: Iterable[tuple[int, str]], parse: Callable[[str], Row | None], complaints: Complaints) -> list[Row]:
    """The rows that `parse` makes of numbered lines; what it refuses by ValueError is left out with a complaint."""
    rows = []
    for number, line in lines:
        try:
            row = parse(line)
        except ValueError as error:
            complaints.line(number, str(error))
        else:
            if row is not None:
                rows.append(row)
    return rows
