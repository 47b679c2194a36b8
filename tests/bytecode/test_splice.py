"""Spliced code behaves as the original: with sites that always miss everywhere, and with hits that go where the original goes."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from tierup.bytecode.assemble import assemble
from tierup.bytecode.concrete import Program, decode, expand_superinstructions
from tierup.bytecode.flow import Flow
from tierup.bytecode.opcodes import table
from tierup.bytecode.splice import Exit, SiteSpec, Spliced, splice

from . import transform

COUNTS = {"miss": 0, "hit": 0}


class Miss:
    """A site that never hits."""

    def __bool__(self) -> bool:
        COUNTS["miss"] += 1
        return False


class Hit:
    """A site that always hits (or, once per visit, at its own instruction), with the exit number and the top value given."""

    def __init__(self, exit_number: int = 0, top: object = None, once: bool = False) -> None:
        self.exit_number = exit_number
        self.top = top
        self.once = once
        self.armed = True

    def __bool__(self) -> bool:
        if self.once:
            self.armed = not self.armed
            if self.armed:
                return False
        COUNTS["hit"] += 1
        return True

    def __neg__(self) -> int:
        return self.exit_number

    def __invert__(self) -> object:
        return self.top


def program_of(code: CodeType) -> Program:
    return expand_superinstructions(decode(code))


def places(program: Program, flow: Flow) -> list[int]:
    return [i for i in range(len(program)) if flow.depth[i] is not None and program.is_boundary(i)]


def reassembled(code: CodeType) -> CodeType:
    return assemble(decode(code))


def all_missing(code: CodeType, exits_each: int = 3, constant: Callable[[], object] = Miss) -> CodeType:
    """A site at every boundary, each with some exits anywhere."""
    program = program_of(code)
    at = places(program, Flow(program))
    step = max(1, len(at) // 7)
    sites = []
    for k, index in enumerate(at):
        ends = tuple(Exit(at[(k + n * step) % len(at)]) for n in range(exits_each))
        sites.append(SiteSpec(index, constant(), ends))
    return splice(program, sites).code


def all_empty(code: CodeType, constant: Callable[[], object] = Miss) -> CodeType:
    program = program_of(code)
    return splice(program, [SiteSpec(i, constant()) for i in places(program, Flow(program))]).code


def looping_once(code: CodeType, exits: int = 1, taken: int = 0) -> CodeType:
    """Each site hits once a visit and lands at its own instruction, through one of several branches."""
    program = program_of(code)
    sites = [SiteSpec(i, Hit(taken, once=True), (Exit(i),) * exits) for i in places(program, Flow(program))]
    return splice(program, sites).code


def stepping(code: CodeType) -> CodeType:
    """Sites that take over what a site can do without a frame: constants, pops, jumps. The original instruction is never run."""
    program = program_of(code)
    flow = Flow(program)
    sites = []
    for index in places(program, flow):
        instr = program.instrs[index]
        if instr.name == "LOAD_CONST" and program.can_land(index + 1):
            sites.append(SiteSpec(index, Hit(0, program.consts[instr.arg]), (Exit(index + 1),)))
        elif instr.name in ("POP_TOP", "NOP") and program.can_land(index + 1):
            sites.append(SiteSpec(index, Hit(), (Exit(index + 1),)))
        elif instr.name in ("JUMP_FORWARD", "JUMP_BACKWARD") and instr.target is not None and program.can_land(instr.target):
            sites.append(SiteSpec(index, Hit(), (Exit(instr.target),)))
    return splice(program, sites).code


TRANSFORMS: dict[str, Callable[[CodeType], CodeType]] = {
    "reassembled": reassembled,
    "empty": all_empty,
    "missing": all_missing,
    "missing, many exits": lambda code: all_missing(code, 20),
    "once": lambda code: looping_once(code, 5, 3),
    "once, one exit": looping_once,
    "stepping": stepping,
}


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return transform.load()


@pytest.fixture(scope="module", params=list(TRANSFORMS))
def spliced(request: pytest.FixtureRequest) -> dict[str, Any]:
    return transform.load(TRANSFORMS[request.param])


@pytest.mark.parametrize("name", transform.case_names())
def test_same_outcome(plain: dict[str, Any], spliced: dict[str, Any], name: str) -> None:
    assert transform.outcome(spliced, name) == transform.outcome(plain, name)


def test_sites_were_tested() -> None:
    COUNTS["miss"] = COUNTS["hit"] = 0
    transform.outcome(transform.load(all_missing), "case_arithmetic")
    assert COUNTS["miss"] > 500
    transform.outcome(transform.load(stepping), "case_arithmetic")
    assert COUNTS["hit"] > 100


def _add(a: int, b: int) -> int:
    c = a + b
    return c * 2


@pytest.mark.parametrize("exits", [1, 2, 3, 8, 9, 16, 17, 40])
def test_every_exit_is_found(exits: int) -> None:
    """Each exit number selects its own landing: the constant's or the one behind it, told apart by the value left on the stack."""
    space: dict[str, Any] = {}
    lines = "".join(f" yield {k}\n" for k in range(exits))
    exec(f"def f():\n{lines} yield -1\n", space)
    program = program_of(space["f"].__code__)
    flow = Flow(program)
    loads = [i for i in places(program, flow) if program.instrs[i].name == "LOAD_CONST"][:exits]
    at = places(program, flow)[0]
    for taken in range(exits):
        ends = tuple(Exit(i) for i in loads)
        code = splice(program, [SiteSpec(at, Hit(taken), ends)]).code
        assert list(FunctionType(code, {})()) == [*range(taken, exits), -1]


