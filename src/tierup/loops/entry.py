"""What a loop finds when it begins: values of the frame, as slots of the plan that the native function reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tierup.arrays.values import ArrayValue, ConstValue, ObjectValue, ScalarValue, TupleValue
from tierup.arrays.values import Value as CaptureValue
from tierup.capture.region import Region
from tierup.guards.sources import Pinned, Source
from tierup.loops import lists
from tierup.loops.function import Function
from tierup.loops.memory import EntryArray
from tierup.loops.values import ITEMSIZE, Refused, Value, boolean, const, memory_type, tuple_of

_RANGE_ITERATOR = type(iter(range(0)))
_SEQUENCE_ITERATOR = type(iter(np.ones(1)))
_LIST_ITERATOR: type = type(iter([]))
_BY_CONTENT = (dict, set)
"""Mutable containers are only moved about."""
FUNCTION_SLOT, EXIT_SLOT = 0, 1


class Entry:
    """Registers of the plan and the operations that fill them before the loop runs."""

    def __init__(self, region: Region, fn: Function, is_known: Callable[[object], bool], texts: bool) -> None:
        self.region = region
        self.texts = texts
        """Whether strings are looked into, rather than guarded by what they say."""
        self.is_known = is_known
        """Whether an object is a function that loops have a rule for."""
        self.fn = fn
        self.ops: list[tuple[Any, ...]] = []
        """(operation, operands …); a Source stands for its expression."""
        self.nslots = 2
        self.nobjects = 0
        self.arrays: list[EntryArray] = []
        self.array_sources: list[Source | None] = []
        self.literals: dict[int, int] = {}
        """Slot → 64-bit value known before (addresses)."""
        self._objects: dict[Source, int] = {}
        self._pointers: dict[int, str] = {}
        self._addresses: dict[Source, str] = {}
        self._limited: set[tuple[int, int]] = set()
        self._known: dict[Source, Value] = {}

    # -- registers ---------------------------------------------------------------------------------------------------

    def slots(self, count: int = 1) -> int:
        first = self.nslots
        self.nslots += count
        return first

    def object(self, source: Source) -> int:
        """Object register of a source."""
        if source not in self._objects:
            self._objects[source] = self.nobjects
            self.ops.append(("O_EXPR", self.nobjects, source))
            self.nobjects += 1
        return self._objects[source]

    def address(self, source: Source) -> str:
        """Address of an object of the entry, which the frame keeps alive."""
        if source not in self._addresses:
            slot = self.slots()
            self.ops.append(("S_POINTER", slot, self.object(source)))
            self._addresses[source] = self.fn.load_entry("ptr", slot)
        return self._addresses[source]

    def pointer(self, address: int) -> str:
        """An address that is known now, as an LLVM value; it is no part of the text, so that the text can be cached."""
        if address not in self._pointers:
            slot = self.slots()
            self.literals[slot] = address
            self._pointers[address] = self.fn.load_entry("ptr", slot)
        return self._pointers[address]

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, live: CaptureValue) -> Value:
        """A value of capture's as one of the loop's; whatever is relied on becomes a guard. Raises Refused."""
        if isinstance(live, ObjectValue):
            if live.source in self._known:
                return self._known[live.source]
            made = self._value_of_object(live)
            self._known[live.source] = made
            return made
        return self._convert(live)

    def _value_of_object(self, live: ObjectValue) -> Value:
        if type(live.live) is list:
            return self._list(live)
        if type(live.live) is str and self.texts and len(live.live) > 1:
            return self._text(live.source)
        if type(live.live) in _BY_CONTENT or type(live.live) is _RANGE_ITERATOR:
            return Value("object", live.source)
        if self.is_known(live.live):
            self.region.guard("IS", live.source, Pinned(live.live))
            return const(live.live, live.source)
        return self._convert(self.region.force(live))

    def _convert(self, known: CaptureValue) -> Value:
        match known:
            case ConstValue():
                return const(known.value, known.source)
            case ScalarValue(origin=ObjectValue()):
                return self._scalar(known)
            case ArrayValue(origin=ObjectValue()):
                return self._array(known)
            case TupleValue():
                return tuple_of([self.value(item) for item in known.items])
            case ObjectValue():
                return Value("object", known.source)
        raise Refused(f"a {type(known).__name__} at the entry")

    def _scalar(self, known: ScalarValue) -> Value:
        source: Source = known.origin.source
        kind = known.type
        slot, register = self.slots(), self.object(source)
        if kind.box == "numpy":
            if kind.dtype not in ITEMSIZE:
                raise Refused(f"a {kind.dtype} scalar")
            self.ops.append(("S_NUMPY", slot, register, kind.dtype))
            name = self.fn.load_entry(memory_type(kind.dtype), slot)
            name = self._bit(name) if kind.dtype == "b1" else name
            return Value("numpy", kind.dtype, (name,), (), source)
        if kind.dtype == "i8":
            self.ops.append(("S_INT", slot, register))
            return Value("int", None, (self.fn.load_entry("i64", slot),), (), source)
        if kind.dtype == "f8":
            self.ops.append(("S_FLOAT", slot, register))
            return Value("float", None, (self.fn.load_entry("double", slot),), (), source)
        if kind.dtype == "c16":
            self.ops.append(("S_COMPLEX", slot, register))
            return Value("complex", None, tuple(self.fn.load_entry("double", slot, at) for at in (0, 8)), (), source)
        raise Refused(f"a {kind.dtype} number")

    def _bit(self, name: str) -> str:
        bit = self.fn.name()
        self.fn.entry.lines.append(f"  {bit} = icmp ne i8 {name}, 0")
        return bit

    def truth_value(self, live: ObjectValue) -> Value:
        """A bool that may differ from visit to visit."""
        self.region.guard("TYPE_IS", live.source, Pinned(bool))
        slot = self.slots()
        self.ops.append(("S_BOOL", slot, self.object(live.source)))
        return boolean(self._bit(self.fn.load_entry("i8", slot)))

    def _array(self, known: ArrayValue) -> Value:
        if known.dtype not in ITEMSIZE:
            raise Refused(f"an array of {known.dtype}")
        ndim, register = known.ndim, len(self.arrays)
        slot = self.slots(1 + 2 * ndim)
        self.ops.append(("A_OBJ", register, self.object(known.origin.source)))
        self.ops.append(("S_ARRAY", slot, register, ndim))
        names = [self.fn.load_entry("i64", slot + 1 + k) for k in range(2 * ndim)]
        strides = names[ndim:]
        size = ITEMSIZE[known.dtype]
        if ndim and known.origin.live.strides[-1] == size:
            # Neighbours are what loops are fastest on. Contiguity alone does not say it: an axis of one or no element may have any stride.
            bound = self.slots()
            self.literals[bound] = size
            self.ops.append(("C_EQ", slot + 2 * ndim, bound))
            strides[-1] = str(size)
        address = self.fn.load_entry("ptr", slot)
        array = EntryArray(known.dtype, address, tuple(names[:ndim]), tuple(strides), known.writeable, register, known.shape, slot)
        self.arrays.append(array)
        self.array_sources.append(known.origin.source)
        return Value("array", (register, ndim, True), (address,), (), known.origin.source)

    def _list(self, live: ObjectValue) -> Value:
        items = lists.items_of(live.live)
        if items is None:
            return Value("object", live.source)
        self.region.guard("TYPE_IS", live.source, Pinned(list))
        slot = self.slots()
        self.ops.append(("S_POINTER", slot, self.object(live.source)))
        return Value("list", items, (self.fn.load_entry("ptr", slot),), (), live.source)

    def _text(self, source: Source) -> Value:
        self.region.guard("TYPE_IS", source, Pinned(str))
        slot = self.slots(2)
        self.ops.append(("S_TEXT", slot, self.object(source)))
        return Value("text", None, (self.fn.load_entry("ptr", slot), self.fn.load_entry("i64", slot + 1)), (), source)

    def mid_flight(self, source: Source, live: Any, library: Any) -> Value | None:
        """An iterator in mid-flight; None for those that loops are not compiled for. Raises Refused."""
        if type(live) is _RANGE_ITERATOR:
            return self._range(source)
        if type(live) in (enumerate, zip):
            return self._combined(source, live, library)
        sequence = _sequence_of(live)
        if type(sequence) is list:
            return self._list_elements(source, sequence)
        if sequence is not None and library.recognise(sequence):
            return self._elements(source, sequence, library)
        return None

    def _combined(self, source: Source, live: Any, library: Any) -> Value | None:
        state = live.__reduce__()
        if len(state) != 2:
            return None  # zip(strict=True)
        inner = state[1][:1] if type(live) is enumerate else state[1]
        parts = [self.mid_flight(source.then("ITERATED", k), part, library) for k, part in enumerate(inner)]
        known = tuple(part for part in parts if part is not None)
        if not known or len(known) != len(parts):
            return None
        self.region.guard("TYPE_IS", source, Pinned(type(live)))
        slot = self.slots()
        self.ops.append(("S_COMBINED", slot, self.object(source), len(inner)))
        if type(live) is zip:
            return Value("zip", source, (), known)
        return Value("enumerate", source, (self.fn.load_entry("i64", slot),), known)

    def _range(self, source: Source) -> Value:
        """A range iterator in mid-flight."""
        self.region.guard("TYPE_IS", source, Pinned(_RANGE_ITERATOR))
        slot = self.slots(3)
        self.ops.append(("S_RANGE", slot, self.object(source)))
        return Value("iterator", source, tuple(self.fn.load_entry("i64", slot + k) for k in range(3)))

    def limit(self, array: EntryArray, ndim: int, most: int) -> None:
        """Have the region missed where the last axes of an array hold more elements than that."""
        if (array.register, ndim) in self._limited:
            return
        self._limited.add((array.register, ndim))
        size, bound = self.slots(), self.slots()
        self.literals[size], self.literals[bound] = 1, most
        first = array.slot + 1 + len(array.shape) - ndim
        for k in range(ndim):
            self.ops.append(("I_MUL", size, size, first + k))
        self.ops.append(("C_LE", size, bound))

    def _list_elements(self, source: Source, sequence: list[Any]) -> Value:
        """An iterator over a list in mid-flight."""
        items = lists.items_of(sequence)
        if items is None:
            raise Refused(f"a loop over a list of {type(sequence[0]).__name__}")
        self.region.guard("TYPE_IS", source, Pinned(_LIST_ITERATOR))
        slot = self.slots(2)
        self.ops.append(("S_LISTITER", slot, self.object(source)))
        value = Value("list", items, (self.fn.load_entry("ptr", slot),))
        return Value("elements", source, (self.fn.load_entry("i64", slot + 1),), (value,))

    def _elements(self, source: Source, sequence: Any, library: Any) -> Value:
        """An iterator over an array in mid-flight. What it goes through is reached through it alone."""
        facts = library.array_facts(sequence)
        if facts.dtype not in ITEMSIZE or not facts.ndim:
            raise Refused(f"a loop over an array of {facts.dtype}")
        self.region.guard("TYPE_IS", source, Pinned(_SEQUENCE_ITERATOR))
        register, ndim = len(self.arrays), facts.ndim
        position, slot = self.slots(), self.slots(1 + 2 * ndim)
        self.ops.append(("A_SEQITER", register, position, self.object(source)))
        self.ops.append(("C_ARRAY", register, facts.dtype, ndim))
        self.ops.append(("S_ARRAY", slot, register, ndim))
        names = [self.fn.load_entry("i64", slot + 1 + k) for k in range(2 * ndim)]
        address = self.fn.load_entry("ptr", slot)
        # Its flags are not guarded: rows of it are not stored to.
        shape, strides = tuple(names[:ndim]), tuple(names[ndim:])
        self.arrays.append(EntryArray(facts.dtype, address, shape, strides, False, register, tuple(sequence.shape), slot))
        self.array_sources.append(None)
        array = Value("array", (register, ndim, True), (address,))
        return Value("elements", source, (self.fn.load_entry("i64", position),), (array,))


def _sequence_of(live: Any) -> Any:
    """What an iterator over a sequence goes through, None for anything else."""
    if type(live) not in (_SEQUENCE_ITERATOR, _LIST_ITERATOR):
        return None
    state = live.__reduce__()
    return state[1][0] if len(state) > 2 else None
