"""Whole loops with slices, vector statements, products and iteration over arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tierup

from .harness import check, grid, loops_of, outcome


def test_iteration_over_an_array() -> None:
    def crc(data: Any, poly: int) -> Any:
        value = 0xFFFF
        for b in data:
            cur = 0xFF & b
            for _ in range(8):
                if (value & 1) ^ (cur & 1):
                    value = (value >> 1) ^ poly
                else:
                    value >>= 1
                cur >>= 1
        return value

    check(crc, (np.arange(50, dtype="u1"), 0x8408), (np.arange(7, dtype="u1")[::-2], 3), (np.empty(0, "u1"), 1))


def test_rows_of_an_array() -> None:
    def f(a: Any, stop: float) -> Any:
        s = 0.0
        for row in a:
            for x in row:
                s += x
                if x == stop:
                    return s, row
        return s, row

    a = grid(6)
    check(f, (a, 1e9), (a, a[3, 2]), (a.T, a[5, 5]), (a[:, :3], 1e9))


def test_an_iterator_over_an_array_goes_on_after_the_loop_was_left() -> None:
    def f(a: Any, n: int) -> Any:
        total = 0
        for x in a:
            total = total * n + x
        return total

    check(f, (np.arange(9), 2), (np.arange(24), 11), (np.arange(50), 3))


SLICES = [
    (None, None), (1, None), (None, -1), (2, 5), (-3, None), (5, 2), (0, 100), (-100, 3), (7, 7),
]  # fmt: skip


@pytest.mark.parametrize("step", [None, 1, 2, 3, -1, -2])
def test_slices_that_leave(step: int | None) -> None:
    namespace: dict[str, Any] = {}
    text = f"""
def f(a, starts, stops, n):
    rows = None
    count = 0
    for i in range(n):
        rows = a[starts:stops:{step}]
        count += len(rows)
    return rows, count, rows.base is a
