"""Whole loops: where a turn of a loop begins, the loop itself is tried first."""

from __future__ import annotations

from typing import Any

from tierup.bytecode.flow import Loop
from tierup.bytecode.splice import Exit
from tierup.capture.executor import Request
from tierup.engine import places, stress
from tierup.engine.units import SiteState, Specialisation, Unit
from tierup.guards.lower import ExpressionTable, lower_checks
from tierup.loops.compile import CompiledLoop, compile_loop
from tierup.loops.values import Refused
from tierup.runtime import events, stats

_MAX_REFUSALS = 3
_MAX_LOOPS = 16
"""Specialisations of one loop."""


def attempt(unit: Unit, state: SiteState, request: Request, library: Any) -> bool:
    """Compile the loop that begins at the site for the values in the frame. True: a specialisation was installed."""
    loop = places.loop_at(unit.listing, unit.flow, state.index)
    done = [spec for spec in state.specs if spec.graph is None]
    if loop is None or stress.mode() is not None or state.loop_refusals >= _MAX_REFUSALS or len(done) >= _MAX_LOOPS:
        return False
    if state.exprs is None:
        state.exprs = ExpressionTable()
    try:
        with stats.timed("compile"):
            compiled = compile_loop(request, library, loop, unit.flow.live[state.index], state.exprs)
    except Refused as reason:
        state.loop_refusals += 1
        events.record("break", f"loop: {reason}", unit.filename, unit.line(state.index), unit.name)
        return False
    if any(spec.key == compiled.key and spec.checks == tuple(compiled.guards) for spec in done):
        return False
    for line, why in dict.fromkeys(compiled.cuts):
        events.record("break", f"the loop is left: {why}", unit.filename, line, unit.name)
    _install(unit, state, compiled, loop)
    return True


def give_up(unit: Unit, state: SiteState) -> bool:
    """Drop the loops of a site, which are left too often. False if it has none."""
    loops = [spec for spec in state.specs if spec.graph is None]
    if loops:
        state.specs = [spec for spec in state.specs if spec.graph is not None]
        state.loop_refusals = _MAX_REFUSALS
        events.record("abandoned", "the loop is left too often", unit.filename, unit.line(state.index), unit.name)
        unit.install(state)
    return bool(loops)


def _install(unit: Unit, state: SiteState, compiled: CompiledLoop, loop: Loop) -> None:
    assert state.exprs is not None
    checks = tuple(compiled.guards)
    ends = tuple(Exit(landing, top_null) for landing, top_null in compiled.ends)
    lowered = lower_checks(checks, state.exprs)
    early = tuple(k for k, (landing, _) in enumerate(compiled.ends) if landing in loop.body)
    state.specs.append(Specialisation(checks, lowered, None, compiled.key, compiled, ends, len(compiled.kernels[0].ops), early))
    stats.count("kernels", 1)
    first, last = compiled.lines
    events.record("specialised", f"the loop in lines {first} to {last}", unit.filename, unit.line(state.index), unit.name)
    unit.install(state)
