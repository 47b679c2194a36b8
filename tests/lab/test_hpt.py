"""The lab's own HPT."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.files import noisy
from tierup.lab.statistics.hpt import fewest, hpt
from tierup.lab.statistics.ranks import average_ranks, signed_rank_probabilities, two_sided
from tierup.lab.statistics.two_samples import two_samples
from tierup.lab.statistics.verdict import RELIABILITIES


def compared(base, head):
    return [two_samples([np.array(v) for v in base[name]], [np.array(v) for v in head[name]]) for name in base]


def suite(count, ratio, *, seed=1, spread=0.004, processes=10):
    names = [f"b{k}" for k in range(count)]
    base = noisy(names, seed=seed, spread=spread, processes=processes)
    return base, noisy(names, seed=seed + 1000, spread=spread, processes=processes, ratio=ratio)


def scaled(head, factor):
    return {name: [[value * factor for value in values] for values in processes] for name, processes in head.items()}


def by_definition(base, head):
    """Direction and reliability, from the tests of the paper one after the other."""
    shifts = np.array([bench.shift for bench in compared(base, head) if bench.significant])
    ranks = average_ranks(np.abs(shifts))
    positive, negative = ranks[shifts > 0].sum(), ranks[shifts < 0].sum()
    return ("slower" if positive > negative else "faster"), 1 - two_sided(signed_rank_probabilities(len(shifts)), min(positive, negative))


@pytest.mark.parametrize(("count", "ratio", "seed"), [(9, 1.03, 1), (20, 0.97, 2), (30, 1.5, 3), (12, 0.3, 4), (8, 1.1, 5)])
def test_the_speed_up_is_the_largest_factor_that_the_test_withstands(count, ratio, seed):
    base, head = suite(count, ratio, seed=seed)
    found = hpt(compared(base, head))
    assert (found.direction, found.reliability) == by_definition(base, head)
    for level in RELIABILITIES:
        factor = found.speedup[level]
        assert factor is not None and factor >= 1

        def withstands(by, level=level):
            direction, reliability = by_definition(base, scaled(head, 1 / by if found.direction == "slower" else by))
            return direction == found.direction and reliability >= level

        assert withstands(factor)
        assert not withstands(factor + 0.001)
        assert all(withstands(by) for by in np.linspace(1, factor, 7))
        assert factor < max(ratio, 1 / ratio) * 1.01


def test_a_factor_beyond_ten_is_found():
    found = hpt(compared(*suite(9, 123.0)))
    assert found.speedup[0.99] == pytest.approx(123, rel=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.floats(0.7, 1.4), st.integers(0, 1000))
def test_slower_is_the_reciprocal_of_faster(count, ratio, seed):
    base, head = suite(count, ratio, seed=seed)
    there, back = hpt(compared(base, head)), hpt(compared(head, base))
    assert there.reliability == back.reliability
    assert there.speedup == back.speedup
    if there.significant:
        assert {there.direction, back.direction} == {"faster", "slower"}


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.floats(0.9, 1.1), st.integers(0, 1000), st.lists(st.floats(1e-6, 1e6), min_size=25, max_size=25))
def test_how_long_benchmarks_take_does_not_matter(count, ratio, seed, units):
    base, head = suite(count, ratio, seed=seed)
    longer = [{name: scaled({name: side[name]}, unit)[name] for name, unit in zip(side, units, strict=False)} for side in (base, head)]
    first, second = hpt(compared(base, head)), hpt(compared(*longer))
    assert (first.direction, first.significant) == (second.direction, second.significant)
    assert first.reliability == pytest.approx(second.reliability)


def test_long_benchmarks_do_not_outvote_short_ones():
    """Seven benchmarks of milliseconds twice as fast, five of seconds 0.4 % slower: ranked by seconds, that would be slower."""
    short, long = ([f"{kind}{k}" for k in range(count)] for kind, count in (("short", 7), ("long", 5)))
    base = scaled(noisy(short, seed=1, spread=0.0005), 1e-3) | scaled(noisy(long, seed=2, spread=0.0005), 1e3)
    head = scaled(noisy(short, seed=3, spread=0.0005, ratio=0.5), 1e-3) | scaled(noisy(long, seed=4, spread=0.0005, ratio=1.004), 1e3)
    assert hpt(compared(base, head)).direction == "faster"


@pytest.mark.parametrize("level", RELIABILITIES)
def test_with_fewer_benchmarks_no_verdict_is_as_reliable(level):
    least = fewest(level)
    assert hpt(compared(*suite(least - 1, 1.5))).speedup[level] is None
    assert hpt(compared(*suite(least, 1.5))).speedup[level] == pytest.approx(1.5, rel=0.03)


@pytest.mark.parametrize(
    ("count", "ratio", "note"),
    [
        (1, 1.5, "too few benchmarks to reach 99 % (or 90 % or 95 %)"),
        (5, 1.5, "too few benchmarks to reach 99 % (or 95 %)"),
        (7, 1.5, "too few benchmarks to reach 99 %"),
        (8, 1.5, None),
    ],
)
def test_what_the_numbers_cannot_say_is_said(count, ratio, note):
    assert hpt(compared(*suite(count, ratio))).notes == (() if note is None else (note,))


def test_a_few_that_differ_among_many_do_not_make_99_percent():
    base, head = suite(12, 1.5)
    same = [f"b{k}" for k in range(5, 12)]
    found = hpt(compared(base, head | {name: base[name] for name in same}))
    assert (found.n, found.significant) == (12, 5)
    assert found.notes == ("too few benchmarks differ significantly to reach 99 %",)


def test_like_heads_are_not_told_apart():
    base, _ = suite(20, 1.0)
    found = hpt(compared(base, base))
    assert (found.significant, found.reliability, found.notes) == (0, 0.0, ("no benchmark differs significantly",))
    assert found.speedup == dict.fromkeys(RELIABILITIES)


def test_the_filter_keeps_out_benchmarks_that_do_not_differ():
    base, head = suite(40, 1.0, seed=5)
    slow = suite(10, 1.05, seed=9)
    mixed = compared(base | {f"slow-{name}": v for name, v in slow[0].items()}, head | {f"slow-{name}": v for name, v in slow[1].items()})
    found = hpt(mixed)
    assert 10 <= found.significant < 20
    assert found.direction == "slower" and found.reliability > 0.99


def test_there_has_to_be_a_benchmark():
    with pytest.raises(ValueError, match="no benchmarks"):
        hpt([])


def test_like_results_are_seldom_called_different():
    """Benchmarks with a difference each, in either direction: what is called 99 % reliable is wrong in at most 1 %."""
    random = np.random.default_rng(11)
    trials, wrong = 300, 0
    for _ in range(trials):
        names = [f"b{k}" for k in range(12)]
        base = noisy(names, seed=int(random.integers(1 << 30)), spread=0.002)
        head = noisy(names, seed=int(random.integers(1 << 30)), spread=0.002)
        head = {name: scaled({name: values}, exp(random.normal(0, log(1.1))))[name] for name, values in head.items()}
        wrong += hpt(compared(base, head)).reliability >= 0.99
    assert wrong / trials <= 0.01 + 3 * (0.01 * 0.99 / trials) ** 0.5
