"""What dominates each benchmark, and the groups of benchmarks that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tierup.lab.profile.categories import UNKNOWN, Table
from tierup.lab.profile.model import Profile
from tierup.lab.profile.shares import Shares, compute

THRESHOLD: Final = 0.5
"""A category with more than this share of a benchmark's time dominates it."""


@dataclass(frozen=True)
class Characterization:
    """Benchmarks by what their time goes to."""

    benchmarks: Mapping[str, Shares]
    threshold: float

    @property
    def top(self) -> dict[str, str]:
        """Benchmark → its largest category. A benchmark in which no function is known has none."""
        return {name: shares.top for name, shares in self.benchmarks.items() if shares.top is not None}

    @property
    def undecided(self) -> list[str]:
        """Benchmarks without a top category."""
        return [name for name, shares in self.benchmarks.items() if shares.top is None]

    @property
    def by_top(self) -> dict[str, list[str]]:
        """Category → the benchmarks of which it is the top, the largest group first."""
        return _grouped((category, name) for name, category in self.top.items())

    @property
    def over(self) -> dict[str, list[str]]:
        """Category → the benchmarks that spend more than the threshold in it, of all their time."""
        return _grouped(
            (category, name)
            for name, shares in self.benchmarks.items()
            for category, share in shares.categories.items()
            if share > self.threshold and category != UNKNOWN
        )

    @property
    def partial(self) -> dict[str, list[str]]:
        """Benchmark → what is wrong with its profile."""
        return {name: list(shares.problems) for name, shares in self.benchmarks.items() if shares.problems}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "top": self.top,
            "over": self.over,
            "shares": {name: dict(shares.categories) for name, shares in self.benchmarks.items()},
            "threshold": self.threshold,
            "undecided": self.undecided,
            "partial": self.partial,
            "stripped": {name: dict(shares.stripped) for name, shares in self.benchmarks.items() if shares.stripped},
        }


def characterize(profiles: Iterable[Profile], table: Table, threshold: float = THRESHOLD) -> Characterization:
    """Sorts benchmarks into the table's categories. threshold: a share from 0 to 1."""
    return Characterization({profile.name: compute(profile, table) for profile in profiles}, threshold)


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for group, name in pairs:
        groups.setdefault(group, []).append(name)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))
