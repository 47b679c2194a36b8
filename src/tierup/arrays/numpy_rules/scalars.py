"""Arithmetic of single numbers where at least one is a NumPy float64, and ufuncs called on single numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.operands import Operand, scalar_node
from tierup.arrays.values import ConstValue, ScalarValue
from tierup.graph.ir import Node, ScalarType

_F8: Final = ScalarType("f8", "numpy")
_BOOL: Final = ScalarType("b1", "numpy")
_ARITHMETIC: Final = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_CONDITION: Final = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
_UFUNC_OP: Final = {np.add: "fadd", np.subtract: "fsub", np.multiply: "fmul", np.true_divide: "fdiv"}
_UNARY_UFUNC_OP: Final = {np.negative: "fneg", np.absolute: "fabs", np.fabs: "fabs", np.sqrt: "fsqrt"}


def binary(b: Builder, symbol: str, left: Operand, right: Operand) -> ScalarValue:
    """left symbol right for float64 with float64, float or int."""
    if symbol not in _ARITHMETIC:
        raise NoRule(f"{symbol} of scalars")
    return ScalarValue(b.node(_ARITHMETIC[symbol], _doubles(b, left, right), _F8), None)


def compare(b: Builder, symbol: str, left: Operand, right: Operand) -> ScalarValue:
    """A comparison of float64 with float64, float or int: a NumPy bool."""
    return ScalarValue(b.node("fcmp", _doubles(b, left, right), _BOOL, cond=_CONDITION[symbol]), None)


def unary(b: Builder, symbol: str, x: Operand) -> ScalarValue:
    """-x, +x or abs(x) of a float64."""
    node = _double(b, x)
    if x.code != "f8" or x.weak is not None:
        raise NoRule(f"unary {symbol} of this kind of scalar")
    if symbol == "+":
        return ScalarValue(node, None)
    if symbol not in ("-", "abs"):
        raise NoRule(f"unary {symbol} of a scalar")
    return ScalarValue(b.node("fneg" if symbol == "-" else "fabs", (node,), _F8), None)


def scalar_ufunc(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand], loop: str) -> ScalarValue:
    """A ufunc of scalars. NumPy runs the inner loop on one element; so does this, where no double operation says the same."""
    if loop == "dd->d" and ufunc in _UFUNC_OP:
        return ScalarValue(b.node(_UFUNC_OP[ufunc], tuple(_as_double(b, op) for op in operands), _F8), None)
    if loop == "d->d" and ufunc in _UNARY_UFUNC_OP:
        return ScalarValue(b.node(_UNARY_UFUNC_OP[ufunc], (_as_double(b, operands[0]),), _F8), None)
    if loop != "d->d":
        raise NoRule(f"{ufunc.__name__} of scalars")
    one = b.index(1)
    cell = b.array("full", (_as_double(b, operands[0]), one.node), "f8", (1,), ccontig=True, dtype="f8")
    result = b.array("ufunc", (cell.node,), "f8", (1,), ccontig=True, name=ufunc.__name__, loop=loop)
    return load(b, b.view("index", result, (b.index(0).node,), (), ccontig=True, axis=0).node, "f8")


def load(b: Builder, cell: Node, code: str) -> ScalarValue:
    """The element of a rank 0 array as a NumPy scalar."""
    return ScalarValue(b.node("load", (cell,), ScalarType(code, "numpy")), None)


def _doubles(b: Builder, left: Operand, right: Operand) -> tuple[Node, Node]:
    if left.weak is not None and right.weak is not None:
        raise NoRule("an operation of Python numbers")
    return _double(b, left), _double(b, right)


def _double(b: Builder, op: Operand) -> Node:
    """The f8 node of a float64, float or int."""
    if op.code != "f8" and op.weak is not int:
        raise NoRule(f"arithmetic of {op.code} scalars")
    return scalar_node(b, op, "f8")


def _as_double(b: Builder, op: Operand) -> Node:
    """The f8 node of a scalar that takes part in a loop of doubles."""
    if op.code == "f8" or op.weak is int or isinstance(op.value, ConstValue):
        return scalar_node(b, op, "f8")
    raise NoRule(f"a {op.code} scalar in a loop of doubles")
