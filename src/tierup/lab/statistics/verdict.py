"""What a test of a head against a base says, whichever test it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Direction: TypeAlias = Literal["faster", "slower"]

RELIABILITIES: Final = (0.90, 0.95, 0.99)
"""The reliabilities at which a speed-up is given."""


@dataclass(frozen=True)
class Verdict:
    """What is said of one head, or of one of its benchmarks."""

    n: int
    """Benchmarks compared."""
    direction: Direction
    """Which way the head differs, if it does: see the reliability."""
    reliability: float
    """How sure the direction is, from 0 to 1."""
    speedup: Mapping[float, float | None]
    """Reliability → the factor by which the head is at least faster or slower, 1 or more; None where not even the direction is so sure."""


def percent(level: float) -> str:
    """A reliability for people: 99 %."""
    return f"{100 * level:g} %"