def test_deeper_landings_and_returns() -> None:
    program = program_of(_add.__code__)
    flow = Flow(program)
    at = places(program, flow)[0]
    back = next(i for i, instr in enumerate(program.instrs) if instr.name == "RETURN_VALUE")
    spliced = splice(program, [SiteSpec(at, Hit(0, "from the site"), (Exit(back),))])
    assert FunctionType(spliced.code, {})(1, 2) == "from the site"
    # The return is made in the hit block itself.
    names = [i.name for i in decode(spliced.code).instrs]
    assert names.count("RETURN_VALUE") == 2 and "JUMP_BACKWARD_NO_INTERRUPT" not in names
    call_at = next(i for i, instr in enumerate(program.instrs) if instr.name == "BINARY_OP")
    spliced = splice(program, [SiteSpec(at, Hit(0, 20), (Exit(call_at),))])
    with pytest.raises(TypeError, match="NoneType"):  # the deeper slot stays a placeholder: only the C core can fill it
        FunctionType(spliced.code, {})(1, 2)


def test_null_on_top() -> None:
    """The landing's NULL cannot be the value that UNARY_INVERT returns: it fills a placeholder (itself NULL), and None is popped."""
    space: dict[str, Any] = {}
    exec("def f(g, a):\n return g(a)\n", space)
    program = program_of(space["f"].__code__)
    flow = Flow(program)
    null_at = next(i for i, instr in enumerate(program.instrs) if instr.name == "PUSH_NULL")
    depth = flow.depth[null_at + 1]
    assert depth is not None and flow.nulls[null_at + 1] >> (depth - 1) & 1
    at = places(program, flow)[0]
    spliced = splice(program, [SiteSpec(at, Miss(), (Exit(null_at + 1, top_null=True),))])
    wanted = ["LOAD_CONST"] * (depth - 1) + ["PUSH_NULL", "LOAD_CONST", "UNARY_INVERT", "POP_TOP", "JUMP_BACKWARD_NO_INTERRUPT"]
    assert [i.name for i in decode(spliced.code).instrs][-len(wanted) :] == wanted
    assert FunctionType(spliced.code, {})(len, "abc") == 3


def test_backward_landings_can_be_interrupted() -> None:
    """A loop that is closed through a hit block checks for signals, as its own jump would; the handler around the landing gets them."""
    space: dict[str, Any] = {}
    exec("def f(n):\n try:\n  while n:\n   n -= 1\n except KeyboardInterrupt:\n  return 'interrupted'\n return n\n", space)
    program = program_of(space["f"].__code__)
    flow = Flow(program)
    header = flow.loops[-1].header
    inside = max(i for i in flow.loops[-1].body if program.is_boundary(i))
    code = splice(program, [SiteSpec(inside, 1.0, (Exit(header),))]).code
    again = decode(code)
    jumps = [k for k, i in enumerate(again.instrs) if i.name == "JUMP_BACKWARD"]
    assert jumps and any(e.start <= jumps[-1] < e.end for e in again.table)
    with _alarm(0.2):
        assert FunctionType(code, {})(10**12) == "interrupted"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_metadata_is_kept() -> None:
    def outer(a: int, /, b: int = 1, *args: int, c: int = 2, **kw: int) -> Callable[[], object]:
        """Docstring."""

        def inner() -> object:
            """Inner."""
            return a, b, args, c, kw, outer

        return inner

    for code in (outer.__code__, outer(1).__code__):
        new = all_missing(code)
        for name in dir(code):
            if name.startswith("co_") and name not in _CHANGED:
                assert getattr(new, name) == getattr(code, name), name
        assert new.co_consts[: len(code.co_consts)] == code.co_consts
    assert FunctionType(all_missing(outer(1).__code__), {}, closure=outer(1).__closure__).__doc__ == "Inner."


