"""Flow facts against slow definitions of the same facts, on the sample functions; and on examples."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from tierup.bytecode.concrete import decode
from tierup.bytecode.flow import Flow, entry_locals, local_use

from . import corpus, transform

CODES = [c for c in corpus.walk(compile(transform.SAMPLES.read_bytes(), "samples", "exec")) if len(c.co_code) < 700]


@pytest.fixture(params=CODES, ids=lambda c: c.co_qualname)
def flow(request: pytest.FixtureRequest) -> Flow:
    return Flow(decode(request.param))


def reachable(flow: Flow, start: int, without: int = -1) -> set[int]:
    seen: set[int] = set()
    work = [start] if start != without else []
    while work:
        index = work.pop()
        if index not in seen:
            seen.add(index)
            work += [t for t in flow.edges[index] if t != without]
    return seen


def test_depth_is_known_where_reachable(flow: Flow) -> None:
    assert {i for i, d in enumerate(flow.depth) if d is not None} == reachable(flow, 0)


def test_dominators(flow: Flow) -> None:
    everything = reachable(flow, 0)
    for a in random.Random(1).sample(sorted(everything), min(25, len(everything))):
        dominated = everything - reachable(flow, 0, without=a)
        assert {b for b in everything if flow.dominates(a, b)} == dominated


def test_loops(flow: Flow) -> None:
    """A loop's body is what reaches its header again without leaving through it."""
    for loop in flow.loops:
        assert loop.header in loop.body
        for index in loop.body:
            assert flow.dominates(loop.header, index)
            assert any(loop.header in reachable(flow, t) for t in flow.edges[index])
        entries = {t for i in loop.body for t in flow.edges[i]} & loop.body
        assert loop.header in entries


def walk_back(flow: Flow, slot: int) -> set[int]:
    """Instructions before which the slot's value may still be read: backwards from every read, over what does not write it."""
    bit = 1 << slot
    live: set[int] = set()
    work = []
    for index, instr in enumerate(flow.program.instrs):
        if flow.depth[index] is not None and reads_first(instr, bit):
            work.append(index)
    while work:
        index = work.pop()
        if index in live:
            continue
        live.add(index)
        for source in flow.predecessors[index]:
            handler = flow.handlers[source]
            passes = not writes(flow.program.instrs[source], bit)
            if passes or (handler is not None and handler.target == index):
                work.append(source)
    return live


def reads_first(instr: object, bit: int) -> bool:
    for use in local_use(instr):  # type: ignore[arg-type]
        if use.reads & bit:
            return True
        if (use.writes | use.kills) & bit:
            return False
    return False


def writes(instr: object, bit: int) -> bool:
    return any((use.writes | use.kills) & bit for use in local_use(instr))  # type: ignore[arg-type]


def test_live_locals(flow: Flow) -> None:
    for slot in range(flow.program.nlocalsplus):
        wanted = walk_back(flow, slot)
        assert {i for i in range(len(flow.program)) if flow.live[i] >> slot & 1} == wanted, flow.program.localsplus[slot]


def test_assigned_locals(flow: Flow) -> None:
    """Random walks never meet an unbound local that is said to be bound, and CPython's own unchecked loads are all covered."""
    rng = random.Random(2)
    for _ in range(30):
        index, bound = 0, entry_locals(flow.program)
        for _ in range(300):
            claimed = flow.assigned[index] & ((1 << len(flow.program.varnames)) - 1)
            cells = sum(1 << s for s in range(flow.program.nlocalsplus) if flow.program.is_cell_slot(s))
            assert not claimed & ~bound & ~cells
            after = bound
            for use in local_use(flow.program.instrs[index]):
                after = (after | use.writes) & ~use.kills
            handler = flow.handlers[index]
            options = [(t, after) for t in flow.successors[index]]
            if handler is not None:
                options += [(handler.target, bound), (handler.target, bound & after)]
            if not options:
                break
            index, bound = rng.choice(options)
    if sys.version_info >= (3, 12):
        for index, instr in enumerate(flow.program.instrs):
            if instr.name == "LOAD_FAST" and flow.depth[index] is not None and not flow.program.is_cell_slot(instr.arg):
                assert flow.assigned[index] >> instr.arg & 1


def test_null_slots(flow: Flow) -> None:
    """Calls find their NULL where they look for it; nothing else takes one off the stack."""
    below = sys.version_info < (3, 13)
    for index, instr in enumerate(flow.program.instrs):
        depth, nulls = flow.depth[index], flow.nulls[index]
        if depth is None:
            continue
        assert nulls >> depth == 0
        if instr.name == "POP_TOP":
            assert not nulls >> (depth - 1) & 1
        if instr.name in ("CALL", "CALL_KW"):
            base = depth - instr.arg - 2 - (instr.name == "CALL_KW")
            assert not nulls >> base & ~(1 if below else 2)


def flow_of(function: Callable[..., object]) -> Flow:
    return Flow(decode(function.__code__))


def test_loop_nest() -> None:
    def f(a):  # type: ignore[no-untyped-def]
        for i in a:
            for j in i:
                while j:
                    j -= 1  # noqa: PLW2901
                    if j == 3:
                        continue
            a = j
        return a

    flow = flow_of(f)
    outer, middle, *inner = flow.loops
    assert middle.body < outer.body and inner and all(x.body < middle.body for x in inner)
    assert flow.program.instrs[outer.header].name == flow.program.instrs[middle.header].name == "FOR_ITER"
    assert flow.loop_of(outer.header) == outer and flow.loop_of(inner[-1].header) == inner[-1]
    assert flow.loop_of(0) is None


def test_handlers() -> None:
    def f(a):  # type: ignore[no-untyped-def]
        with a:
            a()
        return a

    flow = flow_of(f)
    handlers = {h for h in flow.handlers if h is not None}
    starts = {flow.program.instrs[h.target].name for h in handlers}
    assert starts == {"PUSH_EXC_INFO", "COPY"}
    for handler in handlers:
        assert flow.depth[handler.target] == handler.start_depth
