"""What tierup knows of a module does not keep the module alive, and knowing the same twice is one specialisation."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tierup
from tierup.engine import units

MODULES = {
    "a class": """
class Box:
    gain = 2.0
    def value(self):
        return 1

@jit
def f(a, box=Box()):
    return a * box.gain + box.value()
""",
    "a class called": """
class Box:
    def __init__(self):
        self.gain = 2.0

@jit
def f(a):
    b = a * 2
    return b * Box().gain
""",
    "a global instance": """
class Box:
    def __init__(self):
        self.gain = 2.0
    def scaled(self, a):
        return a * self.gain
BOX = Box()

@jit
def f(a):
    return BOX.scaled(a) + BOX.gain
""",
    "itself": """
@jit
def f(a, n=2):
    return a if n == 0 else f(a * 2, n - 1) + 1
""",
    "helpers and closures": """
def helper(a, by=[2]):
    return a * by[0]
def maker(k):
    return lambda a: a + k
ADD = maker(3)

@jit
def f(a):
    def inner(x):
        return x + 1
    return inner(ADD(helper(a)))
""",
    "bound methods of builtins": """
LOG = []
APPEND = LOG.append

@jit
def f(a):
    APPEND(f)
    return a * 2 + len(LOG)
""",
}


@pytest.mark.parametrize("what", MODULES)
def test_a_module_dies(what: str) -> None:
    space: dict[str, Any] = {"jit": functools.partial(tierup.jit, min_graph_size=0), "__name__": "mortal"}
    exec(compile(MODULES[what], "mortal.py", "exec"), space)
    for _ in range(5):
        space["f"](np.ones(3))
    alive = weakref.ref(space["f"])
    del space
    gc.collect()
    assert alive() is None


def test_the_same_checks_are_one_specialisation() -> None:
    """A region that leaves at run time is not compiled again and again."""

    @functools.partial(tierup.jit, min_graph_size=0)
    def f(a: Any, k: float, t: Any = None) -> Any:
        return a / (a * 0) + k if t is None else a

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(300):
            f(np.ones(3), 2.5)
    unit = units.unit_of(f.__code__)
    assert unit is not None
    assert all(len(state.specs) <= 1 for state in unit.sites.values())


def test_numbers_that_differ_are_one_specialisation() -> None:
    """Infinities and NaNs among them: values of numbers are no guards unless a program branches on them."""

    @functools.partial(tierup.jit, min_graph_size=0)
    def f(a: Any, s: float, n: int) -> Any:
        return a * s + n

    for i in range(60):
        f(np.ones(2 + i % 5), [1.5, float("inf"), float("nan"), -0.0][i % 4], i)
    unit = units.unit_of(f.__code__)
    assert unit is not None
    assert [len(state.specs) for state in unit.sites.values()] == [1]
