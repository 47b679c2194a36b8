"""Timing two ways of doing the same: interleaved pairs and a bootstrap interval of their ratio.

The two are measured alternately, in an order that changes from pair to pair, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

Action = Callable[..., Any]

RESAMPLES = 2000


@dataclass(frozen=True)
class Comparison:
    """Times of one run in seconds (medians), and how many times as fast `ours` is, with a 95 % interval."""

    plain: float
    ours: float
    ratio: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.ratio:.2f} [{self.low:.2f}, {self.high:.2f}]"


def once(action: Action, args: Sequence[Any] = (), loops: int = 1) -> float:
    """Seconds per call."""
    calls = range(loops)
    start = time.perf_counter()
    for _ in calls:
        action(*args)
    return (time.perf_counter() - start) / loops


def loops_for(action: Action, args: Sequence[Any], seconds: float) -> int:
    """How many calls take about that long."""
    loops = 1
    while (elapsed := once(action, args, loops) * loops) < seconds / 4:
        loops *= 4
    return max(1, round(loops * seconds / elapsed))


def summary(plain: Sequence[float], ours: Sequence[float]) -> Comparison:
    """The comparison that paired times make: the median of ratios, resampled.

    A ratio is that of two successive pairs, in which the order was one way and then the other: where every second call finds memory in
    another state, say, that falls on both alike.
    """
    ratios = _of_two_pairs(plain) / _of_two_pairs(ours)
    rng = np.random.default_rng(0)
    samples = np.median(rng.choice(ratios, (RESAMPLES, len(ratios))), axis=1)
    low, high = np.percentile(samples, [2.5, 97.5])
    middle = [float(np.median(times)) for times in (plain, ours)]
    return Comparison(middle[0], middle[1], float(np.median(ratios)), float(low), float(high), len(plain))


def _of_two_pairs(times: Sequence[float]) -> np.ndarray:
    """Sums of two successive times; the times themselves if there are fewer than four."""
    if len(times) < 4:
        return np.array(times)
    even = np.array(times[: len(times) // 2 * 2])
    return even.reshape(-1, 2).sum(axis=1)


def compare(plain: Action, ours: Action, args: Sequence[Any] = (), *, pairs: int = 25, seconds: float = 0.01) -> Comparison:
    """Compares two callables on the same arguments; each measurement repeats its call for about so many seconds."""
    loops = loops_for(plain, args, seconds), loops_for(ours, args, seconds)
    return paired(lambda which: once((plain, ours)[which], args, loops[which]), pairs)


def paired(measure: Callable[[int], float], pairs: int) -> Comparison:
    """Compares two things; measure(0) and measure(1) give the seconds that one run of either takes."""
    times: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for which in order(pair):
            times[which].append(measure(which))
    return summary(*times)


def order(pair: int) -> tuple[int, int]:
    """Which of the two comes first in a pair."""
    return (0, 1) if pair % 2 == 0 else (1, 0)


def same_bits(one: Any, other: Any) -> bool:
    """Whether two results are the same: types, dtypes, shapes, memory order and bits; of arithmetic NaNs only the place."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same_bits, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_bits(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape or one.strides != other.strides:
            return False
        return one.dtype == object or _same_elements(one, other)
    if isinstance(one, (float, complex, np.generic)):
        return _same_elements(np.asarray(one), np.asarray(other))
    return bool(one == other)


def _same_elements(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.kind == "c":
        parts = zip((one.real, one.imag), (other.real, other.imag), strict=True)
        return all(_same_elements(mine, theirs) for mine, theirs in parts)
    if one.dtype.kind != "f":
        return one.tobytes() == other.tobytes()
    nan = np.isnan(one)
    if not np.array_equal(nan, np.isnan(other)):
        return False
    return np.where(nan, 0, one).tobytes() == np.where(nan, 0, other).tobytes()


def machine() -> dict[str, str]:
    """What a result depends on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0] if names else cpu
    return {"cpu": cpu, "python": platform.python_version(), "numpy": np.__version__, "date": time.strftime("%Y-%m-%d")}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--pairs", type=int, default=25, help="interleaved measurements of each (25)")
    return parser


def write_json(path: str | None, results: dict[str, Any]) -> None:
    """Writes results with the machine they come from."""
    if path is not None:
        plain = {key: asdict(value) if isinstance(value, Comparison) else value for key, value in results.items()}
        Path(path).write_text(json.dumps({"machine": machine(), "results": plain}, indent=1) + "\n", encoding="utf-8")


def time_text(seconds: float) -> str:
    """A time with a unit that fits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def progress(text: str) -> None:
    """Says on a terminal what is going on; the next call replaces it. Silent elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
