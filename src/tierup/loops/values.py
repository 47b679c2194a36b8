"""What a variable or stack slot holds inside a loop: a kind, fixed at translation, and LLVM values for what varies."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tierup.guards.sources import Pinned, Source

_WITH_IDENTITY: Final = ("int", "float", "complex", "numpy", "array", "tuple", "range")
"""Kinds of which an object is made when the loop is left. Bools and characters are the same objects everywhere, lists stay what they are,
and no two variables hold an iterator inside a loop."""


class Refused(Exception):
    """The loop is not compiled; the message is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """kind and detail decide how it is computed with; parts are names of LLVM values; items those of a tuple.

    | kind | detail | parts |
    |---|---|---|
    | int | OBJECT or None | i64; a Python int, operations leave the loop where it would overflow. OBJECT: and the address of the object |
    | float | OBJECT or None | double; a Python float. OBJECT: and the address of the object |
    | complex | | two doubles; a Python complex |
    | bool | | i1; True or False |
    | numpy | dtype | one element; a NumPy scalar |
    | const | Pinned object | ; its source if it has one |
    | array | (number of the entry array, rank, whether it is that array itself) | address; of a view also shape and strides |
    | slice | | those of the items (start, stop, step) |
    | range | | next, step, items left |
    | iterator | Source of a range iterator, None if the loop made it | next, step, items left |
    | enumerate | Source, None if the loop made it | next index; the iterator is its item |
    | zip | Source, None if the loop made it | ; its iterators are its items |
    | elements | Source of an iterator over an array or list, None if the loop made it | position; the array or list is its item |
    | list | what its items are (lists.items_of) | address |
    | text | | address of the characters, length; a str |
    | char | | number; a str of one character |
    | method | name | ; the list is its item |
    | gather | | ; items: an array and an array of indices into it |
    | tuple | number of items | those of the items |
    | object | Source | ; an object of the entry that is only moved about |
    | null, unbound | | |
    """

    kind: str
    detail: Hashable = None
    parts: tuple[str, ...] = ()
    items: tuple[Value, ...] = ()
    source: Source | None = None

    @property
    def key(self) -> Hashable:
        """All that translation depends on. What is an object of the entry leaves the loop as that, not as one of the same value."""
        source = None if self.kind in ("const", "array") else self.source
        return (self.kind, self.detail, source, tuple(item.key for item in self.items))

    @property
    def identity(self) -> Hashable:
        """Values with the same are one object when they leave the loop; None where no two can be told apart by that."""
        if self.kind not in _WITH_IDENTITY or (self.kind == "int" and self.one[0] != "%"):
            return None
        return (self.key, *flat_parts(self))

    @property
    def constant(self) -> object:
        """The object of a const."""
        assert isinstance(self.detail, Pinned)
        return self.detail.value

    @property
    def dtype(self) -> str:
        """Element type of a numpy value, as in graphs ('f8')."""
        assert isinstance(self.detail, str)
        return self.detail

    @property
    def place(self) -> tuple[int, int, bool]:
        """Of an array: number of the entry array whose memory it shows, its rank, whether it is that array itself."""
        assert isinstance(self.detail, tuple)
        number, ndim, whole = self.detail
        return number, ndim, whole

    @property
    def one(self) -> str:
        """The only part."""
        return self.parts[0]

    def is_const(self, *types: type) -> bool:
        return self.kind == "const" and type(self.constant) in types


OBJECT: Final = "object"
"""Detail of a number that is in a list: its object is known."""
NULL: Final = Value("null")
UNBOUND: Final = Value("unbound")

ITEMSIZE: Final = {"b1": 1, "i1": 1, "u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "i8": 8, "u8": 8, "f4": 4, "f8": 8}
"""Bytes of the element types that loops compute with."""


def integer(name: str) -> Value:
    return Value("int", None, (name,))


def floating(name: str) -> Value:
    return Value("float", None, (name,))


def boolean(name: str) -> Value:
    return Value("bool", None, (name,))


def numpy(dtype: str, name: str) -> Value:
    return Value("numpy", dtype, (name,))


def const(value: object, source: Source | None = None) -> Value:
    return Value("const", Pinned(value), (), (), source)


def tuple_of(items: Sequence[Value]) -> Value:
    return Value("tuple", len(items), (), tuple(items))


def llvm_type(dtype: str) -> str:
    """LLVM type of an element in a register; a bool is one bit there and a byte in memory."""
    if dtype == "b1":
        return "i1"
    return {"f8": "double", "f4": "float"}.get(dtype) or f"i{8 * ITEMSIZE[dtype]}"


def memory_type(dtype: str) -> str:
    return "i8" if dtype == "b1" else llvm_type(dtype)


def own_types(value: Value) -> tuple[str, ...]:
    """LLVM types of the value's own parts."""
    match value.kind:
        case "int":
            return ("i64", "ptr")[: len(value.parts)]
        case "float":
            return ("double", "ptr")[: len(value.parts)]
        case "complex":
            return ("double", "double")
        case "bool":
            return ("i1",)
        case "numpy":
            return (llvm_type(value.dtype),)
        case "array":
            return ("ptr", *("i64",) * (len(value.parts) - 1))
        case "range" | "iterator":
            return ("i64", "i64", "i64")
        case "elements" | "enumerate" | "char":
            return ("i64",)
        case "list":
            return ("ptr",)
        case "text":
            return ("ptr", "i64")
    return ()


def flat_parts(value: Value) -> Iterator[tuple[str, str]]:
    """(LLVM type, name) of everything in the value that varies."""
    yield from zip(own_types(value), value.parts, strict=True)
    for item in value.items:
        yield from flat_parts(item)


def with_parts(value: Value, names: Iterator[str]) -> Value:
    """The same kind of value with other parts."""
    parts = tuple(next(names) for _ in value.parts)
    items = tuple(with_parts(item, names) for item in value.items)
    return Value(value.kind, value.detail, parts, items, value.source)
