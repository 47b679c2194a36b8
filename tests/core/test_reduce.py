"""Reductions: bit for bit NumPy's, over sizes, types and memory layouts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plan_tools import assert_same, loop_kernel, make_plan, run

from tierup import _core

ZERO = float(np.add.reduce(np.array([-0.0])))
"""What NumPy starts a sum of floats from: the zero whose sign shows in the sum of a negative zero."""

# ufunc, types, identity (None: first element)
CASES: list[tuple[np.ufunc, str, Any]] = [
    (np.add, "fdFDlLiI", ZERO),
    (np.multiply, "fdFDlL", 1),
    (np.maximum, "fdlbB", None),
    (np.minimum, "fdFDlL", None),
    (np.fmax, "fd", None),
    (np.logical_or, "?", False),
    (np.logical_and, "?", True),
    (np.bitwise_xor, "l", 0),
]
PARAMS = [pytest.param(u, c, i, id=f"{u.__name__}-{c}") for u, cs, i in CASES for c in cs]


def reduction(ufunc: np.ufunc, char: str, identity: Any) -> _core.Kernel:
    data = None if identity is None else np.array(identity).astype(char).tobytes()
    return loop_kernel(ufunc, f"{char}{char}->{char}", identity=data)


def full_plan(kernel: _core.Kernel, char: str, identity: Any) -> _core.Plan:
    num = np.dtype(char).num
    code = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0), ("REDUCE", 0, 0, 0, int(identity is not None), num), ("FLAGS",), ("BOX_NUMPY", 1, 0, num)]
    return make_plan(code, kernels=(kernel,))


def axis_plan(kernel: _core.Kernel, axis: int, identity: Any, keepdims: bool) -> _core.Plan:
    code = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0), ("REDUCE_AXIS", 1, 0, 0, axis, int(identity is not None), int(keepdims)), ("FLAGS",)]
    return make_plan([*code, ("BOX_ARRAY", 1, 1)], kernels=(kernel,))


def data(rng: np.random.Generator, n: int, char: str) -> np.ndarray:
    """Values whose sums depend on the order; zeros of both signs."""
    if char == "?":
        return rng.random(n) < 0.01
    if char in "fdFD":
        x = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)
        x[rng.random(n) < 0.2] = 0.0
        x[rng.random(n) < 0.5] *= -1
        if char in "FD":
            x = x + 1j * x[::-1]
        return x.astype(char)
    return rng.integers(0, 200, n).astype(char)


def expected_of(ufunc: np.ufunc, a: np.ndarray, **options: Any) -> Any:
    return ufunc.reduce(a, dtype=a.dtype, **options)


@pytest.mark.parametrize(("ufunc", "char", "identity"), PARAMS)
def test_one_dimension(ufunc: np.ufunc, char: str, identity: Any) -> None:
    plan = full_plan(reduction(ufunc, char, identity), char, identity)
    rng = np.random.default_rng(1)
    sizes = [*range(1, 40), 63, 64, 65, 127, 128, 129, 130, 255, 257, 1000, 4099, 8191, 8192, 8193, 16385, 40000, 100003]
    with np.errstate(all="ignore"):
        for n in sizes:
            base = data(rng, 3 * n, char)
            for a in (base[:n], base[::3], base[n - 1 :: -1] if n > 1 else base[:1], base[n : 2 * n]):
                got = run(plan, a)
                assert got is not None
                assert_same(got[1], expected_of(ufunc, a))


def random_layout(rng: random.Random, shape: tuple[int, ...], char: str) -> np.ndarray:
    perm = list(range(len(shape)))
    if rng.random() < 0.6:
        rng.shuffle(perm)
    steps = [rng.choice([1, 1, 1, 1, 2, -1]) for _ in shape]
    base_shape = [shape[p] * abs(steps[p]) for p in perm]
    base = data(np.random.default_rng(rng.randrange(2**32)), int(np.prod(base_shape)), char).reshape(base_shape)
    return base.transpose(np.argsort(perm))[tuple(slice(None, None, s) for s in steps)]


SHAPES = [
    (3, 4),
    (1, 7),
    (7, 1),
    (100, 3),
    (3, 100),
    (2, 3, 4),
    (5, 1, 6),
    (1, 1, 9),
    (33, 65),
    (17, 129),
    (4, 5, 6, 2),
    (200, 90),
    (2, 9000),
    (9000, 2),
]
LARGE = [(3, 20000), (20000, 3), (130, 140, 3), (2, 8193, 2), (10, 10, 400)]


@pytest.mark.parametrize(("ufunc", "char", "identity"), PARAMS)
def test_axes(ufunc: np.ufunc, char: str, identity: Any) -> None:
    rng = random.Random(f"{ufunc.__name__}{char}")
    kernel = reduction(ufunc, char, identity)
    full = full_plan(kernel, char, identity)
    with np.errstate(all="ignore"):
        for shape in [s for s in SHAPES for _ in range(6)] + LARGE * 2:
            a = random_layout(rng, shape, char)
            got = run(full, a)
            if got is not None:
                assert_same(got[1], expected_of(ufunc, a, axis=None))
            assert got is not None or not (a.flags.c_contiguous or a.flags.f_contiguous)
            if ufunc is np.fmax and a.ndim > 2:
                continue
            axis, keepdims = rng.randrange(a.ndim), rng.random() < 0.5
            got = run(axis_plan(kernel, axis, identity, keepdims), a)
            assert got is not None or (a.ndim > 2 and char in "FD")
            if got is not None:
                assert_same(got[1], expected_of(ufunc, a, axis=axis, keepdims=keepdims))


def test_buffer_size_does_not_matter() -> None:
    kernel = reduction(np.add, "d", ZERO)
    a = data(np.random.default_rng(3), 300000, "d").reshape(300, 1000)
    old = np.setbufsize(16)
    try:
        for axis in (0, 1):
            assert_same(run(axis_plan(kernel, axis, ZERO, False), a)[1], np.add.reduce(a, axis=axis))
        assert_same(run(full_plan(kernel, "d", ZERO), a)[1], np.add.reduce(a, axis=None))
        assert run(full_plan(kernel, "d", ZERO), a[::2, ::3]) is None
    finally:
        np.setbufsize(old)


def test_what_misses() -> None:
    add = reduction(np.add, "d", ZERO)
    full = full_plan(add, "d", ZERO)
    assert run(full, np.empty(0)) is None
    assert run(full, np.ones(3, "f4")) is None
    for a in (np.empty((0, 3)), np.ones(3), np.ones((2, 2), "f4")):
        assert run(axis_plan(add, 0, ZERO, False), a) is None
    assert run(axis_plan(add, 2, ZERO, False), np.ones((2, 2))) is None


def test_overflow_is_an_alarm() -> None:
    plan = full_plan(reduction(np.add, "d", ZERO), "d", ZERO)
    a = np.full(10, 1e308)
    assert run(plan, a) is None
    assert plan.alarms == 1
    with np.errstate(over="ignore"):
        assert run(plan, a)[1] == np.inf
    assert run(plan, np.array([-0.0]))[1].tobytes() == np.float64(ZERO).tobytes()
