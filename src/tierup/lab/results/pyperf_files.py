"""Result files of pyperf, read by pyperf itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from tierup.lab.errors import MissingLibraryError, ReadError
from tierup.lab.results.model import Benchmark, Results, checked_values, clean_name

_MEMORY: Final = ("command_max_rss", "mem_max_rss")
"""Metadata with the peak of resident memory: of a measured command, else of the measuring process."""

_UNREADABLE: Final = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What pyperf raises where data do not have the shape that it expects."""


def from_pyperf(path: Path, data: Mapping[str, Any], complaint: str | None = None) -> Results:
    """The results in the data of a pyperf file; benchmarks that cannot be used are left out and reported.

    complaint: what is wrong with the file already. Raises ReadError where nothing can be used, MissingLibraryError without pyperf.
    """
    problems = [] if complaint is None else [complaint]
    benchmarks: dict[str, Benchmark] = {}
    versions: list[str] = []
    for bench in _benchmarks(path, data, problems):
        name = clean_name(bench.get_name())
        try:
            if name in benchmarks:
                raise ValueError("the file has it more than once; the first is used")
            benchmarks[name] = _converted(name, bench)
        except ValueError as error:
            problems.append(f"{path}: benchmark {name!r} left out: {error}")
        versions += [version for version in [bench.get_metadata().get("python_version")] if version]
    if not benchmarks:
        raise ReadError(f"{path} has no benchmark that can be used" + (f": {problems[0]}" if problems else ""))
    return Results(path, benchmarks, versions[0] if versions else None, tuple(problems))


def _benchmarks(path: Path, data: Mapping[str, Any], problems: list[str]) -> Iterator[Any]:
    """pyperf's Benchmark objects: of the whole file, or one by one where the file as a whole is refused."""
    try:
        import pyperf
    except ImportError:
        raise MissingLibraryError("pyperf") from None
    shell = {"version": data.get("version", "1.0"), "metadata": data.get("metadata") or {}}
    entries = data["benchmarks"] if isinstance(data["benchmarks"], list) else []
    try:
        yield from pyperf.BenchmarkSuite.loads(json.dumps({**shell, "benchmarks": entries})).get_benchmarks()
        return
    except _UNREADABLE:
        pass  # one bad benchmark makes pyperf refuse the file; the others are still good
    for number, entry in enumerate(entries):
        try:
            yield pyperf.Benchmark.loads(json.dumps({**shell, "benchmarks": [entry]}))
        except _UNREADABLE as error:
            problems.append(f"{path}: benchmark {_name_of(entry, number)} left out: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _name_of(entry: object, number: int) -> str:
    """What a benchmark calls itself, or its place in the file."""
    metadata = entry.get("metadata") if isinstance(entry, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return repr(name) if isinstance(name, str) else f"number {number + 1}"


def _converted(name: str, bench: Any) -> Benchmark:
    """Raises ValueError where the benchmark has no values, or one that is not a positive number."""
    runs = [run for run in bench.get_runs() if run.values]
    if not runs:
        raise ValueError("only calibration runs, no values")
    processes = tuple(checked_values(run.values) for run in runs)
    peaks = [peak for run in runs if (peak := _peak(run.get_metadata())) is not None]
    return Benchmark(name, processes, str(bench.get_unit()), float(np.mean(peaks)) if peaks else None)


def _peak(metadata: Mapping[str, Any]) -> float | None:
    for key in _MEMORY:
        if isinstance(metadata.get(key), (int, float)):
            return float(metadata[key])
    return None
