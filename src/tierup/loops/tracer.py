"""The translator: one version of a basic block after the other, from the loop's entry until nothing new is reached."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from tierup import _core
from tierup.arrays.values import ConstValue
from tierup.bytecode.canonical import NULL_BELOW_CALLABLE, Canon, Op
from tierup.bytecode.flow import Loop
from tierup.bytecode.listing import Listing
from tierup.capture import attributes
from tierup.capture.executor import Executor, Request
from tierup.capture.outcome import Break
from tierup.capture.scope import FunctionNames
from tierup.loops import calls, entry, memory, numbers
from tierup.loops.function import Function
from tierup.loops.state import Checkpoint, Frame, State, Version, joined, value_at, varying, with_position
from tierup.loops.values import NULL, UNBOUND, Refused, Value, const, flat_parts, integer, own_types, tuple_of

_MAX_VERSIONS: Final = 120
_MAX_VERSIONS_OF_BLOCK: Final = 10
_MAX_INLINED: Final = 6
_NOT_PLAIN: Final = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of functions that are not followed into: *args, **kwargs, generators and coroutines."""


class Tracer:
    """Translates one loop. Raises Refused (or Break) if it cannot."""

    def __init__(self, request: Request, library: Any, loop: Loop) -> None:
        self.request = request
        self.loop = loop
        self.fn = Function()
        self.executor = Executor(request, library)
        self.entry = entry.Entry(self.executor.region, self.fn)
        self.exits: list[Checkpoint] = []
        self.needs_underflow_ignored = False
        self.state = State([])
        self.initial: tuple[Value, ...] = ()
        self.assigned, self._read = _assigned(request.listing, loop), _read(request.listing, loop)
        self._leaders: dict[int, frozenset[int]] = {}
        self._versions: dict[Hashable, Version] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._work: list[Version] = []
        self.stores = 0

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

    def effect(self) -> None:
        """Something was done that must not be done twice."""
        self.state.checkpoint = None
        self.stores += 1

    def call_loop(self, ufunc: np.ufunc, loop: str, value: Value) -> str:
        """A ufunc's inner loop on one element."""
        found = _core.ufunc_loop(ufunc, loop)
        if found is None:
            raise Refused(f"{ufunc.__name__} has no loop {loop}")
        function, data = (self.entry.pointer(address) for address in found)
        fn, of = self.fn, own_types(value)[0]
        if not any("%args = alloca" in line for line in fn.entry.lines):
            fn.entry.lines += [
                "  %args = alloca [2 x ptr], align 16", "  %one = alloca i64, align 8", "  %steps = alloca [2 x i64], align 16",
                "  %in = alloca double, align 8", "  %out = alloca double, align 8", "  store i64 1, ptr %one, align 8",
                "  store [2 x i64] zeroinitializer, ptr %steps, align 16",
                "  store ptr %in, ptr %args, align 8", "  %args1 = getelementptr ptr, ptr %args, i64 1",
                "  store ptr %out, ptr %args1, align 8",
            ]  # fmt: skip
        fn.line(f"store {of} {value.one}, ptr %in, align 8")
        fn.line(f"call void {function}(ptr %args, ptr %one, ptr %steps, ptr {data})")
        return fn.let(f"load {of}, ptr %out, align 8")

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
        for version in self._versions.values():
            block = next(b for b in self.fn.blocks if b.label == version.label)
            block.head = list(version.joins())

    def _entry_state(self) -> State:
        scope, request = self.executor.scope, self.request
        live_slots = request.live.slots
        count = len(scope.locals)
        live_mask = self._live_mask(request.index)
        local_values = []
        for slot, value in enumerate(scope.locals):
            if value is None:
                cell = slot in request.cell_slots
                local_values.append(Value("object", ("cell", slot)) if cell else UNBOUND)
            else:
                local_values.append(self._entry_local(slot, value, live_slots[slot], bool(live_mask >> slot & 1)))
        stack = []
        for k, value in enumerate(scope.stack):
            if entry.is_range_iterator(live_slots[count + k]) and k == request.depth - 1 and self._is_for():
                stack.append(self.entry.iterator(value.source))  # type: ignore[attr-defined]
            elif hasattr(value, "source"):
                stack.append(Value("object", value.source))
            else:
                raise Refused("a NULL on the stack at the entry")
        self.initial = (*local_values, *stack)
        self.fn.begin("start")
        position = request.listing.position[request.index]
        return State([Frame(request.listing, scope.names, local_values, stack, position)])

    def _is_for(self) -> bool:
        listing = self.request.listing
        return listing.canons[listing.position[self.loop.header]].op is Op.FOR_ITER

    def _live_mask(self, index: int) -> int:
        from tierup.bytecode.flow import Flow

        return Flow(self.request.listing.program).live[index]

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

    def _fixed(self, slot: int, value: Value) -> bool:
        """Whether a value is the same wherever it is met: locals the loop never stores to, and what has no parts."""
        if value.kind == "array" and len(value.parts) == 1:
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
        top = state.top
        if top.listing.canons[top.position].op is Op.FOR_ITER and len(state.frames) == 1:
            state.checkpoint = None  # it cannot fail, and both ways from it begin a statement
        key = state.key(self._fixed, self._landing(state) >= 0)
        version = self._versions.get(key)
        if version is None:
            version = self._new_version(key, state)
        parts = [name for place in version.slots for _, name in flat_parts(value_at(state, place))]
        version.incoming.append((self.fn.block.label, parts))
        self.fn.line(f"br label %{version.label}")

    def _new_version(self, key: Hashable, state: State) -> Version:
        place = (id(state.top.listing), state.top.position)
        self._counts[place] = self._counts.get(place, 0) + 1
        if len(self._versions) >= _MAX_VERSIONS or self._counts[place] > _MAX_VERSIONS_OF_BLOCK:
            raise Refused("too many combinations of types")
        slots = varying(state, self._fixed)
        own, names = joined(state, slots, self.fn.name)
        version = self._versions[key] = Version(self.fn.label("b"), own, slots, names)
        self._work.append(version)
        return version

    def _translate(self, version: Version) -> None:
        self.fn.begin(version.label)
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
                self.state.checkpoint = Checkpoint(landing, tuple(frame.locals), tuple(frame.stack))
            if len(self.state.frames) == 1:
                self.executor.region.line = canon.line or 0
            frame.position += 1
            if self._step(frame, canon):
                return

    def _leave(self, index: int) -> None:
        """The loop is over: the interpreter goes on at `index`."""
        allowed = self.request.allowed
        if allowed is not None and index not in allowed:
            raise Refused("no landing behind the loop")
        frame = self.state.top
        point = Checkpoint(index, tuple(frame.locals), tuple(frame.stack))
        self.fn.line(f"br label %{self._exit_label(point)}")

    def _step(self, frame: Frame, canon: Canon) -> bool:
        """Translates one instruction. True: it ended the block."""
        handler = _HANDLERS.get(canon.op)
        if handler is None:
            raise Refused(f"instruction {canon.arg if canon.op is Op.OTHER else canon.op}")
        return bool(handler(self, frame, canon))

    # -- control -----------------------------------------------------------------------------------------------------

    def _jump(self, frame: Frame, canon: Canon) -> bool:
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
        labels = self.fn.label("yes"), self.fn.label("no")
        self.fn.line(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        for label, state in zip(labels, (yes, no), strict=True):
            self.fn.begin(label)
            self._edge(state)

    def _pop_jump_if(self, frame: Frame, canon: Canon) -> bool:
        kind, target = canon.arg
        value = self.forced(frame.pop())
        if kind in ("none", "not_none"):
            flag: str | bool = _is_none(value) is (kind == "none")
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

    def _jump_if_or_pop(self, frame: Frame, canon: Canon) -> bool:
        kind, target = canon.arg
        flag = numbers.truth(self, self.forced(frame.stack[-1]))
        stays = with_position(self.state, frame.listing.position[target])
        frame.pop()
        if isinstance(flag, bool):
            self._edge(stays if flag is (kind == "true") else self.state)
        else:
            self._branch(flag, *((stays, self.state) if kind == "true" else (self.state, stays)))
        return True

    def _for_iter(self, frame: Frame, canon: Canon) -> bool:
        iterator = frame.stack[-1]
        if iterator.kind != "iterator":
            raise Refused("a loop over something that is no range")
        item, step, left = iterator.parts
        let = self.fn.let
        done = self.state.copy()
        done.top.pop()
        done.top.position = frame.listing.position[canon.arg]
        after = (let(f"add i64 {item}, {step}"), step, let(f"sub i64 {left}, 1"))
        frame.stack[-1] = Value("iterator", iterator.detail, after)
        frame.push(integer(item))
        self._branch(let(f"icmp eq i64 {left}, 0"), done, self.state)
        return True

    def _return(self, frame: Frame, canon: Canon) -> bool:
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

    def _load_local(self, frame: Frame, canon: Canon) -> None:
        value = frame.locals[canon.arg]
        if value.kind == "unbound":
            raise Refused("an unbound local")
        frame.push(value)

    def _store_local(self, frame: Frame, canon: Canon) -> None:
        value = frame.pop()
        frame.locals[canon.arg] = numbers.number(value) if value.source is None else value

    def _load_global(self, frame: Frame, canon: Canon) -> None:
        self._push_live(frame, frame.names.global_value(self.executor.region, canon.arg))

    def _load_name(self, frame: Frame, canon: Canon) -> None:
        raise Refused("a loop of a module body")

    def _load_deref(self, frame: Frame, canon: Canon) -> None:
        self._push_live(frame, frame.names.cell_value(self.executor.region, canon.arg))

    def _push_live(self, frame: Frame, live: Any) -> None:
        frame.push(self.entry.value(live))

    def _load_attr(self, frame: Frame, canon: Canon) -> None:
        frame.push(self._attribute(self.forced(frame.pop()), canon.arg))

    def _attribute(self, base: Value, name: str) -> Value:
        if base.kind == "array" and name in ("shape", "ndim", "size"):
            return self._array_attribute(base, name)
        if base.kind == "const":
            found = attributes.attribute(self.executor, ConstValue(base.constant, base.source), name)
            return self.entry.value(found)
        raise Refused(f"attribute {name} of a {base.kind}")

    def _array_attribute(self, base: Value, name: str) -> Value:
        shape = calls.shape(self, base)
        if name == "shape":
            return shape
        if name == "ndim":
            return const(len(shape.items))
        size = integer("1")
        for length in shape.items:
            size = integer(self.fn.let(f"mul i64 {size.one}, {length.one}"))
        return size

    def _load_method(self, frame: Frame, canon: Canon) -> None:
        value = self._attribute(self.forced(frame.pop()), canon.arg)
        frame.stack.extend((NULL, value) if NULL_BELOW_CALLABLE else (value, NULL))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, frame: Frame, canon: Canon) -> None:
        argc, keywords = canon.arg
        if keywords:
            raise Refused("a call with keywords")
        args = [self.forced(v) for v in frame.stack[len(frame.stack) - argc :]]
        lower, upper = frame.stack[-argc - 2], frame.stack[-argc - 1]
        function = upper if lower.kind == "null" else lower
        if "null" not in (lower.kind, upper.kind):
            raise Refused("a call of a method")
        function = self.forced(function)
        del frame.stack[len(frame.stack) - argc - 2 :]
        if function.kind != "const":
            raise Refused(f"a call of a {function.kind}")
        target = function.constant
        if isinstance(target, FunctionType):
            self._follow(function, target, args)
        else:
            frame.push(calls.call(self, target, args))

    def _follow(self, function: Value, target: FunctionType, args: Sequence[Value]) -> None:
        """Go on in the called function; its return comes back here."""
        listing = self.request.listing_of(target)
        if listing is None or len(self.state.frames) > _MAX_INLINED:
            raise Refused(f"call of {target.__qualname__}")
        program = listing.program
        plain = not program.flags & _NOT_PLAIN and not program.kwonlyargcount and not program.freevars
        if not plain or program.argcount != len(args) or any(program.is_cell_slot(i) for i in range(program.nlocalsplus)):
            raise Refused(f"call of {target.__qualname__}, which takes its arguments or variables in other ways")
        if function.source is None:
            raise Refused("a function that is made in the loop")
        names = FunctionNames(target, function.source, program.nlocalsplus, self.executor.scope)
        values = [*(numbers.number(a) for a in args), *(UNBOUND for _ in range(program.nlocalsplus - len(args)))]
        start = next(k for k, c in enumerate(listing.canons) if c.op is Op.RESUME)
        self.state.frames.append(Frame(listing, names, values, [], start))


