"""Arithmetic of single numbers where at least one is a NumPy scalar, and ufuncs called on single numbers.

float64 and int64 have operations of their own in the graph. float32 is computed in double and rounded: for + - * / and sqrt that gives the
bits and flags of float32 arithmetic, because 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.loops import find_loop, loop_codes
from tierup.arrays.numpy_rules.operands import Operand, element_node
from tierup.arrays.values import ScalarValue
from tierup.graph.ir import Node, ScalarType

_F8: Final = ScalarType("f8", "numpy")
_BOOL: Final = ScalarType("b1", "numpy")
_INT: Final = ScalarType("i8", "python")
_FLOAT_OPS: Final[dict[np.ufunc, str]] = {
    np.add: "fadd",
    np.subtract: "fsub",
    np.multiply: "fmul",
    np.true_divide: "fdiv",
    np.negative: "fneg",
    np.absolute: "fabs",
    np.fabs: "fabs",
    np.sqrt: "fsqrt",
}
_INT_OPS: Final[dict[np.ufunc, str]] = {
    np.add: "iadd",
    np.subtract: "isub",
    np.multiply: "imul",
    np.floor_divide: "ifloordiv",
    np.remainder: "imod",
    np.negative: "ineg",
    np.absolute: "iabs",
}
_CONDITIONS: Final[dict[np.ufunc, str]] = {
    np.less: "lt",
    np.less_equal: "le",
    np.equal: "eq",
    np.not_equal: "ne",
    np.greater: "gt",
    np.greater_equal: "ge",
}


def operator(b: Builder, ufunc: np.ufunc, *operands: Operand) -> ScalarValue:
    """An operator on scalars, one of them NumPy's. It promotes as its ufunc does (scalarmath.c)."""
    if all(op.weak is not None for op in operands):
        raise NoRule("an operation of Python numbers")
    code = _common_code(ufunc, operands)
    if ufunc is np.power:
        if code != "f8":
            raise NoRule(f"a power of {code} scalars")
        # npy_pow of two doubles is libm's pow, as Python's is; the array loop has other bits.
        return ScalarValue(b.node("fpow", _elements(b, operands, "f8"), _F8), None)
    found = _computed(b, ufunc, operands, code)
    if found is None:
        raise NoRule(f"{ufunc.__name__} of {code} scalars")
    return found


def positive(b: Builder, op: Operand) -> ScalarValue:
    """+x: a new object of the same value."""
    if op.code not in ("f8", "f4", "i8"):
        raise NoRule(f"unary + of {op.code} scalars")
    return ScalarValue(element_node(b, op, op.code), getattr(op.value, "hint", None))


def scalar_ufunc(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand]) -> ScalarValue:
    """A ufunc called with scalars. NumPy runs the inner loop on one element; so does this, where no scalar operation says the same."""
    code = _common_code(ufunc, operands)
    found = _computed(b, ufunc, operands, code)
    if found is not None:
        return found
    loop = find_loop(ufunc, tuple(op.promotes for op in operands))
    if len(operands) != 1 or code not in ("f8", "f4") or loop_codes(loop) != [code, code]:
        raise NoRule(f"{ufunc.__name__} of scalars")
    cell = b.array("full", (element_node(b, operands[0], code), b.index(1).node), code, (1,), ccontig=True, dtype=code)
    result = b.array("ufunc", (cell.node,), code, (1,), ccontig=True, name=ufunc.__name__, loop=loop)
    return load(b, b.view("index", result, (b.index(0).node,), (), ccontig=True, axis=0).node, code)


def load(b: Builder, cell: Node, code: str) -> ScalarValue:
    """The element of a rank 0 array as a NumPy scalar."""
    return ScalarValue(b.node("load", (cell,), ScalarType(code, "numpy")), None)


def converted(b: Builder, op: Operand, code: str) -> ScalarValue:
    """np.float64(x) and the like: x as a new NumPy scalar."""
    if op.weak is None and not np.can_cast(op.promotes, code, "safe"):
        raise NoRule(f"a conversion from {op.code} to {code}")
    node, wanted = element_node(b, op, code), ScalarType(code, "numpy")
    return ScalarValue(node if node.op == "literal" else b.node("cast", (node,), wanted), getattr(op.value, "hint", None))


def _common_code(ufunc: np.ufunc, operands: Sequence[Operand]) -> str:
    """The dtype in which the operands are computed with."""
    inputs = loop_codes(find_loop(ufunc, tuple(op.promotes for op in operands)))[:-1]
    if len(set(inputs)) != 1:
        raise NoRule(f"{ufunc.__name__} of mixed scalars")
    return inputs[0]


def _computed(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand], code: str) -> ScalarValue | None:
    """The result by scalar operations, None where there are none."""
    table: dict[np.ufunc, Any] = _INT_OPS if code == "i8" else _FLOAT_OPS if code in ("f8", "f4") else {}
    if code in ("i8", "f8", "f4") and ufunc in _CONDITIONS:
        op = "icmp" if code == "i8" else "fcmp"
        return ScalarValue(b.node(op, _elements(b, operands, code), _BOOL, cond=_CONDITIONS[ufunc]), None)
    if ufunc not in table:
        return None
    type_ = _INT if code == "i8" else _F8
    node = b.node(table[ufunc], _elements(b, operands, code), type_)
    return ScalarValue(node if code == "f8" else b.node("cast", (node,), ScalarType(code, "numpy")), None)


def _elements(b: Builder, operands: Sequence[Operand], code: str) -> tuple[Node, ...]:
    """The operands in the type that scalar operations take: an int, or a double of the same value as the element."""
    wanted = _INT if code == "i8" else _F8
    return tuple(_as(b, element_node(b, op, code), wanted) for op in operands)


def _as(b: Builder, node: Node, wanted: ScalarType) -> Node:
    assert isinstance(node.type, ScalarType)
    if node.type.dtype == wanted.dtype and (wanted.dtype == "f8" or node.type.box != "numpy"):
        return node
    if node.op == "literal":
        return b.literal(node.attrs["value"], wanted)
    return b.node("cast", (node,), wanted)
