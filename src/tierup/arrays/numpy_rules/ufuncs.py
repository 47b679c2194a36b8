"""Elementwise calls: broadcasting, `out=`, `dtype=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.arguments import constant, is_none, items_of
from tierup.arrays.numpy_rules.dtypes import DTYPE, dtype_argument, safe
from tierup.arrays.numpy_rules.loops import find_loop, loop_codes
from tierup.arrays.numpy_rules.operands import Operand, operand, scalar_node
from tierup.arrays.numpy_rules.scalars import scalar_ufunc
from tierup.arrays.numpy_rules.stores import store_same_kind
from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, Value
from tierup.graph.ir import Node


def apply(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand], result: np.dtype[Any] | None = None) -> ArrayValue:
    """ufunc(*operands), at least one of them an array."""
    loop = find_loop(ufunc, tuple(op.promotes for op in operands), result)
    *inputs, output = loop_codes(loop)
    arrays = [op.array for op in operands if op.array is not None]
    shape = b.broadcast_shape(arrays) if len(arrays) > 1 else arrays[0].shape
    nodes = [operand_node(b, op, code) for op, code in zip(operands, inputs, strict=True)]
    ordered = all(array.ordered for array in arrays)
    return b.array("ufunc", nodes, output, shape, ccontig=ordered, name=ufunc.__name__, loop=loop)


def operand_node(b: Builder, op: Operand, code: str) -> Node:
    """The node that feeds an operand to a loop whose type there is `code`."""
    if op.array is None:
        return scalar_node(b, op, code)
    if code != "b1" and not safe(op.array.dtype, code):  # the logical ufuncs cast anything to bool
        raise NoRule("an unsafe cast of an operand")
    return op.array.node


def ufunc_rule(ufunc: np.ufunc) -> Rule:
    """The rule of calling a ufunc object."""

    def call(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        if not ufunc.nin <= len(args) <= ufunc.nin + 1:
            raise NoRule("a wrong number of arguments")
        options = dict(kwargs)
        out = options.pop("out", None)
        if len(args) > ufunc.nin:
            if out is not None:
                raise NoRule("'out' given twice")
            out = args[ufunc.nin]
        dtype = dtype_argument(options.pop("dtype", None))
        constant(options.pop("where", None), True)
        constant(options.pop("casting", None), "same_kind")
        constant(options.pop("order", None), "K")
        constant(options.pop("subok", None), True, False)
        if options:
            raise NoRule(f"the keyword argument {next(iter(options))!r}")
        operands = [operand(arg) for arg in args[: ufunc.nin]]
        guard_power(b, ufunc, operands)
        result = None if dtype is None else DTYPE[dtype]
        return call_with_out(b, ufunc, operands, result, out)

    return call


def call_with_out(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand], result: np.dtype[Any] | None, out: Value | None) -> Value:
    """ufunc(*operands, out=out)"""
    items = None if out is None else items_of(out)
    if items is not None:
        if len(items) != 1:
            raise NoRule("a tuple of several outputs")
        out = items[0]
    if all(op.array is None for op in operands):
        if not is_none(out) or result is not None:
            raise NoRule("a ufunc of scalars with options")
        return scalar_ufunc(b, ufunc, operands)
    value = apply(b, ufunc, operands, result)
    if is_none(out):
        return value
    if not isinstance(out, ArrayValue):
        raise NoRule("an output that is not an array")
    store_same_kind(b, out, value)
    return out


def guard_power(b: Builder, ufunc: np.ufunc, operands: Sequence[Operand]) -> None:
    """Integer powers raise ValueError inside the loop for a negative exponent: make sure that there is none."""
    if ufunc is not np.power:
        return
    loop = find_loop(ufunc, tuple(op.promotes for op in operands))
    code = loop_codes(loop)[-1]
    if DTYPE[code].kind != "i":
        return
    exponent = operands[1]
    if exponent.array is not None and DTYPE[exponent.array.dtype].kind in "bu":
        return
    if exponent.weak is not int or not b.compare("ge", b.index(exponent.value), b.index(0)):
        raise NoRule("an integer power whose exponent may be negative")