# ---- instructions --------------------------------------------------------------------------------------------------


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


def _read(listing: Listing, loop: Loop) -> frozenset[int]:
    """Slots that the loop's own instructions load."""
    return frozenset(c.arg for c in listing.canons if c.op is Op.LOAD_LOCAL and c.index in loop.body)


def _is_none(value: Value) -> bool:
    if value.kind == "const":
        return value.constant is None
    if value.kind in ("object", "null", "unbound"):
        raise Refused(f"whether a {value.kind} is None")
    return False


def _const(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(const(canon.arg))


def _null(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(NULL)


def _nothing(t: Tracer, frame: Frame, canon: Canon) -> None:
    pass


def _pop(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.pop()


def _copy(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(frame.stack[-canon.arg])


def _swap(t: Tracer, frame: Frame, canon: Canon) -> None:
    stack = frame.stack
    stack[-1], stack[-canon.arg] = stack[-canon.arg], stack[-1]


def _binary(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    frame.push(numbers.binary(t, canon.arg, left, right))


def _compare(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    value = numbers.compare(t, canon.arg[0], left, right)
    frame.push(Value("bool", None, value.parts) if canon.arg[1] else value)


def _unary(rule: Callable[[Tracer, Value], Value]) -> Callable[[Tracer, Frame, Canon], None]:
    def handler(t: Tracer, frame: Frame, canon: Canon) -> None:
        frame.push(rule(t, t.forced(frame.pop())))

    return handler


def _not(t: Tracer, value: Value) -> Value:
    flag = numbers.truth(t, value)
    return const(not flag) if isinstance(flag, bool) else Value("bool", None, (t.fn.let(f"xor i1 {flag}, true"),))


def _to_bool(t: Tracer, value: Value) -> Value:
    flag = numbers.truth(t, value)
    return const(flag) if isinstance(flag, bool) else Value("bool", None, (flag,))


def _is(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    if right.is_const(type(None)):
        frame.push(const(_is_none(left) is not canon.arg))
    elif left.is_const(type(None)):
        frame.push(const(_is_none(right) is not canon.arg))
    else:
        raise Refused("identity of two objects")


def _subscript(t: Tracer, frame: Frame, canon: Canon) -> None:
    key, container = t.forced(frame.pop()), t.forced(frame.pop())
    if container.kind == "array":
        frame.push(memory.item(t, container, key))
    elif container.kind == "tuple" and key.is_const(int):
        frame.push(_tuple_item(container, key))
    elif container.is_const(tuple) and key.is_const(int) and -len(container.constant) <= key.constant < len(container.constant):  # type: ignore[arg-type, operator]
        frame.push(const(container.constant[key.constant]))  # type: ignore[index]
    else:
        raise Refused(f"a subscript of a {container.kind}")


def _tuple_item(container: Value, key: Value) -> Value:
    index, length = key.constant, len(container.items)
    assert isinstance(index, int)
    if not -length <= index < length:
        raise Refused("a tuple index out of range")
    return container.items[index]


def _store_subscript(t: Tracer, frame: Frame, canon: Canon) -> None:
    key, container, value = t.forced(frame.pop()), t.forced(frame.pop()), t.forced(frame.pop())
    if container.kind != "array":
        raise Refused(f"a store into a {container.kind}")
    memory.set_item(t, container, key, value)


def _build_tuple(t: Tracer, frame: Frame, canon: Canon) -> None:
    count = canon.arg
    items = [t.forced(v) for v in frame.stack[len(frame.stack) - count :]]
    del frame.stack[len(frame.stack) - count :]
    frame.push(tuple_of([numbers.number(v) for v in items]))


def _unpack(t: Tracer, frame: Frame, canon: Canon) -> None:
    value = t.forced(frame.pop())
    if value.kind != "tuple" or len(value.items) != canon.arg:
        raise Refused(f"unpacking of a {value.kind}")
    frame.stack.extend(reversed(value.items))


def _get_iter(t: Tracer, frame: Frame, canon: Canon) -> None:
    value = t.forced(frame.pop())
    if value.kind != "range":
        raise Refused(f"a loop over a {value.kind}")
    frame.push(Value("iterator", None, value.parts))


_HANDLERS: Final[dict[Op, Callable[[Tracer, Frame, Canon], Any]]] = {
    Op.LOAD_LOCAL: Tracer._load_local, Op.STORE_LOCAL: Tracer._store_local, Op.LOAD_CONST: _const, Op.PUSH_NULL: _null,
    Op.LOAD_GLOBAL: Tracer._load_global, Op.LOAD_NAME: Tracer._load_name, Op.LOAD_DEREF: Tracer._load_deref,
    Op.LOAD_ATTR: Tracer._load_attr, Op.LOAD_METHOD: Tracer._load_method, Op.CALL: Tracer._call,
    Op.RESUME: _nothing, Op.NOP: _nothing, Op.END_FOR: _nothing, Op.POP_TOP: _pop, Op.COPY: _copy, Op.SWAP: _swap,
    Op.BINARY_OP: _binary, Op.COMPARE: _compare, Op.IS_OP: _is,
    Op.UNARY_NEGATIVE: _unary(numbers.negative), Op.UNARY_INVERT: _unary(numbers.inverted), Op.UNARY_NOT: _unary(_not),
    Op.TO_BOOL: _unary(_to_bool),
    Op.BINARY_SUBSCR: _subscript, Op.STORE_SUBSCR: _store_subscript, Op.BUILD_TUPLE: _build_tuple, Op.UNPACK_SEQUENCE: _unpack,
    Op.GET_ITER: _get_iter, Op.FOR_ITER: Tracer._for_iter, Op.JUMP: Tracer._jump, Op.POP_JUMP_IF: Tracer._pop_jump_if,
    Op.JUMP_IF_OR_POP: Tracer._jump_if_or_pop, Op.RETURN_VALUE: Tracer._return, Op.RETURN_CONST: Tracer._return,
}  # fmt: skip
