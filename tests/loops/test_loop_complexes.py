"""Complex numbers in whole loops: CPython's formulas bit for bit, and an exit where Python raises."""

from __future__ import annotations

import cmath
import itertools
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .harness import check

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="complex arithmetic of CPython 3.14 is not compiled")

INF, NAN = float("inf"), float("nan")
PARTS = (0.0, -0.0, 1.5, -2.25, 1e200, -1e-300, INF, NAN)
NUMBERS = [complex(re, im) for re, im in itertools.product(PARTS, PARTS)]


def test_a_mandelbrot_set() -> None:
    def mandelbrot(counts: Any, low: complex, high: complex) -> Any:
        rows, columns = counts.shape
        for i in range(rows):
            for j in range(columns):
                c = complex(low.real + (high.real - low.real) * j / columns, low.imag + (high.imag - low.imag) * i / rows)
                z = 0j
                for k in range(60):
                    if abs(z) > 2.0:
                        counts[i, j] = k
                        break
                    z = z * z + c
        return counts

    check(mandelbrot, (np.zeros((12, 14), np.int64), -2 - 1.5j, 1 + 1.5j))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
def test_every_operation_on_every_kind_of_number(symbol: str) -> None:
    operate: Callable[[Any, Any], Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[symbol]
    source = f"def f(a, b, n):\n    out = a\n    for _ in range(n):\n        out = a {symbol} b\n    return out, out == a, out != b"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    calls = []
    for a, b in itertools.product(NUMBERS[::3], NUMBERS[::5]):
        try:
            operate(a, b)
        except (ZeroDivisionError, OverflowError):
            continue
        calls.append((a, b, 3))
    check(namespace["f"], *calls)


def test_real_operands_and_exits() -> None:
    def f(z: complex, x: float, k: int, n: int) -> Any:
        total = 0
        for i in range(n):
            total = (total + z * x - k) * (z + i) / (x - z)
            total = -total + x * (z - 1) + k / z
        return total

    check(f, (1 + 2j, 0.5, 3, 20), (-0.0 - 0j, -0.0, 0, 1), (2.5 + 0j, 2.5, 1, 4), (1e300j, 1e10, 7, 9), (complex(NAN, 1), 2.0, 3, 3))


def test_powers_absolute_values_and_parts() -> None:
    def f(z: complex, n: int) -> Any:
        out = 0j
        size = 0.0
        for i in range(n):
            w = z**2 + z**3 - z**7
            out += w.conjugate() * w.real + w.imag
            size += abs(w)
            if w:
                z = z * 0.5 + 0.25j * i
        return out, size, z

    check(f, (1 - 0.5j, 30), (0j, 5), (1e150 + 1j, 4), (complex(INF, 1), 3), (complex(0.5, NAN), 3), (1e308 + 1e308j, 2))


def test_the_kind_changes_in_the_loop() -> None:
    def f(n: int) -> Any:
        x = 1
        for i in range(n):
            x = x * (1 + 0.5j) if i % 3 == 1 else x + 0.5
        return x, abs(x), complex(x), complex(2, n)

    check(f, (1,), (2,), (40,))


def test_an_object_of_the_entry_stays_that_object() -> None:
    def f(z: complex, n: int) -> Any:
        w = z
        for i in range(n):
            if i > 20:
                w = w + 1
        return w is z, w, z

    check(f, (3 + 4j, 10), (3 + 4j, 30))


def test_functions_are_followed_into_with_complex_numbers() -> None:
    def step(z: complex, c: complex) -> complex:
        return z * z + c

    def f(n: int) -> Any:
        z = 0j
        for k in range(n):
            z = step(z, -0.75 + 0.1j)
            if z.real * z.real + z.imag * z.imag > 4:
                return k
        return z, cmath.isfinite(z)

    check(f, (200,), (3,))


@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">=", "==", "!="])
def test_an_absolute_value_close_to_a_bound(symbol: str) -> None:
    source = f"""
def f(parts, n):
    out = 0
    for k in range(n):
        if abs(complex(float(parts[k, 0]), float(parts[k, 1]))) {symbol} 5.0:
            out = out * 3 + k
    return out
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    numbers = [3 + 4j, -4 + 3j, 5j, -5 + 0j, 3.0000000000000004 + 4j, 3 + 4.000000000000001j, 2.9999999999999996 + 4j, 1 + 1j, 9j, 0j]
    rng = np.random.default_rng(3)
    numbers += [5 * complex(np.cos(x), np.sin(x)) for x in rng.random(20) * 7]
    parts = np.array([(z.real, z.imag) for z in numbers])
    check(namespace["f"], *((parts[k : k + 8], 8) for k in range(0, 24, 4)))
