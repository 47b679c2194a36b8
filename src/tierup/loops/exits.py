"""The plan around a loop's function: what fills its slots, and for each exit what makes objects of them again."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from tierup import _core
from tierup.guards.lower import ExpressionTable
from tierup.guards.sources import Source
from tierup.loops import entry, iterators
from tierup.loops.state import Checkpoint
from tierup.loops.tracer import Tracer
from tierup.loops.values import OBJECT, Refused, Value, flat_parts, memory_type, own_types
from tierup.native.lower import type_number

_INTEGER, _BYTES = "i64", "i8"
_MOVES: Final = {"iterator": "RANGE_SET", "elements": "SEQITER_SET", "enumerate": "ENUM_SET"}
"""How an iterator of the entry is moved to where the loop left off."""


@dataclass(slots=True)
class Branch:
    """What one exit does after the loop's function: operations of the plan, and the slots of the frame that it writes."""

    ops: list[tuple[Any, ...]] = field(default_factory=list)
    writes: list[tuple[int, int, int]] = field(default_factory=list)


class ExitWriter:
    """Ends the function's text with one block per exit, and collects the branches of the plan."""

    def __init__(self, tracer: Tracer) -> None:
        self.t = tracer
        self.entry = tracer.entry
        self.constants: list[object] = []
        self._names: dict[str, int] = {}
        self.branches: list[Branch] = []
        self.nslots = tracer.entry.nslots
        self.nobjects = 0
        self._slot = self._object = 0
        self._made: dict[Hashable, int] = {}

    def run(self) -> None:
        for number, point in enumerate(self.t.exits):
            self._begin_branch()
            self.t.fn.begin(point.label)
            self._locals(point)
            self._stack(point)
            self.t.fn.line(f"ret i64 {number}")
        self.nslots = max(self.nslots, self.entry.nslots)

    def _begin_branch(self) -> None:
        """Branches use the same registers: only one of them runs. Objects of the entry have theirs for good, so they come first; how many
        there will be is not known yet, and they are numbered from below zero until then."""
        self.branches.append(Branch())
        self._slot, self._object = self.entry.nslots, 0
        self._made = {}

    # -- registers ---------------------------------------------------------------------------------------------------

    def _slots(self, parts: list[tuple[str, str]]) -> int:
        """Stores parts into new slots; the first one's number."""
        fn, first = self.t.fn, self._slot
        for type_, name in parts:
            fn.line(f"store {type_} {name}, ptr {fn.slot(self._slot)}, align 8")
            self._slot += 1
        self.nslots = max(self.nslots, self._slot)
        return first

    def _pair(self, names: tuple[str, ...]) -> int:
        """Stores two doubles into one new slot; its number."""
        fn, number = self.t.fn, self._slot
        for k, name in enumerate(names):
            fn.line(f"store double {name}, ptr {fn.slot(number, 8 * k)}, align 8")
        self._slot += 1
        self.nslots = max(self.nslots, self._slot)
        return number

    def _new_object(self) -> int:
        self._object += 1
        self.nobjects = max(self.nobjects, self._object)
        return -self._object

    def _op(self, name: str, *operands: Any) -> int:
        """An operation that makes an object; its register."""
        register = self._new_object()
        self.branches[-1].ops.append((name, register, *operands))
        return register

    # -- the frame ---------------------------------------------------------------------------------------------------

    def _locals(self, point: Checkpoint) -> None:
        names = {slot: name for name, slot in self.t.names.items()}
        flags = frozenset(self.t.changed.values())
        for slot, value in enumerate(point.locals):
            if slot in flags:
                continue
            before = self.t.initial[slot]
            if value is before or (value.key == before.key and value.parts == before.parts):
                continue
            register = -1 if value.kind == "unbound" else self._unless_unchanged(point, slot, value)
            kind, where = (_core.EXIT_NAME, self._name(names[slot])) if slot in names else (_core.EXIT_LOCAL, slot)
            self.branches[-1].writes.append((kind, where, self._register(register, value)))

    def _unless_unchanged(self, point: Checkpoint, slot: int, value: Value) -> int:
        """Register of a local's value; a number of the entry that was not replaced stays the object it was."""
        register = self.boxed(value)
        flag = point.locals[self.t.changed[slot]].one if slot in self.t.changed else "true"
        if flag == "true":
            return register
        slots = self._slots([(_BYTES, self._byte(flag))])
        return self._op("O_SELECT", slots, register, self.entry.object(self.t.sources[slot]))

    def _name(self, name: str) -> int:
        """Index of a name among the plan's constants."""
        if name not in self._names:
            self._names[name] = len(self.constants)
            self.constants.append(name)
        return self._names[name]

    def _stack(self, point: Checkpoint) -> None:
        before = self.t.initial[len(point.locals) :]
        for k, value in enumerate(point.stack):
            old = before[k] if k < len(before) else None
            if old is not None and value.kind == old.kind and value.kind in iterators.KINDS and value.detail == old.detail:
                self._move(value)
                continue
            if old is not None and value.key == old.key and value.parts == old.parts:
                continue
            register = -1 if value.kind == "null" else self.boxed(value)
            self.branches[-1].writes.append((_core.EXIT_STACK, k, self._register(register, value)))

    def _move(self, iterator: Value) -> None:
        """Moves an iterator of the entry, and those that it goes through, to where the loop left off."""
        if iterator.kind in _MOVES:
            first = self._slots([(_INTEGER, name) for name in iterator.parts])
            self.branches[-1].ops.append((_MOVES[iterator.kind], self.entry.object(_source(iterator)), first))
        for part in iterator.items:
            if part.kind in iterators.KINDS:
                self._move(part)

    @staticmethod
    def _register(register: int, value: Value) -> int:
        """Registers of branches are negative until all are counted; NULL must not be taken for one."""
        return _NULL if value.kind in ("unbound", "null") else register

    # -- objects -----------------------------------------------------------------------------------------------------

    def boxed(self, value: Value) -> int:
        """Register of the value as an object, one for all names that it has. Raises Refused for what cannot leave the loop."""
        if value.kind in iterators.KINDS:
            return self._iterator(value)
        same = (value.key, *flat_parts(value))
        if same not in self._made:
            self._made[same] = self._box(value)
        return self._made[same]

    def _box(self, value: Value) -> int:
        if value.source is not None and value.kind != "const":
            return self.entry.object(value.source)
        if value.kind in ("int", "float", "complex", "bool", "numpy", "char"):
            return self._number(value)
        return self._thing(value)

    def _number(self, value: Value) -> int:
        if value.detail == OBJECT:
            return self._op("BOX_POINTER", self._slots([("ptr", value.parts[1])]))
        match value.kind:
            case "int":
                return self._op("BOX_INT", self._slots([(_INTEGER, value.one)]))
            case "float":
                return self._op("BOX_FLOAT", self._slots([("double", value.one)]))
            case "complex":
                return self._op("BOX_COMPLEX", self._pair(value.parts))
            case "bool":
                return self._op("BOX_BOOL", self._slots([(_BYTES, self._byte(value.one))]))
            case "numpy":
                name = self._byte(value.one) if value.dtype == "b1" else value.one
                return self._op("BOX_NUMPY", self._slots([(memory_type(value.dtype), name)]), type_number(value.dtype))
        return self._op("BOX_CHAR", self._slots([(_INTEGER, value.one)]))

    def _thing(self, value: Value) -> int:
        match value.kind:
            case "const":
                return self._constant(value)
            case "object":
                return self.entry.object(_source(value))
            case "array":
                return self._array_object(value)
            case "list":
                return self._op("BOX_POINTER", self._slots([("ptr", value.one)]))
            case "tuple":
                items = [self.boxed(item) for item in value.items]
                return self._op("BOX_TUPLE", len(items), *(_Register(r) for r in items))
        raise Refused(f"a {value.kind} that leaves the loop")

    def _iterator(self, value: Value) -> int:
        """A new iterator where the loop made one: two of them are never the same object, however far they are."""
        if value.detail is not None:
            raise Refused("an iterator that was moved about")
        slots = self._slots([(_INTEGER, name) for name in value.parts])
        if value.kind == "iterator":
            return self._op("BOX_RANGE", slots)
        inner = [_Register(self.boxed(item)) for item in value.items]
        if value.kind == "zip":
            return self._op("BOX_ZIP", len(inner), *inner)
        return self._op("BOX_SEQITER" if value.kind == "elements" else "BOX_ENUM", *inner, slots)

    def _byte(self, bit: str) -> str:
        return self.t.fn.let(f"zext i1 {bit} to i8")

    def _constant(self, value: Value) -> int:
        if value.source is not None:
            return self.entry.object(value.source)
        self.constants.append(value.constant)
        return self._op("O_CONST", len(self.constants) - 1)

    def _array_object(self, value: Value) -> int:
        number, ndim, whole = value.place
        source = self.entry.array_sources[number]
        if whole and source is not None:
            return self.entry.object(source)
        if whole:
            raise Refused("an array that only an iterator knows")
        parts = list(zip(own_types(value), value.parts, strict=True))
        return self._op("BOX_VIEW", number, self._slots(parts), ndim, 1)


