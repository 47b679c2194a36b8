"""Arrays inside loops: indexing, slices, elements loaded and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierup.loops import numbers
from tierup.loops.values import ITEMSIZE, Refused, Value, const, memory_type, numpy

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
    seen: tuple[int, ...]
    """Its shape at translation, a hint."""
    slot: int
    """Where address, shape and strides begin in the plan."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where an array's elements lie: names of address, shape and strides (in bytes)."""

    entry: EntryArray
    address: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]

    @property
    def dtype(self) -> str:
        return self.entry.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def geometry(t: Tracer, array: Value) -> Geometry:
    """The geometry of an array value."""
    number, ndim, whole = array.place
    entry = t.arrays[number]
    if whole:
        return Geometry(entry, entry.address, entry.shape, entry.strides)
    return Geometry(entry, array.parts[0], array.parts[1 : 1 + ndim], array.parts[1 + ndim :])


def view(array: Value, address: str, shape: list[str], strides: list[str]) -> Value:
    """A view of an array value's memory."""
    return Value("array", (array.place[0], len(shape), False), (address, *shape, *strides))


# ---- keys ----------------------------------------------------------------------------------------------------------


def slice_of(start: Value, stop: Value, step: Value) -> Value:
    """A slice object."""
    return Value("slice", None, (), (start, stop, step))


def keys_of(key: Value) -> tuple[Value, ...]:
    """The parts of a subscript."""
    if key.kind == "tuple":
        return key.items
    if key.is_const(tuple):
        return tuple(const(item) for item in key.constant)  # type: ignore[attr-defined]
    return (key,)


def wrapped(t: Tracer, value: Value, length: str) -> str:
    """An index from zero; leaves where it is out of range. What was asked before in the same block is not asked again."""
    let = t.fn.let
    index = numbers.index_of(t, value)
    asked = index, length
    if asked in t.in_range:
        return t.in_range[asked]
    if not index.lstrip("-").isdigit() or index.startswith("-"):
        negative = let(f"icmp slt i64 {index}, 0")
        index = let(f"select i1 {negative}, i64 {let(f'add i64 {index}, {length}')}, i64 {index}")
    t.require(let(f"icmp ult i64 {index}, {length}"))
    t.in_range[asked] = index
    return index


def moved(t: Tracer, address: str, index: str, stride: str) -> str:
    return t.fn.let(f"getelementptr i8, ptr {address}, i64 {t.fn.let(f'mul i64 {index}, {stride}')}")


def _slice_step(step: Value) -> int:
    if step.is_const(type(None)):
        return 1
    if step.is_const(int) and step.constant != 0 and abs(step.constant) < 1 << 31:  # type: ignore[arg-type]
        return step.constant  # type: ignore[return-value]
    raise Refused("a slice with a step that varies")


def _clipped(t: Tracer, value: Value, default: str, length: str, step: int) -> str:
    """An end of a slice (Objects/sliceobject.c, PySlice_AdjustIndices)."""
    if value.is_const(type(None)):
        return default
    let = t.fn.let
    index = numbers.index_of(t, value)
    low, high = ("0", length) if step > 0 else ("-1", let(f"sub i64 {length}, 1"))
    negative = let(f"icmp slt i64 {index}, 0")
    index = let(f"select i1 {negative}, i64 {let(f'add i64 {index}, {length}')}, i64 {index}")
    index = t.fn.call("i64", "llvm.smax.i64", ("i64", index), ("i64", low))
    return t.fn.call("i64", "llvm.smin.i64", ("i64", index), ("i64", high))


