"""The room's entry: a loop becomes a plan, or the reason why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tierup import _core
from tierup.arrays.builder import NoRule
from tierup.bytecode.canonical import Op
from tierup.bytecode.flow import Loop
from tierup.capture.executor import Request
from tierup.capture.outcome import Break
from tierup.guards.checks import GuardSet
from tierup.guards.lower import ExpressionTable
from tierup.loops.exits import ExitWriter, PlanWriter
from tierup.loops.instructions import HANDLERS
from tierup.loops.tracer import Tracer
from tierup.loops.values import Refused
from tierup.native import cache, elf, host, jit

_MAX_TEXT: Final = 200_000
"""Characters of LLVM text: what compiles in a fraction of a second."""


@dataclass(slots=True)
class LoopCode:
    """What reports can say of a loop's native function."""

    name: str
    ops: list[str]
    from_cache: bool
    llvm_ir: str

    @property
    def asm(self) -> str:
        """The function as assembler text (made on demand)."""
        from tierup.native import llvm

        return llvm.assembly(self.llvm_ir, optimised=True)


@dataclass(slots=True)
class CompiledLoop:
    """A loop ready to be installed."""

    plan: _core.Plan
    kernels: list[LoopCode]
    guards: GuardSet
    ends: list[tuple[int, bool]]
    """For each exit of the plan its landing, and whether the top stack slot there is NULL."""
    lines: tuple[int, int]
    key: str
    """The function's text."""
    cuts: list[tuple[int, str]]
    """(line, reason) of what is left to the interpreter inside the loop."""


def compile_loop(request: Request, library: Any, loop: Loop, live: int, expressions: ExpressionTable) -> CompiledLoop:
    """Compile the loop whose body (or whose header, for `while`) the request's site stands at. live: mask of the locals that may still be
    read there.

    Raises Refused with the reason if it cannot be compiled.
    """
    try:
        tracer, exits = _traced(request, library, loop, live, True)
    except Refused:
        if not any(type(value) is str for value in request.live.slots):
            raise
        tracer, exits = _traced(request, library, loop, live, False)  # strings as constants
    guards = tracer.executor.region.guards
    tracer.executor.region.release()
    text = tracer.fn.text()
    if len(text) > _MAX_TEXT:
        raise Refused("the loop is too long; its inner loops may not be")
    code, cached = _code(text)
    try:
        loaded = jit.load([code], [_name(request, loop)])
    except OSError as error:
        raise Refused(f"no executable memory: {error}") from error
    plan = PlanWriter(tracer, exits, expressions).plan(loaded.entries[0][0], loaded)
    ends = [(point.landing, bool(point.stack) and point.stack[-1].kind == "null") for point in tracer.exits]
    return CompiledLoop(plan, [_described(request, loop, text, cached)], guards, ends, _lines(request, loop), text, tracer.cuts)


def _traced(request: Request, library: Any, loop: Loop, live: int, texts: bool) -> tuple[Tracer, ExitWriter]:
    tracer = Tracer(request, library, loop, live, HANDLERS, texts)
    try:
        tracer.run()
        exits = ExitWriter(tracer)
        exits.run()
    except (Break, NoRule) as reason:
        tracer.executor.region.release()
        raise Refused(str(reason)) from reason
    except Refused:
        tracer.executor.region.release()
        raise
    return tracer, exits


def _code(text: str) -> tuple[elf.Code, bool]:

    def make() -> elf.Code:
        from tierup.native import llvm

        try:
            return elf.link(llvm.compile_optimised(text), ("loop",))
        except (elf.LinkError, RuntimeError) as error:
            message = " ".join(str(error).split())
            raise Refused(f"LLVM: {message}") from error

    return cache.obtain(cache.key("loop\n" + text, host.fingerprint()), make)


def _lines(request: Request, loop: Loop) -> tuple[int, int]:
    lines = [c.line for c in request.listing.canons if c.index in loop.body and c.line]
    return min(lines, default=0), max(lines, default=0)


def _name(request: Request, loop: Loop) -> str:
    """What profilers call the loop's function."""
    first, last = _lines(request, loop)
    program = request.listing.program
    return f"{program.name} {program.filename.rpartition('/')[2]}:{first}-{last}"


def _described(request: Request, loop: Loop, text: str, cached: bool) -> LoopCode:
    quiet = (Op.NOP, Op.RESUME, Op.END_FOR)
    ops = [str(c.op) for c in request.listing.canons if c.index in loop.body and c.op not in quiet]
    first, last = _lines(request, loop)
    return LoopCode(f"loop in lines {first} to {last}", ops, cached, text)
