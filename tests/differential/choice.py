"""Where a generator's decisions come from: a seeded stream, or Hypothesis, which can shrink them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """Draws integers; everything else follows from that."""

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""


class Seeded:
    """Decisions from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class Drawn:
    """Decisions from Hypothesis' `draw`."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        from hypothesis import strategies

        return int(self._draw(strategies.integers(low, high)))


def pick(chooser: Chooser, items: Sequence[T]) -> T:
    """One of the items."""
    return items[chooser.integer(0, len(items) - 1)]


def chance(chooser: Chooser, percent: int) -> bool:
    """True in `percent` of a hundred."""
    return chooser.integer(0, 99) < percent


def weighted(chooser: Chooser, items: Sequence[tuple[int, T]]) -> T:
    """One of the items, each as often as its weight says."""
    ticket = chooser.integer(0, sum(weight for weight, _ in items) - 1)
    for weight, item in items:
        ticket -= weight
        if ticket < 0:
            return item
    raise AssertionError("weights do not add up")