"""
    exec(text, namespace)
    f = namespace["f"]
    jitted = tierup.jit(f)
    for start, stop in SLICES:
        for a in (np.arange(8.0), grid(8), np.arange(16.0)[::2], np.arange(0.0)):
            for _ in range(2):
                want, got = f(a, start, stop, 3), jitted(a, start, stop, 3)
                assert want[0].strides == got[0].strides
                assert want[0].shape == got[0].shape
                assert want[0].ctypes.data == got[0].ctypes.data
                assert want[0].tobytes() == got[0].tobytes()
                assert want[1:] == got[1:]
    assert loops_of(jitted)


def test_jacobi() -> None:
    def f(steps: int, a: Any, b: Any) -> Any:
        for _ in range(steps):
            b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
            a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])

    rng = np.random.default_rng(0)
    x = rng.random(40)
    check(f, (9, rng.random(30), rng.random(30)), (5, x[::2], x[1::2]), (3, rng.random(2), rng.random(2)), (2, np.ones(0), np.ones(0)))
    check(f, (9, rng.random(30).astype("f4"), rng.random(30).astype("f4")), loops=0)


def test_a_store_that_reads_what_it_overwrites() -> None:
    def f(a: Any, n: int) -> Any:
        for _ in range(n):
            a[1:] = a[:-1] * 2 + 1
            a[:-1] = a[1:] - a[:-1]
            a[::-1] = a * 0.5
        return a

    check(f, (np.arange(12.0), 4), (np.arange(1.0), 4), (np.arange(40.0)[::3], 3))


def test_rows_and_columns() -> None:
    def symm(alpha: float, beta: float, C: Any, A: Any, B: Any) -> Any:
        temp2 = np.empty((C.shape[1],), dtype=C.dtype)
        C *= beta
        for i in range(C.shape[0]):
            for j in range(C.shape[1]):
                C[:i, j] += alpha * B[i, j] * A[i, :i]
                temp2[j] = B[:i, j] @ A[i, :i]
            C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2
        return temp2

    for order in ("C", "F"):
        arrays = [np.asarray(grid(n), order=order) for n in (9, 9, 9)]
        check(symm, (1.5, 1.2, *arrays))


def test_products_of_vectors() -> None:
    def cholesky(A: Any) -> Any:
        A[0, 0] = np.sqrt(A[0, 0])
        for i in range(1, A.shape[0]):
            for j in range(i):
                A[i, j] -= np.dot(A[i, :j], A[j, :j])
                A[i, j] /= A[j, j]
            A[i, i] -= np.dot(A[i, :i], A[i, :i])
            A[i, i] = np.sqrt(A[i, i])

    def lu(A: Any) -> Any:
        for i in range(A.shape[0]):
            for j in range(i):
                A[i, j] -= A[i, :j] @ A[:j, j]
                A[i, j] /= A[j, j]
            for j in range(i, A.shape[0]):
                A[i, j] -= A[i, :i] @ A[:i, j]

    spd = grid(40) @ grid(40).T / 1000 + np.eye(40)
    for dtype in ("f8", "f4"):
        for a in (spd, spd[:33, :33], np.asfortranarray(spd)):
            check(cholesky, (a.astype(dtype),))
            check(lu, (a.astype(dtype),))
    check(cholesky, (-spd,), loops=0)


def test_products_of_all_lengths_and_strides() -> None:
    def f(a: Any, b: Any, out: Any) -> Any:
        for n in range(len(a)):
            out[n, 0] = np.dot(a[:n], b[:n])
            out[n, 1] = a[:n] @ b[:n]
        return out

    rng = np.random.default_rng(5)
    for dtype in ("f8", "f4"):
        x, y = rng.standard_normal(600).astype(dtype), rng.standard_normal(600).astype(dtype)
        for a, b in ((x[:200], y[:200]), (x[::3], y[::3]), (x[::-3], y[::3]), (x[::-3], y[::-3]), (x[:200], y[::3])):
            check(f, (a, b, np.zeros((200, 2), dtype)))


def test_what_is_not_finite_is_left_to_numpy() -> None:
    def f(a: Any, b: Any, n: int) -> Any:
        for i in range(n):
            a[i, :] = b[i, :] / a[i, :] + 1
            a[:, i] -= b[:, i] * 2
        return a

    b = grid(6)
    a = b + 1
    check(f, (a, b, 6))
    zero = a.copy()
    zero[3] = 0
    check(f, (zero, b, 6), (np.where(a > 20, np.inf, a), b, 6), (np.where(a > 20, np.nan, a), np.full((6, 6), 1e308), 6))
    with np.errstate(all="raise"):
        check(f, (zero, b, 6), loops=0)
    with np.errstate(all="ignore"):
        check(f, (zero, b, 6), loops=0)


def test_shapes_that_do_not_fit_raise() -> None:
    def f(a: Any, b: Any, k: int) -> Any:
        for i in range(4):
            a[i:] = b[: k - i] * 2
        return a

    check(f, (np.zeros(6), np.ones(6), 6), (np.zeros(6), np.ones(6), 5), (np.zeros(6), np.ones(6), 1))


def test_integers() -> None:
    def f(a: Any, b: Any, n: int) -> Any:
        for i in range(n):
            a[i, :] += b[i, :] * 3 - 1
            a[:, i] ^= b[:, i] & 7
        return a

    for dtype in ("i8", "i4", "u1", "i2"):
        check(f, (grid(5).astype("i8").astype(dtype), (grid(5) * 1e6).astype("i8").astype(dtype), 5))


def test_scalars_are_spread() -> None:
    def f(a: Any, x: float) -> Any:
        for i in range(1, len(a) - 1):
            a[0, 1:i] = x
            a[1:i, 0] = i
            a[i:, i:] = a[i, i]
        return a

    check(f, (grid(7), 2.5), (grid(7).astype("i8"), 3), (grid(7).astype("f4"), 1e300))


def test_long_vectors_and_read_only_ones() -> None:
    def f(a: Any, b: Any) -> Any:
        for i in range(3):
            a[i:] = b[: len(a) - i] * 2
        return a

    jitted = tierup.jit(f)
    frozen = np.ones(20)
    frozen.flags.writeable = False
    for _ in range(3):
        for n in (20, 100_000, 30, 9000):
            args = (np.zeros(n), np.arange(n + 0.0))
            assert outcome(jitted, args) == outcome(f, args)
        with pytest.raises(ValueError, match="read-only"):
            jitted(frozen, np.ones(20))
    assert loops_of(jitted)


def test_elements_that_lie_on_each_other() -> None:
    def f(a: Any, b: Any) -> Any:
        for i in range(2):
            a[:] = b * (i + 1)

    jitted = tierup.jit(f)
    for _ in range(3):
        jitted(np.zeros((3, 4)), np.ones((3, 4)))
    assert loops_of(jitted)
    for strides in ((8, 8), (0, 8), (16, 8), (8, 16), (-8, 8)):
        results = []
        for function in (jitted, f):
            memory = np.zeros(32)
            function(np.lib.stride_tricks.as_strided(memory[8:], (3, 4), strides), np.arange(12.0).reshape(3, 4))
            results.append(memory.tobytes())
        assert results[0] == results[1], strides


def test_gathered_elements() -> None:
    def spmv(rows: Any, cols: Any, vals: Any, x: Any, y: Any) -> Any:
        for i in range(rows.size - 1):
            c = cols[rows[i] : rows[i + 1]]
            v = vals[rows[i] : rows[i + 1]]
            y[i] = v @ x[c]
        return y

    rng = np.random.default_rng(2)
    rows = np.array([0, 3, 3, 10, 40, 41])
    for dtype in ("i8", "i4", "u4"):
        cols = rng.integers(0, 20, 41).astype(dtype)
        check(spmv, (rows.astype(dtype), cols, rng.random(41), rng.random(20), np.zeros(5)))
        wrong = cols.copy()
        wrong[5] = 20
        check(spmv, (rows.astype(dtype), wrong, rng.random(41), rng.random(20), np.zeros(5)))
    check(spmv, (rows, rng.integers(-20, 20, 41), rng.random(41), rng.random(40)[::2], np.zeros(5)))
    check(spmv, (rows, rng.integers(-21, 20, 41), rng.random(41), rng.random(20), np.zeros(5)))
    check(spmv, (rows * 0, np.zeros(0, int), np.zeros(0), np.zeros(0), np.zeros(5)))


def test_flipped_vectors() -> None:
    def durbin(r: Any, y: Any) -> Any:
        alpha = -r[0]
        beta = 1.0
        y[0] = -r[0]
        for k in range(1, r.shape[0]):
            beta *= 1.0 - alpha * alpha
            alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
            y[:k] += alpha * np.flip(y[:k])
            y[k] = alpha
        return y

    n = 120
    r = n + 1 - np.arange(n, dtype=np.float64)
    check(durbin, (r, np.empty(n)), (r[::2], np.empty(n)), (r[::-1].copy()[::-1], np.empty(n)))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8", "f4"])
def test_products_of_vectors_of_every_type(dtype: str) -> None:
    def f(m: Any, out: Any, n: int) -> None:
        for i in range(n):
            out[i] = m[i, :] @ m[n - 1 - i, :]
            out[n + i] = np.dot(m[i, ::-1], m[0, :])

    rng = np.random.default_rng(4)
    m = rng.integers(0, 100, (6, 9)).astype(dtype)
    check(f, (m, np.zeros(12, dtype), 6), (m.T.copy(), np.zeros(18, dtype), 9))
