"""Facts about a program's flow: edges, stack depth, NULL slots, loops, assigned and live locals. Sets of slots are int bit masks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tierup.bytecode.assemble import stack_depths
from tierup.bytecode.concrete import ConcreteInstr, Program, unpack_superinstruction
from tierup.bytecode.effects import effects
from tierup.bytecode.opcodes import CO_VARARGS, CO_VARKEYWORDS, null_below_callable, table


class Handler(NamedTuple):
    """Where an exception goes, and the stack depth the handler starts with."""

    target: int
    depth: int
    """Slots kept of the raising instruction's stack."""
    lasti: bool

    @property
    def start_depth(self) -> int:
        """Depth before the handler's first instruction: kept slots, lasti, exception."""
        return self.depth + self.lasti + 1


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop."""

    header: int
    body: frozenset[int]
    """Indices of its instructions, the header included. Handlers that can only be reached from inside are not part of it
    unless they jump back in."""


class Flow:
    """Flow facts of one program, computed when first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._table = table()

    @cached_property
    def handlers(self) -> list[Handler | None]:
        """Handler that covers each instruction."""
        out: list[Handler | None] = [None] * len(self.program)
        for entry in self.program.table:
            handler = Handler(entry.target, entry.depth, entry.lasti)
            out[entry.start : entry.end] = [handler] * (entry.end - entry.start)
        return out

    @cached_property
    def successors(self) -> list[tuple[int, ...]]:
        """Normal successors of each instruction (fall-through first), without exception edges."""
        out: list[tuple[int, ...]] = []
        for index, instr in enumerate(self.program.instrs):
            falls = () if instr.opcode in self._table.terminal else (index + 1,)
            out.append(falls if instr.target is None else (*falls, instr.target))
        return out

    @cached_property
    def edges(self) -> list[tuple[int, ...]]:
        """Successors of each instruction with the exception edge last."""
        out = []
        for normal, handler in zip(self.successors, self.handlers, strict=True):
            out.append(normal if handler is None else (*normal, handler.target))
        return out

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """Reachable predecessors of each instruction, over all edges."""
        out: list[list[int]] = [[] for _ in self.program.instrs]
        for index, targets in enumerate(self.edges):
            if self.depth[index] is not None:
                for target in targets:
                    out[target].append(index)
        return out

    @cached_property
    def depth(self) -> list[int | None]:
        """Stack depth before each instruction; None where it cannot be reached."""
        return stack_depths(self.program)

    # ---- NULLs on the stack

    @cached_property
    def nulls(self) -> list[int]:
        """Stack positions (bit 0 is the bottom) that are, or may be, NULL before each instruction."""
        return _null_slots(self)

    # ---- loops

    @cached_property
    def dominators(self) -> list[int]:
        """Immediate dominator of each instruction (-1: entry or unreachable)."""
        return _immediate_dominators(self)

    @cached_property
    def _dominator_intervals(self) -> tuple[list[int], list[int]]:
        """Entry and exit number of each instruction in a walk of the dominator tree."""
        return _tree_intervals(self.dominators)

    def dominates(self, a: int, b: int) -> bool:
        """Whether every way to b leads through a (both reachable)."""
        enter, leave = self._dominator_intervals
        return enter[a] <= enter[b] and leave[b] <= leave[a]

    @cached_property
    def loops(self) -> list[Loop]:
        """Natural loops, one a header, outer ones first."""
        bodies: dict[int, set[int]] = {}
        for index, targets in enumerate(self.edges):
            if self.depth[index] is None:
                continue
            for target in targets:
                if self.dominates(target, index):
                    bodies.setdefault(target, {target}).update(_loop_body(self, target, index))
        loops = [Loop(header, frozenset(body)) for header, body in bodies.items()]
        return sorted(loops, key=lambda loop: (-len(loop.body), loop.header))

    def loop_of(self, index: int) -> Loop | None:
        """The innermost loop around an instruction."""
        return min((x for x in self.loops if index in x.body), key=lambda x: len(x.body), default=None)

    # ---- locals

    @cached_property
    def assigned(self) -> list[int]:
        """Locals that are certainly bound before each instruction (all of them where it cannot be reached)."""
        return _definitely_assigned(self)

    @cached_property
    def live(self) -> list[int]:
        """Locals whose value before each instruction may still be read (a deletion reads: it raises if unbound)."""
        return _live_locals(self)


