"""The HPT whose numbers bench_runner prints: against a computation from the definitions, and against its own figures."""

from __future__ import annotations

import itertools
import json
import statistics
from fractions import Fraction
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.files import noisy
from tierup.lab.results.groups import resolve
from tierup.lab.results.read import read
from tierup.lab.statistics.bench_runner import BEYOND, MIN_VALUES, RELIABILITIES, hpt, rank_sum, rank_sum_limits, signed_rank


def by_pairs(differences):
    """Wilcoxon's statistic by Walsh averages: how many pairs (one with itself too) have a positive mean, with ties half."""
    pairs = itertools.combinations_with_replacement([Fraction(value) for value in differences], 2)
    return sum(1 if a + b > 0 else Fraction(1, 2) if a + b == 0 else 0 for a, b in pairs)


differences = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=12)


@given(differences)
def test_the_signed_rank_statistic_counts_pairs(values):
    found = signed_rank(np.array(values))
    assert found.slower == by_pairs(values)
    assert found.faster == by_pairs([-value for value in values])


@given(differences)
def test_its_probability_is_the_normal_one(values):
    found = signed_rank(np.array(values))
    n = len(values)
    assert found.z == pytest.approx((found.slower - n * (n + 1) / 4) / sqrt(n * (n + 1) * (2 * n + 1) / 24))
    assert found.p == pytest.approx((1 + erf(found.z / sqrt(2))) / 2, abs=1e-6)


