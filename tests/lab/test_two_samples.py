"""One benchmark of two results: does it differ, and by how much."""

from __future__ import annotations

import statistics
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierup.lab.statistics.two_samples import ALPHA, MAX_UNITS, MIN_PROCESSES, two_samples
from tierup.lab.statistics.verdict import RELIABILITIES

times = st.floats(0.5, 2.0, allow_subnormal=False)
sides = st.lists(st.lists(times, min_size=1, max_size=3), min_size=1, max_size=8)


def arrays(processes):
    return [np.array(values) for values in processes]


@given(sides, sides)
def test_units_are_medians_of_processes_where_there_are_enough(base, head):
    found = two_samples(arrays(base), arrays(head))
    if min(len(base), len(head)) >= MIN_PROCESSES:
        units = [[statistics.median(values) for values in side] for side in (head, base)]
        assert found.unit == "process"
    else:
        units = [[value for values in side for value in values] for side in (head, base)]
        assert found.unit == "value"
    ratios = sorted(log(a) - log(b) for a in units[0] for b in units[1])
    assert found.shape == (len(units[0]), len(units[1]))
    assert found.differences == pytest.approx(ratios)
    assert found.shift == pytest.approx(statistics.median(ratios), abs=1e-12)


@given(sides, sides, st.sampled_from([0.01, 0.05, 0.1, 0.5]))
def test_the_interval_holds_the_shifts_that_are_not_significant(base, head, alpha):
    found = two_samples(arrays(base), arrays(head))
    low, high = found.bounds(alpha)
    assert low <= found.shift <= high
    assert (low > 0 or high < 0) == (found.p <= alpha)
    for bound, inside in ((low, low + 1e-9), (high, high - 1e-9)):
        if np.isfinite(bound) and low + 2e-9 < high:
            shifted = two_samples(arrays(base), [np.exp(np.log(values) - inside) for values in arrays(head)])
            assert shifted.p > alpha


@given(sides, sides)
def test_slower_is_the_reciprocal_of_faster(base, head):
    there = two_samples(arrays(base), arrays(head))
    back = two_samples(arrays(head), arrays(base))
    assert there.shift == pytest.approx(-back.shift, abs=1e-12)
    assert there.p == back.p
    if there.shift != 0:
        assert {there.verdict.direction, back.verdict.direction} == {"faster", "slower"}
        for level in RELIABILITIES:
            assert there.verdict.speedup[level] == pytest.approx(back.verdict.speedup[level])


def test_a_clear_difference_is_found_with_its_size():
    random = np.random.default_rng(5)
    base = [np.exp(random.normal(0.0, 0.01, 3)) for _ in range(20)]
    head = [1.05 * np.exp(random.normal(0.0, 0.01, 3)) for _ in range(20)]
    found = two_samples(base, head)
    assert found.significant and found.verdict.direction == "slower"
    assert exp(found.shift) == pytest.approx(1.05, abs=0.01)
    factors = [found.verdict.speedup[level] for level in RELIABILITIES]
    assert 1.02 < factors[2] <= factors[1] <= factors[0] < 1.05


def test_values_that_share_their_processes_luck_are_no_evidence():
    """Two like results whose processes differ by ten times the spread within them: the processes count, not the values."""
    random = np.random.default_rng(6)

    def side():
        return [np.exp(random.normal(0, 0.05) + random.normal(0, 0.005, 10)) for _ in range(6)]

    pairs = [(side(), side()) for _ in range(400)]
    share = sum(two_samples(base, head).p <= 0.05 for base, head in pairs) / len(pairs)
    pooled = sum(two_samples([np.concatenate(base)], [np.concatenate(head)]).p <= 0.05 for base, head in pairs) / len(pairs)
    assert share <= 0.08
    assert pooled > 0.3


@pytest.mark.parametrize("processes", [1, 3, 10, 20])
def test_like_samples_differ_significantly_as_rarely_as_said(processes):
    random = np.random.default_rng(processes)
    pairs = [[[np.exp(random.normal(0, 0.01, 12)) for _ in range(processes)] for _ in range(2)] for _ in range(1000)]
    share = sum(two_samples(base, head).significant for base, head in pairs) / len(pairs)
    assert share <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / len(pairs)) ** 0.5


def test_one_value_says_nothing():
    found = two_samples([np.array([1.0])], [np.array([9.0])])
    assert not found.significant and found.p == 1.0
    assert found.verdict.speedup == dict.fromkeys(RELIABILITIES)


def test_many_values_of_a_process_are_joined_in_runs():
    random = np.random.default_rng(7)
    base, head = (random.normal(1.0, 0.01, 100_000) for _ in range(2))
    assert two_samples([base], [head]).shape == (MAX_UNITS, MAX_UNITS)
