"""One benchmark: by what factor head and base differ, and whether they do.

Wilcoxon's rank-sum test of logarithms, and the estimate and interval that Hodges and Lehmann (1963) draw from it. What is ranked are
processes, each by the median of its values, since values of one process share its luck (hash seeds, memory layout: Kalibera and Jones
2013); tests that take such values for independent call noise a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Final, Literal

import numpy as np

from tierup.lab.results.model import FloatArray
from tierup.lab.statistics.ranks import largest_significant, rank_sum_probabilities, two_sided
from tierup.lab.statistics.verdict import RELIABILITIES, Direction, Verdict

ALPHA: Final = 0.05
"""Two-sided level below which a difference is called significant."""

MIN_PROCESSES: Final = 4
"""With fewer processes on a side no difference could be significant, and values are ranked instead."""

MAX_UNITS: Final = 200
"""More values of a process than this are joined in runs, each by its median: neighbours in time are alike, and pairs are many."""


@dataclass(frozen=True)
class TwoSamples:
    """The comparison of one benchmark."""

    differences: FloatArray
    """log(head) - log(base) of every pair of units, ascending, shape (n·m,)."""
    shape: tuple[int, int]
    """Units of head and of base."""
    unit: Literal["process", "value"]
    """What was compared with what."""

    @property
    def _probabilities(self) -> FloatArray:
        # In one order, so that exchanged sides give the same bits.
        return rank_sum_probabilities(*sorted(self.shape))

    @cached_property
    def shift(self) -> float:
        """The typical logarithm of head/base: the median of all pairs."""
        return float(np.median(self.differences))

    @cached_property
    def p(self) -> float:
        """Two-sided probability of such a difference between like samples; ties speak for likeness."""
        below = np.searchsorted(self.differences, 0.0, "right")
        above = len(self.differences) - np.searchsorted(self.differences, 0.0, "left")
        return two_sided(self._probabilities, float(min(below, above)))

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at level ALPHA."""
        low, high = self.bounds(ALPHA)
        return low > 0 or high < 0

    def bounds(self, alpha: float) -> tuple[float, float]:
        """The shifts of the head that the test would not call significant at a level: an interval of confidence 1 - alpha.

        Infinite where the samples are too small for any difference to be significant.
        """
        rank = largest_significant(self._probabilities, alpha)
        if rank < 0:
            return -np.inf, np.inf
        return float(self.differences[rank]), float(self.differences[-1 - rank])

    @cached_property
    def verdict(self) -> Verdict:
        """What is said of the benchmark by itself."""
        direction: Direction = "slower" if self.shift > 0 else "faster"
        speedup: dict[float, float | None] = {}
        for level in RELIABILITIES:
            low, high = self.bounds(1 - level)
            least = low if direction == "slower" else -high
            speedup[level] = exp(least) if least > 0 else None
        return Verdict(1, direction, 1 - self.p, speedup)


def two_samples(base: Sequence[FloatArray], head: Sequence[FloatArray]) -> TwoSamples:
    """Compares values by process (arrays of one dimension, above zero) of a benchmark."""
    by_process = min(len(base), len(head)) >= MIN_PROCESSES
    left, right = (_units(side, by_process) for side in (head, base))
    differences = np.sort((left[:, None] - right[None, :]).ravel())
    return TwoSamples(differences, (len(left), len(right)), "process" if by_process else "value")


def _units(processes: Sequence[FloatArray], by_process: bool) -> FloatArray:
    parts = processes if by_process else [np.concatenate(processes)]
    if len(parts) > MAX_UNITS:
        parts, by_process = [_medians(parts)], False
    if not by_process:
        parts = np.array_split(parts[0], min(len(parts[0]), MAX_UNITS))
    return np.log(_medians(parts))


def _medians(parts: Sequence[FloatArray]) -> FloatArray:
    if len({len(part) for part in parts}) == 1:
        medians: FloatArray = np.median(np.stack(parts), axis=1)
        return medians
    return np.array([np.median(part) for part in parts])
