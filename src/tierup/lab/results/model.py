"""A result file in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]


_RANGE: Final = (1e-150, 1e150)
"""Values that can be squared and divided by each other without leaving what floats hold."""


def checked_values(values: Iterable[object]) -> FloatArray:
    """The values of a process as an array, shape (n,). Raises ValueError where one is no positive number, or there is none."""
    array = np.array(list(values), dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError("no values")
    if not ((array > _RANGE[0]) & (array < _RANGE[1])).all():
        raise ValueError("a value is zero, negative or not finite")
    return array


def clean_name(name: object) -> str:
    """A benchmark's name as it can be printed in a table: anything unprintable becomes U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(name))


@dataclass(frozen=True)
class Benchmark:
    """The values of one benchmark. Smaller is better, whatever the unit."""

    name: str
    processes: tuple[FloatArray, ...]
    """The values that each process measured, in the order of the file; every array has at least one value, all finite and above zero."""
    unit: str = "second"
    """pyperf's unit: second, byte or integer."""
    memory: float | None = None
    """Peak resident memory in bytes, mean of the processes; None where the file does not say."""

    @cached_property
    def values(self) -> FloatArray:
        """All values, shape (n,), process by process."""
        return np.concatenate(self.processes)

    @cached_property
    def mean(self) -> float:
        """The mean of all values."""
        return float(self.values.mean())


@dataclass(frozen=True)
class Results:
    """What one file says."""

    path: Path
    benchmarks: Mapping[str, Benchmark]
    python: str | None = None
    """Version of the interpreter that ran the benchmarks, where the file says."""
    problems: tuple[str, ...] = ()
    """What the file holds and could not be used, a line each; then the results are partial."""

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.path.name.removesuffix(".gz").removesuffix(".json")
