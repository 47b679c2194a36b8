"""Hierarchical performance testing with exactly the numbers that bench_runner prints.

After Chen et al., "Statistical performance comparisons of computers" (HPCA 2012), in the variant of bench_runner's hpt.py. Its
peculiarities are kept, because years of published figures have them: benchmarks are ranked by absolute differences of medians, so slow
ones weigh more; the rank-sum limits are exchanged, so the significance filter passes everything; where the sides have different numbers
of values, the pooled values are cut in their middle. `hpt.py` has none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tierup.lab.results.model import FloatArray
from tierup.lab.statistics.verdict import RELIABILITIES, Verdict

ALPHA: Final = 0.1
"""Level of the rank-sum limits, each side."""

MIN_VALUES: Final = 12
"""A benchmark needs so many values, on average of both sides."""

BEYOND: Final = -1.0
"""The speed-up is 10 or more: out of the range searched."""


@dataclass(frozen=True)
class RankSum:
    """One benchmark: the pooled values, cut in two."""

    head: int
    """Sum of the ranks of the first part; a tie's rank is rounded down."""
    base: int
    """Sum of the ranks of the second part."""
    lower: float
    upper: float
    """The limits; head ≤ lower or head ≥ upper is significant. lower > upper, so it always is."""
    difference: float
    """Median of the first part less median of the second, in the values' unit."""


@dataclass(frozen=True)
class SignedRank:
    """All benchmarks: Wilcoxon's signed-rank statistic and its normal approximation."""

    slower: float
    """Sum of the ranks of positive differences, with half the ranks of zeros."""
    faster: float
    """Sum of the ranks of negative differences, with half the ranks of zeros."""
    z: float
    p: float
    """Probability of so small a statistic."""


@dataclass(frozen=True)
class BenchRunnerVerdict(Verdict):
    """What the test says of one head. The factors of `speedup` are in hundredths; 1 where there is none, and BEYOND."""

    cross: SignedRank


def rank_sum(head: FloatArray, base: FloatArray) -> RankSum:
    """The rank-sum test of one benchmark; head and base have shapes (n,) and (m,). Raises ValueError below MIN_VALUES."""
    pooled = np.concatenate([head, base])
    size = len(pooled) // 2
    lower, upper = rank_sum_limits(size)
    smaller, same = _ranks(pooled)
    ranks = (smaller + 1 + (same - 1) // 2).astype(np.int64)
    return RankSum(int(ranks[:size].sum()), int(ranks[size:].sum()), lower, upper, _difference(pooled))


def rank_sum_limits(size: int) -> tuple[float, float]:
    """Lower and upper limit of the rank sum of `size` values among twice as many. Raises ValueError below MIN_VALUES."""
    if size < MIN_VALUES:
        raise ValueError(f"bench_runner's HPT needs {MIN_VALUES} values of each benchmark; there are {size}")
    middle = size * (2 * size + 1) / 2
    deviation = sqrt((2 * size + 1) / 3) * size / 2
    quantile = _normal_quantile(ALPHA)
    return middle - quantile * deviation, middle + quantile * deviation


def signed_rank(differences: FloatArray) -> SignedRank:
    """The signed-rank test over benchmarks; differences has shape (n,), n ≥ 1."""
    smaller, same = _ranks(np.abs(differences))
    ranks = smaller + 1 + (same - 1) / 2
    zeros = float(ranks[differences == 0].sum()) / 2
    slower = float(ranks[differences > 0].sum()) + zeros
    faster = float(ranks[differences < 0].sum()) + zeros
    n = len(differences)
    z = (slower - n * (n + 1) / 4) / sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return SignedRank(slower, faster, z, _normal_probability(z))


def hpt(base: Mapping[str, FloatArray], head: Mapping[str, FloatArray]) -> BenchRunnerVerdict:
    """Compares the benchmarks of base, all of which head has; values are all values of a benchmark, shape (n,).

    Raises ValueError where there is no benchmark, or one with too few values.
    """
    if not base:
        raise ValueError("no benchmarks")
    medians = _Medians([head[name] for name in base], [base[name] for name in base])
    cross = signed_rank(medians.differences(1.0))
    faster = cross.slower < cross.faster

    def holds(factor: float, level: float) -> bool:
        p = signed_rank(medians.differences(factor if faster else 1 / factor)).p
        return p < 1 - level if faster else p > level

    speedup = {level: _largest(partial(holds, level=level)) for level in RELIABILITIES}
    return BenchRunnerVerdict(len(base), "faster" if faster else "slower", 1 - cross.p if faster else cross.p, speedup, cross)


class _Medians:
    """The differences of medians as a function of a factor on the heads' values."""

    def __init__(self, head: Sequence[FloatArray], base: Sequence[FloatArray]) -> None:
        for side, other in zip(head, base, strict=True):
            rank_sum_limits((len(side) + len(other)) // 2)
        self._head = np.array([np.median(values) for values in head])
        self._base = np.array([np.median(values) for values in base])
        pairs = enumerate(zip(head, base, strict=True))
        self._mixed = {k: (side, other) for k, (side, other) in pairs if len(side) != (len(side) + len(other)) // 2}

    def differences(self, factor: float) -> FloatArray:
        """Shape (benchmarks,), in the values' unit."""
        result: FloatArray = factor * self._head - self._base
        for k, (head, base) in self._mixed.items():
            result[k] = _difference(np.concatenate([factor * head, base]))
        return result


def _difference(pooled: FloatArray) -> float:
    size = len(pooled) // 2
    return float(np.median(pooled[:size]) - np.median(pooled[size:]))


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest number of hundredths in [1, 10) that holds, where all smaller ones do; 1 if none, BEYOND if 10 does."""
    if holds(10.0):
        return BEYOND
    found, first = 0.0, 1
    for step in (1.0, 0.1, 0.01):
        digit = first
        while digit < 9 and holds(found + step * (digit + 1)):
            digit += 1
        found, first = found + step * digit, 0
    return found


def _ranks(values: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each value, how many are smaller, and how many are the same."""
    ordered = np.sort(values)
    smaller = np.searchsorted(ordered, values, "left")
    return smaller, np.searchsorted(ordered, values, "right") - smaller


def _normal_probability(z: float) -> float:
    """Φ(z) by the polynomial 26.2.17 of Abramowitz and Stegun, with the second coefficient that bench_runner has (…728 for …782)."""
    t = 1 / (1 + 0.2316419 * abs(z))
    tail = t * (0.31938153 + t * (-0.356563728 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail *= exp(-z * z / 2) / sqrt(2 * pi)
    return 1 - tail if z > 0 else tail


def _normal_quantile(p: float) -> float:
    """The inverse of Φ for p in (0, 1), by Toyama's series in y = -log 4p(1-p)."""
    y = -log(4 * p * (1 - p))
    total = 0.0
    for coefficient in reversed(_QUANTILE):
        total = (total + coefficient) * y
    return sqrt(total) if p > 0.5 else -sqrt(total)


_QUANTILE: Final = (
    1.570796288,
    0.03706987906,
    -0.0008364353589,
    -0.0002250947176,
    0.000006841218299,
    0.000005824238515,
    -0.00000104527497,
    0.00000008360937017,
    -0.000000003231081277,
    0.00000000003657763036,
    0.0000000000006936233982,
)
