"""Floating-point flags: none that NumPy reports is lost, none is invented, at any length and by any path."""

from __future__ import annotations

import numpy as np
import pytest

from native.graphs import Maker, run


def chain(*names: str) -> Maker:
    """x / y, then unary or binary ufuncs on it in one kernel; only the last value is used."""
    m = Maker()
    x, y = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(x, y)
    t = m.ufunc("divide", "dd->d", x, y)
    for name in names:
        binary = getattr(np, name).nin == 2
        t = m.ufunc(name, "dd->d" if binary else "d->d", *([x, t] if binary else [t]))
    m.result(t)
    return m


@pytest.mark.parametrize(
    "names", [("add",), ("fmax", "add"), ("sign", "negative"), ("tanh", "add"), ("fmin",), ("exp", "fmax", "sin", "add")]
)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 64, 1000, 5000])
def test_a_division_by_zero_is_noticed_whatever_follows(names: tuple[str, ...], n: int) -> None:
    compiled = chain(*names).compile()
    assert compiled.kernels[0].spec is not None
    for k in {0, n // 2, n - 1}:
        for step in (1, 2):
            x, y = (np.ones(n * step)[::step] for _ in range(2))
            assert run(compiled, [x, y]) is not None, "an alarm without a reason"
            y[k] = 0.0
            assert run(compiled, [x, y]) is None
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                assert run(compiled, [x, y]) is not None


def test_a_flag_counts_even_if_the_result_is_not_used() -> None:
    m = Maker()
    x, y = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(x, y)
    m.ufunc("divide", "dd->d", x, y)
    m.ufunc("log", "d->d", x)
    m.result(m.ufunc("add", "dd->d", x, y))
    compiled = m.compile()
    assert run(compiled, [np.ones(20), np.ones(20)]) is not None
    assert run(compiled, [np.ones(20), np.zeros(20)]) is None
    assert run(compiled, [np.zeros(20), np.ones(20)]) is None


def test_both_sides_of_where_count() -> None:
    """np.where(y != 0, x / y, 0.0) warns in NumPy, so it must here."""
    m = Maker()
    x, y = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(x, y)
    zero = m.literal(0.0)
    cond = m.ufunc("not_equal", "dd->?", y, zero)
    quotient = m.ufunc("divide", "dd->d", x, y)
    m.result(m.graph.add("where", (cond, quotient, zero), quotient.type))
    compiled = m.compile()
    for n in (1, 7, 8, 100):
        y_values = np.ones(n)
        assert run(compiled, [np.ones(n), y_values]) is not None
        y_values[-1] = 0
        assert run(compiled, [np.ones(n), y_values]) is None


@pytest.mark.parametrize("n", [1, 3, 9, 200])
def test_comparisons_with_nan_raise_nothing(n: int) -> None:
    m = Maker()
    x, y = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(x, y)
    less = m.ufunc("less", "dd->?", x, y)
    largest = m.ufunc("maximum", "dd->d", x, y)
    m.result(m.graph.add("where", (less, largest, y), largest.type), m.ufunc("isnan", "d->?", x))
    assert run(m.compile(), [np.full(n, np.nan), np.ones(n)]) is not None


def test_narrowing_overflow() -> None:
    m = Maker()
    x = m.array(np.ones(3))
    t = m.graph.add("astype", (x,), m.graph.nodes[1].type.__class__("f4", 1), dtype="f4")
    m.result(t)
    compiled = m.compile()
    assert run(compiled, [np.array([1.0, 1e39, 2.0])]) is None
    assert run(compiled, [np.array([1.0, 1e38, np.inf])]) is not None
