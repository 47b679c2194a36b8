"""Hierarchical performance testing: whether a head is faster or slower over benchmarks, how sure that is, and by how much at least.

After Chen et al., "Statistical performance comparisons of computers" (HPCA 2012): within each benchmark a rank-sum test
(`two_samples.py`) says whether it differs at all, and those that do not take no part; across benchmarks, Wilcoxon's signed-rank test asks
whether the others lean one way. Three things are decided here. What is ranked is the logarithm of the ratio, so that a benchmark's length
does not matter and slower is the reciprocal of faster. Probabilities are exact, so that few benchmarks are not called sure. They are
two-sided, because the direction is taken from the same data: like heads are called 99 % reliable in at most 1 % of comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log, log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tierup.lab.results.model import FloatArray
from tierup.lab.statistics.ranks import average_ranks, largest_significant, signed_rank_probabilities, two_sided
from tierup.lab.statistics.two_samples import ALPHA, TwoSamples
from tierup.lab.statistics.verdict import RELIABILITIES, Direction, Verdict, percent

_STEP: Final = 0.001
"""Factors are tried in thousandths, and beyond 10 in thousandths of themselves."""
_AT_ONCE: Final = 2_000


@dataclass(frozen=True)
class Reliability(Verdict):
    """What the test says of one head."""

    significant: int
    """Benchmarks that differ significantly by themselves."""
    notes: tuple[str, ...]
    """What the numbers cannot say."""


def hpt(benchmarks: Sequence[TwoSamples]) -> Reliability:
    """Compares over benchmarks. Raises ValueError where there is none."""
    if not benchmarks:
        raise ValueError("no benchmarks")
    shifts = np.array([bench.shift for bench in benchmarks])
    bounds = np.array([bench.bounds(ALPHA) for bench in benchmarks])
    differ = np.array([bench.significant for bench in benchmarks])
    faster, slower = _rank_sums(shifts[differ])
    count = int(differ.sum())
    reliability = 1 - two_sided(signed_rank_probabilities(count), min(faster, slower))
    direction: Direction = "slower" if slower > faster or (slower == faster and shifts.mean() > 0) else "faster"
    if direction == "faster":
        shifts, bounds = -shifts, -bounds[:, ::-1]
    speedup = {level: _least_factor(shifts, bounds, level) if reliability >= level else None for level in RELIABILITIES}
    return Reliability(len(benchmarks), direction, reliability, speedup, count, tuple(_notes(len(benchmarks), count)))


def fewest(level: float) -> int:
    """How many benchmarks it takes to reach a reliability, if all lean one way: two-sided, 2·2⁻ⁿ has to be at most 1 - level."""
    return next(n for n in range(1, 100) if largest_significant(signed_rank_probabilities(n), 1 - level) >= 0)


def _rank_sums(shifts: FloatArray) -> tuple[float, float]:
    """The sums of the ranks of negative and of positive shifts."""
    ranks = average_ranks(np.abs(shifts))
    return float(ranks[shifts < 0].sum()), float(ranks[shifts > 0].sum())


def _least_factor(shifts: FloatArray, bounds: FloatArray, level: float) -> float:
    """The largest factor, at least 1, up to which the test, made against heads scaled by it, still says so; all shifts are away from 0.

    shifts has shape (n,), bounds (n, 2). A benchmark takes part in the test against a factor if the factor is outside its interval.
    """
    limits = _limits(len(shifts), level)
    reached = 1.0
    for factors in _factors(exp(float(shifts.max()))):
        at = np.log(factors)[:, None]
        takes_part = (bounds[:, 0] > at) | (bounds[:, 1] < at)
        holds = _ranks_against(shifts - at, takes_part) <= limits[takes_part.sum(axis=1)]
        if not holds.all():
            first = int(np.argmin(holds))
            return float(factors[first - 1]) if first else reached
        reached = float(factors[-1])
    return reached


def _ranks_against(shifts: FloatArray, takes_part: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row, the sum of the ranks of negative shifts among those that take part; both have shape (factors, benchmarks)."""
    order = np.argsort(np.where(takes_part, np.abs(shifts), np.inf), axis=1)
    against = np.take_along_axis(takes_part & (shifts < 0), order, axis=1)
    sums: NDArray[np.int64] = np.where(against, np.arange(1, shifts.shape[1] + 1), 0).sum(axis=1)
    return sums


@lru_cache(maxsize=64)
def _limits(most: int, level: float) -> NDArray[np.int64]:
    """For 0 … most benchmarks that take part, the largest sum of ranks against a verdict that has that reliability; -1 if none has."""
    return np.array([largest_significant(signed_rank_probabilities(count), 1 - level) for count in range(most + 1)])


def _factors(most: float) -> Iterator[FloatArray]:
    """Ascending factors above 1, in portions, the last of which is above `most`."""
    linear = 1 + np.arange(1, round(9 / _STEP) + 1) * _STEP
    more = max(0, ceil(log(most / 10) / log1p(_STEP))) + 1
    factors = np.concatenate([linear, 10 * (1 + _STEP) ** np.arange(1, more + 1)])
    for start in range(0, len(factors), _AT_ONCE):
        yield factors[start : start + _AT_ONCE]


def _notes(count: int, significant: int) -> Iterator[str]:
    top = max(RELIABILITIES)
    if count < fewest(top):
        missed = [level for level in RELIABILITIES if count < fewest(level) and level != top]
        yield f"too few benchmarks to reach {percent(top)}" + (f" (or {' or '.join(map(percent, missed))})" if missed else "")
    elif not significant:
        yield "no benchmark differs significantly"
    elif significant < fewest(top):
        yield f"too few benchmarks differ significantly to reach {percent(top)}"
