"""Exact null distributions of the two rank statistics of Wilcoxon."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from tierup.lab.results.model import FloatArray

_EXACT_RANK_SUM: Final = 4_000
"""Up to so many pairs the distribution is exact; beyond it is normal to three digits of probabilities near 0.01."""
_EXACT_SIGNED_RANK: Final = 300
"""Up to so many differences, likewise."""

_ROUNDING: Final = 1e-12
"""Probabilities that differ by less are the same."""


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, equal values sharing the mean of theirs; shape (n,)."""
    ordered = np.sort(values)
    smaller = np.searchsorted(ordered, values, "left")
    ranks: FloatArray = (smaller + np.searchsorted(ordered, values, "right") + 1) / 2
    return ranks


@lru_cache(maxsize=256)
def rank_sum_probabilities(n: int, m: int) -> FloatArray:
    """P(U ≤ u) for u = 0 … nm, where U counts the pairs of n and m like values in which the first is smaller (Mann and Whitney, 1947).

    By their recurrence: the largest of all values belongs to the first n with probability n/(n+m), and then is smaller in no pair.
    """
    if n * m > _EXACT_RANK_SUM:
        return _normal(n * m / 2, sqrt(n * m * (n + m + 1) / 12), n * m + 1)
    size = n * m + 1
    row = np.zeros((m + 1, size))
    row[:, 0] = 1.0
    for i in range(1, n + 1):
        above, row = row, np.zeros((m + 1, size))
        row[0, 0] = 1.0
        for j in range(1, m + 1):
            row[j] = i / (i + j) * above[j]
            row[j, i:] += j / (i + j) * row[j - 1, : size - i]
    probabilities: FloatArray = np.minimum(np.cumsum(row[m]), 1.0)
    return probabilities


@lru_cache(maxsize=1024)
def signed_rank_probabilities(n: int) -> FloatArray:
    """P(W ≤ w) for w = 0 … n(n+1)/2, where W sums those of the ranks 1 … n that fair coins choose (Wilcoxon, 1945)."""
    size = n * (n + 1) // 2 + 1
    if n > _EXACT_SIGNED_RANK:
        return _normal((size - 1) / 2, sqrt(n * (n + 1) * (2 * n + 1) / 24), size)
    density = np.zeros(size)
    density[0] = 1.0
    for rank in range(1, n + 1):
        taken = density[: size - rank].copy()
        density *= 0.5
        density[rank:] += 0.5 * taken
    probabilities: FloatArray = np.minimum(np.cumsum(density), 1.0)
    return probabilities


def two_sided(probabilities: FloatArray, statistic: float) -> float:
    """The probability of a statistic as extreme, in either direction; `statistic` is the smaller of the two sums, ties rounded up."""
    return min(1.0, 2.0 * float(probabilities[min(ceil(statistic), len(probabilities) - 1)]))


def largest_significant(probabilities: FloatArray, alpha: float) -> int:
    """The largest statistic whose two-sided probability is at most alpha; -1 if even that of 0 is larger."""
    return int(np.searchsorted(2.0 * probabilities, alpha + _ROUNDING, "right")) - 1


def _normal(mean: float, deviation: float, size: int) -> FloatArray:
    """Normal approximation with continuity correction."""
    spread = NormalDist(mean, deviation)
    return np.array([spread.cdf(value + 0.5) for value in range(size)])
