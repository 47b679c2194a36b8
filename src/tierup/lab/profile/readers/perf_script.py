"""The text of `perf script`: a line for each sample, or a block where call chains were recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from tierup.lab.profile.model import NO_SYMBOL, Profile, Row, Unit
from tierup.lab.profile.perf_map import PerfMap
from tierup.lab.profile.readers.text import Complaints, finish

FIELDS: Final = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"
"""What `perf script -F` is to print."""
_SAMPLE: Final = re.compile(
    r"\s*(?P<command>\S.*?)\s+(?P<pid>\d+)(?:/(?P<tid>\d+))?\s+(?:\[\d+\]\s+)?(?P<time>\d+\.\d+):\s+"
    r"(?:(?P<period>\d+)\s+)?(?P<event>\S+?):(?=\s|$)\s*(?P<place>.*)$"
)
_PLACES: Final = (
    re.compile(r"\s*(?P<address>[0-9a-f]+)\s+(?P<symbol>.*)\+0x[0-9a-f]+\s+\((?P<object>.*)\)\s*$"),
    re.compile(r"\s*(?P<address>[0-9a-f]+)\s+(?P<symbol>.*?)\s+\((?P<object>.*)\)\s*$"),
)
"""With the offset of the address in the function, which ends the name for sure; else the name ends before the first bracket."""
_INLINED: Final = "inlined"

Sample: TypeAlias = tuple[str, str, int | None, str]
"""Object, symbol, pid, command."""


def is_script(text: str) -> bool:
    """Whether the text looks like samples."""
    head = text[:20_000].splitlines()
    return any(_SAMPLE.match(line) for line in head if not line.startswith("#"))


def parse(name: str, text: str, problems: Sequence[str] = (), maps: Mapping[int, PerfMap] | None = None) -> Profile:
    """The profile of samples. maps: per pid, the names of code that has no file. Raises ReadError where there is no sample."""
    complaints = Complaints()
    periods: Counter[Sample] = Counter()
    without = 0
    for sample, period in _samples(text, maps or {}, complaints):
        periods[sample] += 1 if period is None else period
        without += period is None
    unit: Unit = "samples" if without else "period"
    rows = (Row(obj, symbol, weight, pid, command) for (obj, symbol, pid, command), weight in periods.items())
    return finish(name, rows, unit, (*problems, *complaints.summary()))


def _samples(text: str, maps: Mapping[int, PerfMap], complaints: Complaints) -> Iterator[tuple[Sample, int | None]]:
    """The samples, each with its innermost function and its period, where the text gives one."""
    open_sample: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            if open_sample is not None:
                complaints.line(number, "a sample without a place")
            open_sample = None
            continue
        head = _SAMPLE.match(line)
        if head is not None:
            open_sample = head if not head["place"] else None
            place = _place(head["place"])
            if place is not None:
                yield _sample(head, place, maps)
            elif head["place"]:
                complaints.line(number, "a sample whose place cannot be read (the file may be cut off)")
        elif open_sample is not None:
            place = _place(line)
            if place is None:
                complaints.line(number, "a place that cannot be read (the file may be cut off)")
                open_sample = None
            elif place["object"] != _INLINED:
                # What was inlined belongs to the function around it, as where no call chains are recorded.
                yield _sample(open_sample, place, maps)
                open_sample = None
        elif _place(line) is None:
            complaints.line(number, "neither a sample nor a place")


def _place(text: str) -> re.Match[str] | None:
    return _PLACES[0].match(text) or _PLACES[1].match(text)


def _sample(head: re.Match[str], place: re.Match[str], maps: Mapping[int, PerfMap]) -> tuple[Sample, int | None]:
    # A number alone is the thread's; perf script prints pid/tid where it is asked for both.
    pid = int(head["pid"]) if head["tid"] else None
    symbol = place["symbol"].strip() or NO_SYMBOL
    if symbol == NO_SYMBOL and pid is not None and pid in maps:
        symbol = maps[pid].name(int(place["address"], 16)) or symbol
    return (place["object"], symbol, pid, head["command"]), None if head["period"] is None else int(head["period"])