def _sliced(t: Tracer, key: Value, address: str, length: str, stride: str) -> tuple[str, str, str]:
    """(address, length, stride) of an axis behind a slice."""
    let = t.fn.let
    start_value, stop_value, step_value = key.items
    step = _slice_step(step_value)
    if start_value.is_const(type(None)) and stop_value.is_const(type(None)) and step == 1:
        return address, length, stride
    last = let(f"sub i64 {length}, 1") if step < 0 else ""
    start = _clipped(t, start_value, "0" if step > 0 else last, length, step)
    stop = _clipped(t, stop_value, length if step > 0 else "-1", length, step)
    span = let(f"sub i64 {stop}, {start}") if step > 0 else let(f"sub i64 {start}, {stop}")
    some = let(f"icmp sgt i64 {span}, 0")
    count = span if abs(step) == 1 else let(f"add i64 {let(f'sdiv i64 {let(_minus_one(span))}, {abs(step)}')}, 1")
    count = let(f"select i1 {some}, i64 {count}, i64 0")
    # NumPy leaves address and stride as they are if nothing is left.
    begin = let(f"select i1 {some}, i64 {start}, i64 0")
    wide = stride if step == 1 else let(f"select i1 {some}, i64 {let(f'mul i64 {stride}, {step}')}, i64 {stride}")
    return moved(t, address, begin, stride), count, wide


def _minus_one(name: str) -> str:
    return f"sub i64 {name}, 1"


# ---- reading -------------------------------------------------------------------------------------------------------


def element(t: Tracer, array: Value, index: str) -> Value:
    """array[index] for an index that is in range: a NumPy scalar, or a view."""
    g = geometry(t, array)
    address = moved(t, g.address, index, g.strides[0])
    return load(t, g.dtype, address) if g.ndim == 1 else view(array, address, list(g.shape[1:]), list(g.strides[1:]))


def item(t: Tracer, array: Value, key: Value) -> Value:
    """array[key] for ints and slices: a NumPy scalar where no axis is left, else a view."""
    g = geometry(t, array)
    keys = keys_of(key)
    if len(keys) > g.ndim:
        raise Refused("too many indices")
    address, shape, strides = g.address, [], []
    for axis, (length, stride) in enumerate(zip(g.shape, g.strides, strict=True)):
        if axis >= len(keys):
            shape.append(length)
            strides.append(stride)
        elif keys[axis].kind == "slice":
            address, length, stride = _sliced(t, keys[axis], address, length, stride)  # noqa: PLW2901 - the axis behind the slice
            shape.append(length)
            strides.append(stride)
        else:
            address = moved(t, address, wrapped(t, keys[axis], length), stride)
    if not shape:
        return load(t, g.dtype, address)
    return view(array, address, shape, strides)


def load(t: Tracer, dtype: str, address: str) -> Value:
    """The element at an address."""
    type_ = memory_type(dtype)
    name = t.fn.let(f"load {type_}, ptr {address}, align {ITEMSIZE[dtype]}")
    return numpy(dtype, t.fn.let(f"icmp ne i8 {name}, 0") if dtype == "b1" else name)


# ---- writing -------------------------------------------------------------------------------------------------------


def selects_element(t: Tracer, array: Value, key: Value) -> bool:
    """Whether array[key] is one element."""
    keys = keys_of(key)
    return len(keys) == geometry(t, array).ndim and all(k.kind != "slice" for k in keys)


def set_item(t: Tracer, array: Value, key: Value, value: Value) -> None:
    """array[key] = value for as many ints as there are axes, and a number."""
    g = geometry(t, array)
    if not g.entry.writeable:
        raise Refused("a store into a read-only array")
    keys = keys_of(key)
    address = g.address
    for index, length, stride in zip(keys, g.shape, g.strides, strict=True):
        address = moved(t, address, wrapped(t, index, length), stride)
    store(t, g.dtype, address, converted(t, numbers.number(value), g.dtype))
    t.effect()


def store(t: Tracer, dtype: str, address: str, element: str) -> None:
    """Writes an element."""
    if dtype == "b1":
        element = t.fn.let(f"zext i1 {element} to i8")
    t.fn.line(f"store {memory_type(dtype)} {element}, ptr {address}, align {ITEMSIZE[dtype]}")


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