_CHANGED = {"co_code", "co_consts", "co_exceptiontable", "co_linetable", "co_lnotab", "co_stacksize", "co_lines", "co_positions"} | {
    "co_branches",
    "_co_code_adaptive",
}


def test_site_instr_names_the_truth_test() -> None:
    program = program_of(_add.__code__)
    at = places(program, Flow(program))
    spliced: Spliced = splice(program, [SiteSpec(i, Miss(), (Exit(at[0]),) if i % 2 else ()) for i in at])
    test = "TO_BOOL" if table().has("TO_BOOL") else "POP_JUMP_FORWARD_IF_TRUE" if sys.version_info < (3, 12) else "POP_JUMP_IF_TRUE"
    names = table().names
    for index, unit in spliced.site_instr.items():
        empty = "TO_BOOL" if table().has("TO_BOOL") else "UNARY_NOT"
        assert names[spliced.code.co_code[2 * unit]] == (test if index % 2 else empty)


@pytest.mark.parametrize("index", [-1, 10**6])
def test_bad_places_are_refused(index: int) -> None:
    program = program_of(_add.__code__)
    with pytest.raises(ValueError, match="the program has"):
        splice(program, [SiteSpec(index, Miss())])
    with pytest.raises(ValueError, match="landing"):
        splice(program, [SiteSpec(places(program, Flow(program))[0], Miss(), (Exit(index),))])


def test_glued_places_are_refused() -> None:
    space: dict[str, Any] = {}
    exec("def f(g):\n for i in g(a=1):\n  try:\n   yield i\n  except E: pass\n", space)
    program = program_of(space["f"].__code__)
    inside = [i for i in range(len(program)) if not program.is_boundary(i) and Flow(program).depth[i] is not None]
    assert {program.instrs[i].name for i in inside} >= {"RESUME", "POP_EXCEPT", "PUSH_EXC_INFO"}
    for index in inside:
        with pytest.raises(ValueError, match="not allowed"):
            splice(program, [SiteSpec(index, Miss())])


def quietly(code: CodeType) -> CodeType:
    """Sites everywhere that land at the starts of lines in the same loop and handler, as those of real regions do. (Since 3.12 tracers
    take every jump's target for a line's start, and what a debugger's own jumps may do follows from the code's.)"""
    program = program_of(code)
    flow = Flow(program)
    at = places(program, flow)
    starts: dict[object, list[int]] = {}
    for i in at:
        if i and _begins_line(program, i):
            starts.setdefault((flow.loop_of(i), flow.handlers[i]), []).append(i)
    sites = []
    for i in at:
        near = [s for s in starts.get((flow.loop_of(i), flow.handlers[i]), []) if _alike(flow, i, s)]
        sites.append(SiteSpec(i, 0.0, tuple(Exit(s, top_null=_null_top(flow, s)) for s in near[:5])))
    return splice(program, sites).code


def _alike(flow: Flow, site: int, landing: int) -> bool:
    """Whether control comes to one through the other, and the slots that both stacks have agree in being NULL."""
    here, there = flow.depth[site], flow.depth[landing]
    assert here is not None and there is not None
    again = there <= here and flow.loop_of(site) is not None and flow.dominates(landing, site)
    ordered = again or flow.dominates(site, landing)
    return ordered and (flow.nulls[site] ^ flow.nulls[landing]) & ((1 << min(here, there)) - 1) == 0


def _null_top(flow: Flow, index: int) -> bool:
    depth = flow.depth[index]
    return bool(depth and flow.nulls[index] >> (depth - 1) & 1)


def _begins_line(program: Program, index: int) -> bool:
    before, here = program.instrs[index - 1], program.instrs[index]
    return here.positions[0] is not None and before.positions[0] != here.positions[0] and before.name != "RESUME"


# A float zero misses without running any Python: tracers must not see the stand-in's own frames.
QUIET = {"reassembled": reassembled, "missing": quietly, "empty": lambda code: all_empty(code, lambda: 0.0)}


@pytest.fixture(scope="module", params=list(QUIET))
def quiet(request: pytest.FixtureRequest) -> dict[str, Any]:
    return transform.load(QUIET[request.param])


@pytest.mark.parametrize("name", transform.case_names())
def test_same_trace(plain: dict[str, Any], quiet: dict[str, Any], name: str) -> None:
    """A debugger sees the same calls, lines, returns and exceptions."""
    assert transform.line_events(quiet, name) == transform.line_events(plain, name)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
@pytest.mark.parametrize("name", transform.case_names())
def test_same_monitored_lines(plain: dict[str, Any], quiet: dict[str, Any], name: str) -> None:
    assert transform.monitored_lines(quiet, name) == transform.monitored_lines(plain, name)