@given(st.lists(st.integers(0, 9), min_size=12, max_size=20), st.lists(st.integers(0, 9), min_size=12, max_size=20))
def test_the_rank_sum_cuts_the_pooled_values_in_their_middle(head, base):
    found = rank_sum(np.array(head, dtype=float), np.array(base, dtype=float))
    pooled = head + base
    half = len(pooled) // 2
    places = [sum(x < value for x in pooled) + 1 + (pooled.count(value) - 1) // 2 for value in pooled]
    assert (found.head, found.base) == (sum(places[:half]), sum(places[half:]))
    assert found.difference == statistics.median(pooled[:half]) - statistics.median(pooled[half:])


@given(st.integers(MIN_VALUES, 1000))
def test_the_limits_are_exchanged_so_that_all_is_significant(size):
    lower, upper = rank_sum_limits(size)
    spread = statistics.NormalDist(size * (2 * size + 1) / 2, sqrt(size * size * (2 * size + 1) / 12))
    assert (upper, lower) == (pytest.approx(spread.inv_cdf(0.1)), pytest.approx(spread.inv_cdf(0.9)))


def test_too_few_values_are_refused():
    few, enough = np.ones(MIN_VALUES - 1), np.ones(MIN_VALUES)
    with pytest.raises(ValueError, match="12 values"):
        hpt({"a": enough, "b": few}, {"a": enough, "b": few})
    with pytest.raises(ValueError, match="no benchmarks"):
        hpt({}, {})


def flat(results):
    return {name: np.concatenate([np.asarray(values) for values in processes]) for name, processes in results.items()}


def slow_hpt(base, head):
    """The definition, taken at its word: for every factor in hundredths, all medians anew."""

    def p(factor):
        middles = []
        for name in base:
            pooled = [factor * value for value in head[name]] + list(base[name])
            half = len(pooled) // 2
            middles.append(statistics.median(pooled[:half]) - statistics.median(pooled[half:]))
        n = len(middles)
        z = (float(by_pairs(middles)) - n * (n + 1) / 4) / sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return (1 + erf(z / sqrt(2))) / 2

    faster = p(1.0) < 0.5
    levels = {}
    for level in RELIABILITIES:
        holds = [p(k / 100) < 1 - level if faster else p(100 / k) > level for k in range(101, 1001)]
        levels[level] = 1 + holds.index(False) / 100 if False in holds else BEYOND
    return ("faster" if faster else "slower"), 1 - p(1.0) if faster else p(1.0), levels


@pytest.mark.parametrize(
    ("ratio", "count", "processes"),
    [(1.07, 6, (10, 10)), (0.93, 9, (10, 10)), (1.0, 12, (6, 6)), (1.6, 3, (5, 5)), (0.04, 8, (4, 4)), (0.8, 7, (5, 9)), (1.3, 7, (9, 5))],
)
def test_speed_ups_are_those_of_the_definition(ratio, count, processes):
    names = [f"b{k}" for k in range(count)]
    base = flat(noisy(names, seed=count, processes=processes[0]))
    head = flat(noisy(names, seed=count + 100, processes=processes[1], ratio=ratio))
    found = hpt(base, head)
    direction, reliability, speedup = slow_hpt(base, head)
    assert (found.n, found.direction) == (count, direction)
    assert found.reliability == pytest.approx(reliability, abs=1e-6)
    assert found.speedup == pytest.approx(speedup)


CASES = (
    "case1_all_slower",
    "case2_mixed_tie",
    "case3_three_benchmarks_1.5x",
    "case4_null_not_filtered",
    "case5_seconds_weighting",
    "case6_overflow",
)


@pytest.mark.parametrize("name", CASES)
def test_every_intermediate_is_bench_runners(hpt_cases, name):
    case = json.loads((hpt_cases / f"{name}.json").read_text())
    base, head = ({key: np.array(values) for key, values in case[side].items()} for side in ("ref", "head"))
    for expected in case["per_benchmark"]:
        found = rank_sum(head[expected["benchmark"]], base[expected["benchmark"]])
        assert (found.head, found.base) == (expected["ranksum_head"], expected["ranksum_ref"])
        assert found.lower == pytest.approx(expected["rst_lower"], rel=1e-9)
        assert found.upper == pytest.approx(expected["rst_upper"], rel=1e-9)
        assert found.difference == pytest.approx(expected["unibench"], rel=1e-9, abs=1e-15)
    found = hpt(base, head)
    assert found.n == case["n_benchmarks"]
    assert (found.cross.slower, found.cross.faster) == (case["wp"], case["wn"])
    assert found.cross.z == pytest.approx(case["z"], abs=1e-9)
    assert found.cross.p == pytest.approx(case["hpt_basic"], abs=1e-9)
    assert (found.direction, found.reliability) == (case["direction"], pytest.approx(case["reliability"], abs=1e-9))
    assert {str(level): value for level, value in found.speedup.items()} == pytest.approx(case["speedup_at"], abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_cases_as_pyperf_files_are_the_same(hpt_cases, name):
    pytest.importorskip("pyperf")
    case = json.loads((hpt_cases / f"{name}.json").read_text())
    for side in ("ref", "head"):
        results = read(hpt_cases / f"{name}.{side}.json")
        assert {key: bench.values.tolist() for key, bench in results.benchmarks.items()} == case[side]


GROUPS = json.loads((Path(__file__).parent / "characterization.json").read_text())
"""The lists of faster-cpython/ideas issue 664: benchmarks by the top category of their profile, and by the one that has over half of it."""


@pytest.fixture(scope="module")
def public_results(public_data):
    pytest.importorskip("pyperf")
    return {name: read(public_data / "results" / f"d610d82-linux-{name}.json").benchmarks for name in ("base", "jit", "tier2")}


@pytest.mark.parametrize("head", ["jit", "tier2"])
@pytest.mark.parametrize("names", ["exact", "mapped"])
def test_figures_of_public_results(public_data, public_results, head, names):
    expected = json.loads((public_data / "expected.json").read_text())["heads"][head]
    everything = {name: bench.values for name, bench in public_results["base"].items()}

    def agrees(members, figures):
        found = hpt({name: everything[name] for name in members}, {name: public_results[head][name].values for name in members})
        assert (found.n, found.direction) == (figures["n"], figures["dir"])
        assert found.reliability == pytest.approx(figures["rel"], abs=1e-9)
        assert {str(level): value for level, value in found.speedup.items()} == pytest.approx(figures["su"], abs=1e-9)

    agrees(everything, expected["all"])
    for lists in ("top", "over50"):
        for group in resolve(GROUPS[lists], everything, exact=names == "exact"):
            agrees(group.members, expected[names][lists][group.name])
            assert list(group.unmatched) == expected[names][lists][group.name]["missing"]
