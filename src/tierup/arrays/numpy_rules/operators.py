"""Python's operators on arrays and NumPy scalars."""

from __future__ import annotations

from typing import Final

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import scalars
from tierup.arrays.numpy_rules.dtypes import DTYPE, ITEMSIZE, KIND
from tierup.arrays.numpy_rules.loops import find_loop
from tierup.arrays.numpy_rules.operands import Operand, operand
from tierup.arrays.numpy_rules.stores import store_same_kind
from tierup.arrays.numpy_rules.ufuncs import apply, guard_power
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, Value
from tierup.graph.ir import NOTHING, ScalarType

_BINARY: Final[dict[str, np.ufunc]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
_COMPARE: Final[dict[str, np.ufunc]] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_UNARY: Final[dict[str, np.ufunc]] = {"-": np.negative, "+": np.positive, "~": np.invert, "abs": np.absolute}

_NOT_ELIDED: Final = frozenset({"%", "**"})
_COMMUTATIVE: Final = frozenset("+*&|^")
_ELIDED_BYTES: Final = 256 * 1024
_FLOAT_KINDS: Final = "fc"


def binary_op(b: Builder, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right. In-place symbols end in '='."""
    inplace = symbol.endswith("=")
    symbol = symbol.rstrip("=")
    if symbol not in _BINARY:
        raise NoRule(f"the operator {symbol}")
    x, y = operand(left), operand(right)
    if x.array is None and y.array is None:
        return scalars.operator(b, _BINARY[symbol], x, y)
    target = left if inplace and isinstance(left, ArrayValue) else None
    ufunc, operands = _power(b, x, y) if symbol == "**" else (_BINARY[symbol], (x, y))
    if target is None and len(operands) == 2:
        _secure_elision(b, symbol, x, y)
    value = apply(b, ufunc, operands)
    if target is None:
        return value
    store_same_kind(b, target, value)
    return target


def unary_op(b: Builder, symbol: str, x: Value) -> Value:
    """-x, +x, ~x, and abs(x) as 'abs'."""
    if symbol not in _UNARY:
        raise NoRule(f"the unary operator {symbol}")
    op = operand(x)
    if op.array is None:
        return scalars.positive(b, op) if symbol == "+" else scalars.operator(b, _UNARY[symbol], op)
    return apply(b, _UNARY[symbol], (op,))


def compare(b: Builder, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right"""
    if symbol not in _COMPARE:
        raise NoRule(f"the comparison {symbol}")
    x, y = operand(left), operand(right)
    if x.array is None and y.array is None:
        return scalars.operator(b, _COMPARE[symbol], x, y)
    return apply(b, _COMPARE[symbol], (x, y))


# -- power -----------------------------------------------------------------------------------------------------------


def _power(b: Builder, base: Operand, exponent: Operand) -> tuple[np.ufunc, tuple[Operand, ...]]:
    """The ufunc that ndarray.__pow__ calls. NumPy 2.3 and later (number.c, fast_scalar_power) replace power by a unary ufunc for the
    exact int exponents 2 and -1 and the exact float 0.5; earlier versions for more exponents and types."""
    fast = None
    if base.array is not None and exponent.array is None:
        if np.lib.NumpyVersion(np.__version__) < "2.3.0":
            raise NoRule("a power with a scalar exponent in this version of NumPy")
        fast = _fast_power(b, base.array, exponent)
    if fast is not None:
        return fast, (base,)
    guard_power(b, np.power, (base, exponent))
    return np.power, (base, exponent)


def _fast_power(b: Builder, base: ArrayValue, exponent: Operand) -> np.ufunc | None:
    inexact = KIND[base.dtype] in _FLOAT_KINDS
    if exponent.weak is int:
        value = b.index(exponent.value)
        if b.compare("eq", value, b.index(2)):
            return np.square
        if inexact and b.compare("eq", value, b.index(-1)):
            return np.reciprocal
    elif exponent.weak is float and inexact and _is_half(b, exponent.value):
        return np.sqrt
    return None


def _is_half(b: Builder, value: Value) -> bool:
    """Is a Python float 0.5; secured with a check."""
    if isinstance(value, ConstValue):
        return bool(value.value == 0.5)
    assert isinstance(value, ScalarValue)
    half: bool = value.hint == 0.5
    node = b.literal(0.5, ScalarType("f8", "python"))
    b.node("check", (value.node, node), NOTHING, cond="eq" if half else "ne")
    return half


# -- temporaries that NumPy reuses ---------------------------------------------------------------------------------


def _secure_elision(b: Builder, symbol: str, left: Operand, right: Operand) -> None:
    """NumPy computes a binary operator in place of a large temporary operand (temp_elide.c), and then for commutative operators may swap
    the operands. That shows in two ways: the result has the temporary's memory order instead of the K order of both operands, and a
    complex product, whose loop fuses a multiplication, has other bits. Where either could be, the temporary must be too small for it."""
    if symbol in _NOT_ELIDED or (symbol == "/" and left.array is not None and KIND[left.array.dtype] not in _FLOAT_KINDS):
        return
    swapped = symbol in _COMMUTATIVE and right.array is not None and _may_be_temporary(right.array)
    if left.array is not None and right.array is not None:
        reused = [left.array] if _may_be_temporary(left.array) else []
        reused += [right.array] if swapped else []
        if not (left.array.ordered and right.array.ordered) and left.array.ndim == right.array.ndim:
            for array in reused:
                _require_small(b, array)
    if swapped and symbol == "*" and right.array is not None:
        loop = find_loop(np.multiply, (left.promotes, right.promotes))
        if DTYPE[right.array.dtype].kind == "c" and loop[-1] == DTYPE[right.array.dtype].char:
            _require_small(b, right.array)


def _may_be_temporary(array: ArrayValue) -> bool:
    """Made in this region, or left on the interpreter's stack by what ran before it."""
    return array.buffer.fresh or getattr(getattr(array.origin, "source", None), "kind", None) == "STACK"


def _require_small(b: Builder, array: ArrayValue) -> None:
    if KIND[array.dtype] == "b":
        return
    if not b.compare("lt", b.size(array), b.index(_ELIDED_BYTES // ITEMSIZE[array.dtype])):
        raise NoRule("a large temporary that NumPy computes in place of")