class _LocalUse(NamedTuple):
    reads: int
    writes: int
    """Certainly bound afterwards."""
    kills: int
    """Certainly unbound afterwards."""


_NO_USE = _LocalUse(0, 0, 0)


def _single_use(name: str, slot: int) -> _LocalUse:
    bit = 1 << slot
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE"):
        # A checked load that came through proves the local bound.
        return _LocalUse(bit, bit if name == "LOAD_FAST_CHECK" else 0, 0)
    if name == "STORE_FAST":
        return _LocalUse(0, bit, 0)
    if name in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        return _LocalUse(bit, 0, bit)
    if name == "MAKE_CELL":
        return _LocalUse(bit, bit, 0)
    return _NO_USE


def local_use(instr: ConcreteInstr) -> tuple[_LocalUse, ...]:
    """What an instruction does to local slots, in order."""
    parts = unpack_superinstruction(instr) or ((instr.name, instr.arg),)
    uses = tuple(_single_use(name, slot) for name, slot in parts)
    return tuple(u for u in uses if u is not _NO_USE)


def entry_locals(program: Program) -> int:
    """Slots that a call binds before the first instruction: the arguments."""
    count = program.argcount + program.kwonlyargcount
    count += bool(program.flags & CO_VARARGS) + bool(program.flags & CO_VARKEYWORDS)
    return (1 << count) - 1


def _definitely_assigned(flow: Flow) -> list[int]:
    program = flow.program
    uses = [local_use(i) for i in program.instrs]
    everything = (1 << program.nlocalsplus) - 1
    state = [everything] * len(program)
    if not state:
        return state
    state[0] = entry_locals(program)
    queued = [False] * len(program)
    seen = [False] * len(program)
    work = [0]
    while work:
        index = work.pop()
        queued[index] = False
        seen[index] = True
        after = state[index]
        raised = after
        for use in uses[index]:
            after = (after | use.writes) & ~use.kills
            raised &= after
        handler = flow.handlers[index]
        out = [(t, after) for t in flow.successors[index]]
        if handler is not None:
            out.append((handler.target, raised))
        if program.instrs[index].name == "COPY_FREE_VARS":
            free = everything & ~((1 << (program.nlocalsplus - len(program.freevars))) - 1)
            out = [(t, bound | free) for t, bound in out]
        for target, bound in out:
            met = state[target] & bound
            if (met != state[target] or not seen[target]) and not queued[target]:
                queued[target] = True
                work.append(target)
            state[target] = met
    return state


def _live_locals(flow: Flow) -> list[int]:
    program = flow.program
    live = [0] * len(program)
    work = [i for i in range(len(program)) if flow.depth[i] is not None]
    queued = [False] * len(program)
    for index in work:
        queued[index] = True
    uses = [local_use(i) for i in program.instrs]
    while work:
        index = work.pop()
        queued[index] = False
        after = 0
        for target in flow.successors[index]:
            after |= live[target]
        for use in reversed(uses[index]):
            after = after & ~(use.writes | use.kills) | use.reads
        handler = flow.handlers[index]
        if handler is not None:
            after |= live[handler.target]
        if after != live[index]:
            live[index] = after
            for source in flow.predecessors[index]:
                if not queued[source]:
                    queued[source] = True
                    work.append(source)
    return live


# ---- NULL slots


def _pushed_nulls(instr: ConcreteInstr, version: tuple[int, int], maybe_unbound: int) -> int:
    """Which of the pushed slots (bit 0 the lowest) are or may be NULL."""
    name, low = instr.name, instr.arg & 1
    if name == "PUSH_NULL":
        return 1
    if name == "LOAD_FAST_AND_CLEAR":
        return maybe_unbound >> instr.arg & 1
    below = null_below_callable(version)
    if name == "LOAD_GLOBAL" and low:
        return 1 if below else 2
    if name == "LOAD_METHOD" or (name in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and low and version >= (3, 12)):
        return 1 if below else 2
    return 0