_NULL = -(1 << 20)


@dataclass(frozen=True, slots=True)
class _Register:
    """An operand that is an object register although the operation's table says "the rest"."""

    number: int


def _source(value: Value) -> Source:
    assert isinstance(value.detail, Source)
    return value.detail


# ---- words -------------------------------------------------------------------------------------------------------------


class PlanWriter:
    """The words of the plan. The function's address is filled in as a literal."""

    def __init__(self, tracer: Tracer, exits: ExitWriter, expressions: ExpressionTable) -> None:
        self.t = tracer
        self.exits = exits
        self.expressions = expressions
        self.words: list[int] = []
        self.base = tracer.entry.nobjects

    def plan(self, address: int, keep: object) -> _core.Plan:
        """keep: what owns the code at the address."""
        for op in self.t.entry.ops:
            self._emit(*op)
        if self.t.needs_underflow_ignored:
            self._emit("C_UNDERFLOW")
        self._emit("LOOP", entry.EXIT_SLOT, entry.FUNCTION_SLOT)
        branches = self.exits.branches
        self._emit("SWITCH", entry.EXIT_SLOT, len(branches), *[0] * len(branches))
        table = len(self.words) - len(branches)
        for number, branch in enumerate(branches):
            self.words[table + number] = len(self.words)
            for op in branch.ops:
                self._emit(*op)
            self._emit("EXIT", number)
        writes = tuple([(kind, slot, self._object(register)) for kind, slot, register in b.writes] for b in branches)
        return _core.Plan(
            struct.pack(f"={len(self.words)}i", *self.words),
            (*self.exits.constants, keep),
            (),
            self.base + self.exits.nobjects,
            self.exits.nslots,
            len(self.t.arrays),
            self._image(address),
            (),
            writes,
        )

    def _image(self, address: int) -> bytes:
        literals = {entry.FUNCTION_SLOT: address, **self.t.entry.literals}
        last = max(literals)
        return b"".join(struct.pack("=Qq", literals.get(k, 0), 0) for k in range(last + 1))

    def _object(self, register: int) -> int:
        if register == _NULL:
            return -1
        return register if register >= 0 else self.base - register - 1

    def _emit(self, name: str, *operands: Any) -> None:
        self.words.append(_core.PLAN_OPS[name])
        kinds = _core.PLAN_OPERANDS[name]
        for k, operand in enumerate(operands):
            if isinstance(operand, Source):
                self.words.append(self.expressions.index(operand))
            elif isinstance(operand, str):
                self.words.append(type_number(operand))
            elif isinstance(operand, _Register):
                self.words.append(self._object(operand.number))
            else:
                self.words.append(self._object(operand) if kinds[k : k + 1] == "o" else operand)
