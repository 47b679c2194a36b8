"""Symbolic values: what capture knows of a Python value, in the terms in which array rules are written.

Every value can say what it is at this translation (`hint`, `live`), but a rule must only rely on what guards or checks ensure:
the kind of value, an array's dtype and rank, constants. Hints steer decisions that are then secured by a check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from tierup.graph.ir import ArrayType, Node, ScalarType


class Value:
    """Base of all symbolic values."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class ConstValue(Value):
    """A Python object known at translation time (from co_consts, or guarded): None, numbers, dtypes, modules, functions, ufuncs, types …"""

    value: Any
    source: Any = None
    """How to reach the object at run time (guards.sources.Source); None: only as a constant of the plan."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarValue(Value):
    """A number computed at run time. `node.type.box` says whether Python sees int/float/bool/complex, a NumPy scalar or (index) an int."""

    node: Node
    hint: Any
    """Its value in this translation, a Python number; None if it was not computed (array elements, float results)."""
    origin: Any = None
    """The ObjectValue it was unboxed from, if any: keeps object identity at the exit."""

    @property
    def type(self) -> ScalarType:
        assert isinstance(self.node.type, ScalarType)
        return self.node.type

    @property
    def is_int(self) -> bool:
        """A Python int (or index), not a bool and not a NumPy integer."""
        return self.type.dtype == "i8" and self.type.box != "numpy"

    @property
    def is_python(self) -> bool:
        return self.type.box != "numpy"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A piece of memory. fresh: allocated in this region, so nobody else sees it."""

    fresh: bool
    owner: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class ArrayValue(Value):
    """An exact ndarray (or a view on one) of native dtype, aligned, rank ≥ 1."""

    node: Node
    shape: tuple[int, ...]
    """Hint of each axis length in this translation."""
    buffer: Buffer = field(default_factory=lambda: Buffer(True))
    origin: Any = None
    """The ObjectValue it is, if it is an existing object."""
    ccontig: bool = False
    """Known (guarded or by construction) to be C-contiguous."""
    writeable: bool = True
    corder: bool = False
    """Known to have its axes in C order: absolute strides never grow from one axis to the next and none is zero (unless it is the only
    one), axes of length one aside. Slices of a C-contiguous array are; NumPy's K order is C order for them."""

    @property
    def ordered(self) -> bool:
        """K order is C order for this array."""
        return self.corder or self.ccontig or self.ndim <= 1

    @property
    def size(self) -> int:
        """Hint of the number of elements."""
        return prod(self.shape)

    @property
    def type(self) -> ArrayType:
        assert isinstance(self.node.type, ArrayType)
        return self.node.type

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.ndim


@dataclass(frozen=True, slots=True, eq=False)
class TupleValue(Value):
    items: tuple[Value, ...]
    origin: Any = None


@dataclass(slots=True, eq=False)
class ListValue(Value):
    """A list made in this region (origin None), or an existing one whose items were guarded (then it must not be changed)."""

    items: list[Value]
    origin: Any = None


@dataclass(slots=True, eq=False)
class DictValue(Value):
    """A dict made in this region (origin None) or an existing one with guarded keys (then it must not be changed). Keys are str or int."""

    items: dict[Any, Value]
    origin: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class SliceValue(Value):
    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, slots=True, eq=False)
class ObjectValue(Value):
    """Any other object, reachable by a source; nothing is known of it but what guards have said."""

    source: Any
    live: Any
    """The object of this translation. Never call anything of it that could run user code."""
