"""Translation: what happens when a site is hot. Live values in; a specialisation, a back-off or a dead site out."""

from __future__ import annotations

import os
import threading
from types import FunctionType

from tierup import _core
from tierup.arrays import protocol
from tierup.bytecode.canonical import Op
from tierup.bytecode.concrete import decode, expand_superinstructions
from tierup.bytecode.listing import Listing, make_listing
from tierup.bytecode.splice import Exit
from tierup.capture.executor import Request, capture
from tierup.capture.outcome import BreakPoint, Captured, Rejected
from tierup.engine import places, stress, whole_loops
from tierup.engine.profit import pays
from tierup.engine.units import MAX_EXITS, Generation, SiteState, Specialisation, Unit, unit_of
from tierup.graph.printer import print_graph
from tierup.guards.lower import ExpressionTable, lower_checks
from tierup.native.compile import compile_graph
from tierup.runtime import config, events, stats

MAX_SPECIALISATIONS = 64
MAX_FAILURES = 12
_RARE_ALARMS = 32
"""Runs for each that leaves at run time, from which on a region is kept."""
_NOTHING_BEHIND = frozenset({Op.RETURN_VALUE, Op.RETURN_CONST, Op.JUMP, Op.GET_ITER, Op.FOR_ITER, Op.END_FOR, Op.RAISE})
"""Instructions behind which no new region can begin (loops have their sites from the start), and at which none does."""

_lock = threading.RLock()
_in_translation = threading.local()


def _after_fork() -> None:
    """The thread that was translating is not in the child."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    _in_translation.active = False


os.register_at_fork(after_in_child=_after_fork)


def on_heat(site: _core.Site, live: _core.LiveFrame) -> bool:
    """A site's callback. True: look up once more, the site has something new. Never raises Exception; reports instead."""
    unit = unit_of(live.code)
    if unit is None or getattr(_in_translation, "active", False) or not _lock.acquire(blocking=False):
        site.countdown = 2
        return False
    _in_translation.active = True
    try:
        return _translate_at(unit, site, live)
    except Exception as error:  # whatever goes wrong in here, the user's code must go on
        _report_failure(unit, site, error)
        return False
    finally:
        _in_translation.active = False
        _lock.release()


def _report_failure(unit: Unit, site: _core.Site, error: Exception) -> None:
    state = unit.sites.get(site.index)
    site.countdown = 1 << 20
    if state is not None:
        state.failures += 3
        state.attempts += 1
        if state.failures > MAX_FAILURES:
            unit.kill(state)
    text = f"{type(error).__name__}: {error}"
    events.record("error", text, unit.filename, unit.line(site.index), unit.name)
    if config.current().strict:
        import traceback

        events.log("runtime", "".join(traceback.format_exception(error)))


def _translate_at(unit: Unit, site: _core.Site, live: _core.LiveFrame) -> bool:
    state = unit.sites.get(site.index)
    generation = unit.generation_of(live.code)
    if state is None or state.dead or generation is None:
        site.countdown = 1 << 30
        unit.swap(live.function)
        return False
    if site.slow and whole_loops.give_up(unit, state):
        site.countdown = unit.countdown(state)
        return False
    if site.slow:
        _give_up(unit, state, live, "slower than the interpreter")
        site.countdown = 1 << 30
        return False
    if not unit.is_current(live.code):
        # The function moves on at its next call; a loop of this frame can still be served by the landings that its code has.
        unit.swap(live.function)
        if not state.in_loop:
            site.countdown = 1
            return False
    if _over_budget():
        site.countdown = 1 << 30
        return False
    libraries = protocol.active()
    if not libraries:
        site.countdown = 1 << 20
        return False
    _core.init_numpy()
    if state.suspended:
        return _resume(unit, state, site)
    return _attempt(unit, state, site, live, libraries[0], generation)


def _over_budget() -> bool:
    """Whether this process has spent what it may on translation (`TIERUP_COMPILE_BUDGET`)."""
    budget = config.current().compile_budget
    if budget is None or stats.translated_seconds() < budget:
        return False
    events.record("abandoned", "the compile budget is spent")
    return True


def _resume(unit: Unit, state: SiteState, site: _core.Site) -> bool:
    state.suspended = False
    unit.install(state)
    site.countdown = unit.countdown(state)
    return True


