"""Products of two vectors, by NumPy's own functions: the order in which BLAS adds up is part of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tierup import _core
from tierup.loops import memory, numbers
from tierup.loops.values import Refused, Value, llvm_type, numpy
from tierup.native.lower import type_number

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer


def _vectors(t: Tracer, left: Value, right: Value) -> tuple[memory.Geometry, memory.Geometry]:
    """Two vectors of one float type and length; leaves where the lengths differ."""
    if left.kind != "array" or right.kind != "array":
        raise Refused(f"a product of {left.kind} and {right.kind}")
    a, b = memory.geometry(t, left), memory.geometry(t, right)
    if a.ndim != 1 or b.ndim != 1 or a.dtype != b.dtype or a.dtype not in ("f8", "f4"):
        raise Refused("a product that is not one of two vectors of floats")
    t.require(t.fn.let(f"icmp eq i64 {a.shape[0]}, {b.shape[0]}"))
    return a, b


def _finished(t: Tracer, dtype: str, out: str) -> Value:
    """The result as a scalar. An infinity or NaN leaves: NumPy may have something to say about it."""
    type_ = llvm_type(dtype)
    result = t.fn.let(f"load {type_}, ptr {out}, align 8")
    t.needs_underflow_ignored = True
    t.require(numbers.is_finite(t, result, type_))
    return numpy(dtype, result)


def dot(t: Tracer, left: Value, right: Value) -> Value:
    """np.dot of two vectors: the type's own dot function (numpy/_core/src/common/cblasfuncs.c), which gets copies of vectors whose strides
    are not positive; those leave."""
    a, b = _vectors(t, left, right)
    function = _core.dot_function(type_number(a.dtype))
    if function is None:
        raise Refused(f"no dot product of {a.dtype}")
    for g in (a, b):
        t.require(t.fn.let(f"icmp sgt i64 {g.strides[0]}, 0"))
    out = t.fn.local("dot", "double", 8)
    operands = f"ptr {a.address}, i64 {a.strides[0]}, ptr {b.address}, i64 {b.strides[0]}, ptr {out}, i64 {a.shape[0]}, ptr null"
    t.fn.line(f"store double 0.0, ptr {out}, align 8")
    t.fn.line(f"call void {t.entry.pointer(function)}({operands})")
    return _finished(t, a.dtype, out)


def matmul(t: Tracer, left: Value, right: Value) -> Value:
    """left @ right of two vectors: the inner loop of np.matmul with one row and one column."""
    a, b = _vectors(t, left, right)
    char = "d" if a.dtype == "f8" else "f"
    found = _core.ufunc_loop(np.matmul, f"{char}{char}->{char}")
    if found is None:
        raise Refused(f"no product of {a.dtype}")
    fn = t.fn
    out, args = fn.local("product", "double", 8), fn.local("operands", "[3 x ptr]", 16)
    sizes, steps = fn.local("sizes", "[4 x i64]", 16), fn.local("steps9", "[9 x i64]", 16)
    _fill(t, args, "ptr", (a.address, b.address, out))
    _fill(t, sizes, "i64", ("1", "1", a.shape[0], "1"))
    _fill(t, steps, "i64", ("0", "0", "0", "0", a.strides[0], b.strides[0], "0", "0", "0"))
    function, data = (t.entry.pointer(address) for address in found)
    fn.line(f"call void {function}(ptr {args}, ptr {sizes}, ptr {steps}, ptr {data})")
    return _finished(t, a.dtype, out)


def _fill(t: Tracer, array: str, type_: str, values: tuple[str, ...]) -> None:
    for k, value in enumerate(values):
        place = t.fn.let(f"getelementptr {type_}, ptr {array}, i64 {k}")
        t.fn.line(f"store {type_} {value}, ptr {place}, align 8")
