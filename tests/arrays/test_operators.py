"""Operators and ufuncs against NumPy: bits, dtype, memory order, aliasing, warnings and errors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays.harness import Const, agree
from arrays.strategies import ArraySpec, broadcastable, numbers, shapes, specs
from tierup.arrays.numpy_rules import LIBRARY
from tierup.graph.ir import DTYPES

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge}
INPLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "&=": operator.iand,
    "|=": operator.ior,
    "^=": operator.ixor,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
}
UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": operator.abs}
ALL = {**BINARY, **COMPARE, **INPLACE}


def _rule(symbol: str) -> Any:
    if symbol in COMPARE:
        return lambda b, args, kwargs: LIBRARY.compare(b, symbol, *args)
    return lambda b, args, kwargs: LIBRARY.binary_op(b, symbol, *args)


scalar_floats = st.one_of(st.floats(-5, 5), st.sampled_from((0.0, -0.0, 1e-30, 1e30, 3e38, np.inf, np.nan, 1e-45)))


def _make(*operands: Any) -> Any:
    return lambda: ([o.make() if isinstance(o, ArraySpec) else o for o in operands], {})


@settings(max_examples=250, deadline=None)
@given(st.data(), st.sampled_from(sorted(ALL)), broadcastable())
def test_arrays(data: Any, symbol: str, both: list[tuple[int, ...]]) -> None:
    x, y = (data.draw(specs(shape)) for shape in both)
    other = [data.draw(st.one_of(st.just(s.shape), st.just(tuple(n + 1 if n > 1 else n for n in s.shape)))) for s in (x, y)]
    others = [s.resized(shape, 5) for s, shape in zip((x, y), other, strict=True)]
    if any(s.layout == "broadcast" for s in (x, y)):
        others = []  # zero strides are no part of what guards fix, but ArraySpec ties them to the shape
    agree(_rule(symbol), ALL[symbol], _make(x, y), *([_make(*others)] if others else []))


@settings(max_examples=250, deadline=None)
@given(st.data(), st.sampled_from(sorted(ALL)), shapes, st.booleans(), st.booleans())
def test_array_and_number(data: Any, symbol: str, shape: tuple[int, ...], swap: bool, constant: bool) -> None:
    x = data.draw(specs(shape))
    y = data.draw(numbers())
    z = data.draw(numbers().filter(lambda n: type(n) is type(y)))
    wrapped = Const(y) if constant else y
    second = Const(y) if constant else z
    if swap:
        agree(_rule(symbol), ALL[symbol], _make(wrapped, x), _make(second, x))
    else:
        agree(_rule(symbol), ALL[symbol], _make(x, wrapped), _make(x, second))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(sorted({**BINARY, **COMPARE})))
def test_numbers(data: Any, symbol: str) -> None:
    kind = data.draw(st.sampled_from((np.float64, np.float32, np.int64)))
    x = kind(data.draw(st.one_of(st.integers(-5, 5), st.sampled_from((2**62, 2**53 + 1))) if kind is np.int64 else scalar_floats))
    y = data.draw(numbers())
    z = data.draw(numbers().filter(lambda n: type(n) is type(y)))
    agree(_rule(symbol), ALL[symbol], _make(x, y), _make(x, z))
    agree(_rule(symbol), ALL[symbol], _make(y, x), _make(z, x))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "<", "=="])
@pytest.mark.parametrize("x", [np.float64(1.5), np.float32(1.3), np.int64(5)])
@pytest.mark.parametrize("y", [2, 2.5, np.float64(0.7), np.int64(3), np.float32(0.1), True])
def test_common_scalar_operations_are_captured(symbol: str, x: Any, y: Any) -> None:
    agree(_rule(symbol), ALL[symbol], _make(x, y), must_capture=True)
    agree(_rule(symbol), ALL[symbol], _make(Const(y), x), must_capture=True)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(sorted(UNARY)))
def test_unary_of_numbers(data: Any, symbol: str) -> None:
    kind = data.draw(st.sampled_from((np.float64, np.float32, np.int64, np.bool_)))
    x = kind(data.draw(st.integers(-5, 5)))
    agree(lambda b, args, kwargs: LIBRARY.unary_op(b, symbol, *args), UNARY[symbol], _make(x))


@settings(max_examples=200, deadline=None)
@given(st.data(), numbers(), st.booleans())
def test_scalar_types(data: Any, value: Any, constant: bool) -> None:
    kind = np.dtype(data.draw(st.sampled_from(DTYPES))).type
    again = data.draw(numbers().filter(lambda n: type(n) is type(value)))
    agree(LIBRARY.rule_for(kind), kind, _make(Const(value) if constant else value), _make(Const(value) if constant else again))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(sorted(UNARY)), st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
def test_unary(data: Any, symbol: str, shape: tuple[int, ...]) -> None:
    x = data.draw(specs(shape))
    agree(lambda b, args, kwargs: LIBRARY.unary_op(b, symbol, *args), UNARY[symbol], _make(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symbol", sorted(BINARY))
def test_scalar_operands_of_every_kind(dtype: str, symbol: str) -> None:
    x = ArraySpec(dtype, (5,), 3, "c", False)
    positive = ArraySpec("u1" if dtype == "b1" else dtype, (5,), 4, "c", False)
    for number in (2, -1, 0.5, 2.0, 3, 1, 0, -1.0, 1.0, np.float64(2), np.int64(2), np.float64(0.5), True, 2.5):
        for spec in (x, positive):
            agree(_rule(symbol), BINARY[symbol], _make(spec, number))
            agree(_rule(symbol), BINARY[symbol], _make(spec, Const(number)))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/"])
@pytest.mark.parametrize("other", [2, 2.5, np.float64(3)])
def test_common_operations_are_captured(symbol: str, other: Any) -> None:
    x, y = ArraySpec("f8", (4, 5), 1, "c", False), ArraySpec("f8", (5,), 2, "c", False)
    agree(_rule(symbol), BINARY[symbol], _make(x, other), must_capture=True)
    agree(_rule(symbol), BINARY[symbol], _make(x, Const(other)), must_capture=True)
    agree(_rule(symbol), BINARY[symbol], _make(x, y), must_capture=True)
    agree(_rule(symbol + "="), INPLACE[symbol + "="], _make(x, y), must_capture=True)


UFUNCS = sorted({u.__name__ for u in vars(np).values() if isinstance(u, np.ufunc) and LIBRARY.rule_for(u)})


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(UFUNCS))
def test_ufuncs(data: Any, name: str) -> None:
    ufunc: np.ufunc = getattr(np, name)
    drawn = data.draw(broadcastable(ufunc.nin + 1))
    operands: list[Any] = [data.draw(st.one_of(specs(shape), numbers())) for shape in drawn[: ufunc.nin]]
    kwargs: dict[str, Any] = {}
    if data.draw(st.integers(0, 3)) == 0:
        kwargs["out"] = data.draw(specs(drawn[-1]))
    if data.draw(st.integers(0, 5)) == 0:
        kwargs["dtype"] = Const(np.dtype(data.draw(st.sampled_from(DTYPES))))

    def make() -> tuple[list[Any], dict[str, Any]]:
        args = [o.make() if isinstance(o, ArraySpec) else o for o in operands]
        return args, {k: v.make() if isinstance(v, ArraySpec) else v for k, v in kwargs.items()}

    agree(LIBRARY.rule_for(ufunc), ufunc, make)