def _attempt(unit: Unit, state: SiteState, site: _core.Site, live: _core.LiveFrame, library: object, generation: Generation) -> bool:
    state.attempts += 1
    line = unit.line(state.index)
    events.record("attempt", "hot site", unit.filename, line, unit.name)
    allowed = generation.targets(state.index) if state.in_loop or unit.is_module else None
    request = _request(unit, state, live, allowed)
    if whole_loops.attempt(unit, state, request, library):
        site.countdown = unit.countdown(state)
        return True
    with stats.timed("capture"):
        outcome = capture(request, library)
    _note_stop(unit, state, outcome.stop)
    judged = stress.mode() is None and unit.options.min_graph_size > 0
    if judged and isinstance(outcome, Captured) and not pays(outcome.graph, outcome.guards):
        outcome = Rejected("too short: it would not pay", outcome.stop, outcome.wanted)
    if isinstance(outcome, Rejected):
        return _rejected(unit, state, site, live, outcome)
    return _specialise(unit, state, site, live, outcome)


def _request(unit: Unit, state: SiteState, live: _core.LiveFrame, allowed: frozenset[int] | None) -> Request:
    program = unit.program
    mode = stress.mode()
    cells = frozenset(i for i in range(program.nlocalsplus) if program.is_cell_slot(i))
    return Request(
        listing=unit.listing,
        index=state.index,
        depth=state.depth,
        live=live,
        slot_names=program.localsplus,
        cell_slots=cells,
        allowed=allowed,
        min_operations=max(1, unit.options.min_graph_size) if mode is None else 0,
        limit=0 if mode is None else mode.limit(state.index + 31 * state.attempts),
        listing_of=lambda function: _listing_of(unit, function),
        is_boundary=program.is_boundary,
    )


_listings: dict[int, tuple[object, Listing]] = {}


def _listing_of(unit: Unit, function: FunctionType) -> Listing | None:
    """Listing of a function that may be captured through: its original code, whatever was generated for it."""
    code = function.__code__
    if getattr(function, "__tierup_break__", False):
        return None
    known = unit_of(code)
    if known is not None:
        return known.listing
    cached = _listings.get(id(code))
    if cached is None or cached[0] is not code:
        cached = (code, make_listing(expand_superinstructions(decode(code))))
        if len(_listings) > 512:
            _listings.clear()
        _listings[id(code)] = cached
    return cached[1]


def _note_stop(unit: Unit, state: SiteState, stop: BreakPoint) -> None:
    state.stops[stop.index] = stop
    detail = f"in {stop.inlined}" if stop.inlined else ""
    if stop.reason not in ("return", "the end of a loop's body"):
        events.record("break", stop.reason, unit.filename, stop.line, unit.name, detail)


def _rejected(unit: Unit, state: SiteState, site: _core.Site, live: _core.LiveFrame, outcome: Rejected) -> bool:
    state.failures += 1
    state.reasons[outcome.reason] += 1
    events.record("rejected", outcome.reason, unit.filename, unit.line(state.index), unit.name)
    moved = outcome.stop.promising and _follow(unit, state, outcome.stop, outcome.stop.index)
    moved = _want(unit, state, outcome.wanted) or moved
    if not state.specs and state.failures >= 3:
        _give_up(unit, state, live, outcome.reason)
        site.countdown = 1 << 30
        return False
    if moved and not unit.is_module and unit.regenerate():
        unit.swap(live.function)
    site.countdown = unit.countdown(state)
    events.record("backoff", outcome.reason, unit.filename, unit.line(state.index), unit.name)
    return False


def _give_up(unit: Unit, state: SiteState, live: _core.LiveFrame, reason: str) -> None:
    """Nothing more at this site; the next code does without it."""
    unit.kill(state)
    events.record("abandoned", reason, unit.filename, unit.line(state.index), unit.name)
    if not unit.is_module and unit.regenerate():
        unit.swap(live.function)


def _want(unit: Unit, state: SiteState, landing: int) -> bool:
    """Ask the next generation for a landing at which this site's region would rather end. True if it does not have it yet."""
    if landing < 0 or unit.is_module or landing in state.targets() or len(state.exits) >= MAX_EXITS:
        return False
    unit.add_exit(state, landing, places.top_is_null(unit.flow, landing))
    return True


