"""The translator: one version of a basic block after the other, from the loop's entry until nothing new is reached."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tierup import _core
from tierup.arrays.builder import NoRule
from tierup.arrays.values import ObjectValue
from tierup.bytecode.canonical import Canon, Op
from tierup.bytecode.flow import Loop
from tierup.bytecode.listing import Listing
from tierup.capture.executor import Executor, Request
from tierup.capture.outcome import Break
from tierup.guards import sources
from tierup.loops import calls, entry, iterators, memory, numbers, vectors
from tierup.loops.function import Function
from tierup.loops.state import Checkpoint, Frame, State, Version, joined, value_at, varying, with_position
from tierup.loops.values import UNBOUND, Refused, Value, boolean, const, flat_parts, own_types

_START: Final = "start"
_MAX_VERSIONS: Final = 250
_MAX_VERSIONS_OF_BLOCK: Final = 24

Handler = Callable[["Tracer", Frame, Canon], Any]
"""Translates an instruction; a true result says that it ended the block."""


class TooMany(Refused):
    """The loop needs too many versions of its blocks."""


class Tracer:
    """Translates one loop. Raises Refused (or Break) if it cannot."""

    def __init__(self, request: Request, library: Any, loop: Loop, live: int, handlers: Mapping[Op, Handler], texts: bool) -> None:
        self.request = request
        self._live = live
        self._handlers = handlers
        self.loop = loop
        self.fn = Function()
        self.executor = Executor(request, library)
        self.entry = entry.Entry(self.executor.region, self.fn, calls.is_known, texts)
        self.exits: list[Checkpoint] = []
        self.needs_underflow_ignored = False
        self.state = State([])
        self.initial: tuple[Value, ...] = ()
        self.names = _names(request.listing, loop, len(self.executor.scope.locals))
        """Names that the loop of a module body stores to, as slots behind the locals."""
        self.changed: dict[int, int] = {}
        """For a number of the entry that the loop may replace: the slot of the bool that says whether it did."""
        self.sources: dict[int, sources.Source] = {}
        """And where it comes from."""
        self.assigned = _assigned(request.listing, loop) | frozenset(self.names.values())
        self._read = _read(request.listing, loop)
        self._leaders: dict[int, frozenset[int]] = {}
        self._versions: dict[Hashable, Version] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._work: list[Version] = []
        self._edges = 0
        self.cuts: list[tuple[int, str]] = []
        """(line, reason) of instructions that are left to the interpreter."""
        self._origins: dict[int, tuple[Value | None, Value | None, Value | None]] = {}
        """Views by identity (and the view itself, which keeps it alive): array and key."""
        self._unasked: dict[str, str] = {}
        """Floats of which it was not asked yet whether they are finite, with their types."""
        self.in_range: dict[tuple[str, str], str] = {}
        """For an index and a length that were compared in this block: the index from zero."""
        self.sizes: dict[int, tuple[Value, tuple[str, ...]]] = {}
        """Absolute values of complex numbers by identity (and themselves): the parts."""
        self._choices: dict[int, tuple[Value, str, Value, Value]] = {}
        """What `choose` made by identity (and itself): the condition and both values."""

    # -- what the operations use -------------------------------------------------------------------------------------

    @property
    def arrays(self) -> list[memory.EntryArray]:
        return self.entry.arrays

    @staticmethod
    def types(value: Value) -> tuple[str, ...]:
        return own_types(value)

    def require(self, condition: str) -> None:
        """Leaves the loop, at the last place where that is possible, unless the i1 holds."""
        self.fn.require(condition, self._way_out())

    def leave_if(self, condition: str) -> None:
        self.fn.leave_if(condition, self._way_out())

    def finite_later(self, name: str, type_: str, covered: Sequence[str]) -> None:
        """Leaves the loop unless the float is finite, but not yet: what is computed from it by + - * is not finite either, and one question
        is enough. covered: operands that need not be asked about any more."""
        for operand in covered:
            self._unasked.pop(operand, None)
        self._unasked[name] = type_

    def settle(self) -> None:
        """Asks what was put off: before anything is done that stays, before control goes different ways, and where a statement ends."""
        unasked, self._unasked = self._unasked, {}
        for name, type_ in unasked.items():
            self.require(self.fn.let(f"fcmp ord {type_} {self.fn.let(f'fsub {type_} {name}, {name}')}, 0.0"))

    def effect(self) -> None:
        """Something was done that must not be done twice."""
        self.state.checkpoint = None
        if any(value.kind in ("vector", "gather") for frame in self.state.frames for value in frame.stack):
            raise Refused("a store while an expression on arrays is half done")

    def taken(self, array: Value, key: Value) -> Value:
        """array[key]; remembers where a view came from."""
        value = memory.item(self, array, key)
        if value.kind == "array":
            self._origins[id(value)] = (value, array, key)
        return value

    def put(self, array: Value, key: Value, value: Value) -> None:
        """array[key] = value"""
        self.settle()
        _, container, subscript = self._origins.get(id(value), (None, None, None))
        if container is array and subscript is not None and _same_key(subscript, key):
            return  # what `array[key] += x` ends with: the view is stored where it is
        if memory.selects_element(self, array, key):
            memory.set_item(self, array, key, value)
        else:
            vectors.assign(self, memory.item(self, array, key), value)

    def call_loop(self, ufunc: np.ufunc, loop: str, value: Value) -> str:
        """A ufunc's inner loop on one element."""
        found = _core.ufunc_loop(ufunc, loop)
        if found is None:
            raise Refused(f"{ufunc.__name__} has no loop {loop}")
        function, data = (self.entry.pointer(address) for address in found)
        fn, of = self.fn, own_types(value)[0]
        args, one, steps = fn.local("args", "[2 x ptr]", 16), fn.local("one", "i64", 8), fn.local("steps", "[2 x i64]", 16)
        given, out = fn.local("in", "double", 8), fn.local("out", "double", 8)
        fn.line(f"store {of} {value.one}, ptr {given}, align 8")
        fn.line(f"store i64 1, ptr {one}, align 8")
        fn.line(f"store [2 x i64] zeroinitializer, ptr {steps}, align 16")  # NumPy's iterator has no strides for one element
        fn.line(f"store ptr {given}, ptr {args}, align 8")
        fn.line(f"store ptr {out}, ptr {fn.let(f'getelementptr ptr, ptr {args}, i64 1')}, align 8")
        fn.line(f"call void {function}(ptr {args}, ptr {one}, ptr {steps}, ptr {data})")
        return fn.let(f"load {of}, ptr {out}, align 8")

    def _way_out(self) -> str:
        point = self.state.checkpoint
        if point is None:
            raise Refused("something that may fail behind a store in the same statement")
        return self._exit_label(point)

    def _exit_label(self, point: Checkpoint) -> str:
        if not point.label:
            point.label = f"exit{len(self.exits)}"
            self.exits.append(point)
        return point.label

    # -- the walk ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Translate everything that is reached."""
        state = self._entry_state()
        self._edge(state)
        while self._work:
            self._translate(self._work.pop())
        if self.cuts and not self._turns():
            raise Refused(self.cuts[0][1])
        for version in self._versions.values():
            assert version.block is not None
            version.block.head = list(version.joins())

    def _turns(self) -> bool:
        """Whether there is a way round the loop."""
        header = self.request.listing.position[self.loop.header]
        again = (v.incoming for v in self._versions.values() if len(v.state.frames) == 1 and v.state.top.position == header)
        return any(label != _START for incoming in again for label, _ in incoming)

    def _entry_state(self) -> State:
        scope, request = self.executor.scope, self.request
        live_slots = request.live.slots
        count = len(scope.locals)
        local_values = []
        for slot, value in enumerate(scope.locals):
            if value is None:
                cell = slot in request.cell_slots
                local_values.append(Value("object", ("cell", slot)) if cell else UNBOUND)
            else:
                local_values.append(self._entry_local(slot, value, live_slots[slot], bool(self._live >> slot & 1)))
        local_values += [self._entry_name(name) for name in self.names]
        local_values += self._flags(local_values)
        stack = []
        for k, value in enumerate(scope.stack):
            source = getattr(value, "source", None)
            if source is None:
                raise Refused("a NULL on the stack at the entry")
            own = k == request.depth - 1 and self._is_for()
            known = self.entry.mid_flight(source, live_slots[count + k], self.executor.library) if own else None
            stack.append(known or Value("object", source))
        self.initial = (*local_values, *stack)
        self.fn.begin(_START)
        position = request.listing.position[request.index]
        return State([Frame(request.listing, scope.names, local_values, stack, position)])

    def _is_for(self) -> bool:
        listing = self.request.listing
        return listing.canons[listing.position[self.loop.header]].op is Op.FOR_ITER

    def _entry_local(self, slot: int, value: Any, live: Any, is_read: bool) -> Value:
        """What the loop reads is looked into, and guarded; the rest stays an object that is only moved about."""
        if not is_read or slot not in self._read:
            return Value("object", value.source)
        if slot in self.assigned and type(live) is bool:
            return self.entry.truth_value(value)
        try:
            return self.entry.value(value)
        except (Refused, Break):
            return Value("object", value.source)

    def _flags(self, values: list[Value]) -> list[Value]:
        """Bools for the numbers of the entry that the loop stores to: as long as one is not replaced it stays the object it is. The values
        lose their source, since what comes round the loop has none."""
        for slot in sorted(self.assigned):
            value = values[slot]
            if value.kind in ("int", "float", "complex", "numpy") and value.source is not None:
                self.changed[slot] = len(values) + len(self.changed)
                self.sources[slot] = value.source
                values[slot] = Value(value.kind, value.detail, value.parts)
        self.assigned |= frozenset(self.changed.values())
        return [boolean("false") for _ in self.changed]

    def _entry_name(self, name: str) -> Value:
        """A variable of a module body that the loop stores to."""
        scope, live = self.executor.scope, self.request.live.locals
        if type(live) is not dict or scope.module is None:
            raise Refused("a class body or exec with its own namespace")
        scope.module[name] = None  # functions that are followed into must not read it
        if name not in live:
            self.executor.region.guard("NULL", sources.name(name))
            return UNBOUND
        known = ObjectValue(sources.name(name), live[name])
        if type(known.live) is bool:
            return self.entry.truth_value(known)
        try:
            return self.entry.value(known)
        except (Refused, Break):
            return Value("object", known.source)

    def _fixed(self, slot: int, value: Value) -> bool:
        """Whether a value is the same wherever it is met: locals the loop never stores to, and what has no parts."""
        if value.source is not None or (value.kind == "array" and value.place[2]):
            return True
        return (slot >= 0 and slot not in self.assigned) or not any(True for _ in flat_parts(value))

    def _leaders_of(self, listing: Listing) -> frozenset[int]:
        found = self._leaders.get(id(listing))
        if found is None:
            targets = set()
            for canon in listing.canons:
                for target in _targets(canon):
                    targets.add(listing.position[target])
            found = self._leaders[id(listing)] = frozenset(targets)
        return found

    def _landing(self, state: State) -> int:
        """Index at which the interpreter can take over right here, -1 if it cannot."""
        if len(state.frames) > 1:
            return -1
        frame = state.top
        index = frame.listing.canons[frame.position].index
        first = frame.listing.position[index] == frame.position
        allowed = self.request.allowed
        return index if first and (allowed is None or index in allowed) and self.request.is_boundary(index) else -1

    def _edge(self, state: State) -> None:
        """Ends the current block with a jump to the version of `state`."""
        self.settle()
        for depth, frame in enumerate(state.frames):
            for k, value in enumerate(frame.stack):
                if self._is_visible(state, value):
                    before, self.state = self.state, state
                    self.settled((value,), partial(self._put_on_stack, depth, k))
                    self.state = before
                    return
        top = state.top
        if top.listing.canons[top.position].op is Op.FOR_ITER and len(state.frames) == 1:
            state.checkpoint = None  # it cannot fail, and both ways from it begin a statement
        key = state.key(self._fixed, self._landing(state) >= 0)
        version = self._versions.get(key)
        if version is None:
            version = self._new_version(key, state)
        parts = [name for places in version.slots for _, name in flat_parts(value_at(state, places[0]))]
        version.incoming.append((self.fn.block.label, parts))
        self._edges += 1
        self.fn.line(f"br label %{version.label}")

    def _put_on_stack(self, depth: int, position: int, values: Sequence[Value]) -> None:
        (self.state.frames[depth].stack[position],) = values

    def _new_version(self, key: Hashable, state: State) -> Version:
        place = (id(state.top.listing), state.top.position)
        self._counts[place] = self._counts.get(place, 0) + 1
        if len(self._versions) >= _MAX_VERSIONS or self._counts[place] > _MAX_VERSIONS_OF_BLOCK:
            raise TooMany("too many combinations of types")
        slots = varying(state, self._fixed)
        own, names = joined(state, slots, self.fn.name)
        version = self._versions[key] = Version(self.fn.label("b"), own, slots, names)
        self._work.append(version)
        return version

    def _translate(self, version: Version) -> None:
        version.block = self.fn.begin(version.label)
        self.in_range = {}
        self.state = version.state.copy()
        first = True
        while True:
            frame = self.state.top
            if not first and frame.position in self._leaders_of(frame.listing):
                self._edge(self.state)
                return
            first = False
            canon = frame.listing.canons[frame.position]
            landing = self._landing(self.state)
            if len(self.state.frames) == 1 and canon.index not in self.loop.body:
                self._leave(canon.index)
                return
            if landing >= 0:
                self.settle()
                self.state.checkpoint = Checkpoint(landing, tuple(frame.locals), tuple(frame.stack))
            if len(self.state.frames) == 1:
                self.executor.region.line = canon.line or 0
            frame.position += 1
            if self._step_or_leave(frame, canon):
                return

    def _leave(self, index: int) -> None:
        """The loop is over: the interpreter goes on at `index`."""
        self.settle()
        allowed = self.request.allowed
        if allowed is not None and index not in allowed:
            raise Refused("no landing behind the loop")
        frame = self.state.top
        point = Checkpoint(index, tuple(frame.locals), tuple(frame.stack))
        self.fn.line(f"br label %{self._exit_label(point)}")

    def _step_or_leave(self, frame: Frame, canon: Canon) -> bool:
        """Translates one instruction; what cannot be translated leaves the loop before its statement, if that is possible."""
        mark, edges, state, point = self.fn.mark(), self._edges, self.state, self.state.checkpoint
        try:
            return self._step(frame, canon)
        except (Refused, Break, NoRule) as reason:
            if point is None or self._edges != edges or isinstance(reason, TooMany):
                raise
            self.state = state
            self.fn.rewind(mark)
            self._unasked = {}
            self.cuts.append((canon.line or 0, str(reason)))
            self.fn.line(f"br label %{self._exit_label(point)}")
            return True

    def _step(self, frame: Frame, canon: Canon) -> bool:
        """Translates one instruction. True: it ended the block."""
        handler = self._handlers.get(canon.op)
        if handler is None:
            raise Refused(f"instruction {canon.arg if canon.op is Op.OTHER else canon.op}")
        return bool(handler(self, frame, canon))

    # -- one of two objects ------------------------------------------------------------------------------------------

    def choose(self, condition: str, yes: Value, no: Value) -> Value:
        """`yes` where the i1 holds, else `no`, both of one kind."""
        if yes.identity is not None and yes.identity == no.identity:
            return no
        of = own_types(yes)[0]
        chosen = self.fn.let(f"select i1 {condition}, {of} {yes.one}, {of} {no.one}")
        value = Value(yes.kind, yes.detail if yes.kind == "numpy" else None, (chosen,))
        self._choices[id(value)] = (value, condition, yes, no)
        return value

    def settled(self, values: Sequence[Value], then: Callable[[Sequence[Value]], None]) -> bool:
        """then(values), before variables hold them. True: that ended the block.

        A chosen value is one of two objects, not only equal to it. Where a variable holds one of them too, that can be seen: control goes
        two ways, so that each way knows which it is.
        """
        for k, value in enumerate(values):
            if self._is_visible(self.state, value):
                _, condition, *objects = self._choices[id(value)]
                ways = (partial(self.settled, (*values[:k], chosen, *values[k + 1 :]), then) for chosen in objects)
                self._two_ways(condition, *ways)
                return True
        then(values)
        return False

    def replaced(self, flag: str, before: Value, new: Value) -> str:
        """i1: a variable that held `before` does not hold the object of the entry any more, which the flag says of `before`."""
        if before.identity is not None and before.identity == new.identity:
            return flag
        _, condition, yes, no = self._choices.get(id(new), (new, "", new, new))
        if condition and before.identity in (yes.identity, no.identity):
            changes = condition if before.identity == no.identity else self.fn.let(f"xor i1 {condition}, true")
            return self.fn.let(f"or i1 {flag}, {changes}")
        return "true"

    def known_object(self, value: Value) -> str:
        """Address of the object of the entry that a value is; null if it is none, which may only be known when the loop runs."""
        found, (own, *_) = "null", self.state.frames
        for slot, flag in self.changed.items():
            if value.identity is not None and own.locals[slot].identity == value.identity:
                address = self.entry.address(self.sources[slot])
                found = self.fn.let(f"select i1 {own.locals[flag].one}, ptr {found}, ptr {address}")
        return found

    def _is_visible(self, state: State, value: Value) -> bool:
        """Whether it can be told which of two objects a chosen value is."""
        if id(value) not in self._choices:
            return False
        _, _, *objects = self._choices[id(value)]
        return any(chosen.source is not None or self._is_visible(state, chosen) or state.holds(chosen) for chosen in objects)

    def _two_ways(self, condition: str, yes: Callable[[], bool], no: Callable[[], bool]) -> None:
        """Ends the block: goes on with what `yes` makes of the state where the i1 holds, else with what `no` makes of it. Their result
        says whether they ended the block themselves."""
        self.settle()
        labels, before, in_range = (self.fn.label("yes"), self.fn.label("no")), self.state, self.in_range
        self.fn.line(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        for label, way in zip(labels, (yes, no), strict=True):
            self.fn.begin(label)
            self.state, self.in_range = before.copy(), dict(in_range)
            if not way():
                self._edge(self.state)

    # -- control -----------------------------------------------------------------------------------------------------

    def jump(self, frame: Frame, canon: Canon) -> bool:
        target, backward = canon.arg
        if backward:
            self._poll()
        self._edge(with_position(self.state, frame.listing.position[target]))
        return True

    def _poll(self) -> None:
        """Signals, other threads, pending calls: the interpreter sees to them at the jump back."""
        events = self.fn.let("load volatile i32, ptr %breaker, align 4")
        asked = self.fn.let(f"icmp ne i32 {self.fn.let(f'and i32 {events}, %mask')}, 0")
        self.leave_if(asked)

    def _branch(self, condition: str, yes: State, no: State) -> None:
        self._two_ways(condition, partial(self._go_on_with, yes), partial(self._go_on_with, no))

    def _go_on_with(self, state: State) -> bool:
        self.state = state
        return False

    def pop_jump_if(self, frame: Frame, canon: Canon) -> bool:
        kind, target = canon.arg
        value = self.forced(frame.pop())
        if kind in ("none", "not_none"):
            flag: str | bool = is_none(value) is (kind == "none")
            wanted = True
        else:
            flag, wanted = numbers.truth(self, value), kind == "true"
        jumped = with_position(self.state, frame.listing.position[target])
        if isinstance(flag, bool):
            if flag is wanted:
                if target <= canon.index:
                    self._poll()
                self._edge(jumped)
            else:
                self._edge(self.state)
            return True
        if target <= canon.index:
            self._poll()
        self._branch(flag, *((jumped, self.state) if wanted else (self.state, jumped)))
        return True

    def jump_if_or_pop(self, frame: Frame, canon: Canon) -> bool:
        kind, target = canon.arg
        flag = numbers.truth(self, self.forced(frame.stack[-1]))
        stays = with_position(self.state, frame.listing.position[target])
        frame.pop()
        if isinstance(flag, bool):
            self._edge(stays if flag is (kind == "true") else self.state)
        else:
            self._branch(flag, *((stays, self.state) if kind == "true" else (self.state, stays)))
        return True

    def for_iter(self, frame: Frame, canon: Canon) -> bool:
        iterator = frame.stack[-1]

        def finished() -> bool:
            self.state.top.pop()
            self.state.top.position = frame.listing.position[canon.arg]
            return False

        def turn() -> bool:
            top = self.state.top
            top.stack[-1], item = iterators.advanced(self, iterator)
            top.push(item)
            return False

        self._two_ways(iterators.is_over(self, iterator), finished, turn)
        return True

    def return_instruction(self, frame: Frame, canon: Canon) -> bool:
        if len(self.state.frames) == 1:
            frame.position -= 1
            self._leave(canon.index)
            return True
        value = const(canon.arg) if canon.op is Op.RETURN_CONST else frame.pop()
        self.state.frames.pop()
        self.state.top.push(value)
        return False

    # -- names and values --------------------------------------------------------------------------------------------

    def forced(self, value: Value) -> Value:
        """A value that is computed with. Raises Refused for an object that is only moved about."""
        if value.kind == "object":
            raise Refused(self._described(value))
        return value

    def _described(self, value: Value) -> str:
        scope = self.executor.scope
        for live in (*scope.locals, *scope.stack):
            if live is not None and getattr(live, "source", None) == value.detail:
                return f"a {type(live.live).__name__} inside a loop"  # type: ignore[attr-defined]
        return "an object inside a loop"


# ---- what the listing says of a loop ----------------------------------------------------------------------------------


def _targets(canon: Canon) -> list[int]:
    if canon.op is Op.JUMP:
        return [canon.arg[0]]
    if canon.op in (Op.POP_JUMP_IF, Op.JUMP_IF_OR_POP):
        return [canon.arg[1], canon.next_index]
    if canon.op is Op.FOR_ITER:
        return [canon.arg, canon.next_index]
    return []


def _assigned(listing: Listing, loop: Loop) -> frozenset[int]:
    """Slots that the loop's own instructions store to or delete."""
    changing = (Op.STORE_LOCAL, Op.DELETE_LOCAL, Op.LOAD_AND_CLEAR_LOCAL)
    return frozenset(c.arg for c in listing.canons if c.op in changing and c.index in loop.body)


def _names(listing: Listing, loop: Loop, first: int) -> dict[str, int]:
    """Slots for the names that the loop's own instructions store to."""
    stored = dict.fromkeys(c.arg for c in listing.canons if c.op in (Op.STORE_NAME, Op.DELETE_NAME) and c.index in loop.body)
    return {name: first + k for k, name in enumerate(stored)}


def _read(listing: Listing, loop: Loop) -> frozenset[int]:
    """Slots that the loop's own instructions load."""
    return frozenset(c.arg for c in listing.canons if c.op is Op.LOAD_LOCAL and c.index in loop.body)


def _same_key(a: Value, b: Value) -> bool:
    """Whether two subscripts are the same values, not only equal ones."""
    if a is b:
        return True
    return a.kind == b.kind == "slice" and all(
        x is y or (x.key == y.key and x.parts == y.parts) for x, y in zip(a.items, b.items, strict=True)
    )


def is_none(value: Value) -> bool:
    if value.kind == "const":
        return value.constant is None
    if value.kind in ("object", "null", "unbound"):
        raise Refused(f"whether a {value.kind} is None")
    return False
