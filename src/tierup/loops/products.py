"""Products of two vectors, by NumPy's own functions: the order in which BLAS adds up is part of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tierup import _core
from tierup.loops import memory, numbers, vectors
from tierup.loops.values import ITEMSIZE, Refused, Value, llvm_type, memory_type, numpy
from tierup.native.lower import type_number

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer


@dataclass(frozen=True, slots=True)
class _Vector:
    """A vector in memory: its element type, and names of address, length and stride in bytes."""

    dtype: str
    ndim: int
    address: str
    length: str
    stride: str


def _vector(t: Tracer, value: Value, place: int) -> _Vector:
    """An array as it lies, or gathered elements, which NumPy puts one behind the other. place: 0 or 1, the half of the scratch to use."""
    if value.kind == "gather":
        array, indices = value.items
        return _gathered(t, array, indices, place)
    if value.kind != "array":
        raise Refused(f"a product with a {value.kind}")
    g = memory.geometry(t, value)
    return _Vector(g.dtype, g.ndim, g.address, g.shape[0], g.strides[0])


def _scratch(t: Tracer, place: int, length: str, size: int) -> str:
    """Address of a half of the scratch; leaves if that is too small."""
    half = vectors.SCRATCH_BYTES // 2
    t.require(t.fn.let(f"icmp ule i64 {length}, {half // size}"))
    return t.fn.let(f"getelementptr i8, ptr {vectors.scratch(t)}, i64 {place * half}")


def _move(t: Tracer, dtype: str, out: str, k: str, source: str) -> None:
    """The element at `source` becomes number k of a dense vector."""
    size, type_ = ITEMSIZE[dtype], memory_type(dtype)
    value = t.fn.let(f"load {type_}, ptr {source}, align {size}")
    t.fn.line(f"store {type_} {value}, ptr {t.fn.let(f'getelementptr {type_}, ptr {out}, i64 {k}')}, align {size}")


def _gathered(t: Tracer, array: Value, indices: Value, place: int) -> _Vector:
    """array[indices]; leaves where an index is out of range."""
    fn, let = t.fn, t.fn.let
    g, at = memory.geometry(t, array), memory.geometry(t, indices)
    size = ITEMSIZE[g.dtype]
    count, length = at.shape[0], g.shape[0]
    out = _scratch(t, place, count, size)
    none, some = let(f"icmp eq i64 {count}, 0"), let(f"icmp sgt i64 {length}, 0")
    t.require(let(f"or i1 {none}, {some}"))
    flag = fn.local("outside", "i64", 8)
    fn.lower(flag)

    def one(k: str) -> None:
        where = memory.moved(t, at.address, k, at.strides[0])
        index = numbers.element_as(t, memory.load(t, at.dtype, where), "i8")
        wrapped = let(f"select i1 {let(f'icmp slt i64 {index}, 0')}, i64 {let(f'add i64 {index}, {length}')}, i64 {index}")
        inside = let(f"icmp ult i64 {wrapped}, {length}")
        fn.raise_if(flag, let(f"xor i1 {inside}, true"))
        safe = let(f"select i1 {inside}, i64 {wrapped}, i64 0")
        _move(t, g.dtype, out, k, memory.moved(t, g.address, safe, g.strides[0]))

    fn.counted(count, one)
    t.require(fn.is_lowered(flag))
    return _Vector(g.dtype, 1, out, count, str(size))


def gather(t: Tracer, array: Value, indices: Value) -> Value:
    """array[indices] of a vector and a vector of ints, not read yet."""
    g, at = memory.geometry(t, array), memory.geometry(t, indices)
    if g.ndim != 1 or at.ndim != 1 or at.dtype[0] not in "iu" or at.dtype == "u8":
        raise Refused("an index that is an array")
    return Value("gather", None, (), (array, indices))


def _vectors(t: Tracer, left: Value, right: Value) -> tuple[_Vector, _Vector]:
    """Two vectors of one type and length; leaves where the lengths differ."""
    a, b = _vector(t, left, 0), _vector(t, right, 1)
    if a.ndim != 1 or b.ndim != 1 or a.dtype != b.dtype or a.dtype == "b1":
        raise Refused("a product that is not one of two vectors of one type")
    t.require(t.fn.let(f"icmp eq i64 {a.length}, {b.length}"))
    return a, b


def _finished(t: Tracer, dtype: str, out: str) -> Value:
    """The result as a scalar. An infinity or NaN leaves: NumPy may have something to say about it. Integers wrap."""
    type_ = llvm_type(dtype)
    result = t.fn.let(f"load {type_}, ptr {out}, align 8")
    if dtype[0] != "f":
        return numpy(dtype, result)
    t.needs_underflow_ignored = True
    t.require(numbers.is_finite(t, result, type_))
    return numpy(dtype, result)


def dot(t: Tracer, left: Value, right: Value) -> Value:
    """np.dot of two vectors: the type's own dot function, which gets copies of vectors whose strides are not positive
    (numpy/_core/src/common/cblasfuncs.c, _bad_strides)."""
    a, b = _vectors(t, left, right)
    function = _core.dot_function(type_number(a.dtype))
    if function is None:
        raise Refused(f"no dot product of {a.dtype}")
    a, b = _forwards(t, a, 0), _forwards(t, b, 1)
    out = t.fn.local("dot", "double", 8)
    operands = f"ptr {a.address}, i64 {a.stride}, ptr {b.address}, i64 {b.stride}, ptr {out}, i64 {a.length}, ptr null"
    t.fn.line(f"store double 0.0, ptr {out}, align 8")
    t.fn.line(f"call void {t.entry.pointer(function)}({operands})")
    return _finished(t, a.dtype, out)


def _forwards(t: Tracer, v: _Vector, place: int) -> _Vector:
    """The vector, or a copy in order if its stride is not positive."""
    fn, let = t.fn, t.fn.let
    size = ITEMSIZE[v.dtype]
    if v.stride == str(size):
        return v
    labels = fn.label("forwards"), fn.label("backwards"), fn.label("ready")
    fn.line(f"br i1 {let(f'icmp sgt i64 {v.stride}, 0')}, label %{labels[0]}, label %{labels[1]}")
    fn.begin(labels[0])
    fn.line(f"br label %{labels[2]}")
    fn.begin(labels[1])
    out = _scratch(t, place, v.length, size)
    fn.counted(v.length, lambda k: _move(t, v.dtype, out, k, memory.moved(t, v.address, k, v.stride)))
    copied = fn.block.label
    fn.line(f"br label %{labels[2]}")
    fn.begin(labels[2])
    address = let(f"phi ptr [{v.address}, %{labels[0]}], [{out}, %{copied}]")
    stride = let(f"phi i64 [{v.stride}, %{labels[0]}], [{size}, %{copied}]")
    return _Vector(v.dtype, 1, address, v.length, stride)


def matmul(t: Tracer, left: Value, right: Value) -> Value:
    """left @ right of two vectors: the inner loop of np.matmul with one row and one column."""
    a, b = _vectors(t, left, right)
    char = np.dtype(a.dtype).char
    found = _core.ufunc_loop(np.matmul, f"{char}{char}->{char}")
    if found is None:
        raise Refused(f"no product of {a.dtype}")
    fn = t.fn
    out, args = fn.local("product", "double", 8), fn.local("operands", "[3 x ptr]", 16)
    sizes, steps = fn.local("sizes", "[4 x i64]", 16), fn.local("steps9", "[9 x i64]", 16)
    _fill(t, args, "ptr", (a.address, b.address, out))
    _fill(t, sizes, "i64", ("1", "1", a.length, "1"))
    _fill(t, steps, "i64", ("0", "0", "0", "0", a.stride, b.stride, "0", "0", "0"))
    function, data = (t.entry.pointer(address) for address in found)
    fn.line(f"call void {function}(ptr {args}, ptr {sizes}, ptr {steps}, ptr {data})")
    return _finished(t, a.dtype, out)


def _fill(t: Tracer, array: str, type_: str, values: tuple[str, ...]) -> None:
    for k, value in enumerate(values):
        place = t.fn.let(f"getelementptr {type_}, ptr {array}, i64 {k}")
        t.fn.line(f"store {type_} {value}, ptr {place}, align 8")
