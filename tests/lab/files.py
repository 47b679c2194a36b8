"""Result files for tests, written by pyperf and in the shapes of other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Values = Sequence[Sequence[float]]


def pyperf_data(
    benchmarks: Mapping[str, Values], *, python: str = "3.13.1", unit: str = "second", memory: int | None = None
) -> dict[str, Any]:
    """The data of a pyperf file with these values, process by process; the file also has the calibration run that pyperf makes first."""
    import pyperf

    def run(name: str, values: Sequence[float], **more: object) -> Any:
        metadata = {"name": name, "python_version": python, "unit": unit, "loops": 4, **more}
        if memory is not None:
            metadata["mem_max_rss"] = memory
        return pyperf.Run(values, warmups=[(4, 1.0)], metadata=metadata, collect_metadata=False)

    made = []
    for name, processes in benchmarks.items():
        runs = [run(name, [], calibrate_loops=4), *(run(name, values) for values in processes)]
        made.append(pyperf.Benchmark(runs))
    return pyperf.BenchmarkSuite(made)._as_json()  # what its dump() writes


def write(path: Path, data: object) -> Path:
    """Writes data as JSON; a string as it is."""
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def write_pyperf(path: Path, benchmarks: Mapping[str, Values], **options: Any) -> Path:
    """Writes a pyperf file with these values."""
    return write(path, pyperf_data(benchmarks, **options))


def noisy(
    names: Sequence[str], *, seed: int, ratio: float = 1.0, spread: float = 0.01, processes: int = 10, values: int = 3
) -> dict[str, Values]:
    """Values of benchmarks between a microsecond and a second: log-normal noise of processes, and a quarter as much within them."""
    random = np.random.default_rng(seed)
    centres = {name: 10.0 ** -(1 + sum(name.encode()) % 6) for name in names}
    made = {}
    for name in names:
        of_process = random.normal(0.0, spread, (processes, 1))
        within = random.normal(0.0, spread / 4, (processes, values))
        made[name] = (centres[name] * ratio * np.exp(of_process + within)).tolist()
    return made
