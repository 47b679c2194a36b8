"""Scalar instructions against Python and NumPy: unboxing, arithmetic, checks, casts, boxing."""

from __future__ import annotations

import math
import operator
import random
from typing import Any

import numpy as np
import pytest
from plan_tools import DTYPES, f8, i8, image, make_plan, run

NP = {c: np.dtype(c).num for c in "?bBhHiIlLfdFDqQ"}
INTS = [0, 1, -1, 2, -2, 3, 7, -7, 10**9, -(10**9), 2**53, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62, -(2**62), 12345678901]
FLOATS = [0.0, -0.0, 1.0, -1.5, 5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan, 2.0**53, 1e-300]


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


def int_plan(op: str, arity: int) -> Any:
    code = [("O_EXPR", 0, 0), ("S_INT", 0, 0)]
    if arity == 2:
        code += [("O_EXPR", 1, 1), ("S_INT", 1, 1)]
    return make_plan([*code, (op, *range(2, 3), *range(arity)), ("BOX_INT", 2, 2)])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("I_ADD", operator.add),
        ("I_SUB", operator.sub),
        ("I_MUL", operator.mul),
        ("I_FLOORDIV", operator.floordiv),
        ("I_MOD", operator.mod),
        ("I_MIN", min),
        ("I_MAX", max),
    ],
)
def test_binary_int(op: str, function: Any) -> None:
    plan = int_plan(op, 2)
    rng = random.Random(op)
    pairs = [(a, b) for a in INTS for b in INTS]
    pairs += [
        (rng.randrange(-(2**63), 2**63) >> rng.randrange(64), rng.randrange(-(2**63), 2**63) >> rng.randrange(64)) for _ in range(500)
    ]
    for a, b in pairs:
        try:
            expected = function(a, b)
        except ZeroDivisionError:
            expected = None
        if expected is not None and not -(2**63) <= expected < 2**63:
            expected = None
        if op == "I_MOD" and (a, b) == (-(2**63), -1):
            expected = None  # a miss is allowed
        got = run(plan, a, b)
        assert (got[2] if got else None) == expected, (a, b)


@pytest.mark.parametrize(("op", "function"), [("I_NEG", operator.neg), ("I_ABS", abs)])
def test_unary_int(op: str, function: Any) -> None:
    plan = int_plan(op, 1)
    for a in INTS:
        got = run(plan, a)
        assert (got[2] if got else None) == (function(a) if function(a) < 2**63 else None)


def test_int_takes_exact_ints_only() -> None:
    plan = make_plan([("O_EXPR", 0, 0), ("S_INT", 0, 0), ("BOX_INT", 1, 0)])
    assert run(plan, 2**63 - 1)[1] == 2**63 - 1
    for other in (True, 2**63, -(2**63) - 1, 1.0, np.int64(3), "3"):
        assert run(plan, other) is None


def test_float_bool_complex() -> None:
    plan = make_plan([("O_EXPR", 0, 0), ("S_FLOAT", 0, 0), ("BOX_FLOAT", 1, 0)])
    for x in FLOATS:
        assert bits(run(plan, x)[1]) == bits(x)
        got = run(plan, np.float64(x))
        assert type(got[1]) is float
    assert run(plan, 1) is None
    assert run(plan, np.float32(1)) is None
    plan = make_plan([("O_EXPR", 0, 0), ("S_BOOL", 0, 0), ("BOX_BOOL", 1, 0)])
    assert run(plan, True)[1] is True
    assert run(plan, False)[1] is False
    assert run(plan, 1) is None
    assert run(plan, np.True_) is None
    plan = make_plan([("O_EXPR", 0, 0), ("S_COMPLEX", 0, 0), ("BOX_COMPLEX", 1, 0)])
    for z in (1 + 2j, complex(-0.0, math.nan), np.complex128(3 - 4j)):
        got = run(plan, z)
        assert type(got[1]) is complex
        assert bits(got[1]) == bits(z)
    assert run(plan, 1.0) is None