def _after_nulls(instr: ConcreteInstr, depth: int, nulls: int, pushed: int) -> int:
    """NULL positions after falling through the instruction."""
    name, arg = instr.name, instr.arg
    if name == "SWAP":
        top, other = depth - 1, depth - arg
        a, b = nulls >> top & 1, nulls >> other & 1
        return nulls & ~(1 << top | 1 << other) | a << other | b << top
    if name == "COPY":
        return nulls | (nulls >> (depth - arg) & 1) << depth
    _, pops, _ = effects().of(instr.opcode, arg)
    base = depth - pops
    return nulls & ((1 << base) - 1) | pushed << base


def _null_slots(flow: Flow) -> list[int]:
    program, version = flow.program, flow._table.version
    state = [0] * len(program)
    seen = [False] * len(program)
    everything = (1 << program.nlocalsplus) - 1
    work = [0] if state else []
    while work:
        index = work.pop()
        seen[index] = True
        depth = flow.depth[index]
        assert depth is not None
        instr, nulls = program.instrs[index], state[index]
        unbound = everything & ~flow.assigned[index] if instr.name == "LOAD_FAST_AND_CLEAR" else 0
        after = _after_nulls(instr, depth, nulls, _pushed_nulls(instr, version, unbound))
        out = [(t, after) for t in flow.successors[index]]
        handler = flow.handlers[index]
        if handler is not None:
            out.append((handler.target, nulls & ((1 << handler.depth) - 1)))
        for target, bits in out:
            target_depth = flow.depth[target]
            assert target_depth is not None
            met = state[target] | bits & ((1 << target_depth) - 1)
            if met != state[target] or not seen[target]:
                state[target] = met
                work.append(target)
    return state


# ---- dominators (Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm") and loop bodies


def _postorder(flow: Flow) -> list[int]:
    order: list[int] = []
    seen = [False] * len(flow.program)
    stack: list[tuple[int, int]] = [(0, 0)] if seen else []
    if stack:
        seen[0] = True
    while stack:
        node, child = stack.pop()
        targets = flow.edges[node]
        if child < len(targets):
            stack.append((node, child + 1))
            target = targets[child]
            if not seen[target]:
                seen[target] = True
                stack.append((target, 0))
        else:
            order.append(node)
    return order


def _immediate_dominators(flow: Flow) -> list[int]:
    order = _postorder(flow)
    number = [-1] * len(flow.program)
    for rank, node in enumerate(order):
        number[node] = rank
    idom = [-1] * len(flow.program)
    if not order:
        return idom
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            new = -1
            for source in flow.predecessors[node]:
                if idom[source] < 0:
                    continue
                new = source if new < 0 else _intersect(source, new, idom, number)
            if idom[node] != new:
                idom[node] = new
                changed = True
    idom[0] = -1
    return idom


def _intersect(a: int, b: int, idom: list[int], number: list[int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = idom[a]
        while number[b] < number[a]:
            b = idom[b]
    return a


def _tree_intervals(parent: list[int]) -> tuple[list[int], list[int]]:
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above >= 0:
            children[above].append(node)
    enter, leave = [0] * len(parent), [0] * len(parent)
    clock = 0
    stack = [(root, False) for root, above in enumerate(parent) if above < 0]
    while stack:
        node, done = stack.pop()
        clock += 1
        if done:
            leave[node] = clock
            continue
        enter[node] = clock
        stack.append((node, True))
        stack += [(child, False) for child in children[node]]
    return enter, leave


def _loop_body(flow: Flow, header: int, latch: int) -> set[int]:
    body = {header, latch}
    work = [latch] if latch != header else []
    while work:
        for source in flow.predecessors[work.pop()]:
            if source not in body:
                body.add(source)
                work.append(source)
    return body