def _follow(unit: Unit, state: SiteState, stop: BreakPoint, landing: int) -> bool:
    """Make the sites at which capture can go on behind a region's end. True if any is new."""
    if stop.resume_at_break:
        candidates = [landing]
    else:
        canon = unit.listing.canons[unit.listing.position[stop.index]]
        if canon.op in _NOTHING_BEHIND:
            return False
        candidates = [unit.program.boundary_after(stop.index)]
        if canon.op in (Op.POP_JUMP_IF, Op.JUMP_IF_OR_POP):
            candidates.append(canon.arg[1])
    return any([unit.add_site(i) for i in candidates if i != state.index and _may_begin(unit, i)])


def _may_begin(unit: Unit, index: int) -> bool:
    """Whether a region at this instruction could hold anything at all."""
    return index < len(unit.program) and unit.listing.canons[unit.listing.position[index]].op not in _NOTHING_BEHIND


def _specialise(unit: Unit, state: SiteState, site: _core.Site, live: _core.LiveFrame, outcome: Captured) -> bool:
    key = _key(outcome)
    if any(spec.key == key and spec.graph is not None for spec in state.specs):
        return _alarmed(unit, state, site)
    if len(state.specs) >= MAX_SPECIALISATIONS:
        state.failures += 1
        site.countdown = unit.countdown(state)
        events.record("backoff", "too many specialisations", unit.filename, unit.line(state.index), unit.name)
        return False
    spec = _compile(unit, state, outcome, key)
    state.specs.append(spec)
    state.failures = max(0, len(state.specs) // 8 - 1)
    events.record("specialised", outcome.stop.reason, unit.filename, unit.line(state.index), unit.name)
    new_exit = state.exit_number(outcome.landing, outcome.top_null) < 0
    if new_exit:
        unit.add_exit(state, outcome.landing, outcome.top_null)
    grew = _follow(unit, state, outcome.stop, outcome.landing)
    better = outcome.wanted != outcome.landing and _want(unit, state, outcome.wanted)
    unit.install(state)
    if better:
        # This code goes on with the shorter region; the next one tries for the longer.
        state.specs.remove(spec)
    if (new_exit or grew or better) and not unit.is_module and unit.regenerate():
        unit.swap(live.function)
    site.countdown = unit.countdown(state)
    return True


def _alarmed(unit: Unit, state: SiteState, site: _core.Site) -> bool:
    """The same region again: its checks hold but it left at run time (an overflow, a floating-point alarm). If that is not rare, wait, ever
    longer."""
    plans = [spec.compiled.plan for spec in state.specs if spec.graph is not None]
    if sum(plan.runs for plan in plans) > _RARE_ALARMS * (1 + sum(plan.left for plan in plans)):
        site.countdown = _RARE_ALARMS
        return False
    state.failures += 1
    state.suspended = True
    unit.install(state)
    site.countdown = unit.countdown(state)
    events.record("backoff", "the region leaves at run time", unit.filename, unit.line(state.index), unit.name)
    return False


def _key(outcome: Captured) -> str:
    checks = "\n".join(str(c.key) for c in outcome.guards)
    return f"{print_graph(outcome.graph)}\n{checks}"


def _compile(unit: Unit, state: SiteState, outcome: Captured, key: str) -> Specialisation:
    if events.wants("capture"):
        what = f"{outcome.operations} operations, then {outcome.stop.reason}"
        events.log("capture", f"{unit.name}: site {state.index} → {outcome.landing}: {what}")
    if events.wants("guards"):
        events.log("guards", "\n".join(str(c) for c in outcome.guards))
    if events.wants("graph"):
        events.log("graph", print_graph(outcome.graph))
    if state.exprs is None:
        state.exprs = ExpressionTable()
    with stats.timed("compile"):
        compiled = compile_graph(outcome.graph, state.exprs)
    checks = tuple(outcome.guards)
    stats.count("kernels", len(compiled.kernels))
    return Specialisation(
        checks,
        lower_checks(checks, state.exprs),
        outcome.graph,
        key,
        compiled,
        (Exit(outcome.landing, outcome.top_null),),
        outcome.operations,
    )
