"""Floats in whole loops with the operators and functions that need the C library: the same bits, and Python's exceptions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tierup.loops.math_functions import RULES

from .harness import check

INF, NAN = float("inf"), float("nan")
QUIET = (0.5, 1.0, 2.75, 0.1, 0.9, 1.5)
VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 1e-320, 1e300, -1e300, 710.0, -745.0, INF, -INF, NAN, 2.0**53, 0.1, -1.5, 2.5)


def looped(expression: str) -> Any:
    """A function that computes the expression with x = a[i], y = b[i] for every i, and keeps the last result and a sum."""
    source = f"""
def f(a, b):
    total, last = 0.0, 0
    for i in range(len(a)):
        x, y = float(a[i]), float(b[i])
        last = {expression}
        total += last
    return total, last, i
"""
    namespace: dict[str, Any] = {"math": math}
    exec(source, namespace)
    return namespace["f"]


def pairs(xs: Any, ys: Any) -> Any:
    quiet = list(QUIET)
    return [(np.array([*quiet, x, 0.5]), np.array([*quiet, y, 0.25])) for x, y in zip(xs, ys, strict=True)]


@pytest.mark.parametrize("expression", ["x % y", "x // y", "divmod(x, y)[0]", "divmod(x, y)[1]", "math.fmod(x, y)"])
def test_division_with_rest(expression: str) -> None:
    chosen = list(itertools.product(VALUES, VALUES))[::3]
    check(looped(expression), *pairs(*zip(*chosen, strict=True)))


@pytest.mark.parametrize(
    "expression", ["x ** y", "pow(x, y)", "math.pow(x, y)", "x ** 2", "x ** 3", "x ** -1", "x ** 0.5", "x ** -2.0", "2 ** x"]
)
def test_powers(expression: str) -> None:
    chosen = list(itertools.product(VALUES, VALUES if "y" in expression else (1.0,)))
    chosen = [(x, y) for x, y in chosen if not (x < 0 and y != math.floor(y) if math.isfinite(y) else False)]
    check(looped(expression), *pairs(*zip(*chosen[:: 4 if "y" in expression else 1], strict=True)))


@pytest.mark.parametrize("name", sorted(f.__name__ for f in RULES))
def test_functions_of_the_math_module(name: str) -> None:
    two = name in ("atan2", "copysign", "fmod", "pow")
    expression = f"math.{name}(x, y)" if two else f"math.{name}({'x + 1.0' if name == 'acosh' else 'x * 0.25' if name == 'atanh' else 'x'})"
    expression = f"math.{name}(x * 0.25)" if name in ("asin", "acos") else expression
    chosen = list(itertools.product(VALUES, VALUES[::3] if two else (1.0,)))
    check(looped(expression), *pairs(*zip(*chosen, strict=True)))


@pytest.mark.parametrize("symbol", ["%", "//"])
def test_division_with_rest_of_numpy_scalars(symbol: str) -> None:
    source = f"""
def f(a, b):
    total, last = 0.0, 0
    for i in range(len(a)):
        last = a[i] {symbol} b[i]
        total += last - a[i] {symbol} 2.5 + 7 {symbol} b[i]
    return total, last, i
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    chosen = list(itertools.product(VALUES, VALUES))[::2]
    check(namespace["f"], *pairs(*zip(*chosen, strict=True)))


def test_rounding() -> None:
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 1e15 + 0.5, -2.5, 1e18, 1e19, NAN, INF]
    check(looped("round(x)"), *pairs(values, values))


def test_math_functions_of_numpy_scalars_and_ints() -> None:
    def f(a: Any, n: int) -> Any:
        total = 0.0
        for i in range(1, n):
            total += math.sin(a[i]) + math.log(i) + math.exp(-i) + math.floor(a[i]) + math.isfinite(a[i]) + math.atan2(i, a[i])
        return total

    check(f, (np.linspace(-3, 9, 40), 40), (np.linspace(-3, 9, 40).astype("f4"), 0))