@pytest.mark.parametrize("dtype", [*DTYPES, np.dtype("q"), np.dtype("Q")], ids=lambda d: d.char)
def test_numpy_scalars(dtype: np.dtype) -> None:
    plan = make_plan([("O_EXPR", 0, 0), ("S_NUMPY", 0, 0, dtype.num), ("BOX_NUMPY", 1, 0, dtype.num)])
    for raw in range(20):
        value = np.frombuffer(random.Random(raw).randbytes(16), dtype if dtype != "?" else "u1")[0]
        value = dtype.type(value & 1) if dtype == "?" else value
        got = run(plan, value)[1]
        assert type(got) is type(value)
        assert bits(got) == bits(value)
    assert run(plan, 1.0 if dtype.char != "d" else np.float32(1)) is None


def cast(to: str, source: str, value: Any) -> Any:
    code = [("O_EXPR", 0, 0), ("S_NUMPY", 0, 0, NP[source]), ("S_CAST", 1, NP[to], 0, NP[source]), ("FLAGS",), ("BOX_NUMPY", 1, 1, NP[to])]
    got = run(make_plan(code), np.dtype(source).type(value))
    return None if got is None else got[1]


@pytest.mark.parametrize("source", "?bBhHiIlL")
@pytest.mark.parametrize("to", "bBhHiIlLfdFD")
def test_cast_ints(source: str, to: str) -> None:
    info = np.iinfo(source) if source != "?" else None
    values = (
        {0, 1} if info is None else {v for v in [0, 1, -1, 127, 128, 255, 256, -128, -129, 2**31, 2**53 + 1, 2**24 + 1, info.min, info.max]}
    )
    for value in values:
        if info is not None and not info.min <= value <= info.max:
            continue
        got = cast(to, source, value)
        kind = np.dtype(to).kind
        fits = kind in "fc" or np.iinfo(to).min <= value <= np.iinfo(to).max
        if to in "fF" and abs(value) > 2**53:
            fits = False
        if not fits:
            assert got is None, (source, to, value)
        else:
            expected = np.dtype(to).type(value) if kind != "c" else np.array(value, source).astype(to)[()]
            assert bits(got) == bits(expected), (source, to, value)


def test_cast_floats() -> None:
    for x in FLOATS:
        assert bits(cast("D", "d", x)) == bits(np.complex128(x))
        with np.errstate(all="ignore"):
            single = np.float32(x)
            got = cast("f", "d", x)
        if np.isinf(single) and not math.isinf(x):
            assert got is None
        elif not math.isnan(x):
            assert bits(got) == bits(single)
    assert bits(cast("d", "f", 0.1)) == bits(np.float64(np.float32(0.1)))
    assert bits(cast("D", "F", 1 + 0.1j)) == bits(np.complex128(np.complex64(1 + 0.1j)))
    for to in "?bl":
        assert cast(to, "d", 1.0) is None
    assert cast("d", "D", 1.0) is None
    with np.errstate(under="raise"):
        assert cast("f", "d", 1e-45) is None


def test_todouble() -> None:
    plan = make_plan([("O_EXPR", 0, 0), ("S_INT", 0, 0), ("I_TODOUBLE", 1, 0), ("BOX_FLOAT", 1, 1)])
    for value in INTS:
        got = run(plan, value)
        assert (got[1] if got else None) == (float(value) if abs(value) <= 2**53 else None)


CHECKS_INT = {"C_EQ": operator.eq, "C_NE": operator.ne, "C_LT": operator.lt, "C_LE": operator.le}
CHECKS_FLOAT = {
    "C_DEQ": operator.eq,
    "C_DNE": operator.ne,
    "C_DLT": operator.lt,
    "C_DLE": operator.le,
    "C_DNLT": lambda a, b: not a < b,
    "C_DNLE": lambda a, b: not a <= b,
}


