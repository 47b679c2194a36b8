"""Bootstrap intervals hold the true ratio as often as they say."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from tierup.lab.statistics.bootstrap import DRAWS, draw_geometric_means, draw_log_ratios, interval


def processes(random, count, values, centre=1.0, between=0.02, within=0.01):
    return [centre * np.exp(random.normal(0, between) + random.normal(0, within, values)) for _ in range(count)]


def share_within(trials, one_trial):
    return sum(one_trial() for _ in range(trials)) / trials


@pytest.mark.parametrize(("count", "values", "least"), [(20, 3, 0.91), (10, 3, 0.9), (6, 10, 0.86), (1, 60, 0.91)])
def test_one_benchmark(count, values, least):
    """With few processes the percentile bootstrap is a little too sure; how much is pinned here."""
    random = np.random.default_rng(count)
    between = 0.0 if count == 1 else 0.02

    def holds():
        base, head = (processes(random, count, values, centre, between) for centre in (1.0, 1.03))
        low, high = interval(draw_log_ratios(base, head, random), 0.95)
        return low <= 1.03 <= high

    assert least <= share_within(300, holds) <= 0.985


def test_geometric_means_of_these_benchmarks():
    random = np.random.default_rng(3)

    def holds():
        draws = []
        for _ in range(10):
            base, head = (processes(random, 10, 3, centre) for centre in (1.0, 1.02))
            draws.append(draw_log_ratios(base, head, random))
        low, high = interval(draw_geometric_means(np.array(draws)), 0.95)
        return low <= 1.02 <= high

    assert 0.91 <= share_within(200, holds) <= 0.99


def test_geometric_means_of_such_benchmarks():
    """The ratios of the benchmarks vary by far more than their noise: only the interval over benchmarks holds the mean of all such."""
    random = np.random.default_rng(4)
    ratios = np.exp(random.normal(0.05, 0.1, (200, 20)))
    noise = random.normal(0, 0.001, (20, DRAWS))
    over, these = 0, 0
    for row in ratios:
        draws = np.log(row)[:, None] + noise
        low, high = interval(draw_geometric_means(draws, random), 0.95)
        over += low <= exp(0.05) <= high
        low, high = interval(draw_geometric_means(draws), 0.95)
        these += low <= exp(0.05) <= high
    assert over / 200 > 0.89
    assert these / 200 < 0.2


def test_one_value_has_no_interval():
    random = np.random.default_rng(1)
    assert draw_log_ratios([np.array([1.0])], [np.array([1.0, 2.0])], random) is None


def test_draws_are_around_the_ratio_of_means():
    random = np.random.default_rng(2)
    base, head = [np.array([1.0, 1.2]), np.array([0.8])], [np.array([2.0, 2.2]), np.array([1.8])]
    assert np.exp(draw_log_ratios(base, head, random).mean()) == pytest.approx(2.0, rel=0.05)
