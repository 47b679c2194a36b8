"""Hierarchical bootstrap: intervals of ratios of means, and of their geometric mean.

Processes are drawn with replacement, whole, with the values that they measured (Ren et al., "Nonparametric bootstrapping for hierarchical
data", 2010: the lower level is not drawn again); a file of one process has its values drawn. Over benchmarks there are two intervals: of
these benchmarks, and of such benchmarks, for which benchmarks are drawn too. The bootstrap of n draws has a variance too small by
(n-1)/n; deviations are stretched by the root of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from tierup.lab.results.model import FloatArray

DRAWS: Final = 2_000
"""Resamples; the same seed is used always, so that figures are repeatable."""

Interval: TypeAlias = tuple[float, float]


def draw_log_ratios(base: Sequence[FloatArray], head: Sequence[FloatArray], random: np.random.Generator) -> FloatArray | None:
    """Bootstrapped log(mean(head) / mean(base)) of one benchmark, shape (DRAWS,); None where a side has one value only.

    base, head: values by process.
    """
    above, below = _draw_log_means(head, random), _draw_log_means(base, random)
    return None if above is None or below is None else above - below


def interval(log_ratios: FloatArray, level: float) -> Interval:
    """The interval of a ratio, of that confidence, from draws of its logarithm."""
    low, high = np.exp(np.quantile(log_ratios, [(1 - level) / 2, (1 + level) / 2]))
    return float(low), float(high)


def draw_geometric_means(log_ratios: FloatArray, random: np.random.Generator | None = None) -> FloatArray:
    """Bootstrapped logarithms of geometric means, shape (DRAWS,), from log_ratios of shape (benchmarks, DRAWS).

    With `random`, benchmarks are drawn too.
    """
    count = len(log_ratios)
    means: FloatArray = log_ratios.mean(axis=0)
    if random is None or count < 2:
        return means
    chosen = random.integers(0, count, (count, log_ratios.shape[1]))
    drawn: FloatArray = np.take_along_axis(log_ratios, chosen, axis=0).mean(axis=0)
    return means + (drawn - means) * _stretch(count)


def _draw_log_means(processes: Sequence[FloatArray], random: np.random.Generator) -> FloatArray | None:
    parts = processes if len(processes) > 1 else np.split(processes[0], len(processes[0]))
    count = len(parts)
    if count < 2:
        return None
    chosen = random.integers(0, count, (DRAWS, count))
    sums = np.array([part.sum() for part in parts])
    sizes = np.array([len(part) for part in parts])
    drawn = np.log(sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1))
    centre = np.log(sums.sum() / sizes.sum())
    result: FloatArray = centre + (drawn - centre) * _stretch(count)
    return result


def _stretch(count: int) -> float:
    return float(np.sqrt(count / (count - 1)))
