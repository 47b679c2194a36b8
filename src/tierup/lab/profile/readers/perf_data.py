"""perf's own files, read by perf itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tierup.lab.errors import LabError
from tierup.lab.profile import perf
from tierup.lab.profile.model import Profile
from tierup.lab.profile.perf_map import PerfMap, read_all
from tierup.lab.profile.readers import perf_script

MAGIC: Final = (b"PERFILE2", b"2ELIFREP", b"PERFFILE")
"""What such a file begins with (`PERF_MAGIC` in the kernel's tools/perf/util/header.c)."""


def is_perf_data(path: Path) -> bool:
    """Whether a file begins as perf's. Raises LabError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(8) in MAGIC
    except OSError as error:
        raise LabError(f"cannot read {str(path)!r}: {error.strerror}") from None


def read(name: str, path: Path, maps: Mapping[int, PerfMap] | None = None) -> Profile:
    """The profile in a perf.data file. maps: perf maps by pid; by default those that lie beside the file.

    Raises LabError where perf is absent or finds nothing.
    """
    try:
        tool = perf.find()
    except LabError as error:
        raise LabError(f"{error}; a text that needs no perf is made by: perf script -F {perf_script.FIELDS}") from None
    text, complaint = perf.script(tool, path, perf_script.FIELDS)
    problems = () if complaint is None else (f"perf could not read all of it: {complaint}",)
    return perf_script.parse(name, text, problems, read_all(path.parent) if maps is None else maps)
