"""Statistics of an optimizer, whichever it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

Counts: TypeAlias = Mapping[str, int]


@dataclass(frozen=True)
class Share:
    """A count, and what it is part of."""

    count: int
    of: int | None = None
    """The whole, where there is one."""


@dataclass(frozen=True)
class OptimizerStats:
    """What was counted, under names that mean the same for every optimizer."""

    path: Path
    optimizer: Literal["CPython", "tierup"]
    attempts: int
    """Times that something hot was looked at."""
    created: int
    """Attempts that gave code: traces of CPython, specialisations of tierup."""
    rejected: Counts
    """Reason → attempts that gave none for it."""
    ends: Counts = field(default_factory=dict)
    """Reason → captures that end there though the program goes on; not exclusive of `created` and `rejected`."""
    pipeline: Mapping[str, Share] = field(default_factory=dict)
    """What became of what was created."""
    executions: Mapping[str, Share] = field(default_factory=dict)
    """What was run, and how it was left."""
    lengths: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Histogram → {2ⁱ: how many are longer than 2ⁱ⁻¹ and at most 2ⁱ long}."""
    unsupported: Counts = field(default_factory=dict)
    """Operation → how often it could not be translated."""
    failed: Counts = field(default_factory=dict)
    """Operation → how often the optimizer gave up at it."""
    operations: Mapping[str, Share] = field(default_factory=dict)
    """Operation → times executed (count), of all executed."""
    missed: Mapping[str, Share] = field(default_factory=dict)
    """Operation → times that its condition did not hold (count), of its executions."""
    memory: Counts = field(default_factory=dict)
    """Kind → bytes of machine code and data."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Phase → time spent in the optimizer, where it is measured."""
    problems: tuple[str, ...] = ()
    """What the file holds and could not be used, a line each."""

    @property
    def uncounted(self) -> int:
        """Attempts that were created or rejected, but not counted as attempts: CPython once forgot those from side exits (March 2024)."""
        return max(0, self.created + sum(self.rejected.values()) - self.attempts) if self.optimizer == "CPython" else 0

    @property
    def all_attempts(self) -> int:
        """Attempts with those not counted as such."""
        return self.attempts + self.uncounted
