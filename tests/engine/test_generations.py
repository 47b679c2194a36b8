"""Functions and frames over the generations of their code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tierup
from tierup.engine import units


def sweep(grid: Any, rounds: int) -> Any:
    """A loop whose own iterator is no place for a region, with two inner loops that are (of rows too long for whole loops)."""
    n = len(grid)
    for _ in range(rounds):
        for j in range(1, n - 1):
            grid[j] = grid[j - 1] * 0.5 + grid[j] * 0.25 + 1.0
        for j in range(n - 2, 0, -1):
            grid[j] = grid[j + 1] * 0.5 + grid[j] * 0.25 + 1.0
    return grid


def test_a_function_moves_on_from_whatever_code_it_has() -> None:
    """A frame may run older code than its function has by now; when it makes newer code, the function gets that."""
    jitted = tierup.jit(sweep)
    unit = units.unit_of(jitted.__code__)
    assert unit is not None
    for _ in range(30):
        jitted(np.ones((12, 9000)), 4)
        assert jitted.__code__ is unit.code
    hits = []
    for _ in range(3):  # a frame in which a site is given up goes on without
        before = tierup.stats().hits
        jitted(np.ones((12, 9000)), 4)
        hits.append(tierup.stats().hits - before)
    assert max(hits) >= 2 * 4 * 9


def test_all_closures_of_a_code_object_move_on() -> None:
    def make(scale: float) -> Callable[..., Any]:
        def closure(grid: Any, rounds: int) -> Any:
            for _ in range(rounds):
                for j in range(1, len(grid) - 1):
                    grid[j] = grid[j - 1] * scale + grid[j] * 0.25 + 1.0
            return grid

        return tierup.jit(closure)

    first, second = make(0.5), make(0.25)
    for _ in range(6):
        for function in (first, second):
            function(np.ones((12, 9000)), 3)
    for _ in range(30):
        first(np.ones((12, 9000)), 3)
    unit = units.unit_of(first.__code__)
    assert unit is not None
    assert first.__code__ is second.__code__ is unit.code


def test_hits_are_not_forgotten_with_old_code() -> None:
    jitted = tierup.jit(sweep)
    seen = tierup.stats().hits
    for _ in range(30):
        jitted(np.ones((12, 9000)), 4)
        now = tierup.stats().hits
        assert now >= seen
        seen = now


def test_code_that_the_user_gave_a_function_stays() -> None:
    jitted = tierup.jit(sweep)
    for _ in range(3):
        jitted(np.ones((12, 9000)), 2)
    other = (lambda grid, rounds: rounds).__code__
    keeper = tierup.jit(sweep)
    keeper(np.ones((12, 9000)), 2)
    keeper.__code__ = other
    for _ in range(20):
        jitted(np.ones((12, 9000)), 2)
    assert keeper.__code__ is other
    assert keeper(None, 7) == 7