def test_checks() -> None:
    for names, values, pack in ((CHECKS_INT, INTS, i8), (CHECKS_FLOAT, FLOATS, f8)):
        for op, holds in names.items():
            for a in values:
                for b in values:
                    plan = make_plan([(op, 0, 1)], slots=image(pack(a), pack(b)))
                    assert (run(plan) is not None) == holds(a, b), (op, a, b)
    for value in (0, 1):
        assert (run(make_plan([("C_TRUE", 0)], slots=image(bytes([value])))) is not None) == bool(value)
        assert (run(make_plan([("C_FALSE", 0)], slots=image(bytes([value])))) is not None) == (not value)
    same = object()
    loads = [("O_EXPR", 0, 0), ("O_EXPR", 1, 1)]
    assert run(make_plan([*loads, ("C_IS", 0, 1)]), same, same)
    assert run(make_plan([*loads, ("C_IS", 0, 1)]), same, object()) is None
    assert run(make_plan([*loads, ("C_ISNOT", 0, 1)]), same, same) is None
    assert run(make_plan([*loads, ("C_ISNOT", 0, 1)]), same, object())


COMPARE = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


def test_compare() -> None:
    for op, values, pack in (("I_CMP", INTS, i8), ("D_CMP", FLOATS, f8)):
        for how, function in enumerate(COMPARE):
            for a in values:
                for b in values:
                    plan = make_plan([(op, 2, 0, 1, how), ("FLAGS",), ("BOX_BOOL", 0, 2)], slots=image(pack(a), pack(b)))
                    assert run(plan)[0] is function(a, b)


@pytest.mark.parametrize(("op", "function"), [("D_ADD", np.add), ("D_SUB", np.subtract), ("D_MUL", np.multiply), ("D_DIV", np.divide)])
def test_double_arithmetic(op: str, function: Any) -> None:
    for a in FLOATS:
        for b in FLOATS:
            plan = make_plan([(op, 2, 0, 1), ("FLAGS",), ("BOX_FLOAT", 0, 2)], slots=image(f8(a), f8(b)))
            with np.errstate(all="raise"):
                try:
                    expected = function(np.float64(a), np.float64(b))
                except FloatingPointError:
                    expected = None
                got = run(plan)
            if expected is None:
                assert got is None
                assert plan.alarms == (0 if op == "D_DIV" and b == 0 else 1)
            elif op == "D_DIV" and b == 0:
                assert got is None
            else:
                assert got is not None
                assert math.isnan(expected) or bits(got[0]) == bits(expected)


def test_double_unary() -> None:
    for x in FLOATS:
        for op, expected in (("D_NEG", -x), ("D_ABS", abs(x)), ("D_SQRT", math.sqrt(x) if not x < 0 else None)):
            got = run(make_plan([(op, 1, 0), ("FLAGS",), ("BOX_FLOAT", 0, 1)], slots=image(f8(x))))
            assert (got is None) == (expected is None)
            if got is not None and expected is not None:
                assert math.isnan(expected) or bits(got[0]) == bits(expected)
    with np.errstate(invalid="ignore"):
        got = run(make_plan([("D_SQRT", 1, 0), ("FLAGS",), ("BOX_FLOAT", 0, 1)], slots=image(f8(-1.0))))
        assert math.isnan(got[0])


def test_boxing_of_containers() -> None:
    def function(self: object) -> None: ...

    load = [("O_EXPR", i, i) for i in range(4)]
    values = ["a", 1, 2, function]
    assert run(make_plan([*load, ("BOX_TUPLE", 5, [0, 1, 1])]), *values)[5] == ("a", 1, 1)
    assert run(make_plan([*load, ("BOX_TUPLE", 5, [])]), *values)[5] == ()
    assert run(make_plan([*load, ("BOX_LIST", 5, [1, 0])]), *values)[5] == [1, "a"]
    assert list(run(make_plan([*load, ("BOX_DICT", 5, [0, 1, 1, 2, 0, 2])]), *values)[5].items()) == [("a", 2), (1, 2)]
    assert run(make_plan([*load, ("BOX_DICT", 5, [3, 1])]), *values) is None
    assert run(make_plan([*load, ("BOX_SLICE", 5, 1, 2, 0)]), *values)[5] == slice(1, 2, "a")
    method = run(make_plan([*load, ("BOX_METHOD", 5, 3, 0)]), *values)[5]
    assert method.__func__ is function
    assert method.__self__ == "a"
    constant = object()
    assert run(make_plan([("O_CONST", 0, 1)], constants=(None, constant)))[0] is constant


def test_missing_expression_is_a_miss() -> None:
    assert run(make_plan([("O_EXPR", 0, 3)]), 1) is None
