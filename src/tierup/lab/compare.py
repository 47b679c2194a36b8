"""Compares result files: benchmark by benchmark, over all of them, and over groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

import numpy as np

from tierup.lab.results.groups import Group, resolve
from tierup.lab.results.model import Benchmark, FloatArray, Results
from tierup.lab.statistics import bench_runner, bootstrap
from tierup.lab.statistics.hpt import hpt
from tierup.lab.statistics.two_samples import MIN_PROCESSES, TwoSamples, two_samples
from tierup.lab.statistics.verdict import RELIABILITIES, Verdict

Method: TypeAlias = Literal["default", "bench-runner"]

CONFIDENCE: Final = 0.95
"""That of the bootstrap intervals."""


@dataclass(frozen=True)
class Pair:
    """One benchmark of base and head."""

    name: str
    base: Benchmark
    head: Benchmark
    samples: TwoSamples
    draws: FloatArray | None
    """Bootstrapped logarithms of the ratio of means; None where a side has one value only."""

    @property
    def ratio(self) -> float:
        """mean(head) / mean(base) of all values, as pyperf has it; above 1 is slower."""
        return self.head.mean / self.base.mean

    @property
    def memory(self) -> float | None:
        """Peak memory of head / base."""
        return self.head.memory / self.base.memory if self.head.memory and self.base.memory else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        verdict = self.samples.verdict
        return {
            "base": self.base.mean,
            "head": self.head.mean,
            "unit": self.base.unit,
            "values": [len(self.base.values), len(self.head.values)],
            "ratio": self.ratio,
            "interval": None if self.draws is None else bootstrap.interval(self.draws, CONFIDENCE),
            "typical_ratio": exp(self.samples.shift),
            "p": self.samples.p,
            "significant": self.samples.significant,
            "direction": verdict.direction,
            "reliability": verdict.reliability,
            "speedup": _by_level(verdict),
            "memory": self.memory,
        }


@dataclass(frozen=True)
class Summary:
    """Benchmarks together: all that two files share, or a group of them."""

    members: tuple[str, ...]
    significant: int
    """Benchmarks that differ significantly by themselves."""
    verdict: Verdict | None
    """None where there is no benchmark to judge by."""
    geometric_mean: float | None
    """Of the benchmarks' ratios of means, head / base; above 1 is slower."""
    interval: bootstrap.Interval | None
    """Of the geometric mean, for these benchmarks."""
    interval_of_such: bootstrap.Interval | None
    """Of the geometric mean, for such benchmarks as these are a sample of."""
    memory: float | None
    """Geometric mean of the ratios of peak memory, head / base."""
    notes: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Names in the group's list that the files do not share."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        verdict = self.verdict
        return {
            "n": 0 if verdict is None else verdict.n,
            "significant": self.significant,
            "reliability": None if verdict is None else verdict.reliability,
            "direction": None if verdict is None else verdict.direction,
            "speedup": dict.fromkeys(map("{:.2f}".format, RELIABILITIES)) if verdict is None else _by_level(verdict),
            "geometric_mean": self.geometric_mean,
            "interval": self.interval,
            "interval_of_such_benchmarks": self.interval_of_such,
            "memory": self.memory,
            "benchmarks": list(self.members),
            "notes": list(self.notes),
            "unmatched": list(self.unmatched),
        }


@dataclass(frozen=True)
class Comparison:
    """A head against the base."""

    head: Results
    whole: Summary
    groups: Mapping[str, Summary]
    pairs: Mapping[str, Pair]
    only_base: tuple[str, ...]
    only_head: tuple[str, ...]
    notes: tuple[str, ...]
    """What makes the two files less comparable."""

    def changed(self) -> list[Pair]:
        """The benchmarks that differ significantly, the slowest first."""
        return sorted((pair for pair in self.pairs.values() if pair.samples.significant), key=lambda pair: -pair.samples.shift)

    def to_dict(self, name: str) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "name": name,
            "path": str(self.head.path),
            "python": self.head.python,
            "whole": self.whole.to_dict(),
            "groups": {group: summary.to_dict() for group, summary in self.groups.items()},
            "benchmarks": {pair.name: pair.to_dict() for pair in self.pairs.values()},
            "unmatched": {"base": list(self.only_base), "head": list(self.only_head)},
            "notes": list(self.notes),
            "partial": bool(self.head.problems),
            "problems": list(self.head.problems),
        }


