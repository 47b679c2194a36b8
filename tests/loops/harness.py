"""Loops plain and compiled, side by side."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tierup
from tierup.engine import units
from tierup.runtime import events

Function = Callable[..., Any]


def loops_of(function: Any) -> int:
    """How many whole loops were compiled for a function."""
    unit = units.unit_of(function.__code__)
    assert unit is not None
    return sum(spec.graph is None for site in unit.sites.values() for spec in site.specs)


def loop_hits(function: Any) -> int:
    """How often whole loops of a function ran native."""
    unit = units.unit_of(function.__code__)
    assert unit is not None
    return hits_of(unit)


def hits_of(unit: units.Unit) -> int:
    """How often whole loops of a unit ran native."""
    hits = 0
    for generation in unit._alive:
        for index, site in generation.sites.items():
            specs = unit.sites[index].specs
            hits += sum(n for spec, n in zip(specs, site.spec_hits(), strict=False) if spec.graph is None)
    return hits


def described(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value).__name__, [described(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float | np.generic):
        return type(value).__name__, np.asarray(value).dtype.str, np.asarray(value).tobytes()
    return type(value).__name__, repr(value)


def outcome(function: Function, args: Any) -> Any:
    args = copy.deepcopy(args)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = described(function(*args))
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            value = type(error).__name__, str(error), trace and trace.tb_lineno
    return value, described(args), [(w.category.__name__, str(w.message), w.lineno) for w in seen]


def check(function: Function, *calls: Any, loops: int = 1) -> Any:
    """Calls plain and compiled, three times each; at least so many loops must have been compiled."""
    jitted = tierup.jit(function)
    for args in calls:
        for _ in range(3):
            assert outcome(jitted, args) == outcome(function, args)
    assert loops_of(jitted) >= loops, [str(e) for e in events.recent("break")[-3:]]
    assert loop_hits(jitted) >= loops
    return jitted


def grid(n: int, dtype: str = "f8") -> np.ndarray:
    rng = np.random.default_rng(n)
    return (rng.random((n, n)) * 100 - 30).astype(dtype)
