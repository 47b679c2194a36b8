"""Result files of pytest-benchmark, asv and hyperfine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tierup.lab.errors import ReadError
from tierup.lab.results.model import Benchmark, FloatArray, Results, checked_values, clean_name

_Entry: TypeAlias = tuple[str, Sequence[FloatArray], float | None]
"""A benchmark's name, the values by process, and its peak memory in bytes."""


def from_pytest_benchmark(path: Path, data: Mapping[str, Any], complaint: str | None = None) -> Results:
    """pytest-benchmark's `--benchmark-json`: one process; the rounds' means where the file has them (`--benchmark-save-data`).

    Raises ReadError where nothing can be used.
    """

    def entry(bench: Mapping[str, Any]) -> _Entry:
        stats = bench["stats"]
        return str(bench.get("fullname") or bench["name"]), [checked_values(stats.get("data") or [stats["mean"]])], None

    python = (data.get("machine_info") or {}).get("python_version")
    notes = [] if complaint is None else [complaint]
    if not any(bench.get("stats", {}).get("data") for bench in data["benchmarks"] if isinstance(bench, dict)):
        notes.append(f"{path} has only means, no single values: pytest-benchmark writes them with --benchmark-save-data")
    return _results(path, (_Attempt(bench, entry) for bench in data["benchmarks"]), python, notes)


def from_hyperfine(path: Path, data: Mapping[str, Any], complaint: str | None = None) -> Results:
    """hyperfine's `--export-json`: every value is a process of its own. Raises ReadError where nothing can be used."""

    def entry(result: Mapping[str, Any]) -> _Entry:
        peaks = [float(peak) for peak in result.get("memory_usage_byte") or () if peak]
        times = np.split(checked_values(result["times"]), len(result["times"]))
        return str(result["command"]), times, float(np.mean(peaks)) if peaks else None

    return _results(path, (_Attempt(result, entry) for result in data["results"]), None, [] if complaint is None else [complaint])


def from_asv(path: Path, data: Mapping[str, Any], complaint: str | None = None) -> Results:
    """A result file of asv (version 2), a benchmark for each combination of parameters; all samples as of one process.

    Benchmarks that failed or were skipped there are left out and named. Raises ReadError where nothing can be used.
    """
    python = data.get("python")
    columns = data["result_columns"]
    attempts = (attempt for name, row in data["results"].items() for attempt in _asv_attempts(name, dict(zip(columns, row, strict=False))))
    return _results(path, attempts, python if isinstance(python, str) else None, [] if complaint is None else [complaint])


def _asv_attempts(name: str, row: Mapping[str, Any]) -> Iterator[_Attempt]:
    labels = [f"({', '.join(chosen)})" for chosen in itertools.product(*row["params"])] if row.get("params") else [""]
    medians = row["result"] or [None] * len(labels)
    samples = row.get("samples") or [None] * len(labels)
    for label, median, values in zip(labels, medians, samples, strict=False):

        def entry(values: Any, name: str = name + label, median: Any = median) -> _Entry:
            if median is None:
                raise ValueError("it failed or was skipped")
            return name, [checked_values(values or [median])], None

        yield _Attempt(values, entry, name + label)


class _Attempt:
    """One benchmark of a file, and how to read it."""

    def __init__(self, source: Any, read: Any, name: str | None = None) -> None:
        self._source = source
        self._read = read
        self._name = name

    def entry(self) -> _Entry:
        """Raises ValueError, KeyError, TypeError or AttributeError where the file has something else there."""
        entry: _Entry = self._read(self._source)
        return entry

    def name(self, number: int) -> str:
        """What to call it in a message."""
        found = self._name
        if found is None and isinstance(self._source, dict):
            found = self._source.get("fullname") or self._source.get("command") or self._source.get("name")
        return repr(found) if found else f"number {number + 1}"


def _results(path: Path, attempts: Iterable[_Attempt], python: str | None, problems: list[str]) -> Results:
    benchmarks: dict[str, Benchmark] = {}
    for number, attempt in enumerate(attempts):
        try:
            entry_name, processes, memory = attempt.entry()
            name = clean_name(entry_name)
            if name in benchmarks:
                raise ValueError("the file has it more than once; the first is used")
            benchmarks[name] = Benchmark(name, tuple(processes), memory=memory)
        except KeyError as error:
            problems.append(f"{path}: benchmark {attempt.name(number)} left out: it has no {error.args[0]!r}")
        except (AttributeError, TypeError, ValueError) as error:
            problems.append(f"{path}: benchmark {attempt.name(number)} left out: {error}")
    if not benchmarks:
        raise ReadError(f"{path} has no benchmark that can be used" + (f": {problems[-1]}" if problems else ""))
    return Results(path, benchmarks, python, tuple(problems))
