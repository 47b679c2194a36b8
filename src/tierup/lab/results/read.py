"""Opening a result file, whichever tool wrote it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tierup.lab.errors import ReadError
from tierup.lab.results import other_tools
from tierup.lab.results.json_files import read_json_or_front
from tierup.lab.results.model import Results
from tierup.lab.results.pyperf_files import from_pyperf


def read(path: str | PathLike[str]) -> Results:
    """The results in a JSON file of pyperf, pytest-benchmark, asv or hyperfine, which may be gzipped.

    What cannot be used is left out and named in `problems`. Raises ReadError where nothing can be used, MissingLibraryError where
    the file is pyperf's and pyperf is not installed.
    """
    path = Path(path)
    data, complaint = read_json_or_front(path, "benchmarks")
    reader = _reader(data)
    if reader is None:
        raise ReadError(f"{path} is no result file of pyperf, pytest-benchmark, asv or hyperfine")
    return reader(path, data, complaint)


def _reader(data: object) -> Callable[[Path, Mapping[str, Any], str | None], Results] | None:
    """Who reads such data, told by the keys that only one tool writes."""
    if not isinstance(data, dict):
        return None
    if "benchmarks" in data:
        entries = data["benchmarks"] if isinstance(data["benchmarks"], list) else []
        if any(isinstance(entry, dict) and "stats" in entry for entry in entries):
            return other_tools.from_pytest_benchmark
        return from_pyperf if all(isinstance(entry, dict) and "runs" in entry for entry in entries) else None
    if isinstance(data.get("results"), list):
        return other_tools.from_hyperfine
    if isinstance(data.get("results"), dict) and "result_columns" in data:
        return other_tools.from_asv
    return None
