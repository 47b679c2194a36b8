"""Rank statistics against enumeration, and against SciPy's."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierup.lab.statistics.ranks import average_ranks, largest_significant, rank_sum_probabilities, signed_rank_probabilities, two_sided


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 1), (1, 5), (3, 4), (5, 2), (4, 5)])
def test_rank_sum_counts_arrangements(n, m):
    counts = np.zeros(n * m + 1)
    for places in itertools.combinations(range(n + m), n):
        counts[sum(place > first for first in places for place in set(range(n + m)) - set(places))] += 1
    assert rank_sum_probabilities(n, m) == pytest.approx(np.cumsum(counts) / counts.sum())


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8, 11])
def test_signed_rank_counts_signs(n):
    counts = np.zeros(n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(rank for rank, sign in enumerate(signs, 1) if sign)] += 1
    assert signed_rank_probabilities(n) == pytest.approx(np.cumsum(counts) / counts.sum())


@pytest.mark.parametrize(("n", "m"), [(20, 20), (60, 60), (10, 20), (40, 100), (63, 64), (64, 63)])
def test_rank_sum_agrees_with_scipy(n, m):
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(n)
    for shift in (0.0, 0.3, 0.8):
        first, second = random.normal(0, 1, n), random.normal(shift, 1, m)
        found = stats.mannwhitneyu(first, second, method="exact" if n * m <= 4000 else "asymptotic")
        below = int((first[:, None] < second[None, :]).sum())
        assert two_sided(rank_sum_probabilities(n, m), min(below, n * m - below)) == pytest.approx(found.pvalue, rel=1e-6)


@pytest.mark.parametrize("n", [5, 20, 102, 300, 301, 400])
def test_signed_rank_agrees_with_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(n)
    for shift in (0.0, 0.1):
        values = random.normal(shift, 1, n)
        exact = n <= 300
        found = stats.wilcoxon(values, method="exact" if exact else "asymptotic", correction=not exact)
        assert two_sided(signed_rank_probabilities(n), found.statistic) == pytest.approx(found.pvalue, rel=1e-6)


@given(st.lists(st.integers(-5, 5)))
def test_equal_values_share_their_ranks(values):
    ordered = sorted(values)
    expected = [Fraction(sum(k for k, other in enumerate(ordered, 1) if other == value), values.count(value)) for value in values]
    assert average_ranks(np.array(values, dtype=float)).tolist() == [float(rank) for rank in expected]


@pytest.mark.parametrize(("n", "alpha"), [(n, alpha) for n in range(1, 12) for alpha in (0.01, 0.05, 0.1)])
def test_the_largest_significant_statistic_is_the_last_one_below(n, alpha):
    probabilities = signed_rank_probabilities(n)
    limit = largest_significant(probabilities, alpha)
    assert limit < 0 or two_sided(probabilities, limit) <= alpha
    assert two_sided(probabilities, limit + 1) > alpha
