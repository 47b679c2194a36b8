"""Elements of arrays: indexing, loads, stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierup.loops import numbers
from tierup.loops.values import ITEMSIZE, Refused, Value, memory_type, numpy

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer


@dataclass(frozen=True, slots=True)
class EntryArray:
    """An array that the loop finds in its surroundings: its element type, and names of what describes it."""

    dtype: str
    address: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    """In bytes."""
    writeable: bool
    register: int

    @property
    def ndim(self) -> int:
        return len(self.shape)


def dims(t: Tracer, array: Value) -> tuple[EntryArray, tuple[str, ...], tuple[str, ...]]:
    """The entry array of an array value, and the shape and strides of the axes that are left."""
    number, gone = array.view
    entry = t.arrays[number]
    return entry, entry.shape[gone:], entry.strides[gone:]


def _indices(key: Value) -> tuple[Value, ...]:
    if key.kind == "tuple":
        return key.items
    if key.is_const(tuple):
        from tierup.loops.values import const

        return tuple(const(item) for item in key.constant)  # type: ignore[attr-defined]
    return (key,)


def _located(t: Tracer, array: Value, key: Value) -> tuple[str, list[str]]:
    """Address of the element (or of the part) at a key, and the key's indices from zero. Leaves where one is out of range."""
    _, shape, strides = dims(t, array)
    keys = _indices(key)
    if len(keys) > len(shape):
        raise Refused("too many indices")
    let = t.fn.let
    address, found = array.parts[0], []
    for value, length, stride in zip(keys, shape, strides, strict=False):
        index = numbers.index_of(t, value)
        negative = let(f"icmp slt i64 {index}, 0")
        wrapped = let(f"select i1 {negative}, i64 {let(f'add i64 {index}, {length}')}, i64 {index}")
        t.require(let(f"icmp ult i64 {wrapped}, {length}"))
        address = let(f"getelementptr i8, ptr {address}, i64 {let(f'mul i64 {wrapped}, {stride}')}")
        found.append(wrapped)
    return address, found


def item(t: Tracer, array: Value, key: Value) -> Value:
    """array[key] for ints: a NumPy scalar, or a view where axes are left."""
    entry, shape, _ = dims(t, array)
    address, indices = _located(t, array, key)
    if len(indices) < len(shape):
        number, gone = array.view
        return Value("array", (number, gone + len(indices)), (address, *array.parts[1:], *indices))
    return load(t, entry.dtype, address)


def load(t: Tracer, dtype: str, address: str) -> Value:
    type_ = memory_type(dtype)
    name = t.fn.let(f"load {type_}, ptr {address}, align {ITEMSIZE[dtype]}")
    return numpy(dtype, t.fn.let(f"icmp ne i8 {name}, 0") if dtype == "b1" else name)


def set_item(t: Tracer, array: Value, key: Value, value: Value) -> None:
    """array[key] = value for ints and a number."""
    entry, shape, _ = dims(t, array)
    if not entry.writeable:
        raise Refused("a store into a read-only array")
    if len(_indices(key)) != len(shape):
        raise Refused("a store into a part of an array")
    address, _ = _located(t, array, key)
    element = converted(t, numbers.number(value), entry.dtype)
    if entry.dtype == "b1":
        element = t.fn.let(f"zext i1 {element} to i8")
    t.fn.line(f"store {memory_type(entry.dtype)} {element}, ptr {address}, align {ITEMSIZE[entry.dtype]}")
    t.effect()


def converted(t: Tracer, value: Value, dtype: str) -> str:
    """A number as an element, as NumPy's assignment converts it; leaves where that raises or warns."""
    if value.kind not in ("int", "bool", "float", "numpy"):
        raise Refused(f"a {value.kind} stored into an array")
    if dtype == "b1":
        flag = numbers.truth(t, value)
        return flag if isinstance(flag, str) else "true" if flag else "false"
    if dtype[0] == "f":
        return _as_float(t, value, dtype)
    if value.kind == "float" or (value.kind == "numpy" and value.dtype[0] == "f"):
        return numbers.fits(t, truncated(t, value), dtype)
    if value.kind != "numpy":
        return numbers.fits(t, numbers.as_int(t, value), dtype)
    if value.dtype == dtype:
        return value.one
    if "u8" in (value.dtype, dtype):
        raise Refused("a conversion to or from uint64")
    return numbers.fits(t, numbers.element_as(t, value, "i8"), dtype)


def _as_float(t: Tracer, value: Value, dtype: str) -> str:
    if value.kind != "numpy":
        return numbers.python_as(t, value, dtype)
    if value.dtype == "f8" and dtype == "f4":
        return numbers.narrowed(t, value.one)
    return numbers.element_as(t, value, dtype)


def truncated(t: Tracer, value: Value) -> str:
    """A float towards zero; leaves for what no int64 can hold."""
    wide = value.one if value.kind == "float" else numbers.element_as(t, value, "f8")
    size = t.fn.call("double", "llvm.fabs.f64", ("double", wide))
    t.require(t.fn.let(f"fcmp olt double {size}, {numbers.double_text(2.0**63)}"))
    return t.fn.let(f"fptosi double {wide} to i64")
