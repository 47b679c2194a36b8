"""Perf maps: the files in which a JIT names the code that it made.

A line is the code's address and size in hexadecimal and its name, as the kernel's tools/perf/Documentation/jit-interface.txt has it.
perf itself uses them for memory without any file only; tierup's kernels lie in a file without a name, so they are looked up here.
"""

from __future__ import annotations

import bisect
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = re.compile(r"perf-(\d+)\.map")
"""What the files are called; perf looks for them in /tmp."""
DIRECTORY: Final = Path("/tmp")


@dataclass(frozen=True)
class PerfMap:
    """Names of code by address."""

    starts: tuple[int, ...]
    """Ascending."""
    ends: tuple[int, ...]
    """Where each piece ends, exclusively; no two overlap."""
    names: tuple[str, ...]

    def name(self, address: int) -> str | None:
        """The name of the code at an address."""
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 and address < self.ends[at] else None


def parse(text: str) -> PerfMap:
    """The map that a file's text says. Lines that are none are passed over: a process may die while it writes one.

    Memory is used again, so a later line takes the place of earlier ones that it overlaps.
    """
    starts: list[int] = []
    entries: dict[int, tuple[int, str]] = {}
    for line in text.splitlines():
        fields = line.split(None, 2)
        try:
            start, size = int(fields[0], 16), int(fields[1], 16)
        except (ValueError, IndexError):
            continue
        if size <= 0 or start < 0 or len(fields) < 3:
            continue
        _take_out(starts, entries, start, start + size)
        bisect.insort(starts, start)
        entries[start] = (start + size, fields[2])
    return PerfMap(tuple(starts), tuple(entries[start][0] for start in starts), tuple(entries[start][1] for start in starts))


def _take_out(starts: list[int], entries: dict[int, tuple[int, str]], start: int, end: int) -> None:
    at = bisect.bisect_left(starts, start)
    if at > 0 and entries[starts[at - 1]][0] > start:
        at -= 1
    while at < len(starts) and starts[at] < end:
        del entries[starts.pop(at)]


def read_all(folder: Path, since: float = 0.0) -> dict[int, PerfMap]:
    """The maps in a folder by pid. since: only files changed after this time, since pids are used again.

    A file of another user is passed over, as perf does.
    """
    maps = {}
    for path in sorted(folder.glob("perf-*.map")):
        found = NAME.fullmatch(path.name)
        if found is None:
            continue
        try:
            about = path.stat()
            if about.st_uid in (os.getuid(), 0) and about.st_mtime >= since:
                maps[int(found[1])] = parse(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue  # it went away, or may not be read: the code has no names then
    return maps
