"""Integers without bounds, NumPy's promotions and conversions, division by zero, overflow, slices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from .scenario import WARM, Scenario, Wrap, caught, check

X = np.array([1.5, -2.0, 4.0])


def integers_do_not_wrap(wrap: Wrap) -> Any:
    def powers(v: Any, n: Any) -> Any:
        m = n * n * n
        k = n**20
        return v + n, m, k, m * k, -k, k // 7, k % 1000, k << 3, k > m, float(m), abs(-m), (n + 2**62) * 2

    f = wrap(powers)
    return [caught(f, X, n) for n in (2, 3, 7, 2**20, 2**21, 2**40, -(2**31), -(2**63), 2**63 - 1, 2**63, 2**70, 3)]


def huge_arguments(wrap: Wrap) -> Any:
    f = wrap(lambda v, n: (v * n, n + 1, v[: n % 3]))
    return [caught(f, X, n) for n in (1, 1, 2**70, -(2**65), 2**1100, 10**30, 1)]


def python_integers_meet_narrow_arrays(wrap: Wrap) -> Any:
    f = wrap(lambda v, n: v + n)
    arrays = [np.array([1, 100, 3], dtype) for dtype in ("i1", "u1", "i2", "u8", "i8")]
    return [caught(f, v, n) for v in arrays for n in (1, 1, 100, 127, 128, 255, 256, -1, 2**31, 2**63, 2**64)]


def loops_of_integers(wrap: Wrap) -> Any:
    def collatz(v: Any, n: int) -> Any:
        steps = 0
        while n != 1 and steps < 200:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return v + steps, n

    def factorial(v: Any, n: int) -> Any:
        product = 1
        for i in range(1, n + 1):
            product *= i
        return product, v + math.log(product)

    f, g = wrap(collatz), wrap(factorial)
    return [f(X, n) for n in (6, 6, 27, 1, 2**61 - 1)], [g(X, n) for n in (3, 3, 20, 21, 30, 0)]


def floor_division_and_remainder(wrap: Wrap) -> Any:
    f = wrap(lambda a, b: (a // b, a % b, divmod(a, b)))
    numbers = [(7, 2), (-7, 2), (7, -2), (-7, -2), (7.5, -2), (-0.0, 3.0), (5, 0), (5.0, 0.0), (-(2**63), -1), (1e308, 1e-308)]
    ints = [np.array([7, -7, 5, -128, 0]), np.array([2, -2, 0, -1, 0])]
    arrays = [(ints[0].astype(t), ints[1].astype(t)) for t in ("i8", "i1", "f8", "f4")]
    return [caught(f, *pair) for pair in [*numbers, *numbers, *arrays, *arrays]]


def division_by_zero_in_arrays(wrap: Wrap) -> Any:
    f = wrap(lambda a, b: (a / b, a // b, a % b, np.reciprocal(b), 1 / b, b**-1.0))
    zeros = np.array([0.0, -0.0, 2.0])
    return [caught(f, X, b) for b in (X, X, zeros, zeros.astype("f4"), X, zeros)]


def unused_results_still_warn(wrap: Wrap) -> Any:
    def drops(v: Any, w: Any) -> Any:
        v / w
        np.log(v)
        x = v * 1e308 * 1e308
        del x
        return w + 1

    f = wrap(drops)
    return [f(X, w) for w in (X, X, X * 0, X)]


def unused_integers_still_must_fit(wrap: Wrap) -> Any:
    """A Python int that C cannot hold raises, and a NumPy integer that overflows warns, though nobody uses the result."""

    def adds(v: Any, n: Any) -> Any:
        v + n
        return v * 2

    def computes(v: Any, n: Any) -> Any:
        v + n * n
        return v * 2

    def selects(v: Any, n: Any) -> Any:
        np.where(v > 1, True, n)
        return v * 2

    def fills(v: Any, n: Any) -> Any:
        np.full(3, n, "i8")
        return v * 2

    def converts(v: Any, n: Any) -> Any:
        float(n * n)
        return v * 2

    def element(v: Any, n: Any) -> Any:
        v[0] + n
        return v * 2

    numbers = [3] * WARM + [2**40, 2**70, -(2**65), 2**600, 2**2000, 2**63 - 1, 3]
    arrays = [np.array([7, 2, 3], dtype) for dtype in ("i8", "f8", "i4", "u1")]
    return [[caught(f, v, n) for v in arrays for n in numbers] for f in map(wrap, (adds, computes, selects, fills, converts, element))]


def overflow_in_casts(wrap: Wrap) -> Any:
    f = wrap(lambda v: (v.astype("f4"), v.astype("f2"), v.astype("i4"), v * np.float32(1e30)))
    return [caught(f, v) for v in (X, X, X * 1e300, X.astype("f4") * np.float32(1e30), np.array([np.nan, np.inf, 3e9]), X)]


def narrow_integer_reductions(wrap: Wrap) -> Any:
    def reductions(a: Any) -> Any:
        return np.cumsum(a), np.square(a), a / a, a.sum(), a.prod(), np.median(a), a.mean(), a.max(), a + a, a.sum(dtype="i2")

    f = wrap(reductions)
    values = [100, 100, 3]
    return [f(np.array(values, dtype)) for dtype in ("i1", "u1", "i1", "i2", "u2", "?", "f2", "f4", "u8")]


def scalars_of_numpy(wrap: Wrap) -> Any:
    def mixes(x: Any, n: Any) -> Any:
        y = x * n + 1
        return y, x / 3, y**2, -x, abs(x), x == n, x < n, round(float(x), 1), math.sqrt(abs(x)), int(x), x // 2, ~np.int64(n)

    f = wrap(mixes)
    scalars: list[Any] = [np.float64(2.5), np.float32(2.5), np.int8(100), np.uint8(200), np.float16(3), np.int64(-7), 2.5, 7]
    return [caught(f, x, n) for x in scalars for n in (2, 2, 3.0, True, np.int8(2))]


def powers(wrap: Wrap) -> Any:
    f = wrap(lambda v, e: (v**e, np.power(v, e)))
    exponents: list[Any] = [2, 2.0, 0.5, -1, -1.0, 3, 0, 1.5, np.float64(2), X, -2, np.array([2, 3, 0])]
    return [caught(f, v, e) for e in exponents for v in (X, X, np.array([2, 3, 4]), np.array([0.0, -0.0, np.inf]), X + 1j)]


def booleans(wrap: Wrap) -> Any:
    def logic(m: Any, n: Any) -> Any:
        return m & n, m | ~n, m ^ n, m + n, m * n, np.logical_and(m, n), m.sum(), m.any(), n.all(), np.where(m, n, m), m == n, m < n

    f, g = wrap(logic), wrap(lambda m: (caught(lambda: -m), caught(lambda: m - m), m**2, m / m, m // True))
    one, two = np.array([True, False, True]), np.array([True, True, False])
    return [f(one, two) for _ in range(WARM)], [g(one) for _ in range(WARM)]


def comparisons_and_truth(wrap: Wrap) -> Any:
    def truth(v: Any, w: Any) -> Any:
        if v.size == 1 and v > w:
            return "greater", bool(v)
        return v == w, (v != w).any(), not v.any(), v.all() and w, v.sum() or w

    f = wrap(truth)
    return [caught(f, v, w) for v in (X, X, X[:1], X[:0], X[1:2], X * 0) for w in (0, 1.5, X)]


def minimum_maximum_and_signs(wrap: Wrap) -> Any:
    special = np.array([0.0, -0.0, np.nan, 1.0, -np.inf, np.inf, -1.0, 5e-324])
    f = wrap(
        lambda v, w: (np.maximum(v, w), np.minimum(v, w), np.sign(v), np.abs(v), np.clip(v, -1, 1), np.where(v > w, v, w), -v, v + 0.0)
    )
    return [f(special, w) for w in (special[::-1], special[::-1].copy(), 0.0, -0.0, np.nan, special)]


def subnormals_and_extremes(wrap: Wrap) -> Any:
    tiny = np.array([5e-324, 1e-310, 2.2e-308, 1.7e308, -1.7e308])
    f = wrap(lambda v: (v * 0.5, v + v, v * 3 - v, v / 7, v * v, np.sqrt(np.abs(v)), v.astype("f4")))
    return [f(v) for v in (tiny, tiny, tiny[::-1], tiny[::2])]


def moved_nans_keep_their_payload(wrap: Wrap) -> Any:
    marked = np.array([0x7FF8_0000_0000_1234, 0xFFF8_0000_0000_4321, 0x3FF0_0000_0000_0000], dtype="u8").view("f8")

    def moves(v: Any) -> Any:
        w = v.copy()
        w[1:] = v[:-1]
        return [part.view("u8") for part in (w, v[::-1].copy(), np.where(v == 1, v, v), np.array(v), v.reshape(3, 1).copy())]

    f = wrap(moves)
    return [f(marked) for _ in range(WARM)]


def slices_with_negative_steps(wrap: Wrap) -> Any:
    def cuts(v: Any, m: Any) -> Any:
        return v[4:1:-2], v[::-2], v[-2::-3], v[10:2:-1], v[:-20:-1], m[::-2, 3:0:-1], m[1:, ::-1].T, v[3:3], v[-1:-4], v[None, 2::-1]

    def writes(v: Any) -> Any:
        v[4:1:-2] = -1.0
        v[::-1][1:3] += 10
        v[-1::-4] *= 2
        return v

    f, g = wrap(cuts), wrap(writes)
    seen = [f(np.arange(n), np.arange(4 * n).reshape(n, 4)) for n in (6, 6, 7, 2, 1, 0)]
    return seen, [g(np.arange(float(n))) for n in (6, 6, 9, 2, 0)]


def slices_from_variables(wrap: Wrap) -> Any:
    f = wrap(lambda v, i, j, k: (v[i:j:k], v[i:], v[:j] + 1, v[::k] * 2))
    bounds = [(0, 3, 1), (0, 3, 1), (1, -1, 2), (-3, None, 1), (5, 1, -2), (None, None, -1), (0, 2**70, 1), (2, 1, 0), (np.int64(1), 3, 1)]
    return [caught(f, np.arange(8.0), *b) for b in bounds]


def indexing_in_every_way(wrap: Wrap) -> Any:
    m = np.arange(12.0).reshape(3, 4)

    def picks(a: Any, i: Any) -> Any:
        return a[i], a[i] * 2, a[..., i] + 1

    f = wrap(picks)
    indices: list[Any] = [
        0,
        0,
        -1,
        2,
        3,
        -4,
        99,
        np.int64(1),
        True,
        None,
        ...,
        [0, 2],
        np.array([1, 1]),
        m[0] > 1,
        slice(None),
        (1, 2),
        1.0,
        "x",
    ]
    return [caught(f, m, i) for i in indices]


def reductions_keep_their_order_of_summation(wrap: Wrap) -> Any:
    rng = np.random.default_rng(3)
    f = wrap(
        lambda v: (
            v.sum(),
            v.sum(axis=0),
            v.mean(axis=-1),
            (v * v).sum(axis=-1),
            v.std(),
            v.prod(axis=0),
            v.max(axis=0),
            np.sum(v, keepdims=True),
        )
    )
    shapes = [(1000,), (1000,), (37, 129), (129, 37), (3, 5, 67), (1, 8), (0, 4), (9000,)]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    mixed = [arrays[2].T, arrays[2][::-1, ::3], np.asfortranarray(arrays[2]), arrays[7].astype("f4"), np.full(8, -0.0)]
    return [caught(f, v) for v in [*arrays, *mixed]]


def matrix_products(wrap: Wrap) -> Any:
    rng = np.random.default_rng(4)
    a, v = rng.standard_normal((17, 9)), rng.standard_normal(9)
    f = wrap(lambda a, v: (a @ v, a.T @ a, a @ a.T.copy(), np.dot(a, v * 2), (a + 1) @ v, np.outer(v, v), v @ v))
    return [f(*pair) for pair in ((a, v), (a, v), (np.asfortranarray(a), v[::-1]), (a[::2], v), (a.astype("f4"), v.astype("f4")), (a, v))]


def large_arrays_on_threads(wrap: Wrap) -> Any:
    v = np.linspace(-3, 3, 300_001)
    f = wrap(lambda v, w: np.sqrt(v * v + w) * np.sin(v) - w / (v + 4))
    first = f(v, v[::-1])
    return [np.array_equal(f(v, v[::-1]), first, equal_nan=True) for _ in range(WARM)], first


SCENARIOS: list[Scenario] = [value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("wrap") == "Wrap"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_same(scenario: Scenario) -> None:
    check(scenario)