def compare(
    base: Results,
    head: Results,
    groups: Mapping[str, Collection[str]] | None = None,
    *,
    method: Method = "default",
    exact_names: bool = False,
) -> Comparison:
    """Compares a head with a base, over the benchmarks that both have.

    groups: lists of benchmarks, by names of results or, unless exact_names, of profiles (`results.names`).
    """
    shared = [name for name in base.benchmarks if name in head.benchmarks]
    alike = [name for name in shared if base.benchmarks[name].unit == head.benchmarks[name].unit]
    pairs = {name: _pair(base.benchmarks[name], head.benchmarks[name]) for name in alike}
    whole = Group("", tuple(pairs), ())
    return Comparison(
        head,
        _summary(whole, pairs, method),
        {group.name: _summary(group, pairs, method) for group in resolve(groups or {}, pairs, exact=exact_names)},
        pairs,
        tuple(name for name in base.benchmarks if name not in head.benchmarks),
        tuple(name for name in head.benchmarks if name not in base.benchmarks),
        tuple(_notes(base, head, shared, pairs)),
    )


def _pair(base: Benchmark, head: Benchmark) -> Pair:
    # The draws of a benchmark do not depend on what else is in the file.
    random = np.random.default_rng(crc32(base.name.encode()))
    draws = bootstrap.draw_log_ratios(base.processes, head.processes, random)
    return Pair(base.name, base, head, two_samples(base.processes, head.processes), draws)


def _summary(group: Group, everything: Mapping[str, Pair], method: Method) -> Summary:
    pairs = [everything[name] for name in group.members]
    if not pairs:
        return Summary((), 0, None, None, None, None, None, ("no benchmarks",), group.unmatched)
    verdict, notes = _bench_runner_verdict(pairs) if method == "bench-runner" else _verdict(pairs)
    draws = np.array([pair.draws for pair in pairs if pair.draws is not None])
    these = such = None
    if len(draws) == len(pairs):
        these = bootstrap.interval(bootstrap.draw_geometric_means(draws), CONFIDENCE)
        such = bootstrap.interval(bootstrap.draw_geometric_means(draws, np.random.default_rng(0)), CONFIDENCE) if len(pairs) > 1 else None
    memory = [pair.memory for pair in pairs if pair.memory is not None]
    return Summary(
        tuple(pair.name for pair in pairs),
        sum(pair.samples.significant for pair in pairs),
        verdict,
        geometric_mean([pair.ratio for pair in pairs]),
        these,
        such,
        geometric_mean(memory) if memory else None,
        notes,
        group.unmatched,
    )


def geometric_mean(ratios: Iterable[float]) -> float:
    """The geometric mean of numbers above 0, of which there is at least one."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def _verdict(pairs: Sequence[Pair]) -> tuple[Verdict, tuple[str, ...]]:
    verdict = hpt([pair.samples for pair in pairs])
    return verdict, verdict.notes


def _bench_runner_verdict(pairs: Sequence[Pair]) -> tuple[Verdict | None, tuple[str, ...]]:
    least = bench_runner.MIN_VALUES
    enough = [pair for pair in pairs if (len(pair.head.values) + len(pair.base.values)) // 2 >= least]
    notes = [f"left out, with fewer than {least} values: {', '.join(pair.name for pair in pairs if pair not in enough)}"]
    mixed = sum(len(pair.head.values) != len(pair.base.values) for pair in enough)
    notes += [f"{mixed} with different numbers of values, which bench_runner cuts in the wrong place"] if mixed else []
    notes = notes[len(enough) == len(pairs) :]
    if not enough:
        return None, tuple(notes)
    base = {pair.name: pair.base.values for pair in enough}
    head = {pair.name: pair.head.values for pair in enough}
    return bench_runner.hpt(base, head), tuple(notes)


def _notes(base: Results, head: Results, shared: Sequence[str], pairs: Mapping[str, Pair]) -> Iterator[str]:
    for name in shared:
        if name not in pairs:
            units = f"{base.benchmarks[name].unit} against {head.benchmarks[name].unit}"
            yield f"{name} left out: it is measured in different units, {units}"
    if base.python and head.python and base.python != head.python:
        yield f"different Python versions: {base.python} against {head.python}"
    uneven = [name for name, pair in pairs.items() if len(pair.base.values) != len(pair.head.values)]
    if uneven:
        yield f"different numbers of values in {_count(uneven)}"
    alone = [name for name, pair in pairs.items() if min(len(pair.base.values), len(pair.head.values)) == 1]
    if alone:
        yield f"one value only, which says nothing about noise, in {_count(alone)}"
    few = [name for name, pair in pairs.items() if pair.samples.unit == "value" and name not in alone]
    if few:
        yield f"fewer than {MIN_PROCESSES} processes on a side, so that values are taken for independent, in {_count(few)}"


def _count(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} benchmarks"


def _by_level(verdict: Verdict) -> dict[str, float | None]:
    return {f"{level:.2f}": factor for level, factor in verdict.speedup.items()}
