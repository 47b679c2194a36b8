"""A unit: one original code object, its sites and specialisations, and the newest code generated for it."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from tierup import _core
from tierup.bytecode.concrete import Program, decode, expand_superinstructions
from tierup.bytecode.flow import Flow
from tierup.bytecode.listing import Listing, make_listing
from tierup.bytecode.splice import RETIRE, Exit, SiteSpec, splice
from tierup.engine import places, stress
from tierup.runtime import events
from tierup.runtime.config import Options

if TYPE_CHECKING:
    # Nothing of these is needed before the first translation, and `tierup run` starts without them.
    from tierup.capture.outcome import BreakPoint
    from tierup.graph.ir import Graph
    from tierup.guards.checks import Check
    from tierup.guards.lower import ExpressionTable
    from tierup.loops.compile import CompiledLoop
    from tierup.native.compile import Compiled

MAX_GENERATIONS = 40
MAX_EXITS = 48


_NOTHING_TO_DO = _core.Plan(b"", (), (), 0, 0, 0, b"", ())


@dataclass(slots=True)
class Specialisation:
    """What one translation made: guards, graph and plan for one site."""

    checks: tuple[Check, ...]
    lowered: tuple[tuple[int, int, object], ...]
    graph: Graph | None
    """None: a whole loop."""
    key: str
    compiled: Compiled | CompiledLoop
    ends: tuple[Exit, ...]
    """Where it may leave to, in the order of the plan's exits."""
    operations: int
    early: tuple[int, ...] = ()
    """Of a whole loop: the ends at which it is not through."""


@dataclass(slots=True)
class SiteState:
    """A place where a region may begin, over all generations of the code."""

    index: int
    depth: int
    in_loop: bool
    exits: list[Exit]
    specs: list[Specialisation] = field(default_factory=list)
    exprs: ExpressionTable | None = None
    """Made at the first translation."""
    attempts: int = 0
    failures: int = 0
    idle: int = 0
    dead: bool = False
    suspended: bool = False
    loop_refusals: int = 0
    """How often the whole loop that begins here could not be compiled."""
    stops: dict[int, BreakPoint] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def exit_number(self, target: int, top_null: bool) -> int:
        """Number of the landing in the code, -1 if it has none."""
        wanted = Exit(target, top_null)
        return self.exits.index(wanted) if wanted in self.exits else -1

    def targets(self) -> frozenset[int]:
        return frozenset(e.target_index for e in self.exits)


@dataclass(slots=True)
class Generation:
    """The sites of one generated code object, and the landings it has for each. Holds the code weakly: frames and functions own it."""

    code: weakref.ref[CodeType]
    sites: dict[int, _core.Site]
    exits: dict[int, tuple[Exit, ...]]

    def targets(self, index: int) -> frozenset[int]:
        """Landings of a site in this code."""
        return frozenset(e.target_index for e in self.exits[index])


class Unit:
    """See the module. Held by the original code object (co_extra); generated code holds it weakly."""

    def __init__(self, code: CodeType, options: Options, first_countdown: int) -> None:
        self.options = options
        self.name = code.co_qualname
        self.filename = code.co_filename
        self.firstlineno = code.co_firstlineno
        self.first_countdown = first_countdown
        self._original = weakref.ref(code)
        self.program: Program = expand_superinstructions(decode(code))
        self.flow: Flow = Flow(self.program)
        self.listing: Listing = make_listing(self.program)
        self.is_module = not code.co_flags & 0x2  # CO_NEWLOCALS
        self.sites: dict[int, SiteState] = {}
        self.generations = 0
        self._newest: CodeType | None = None
        self._alive: list[Generation] = []
        self._past_hits = self._past_misses = 0
        self._functions: weakref.WeakSet[FunctionType] = weakref.WeakSet()
        for index in places.initial_sites(self.program, self.listing, self.flow):
            self.add_site(index)
        if self.sites:
            self.regenerate()

    @property
    def original(self) -> CodeType | None:
        return self._original()

    @property
    def code(self) -> CodeType | None:
        """What functions of this unit should run now; None if the original code is gone and nothing was generated."""
        return self._newest if self._newest is not None else self.original

    @property
    def generated(self) -> CodeType | None:
        """The newest generated code, None if the original runs."""
        return self._newest

    def generation_of(self, code: CodeType) -> Generation | None:
        """The generation that a code object belongs to."""
        return next((g for g in self._alive if g.code() is code), None)

    def line(self, index: int) -> int:
        return self.program.instrs[index].positions[0] or self.firstlineno

    def add_site(self, index: int) -> bool:
        """Make a place for a region. False if there is one already or none can be there."""
        depth = self.flow.depth[index] if index < len(self.program) else None
        if index in self.sites or depth is None or not self.program.is_boundary(index):
            return False
        in_loop, landings = places.landings(self.program, self.listing, self.flow, index)
        exits = [Exit(i, places.top_is_null(self.flow, i)) for i in landings[:MAX_EXITS]]
        self.sites[index] = SiteState(index, depth, in_loop, exits)
        return True

    def add_exit(self, site: SiteState, target: int, top_null: bool) -> None:
        """Ask the next generation for a landing."""
        if site.exit_number(target, top_null) < 0:
            site.exits.append(Exit(target, top_null))

    # -- generated code ------------------------------------------------------------------------------------------

    def regenerate(self) -> bool:
        """Make the code anew with all live sites and their landings. False if there were too many generations."""
        if self.generations >= MAX_GENERATIONS:
            return False
        self.generations += 1
        alive = [s for s in sorted(self.sites.values(), key=lambda s: s.index) if not s.dead]
        if not alive:
            self._newest = None
            return True
        sites = {s.index: _core.Site(s.index, s.depth) for s in alive}
        exits = {s.index: (*s.exits, RETIRE) if s.in_loop else tuple(s.exits) for s in alive}
        spliced = splice(self.program, [SiteSpec(s.index, sites[s.index], exits[s.index]) for s in alive])
        generation = Generation(weakref.ref(spliced.code), sites, exits)
        _core.code_extra_set(spliced.code, weakref.ref(self))
        mode = stress.mode()
        for state in alive:
            site = sites[state.index]
            site.enabled = mode is None or mode.kind != "miss"
            site.bind(spliced.code, spliced.site_instr[state.index])
            site.callback = _callback
            site.countdown = self.countdown(state)
        self._newest = spliced.code
        self._bury()
        self._alive.append(generation)
        for state in alive:
            self.install(state)
        if events.wants("bytecode"):
            events.log("bytecode", f"{self.name}: generation {self.generations}, sites at {[s.index for s in alive]}")
        return True

    def _bury(self) -> None:
        """Drop the generations that nothing runs any more; their counts stay."""
        dead = [g for g in self._alive if g.code() is None]
        self._keep_counts([site for g in dead for index, site in g.sites.items() if not self.sites[index].dead])
        self._alive = [g for g in self._alive if g not in dead]

    def _keep_counts(self, sites: list[_core.Site]) -> None:
        self._past_hits += sum(site.hits for site in sites)
        self._past_misses += sum(site.misses for site in sites)

    def kill(self, state: SiteState) -> None:
        """No region at this site from now on. Visits of old code that send their frame into a loop without sites do not count as hits."""
        self._keep_counts([g.sites[state.index] for g in self._alive if state.index in g.sites])
        state.dead = True
        state.specs.clear()
        self.install(state)

    def countdown(self, state: SiteState) -> int:
        """Visits until the next attempt: exponential back-off by the failures so far."""
        if not state.attempts:
            return self.first_countdown
        return min(1 << min(state.failures * 2, 30), 1 << 30)

    def install(self, state: SiteState) -> None:
        """Give the site its specialisations in every generation that is alive; those for which a code has no landing miss there."""
        for generation in self._alive:
            if state.index in generation.sites and generation.code() is not None:
                self._install_in(state, generation)

    def _install_in(self, state: SiteState, generation: Generation) -> None:
        exits = generation.exits[state.index]
        if state.dead and RETIRE in exits:
            # Frames that still run this code go on in a copy of the loop that has no sites.
            generation.sites[state.index].install((), [((), _NOTHING_TO_DO, exits.index(RETIRE), False)])
            return
        specs = []
        for spec in [] if state.suspended else state.specs:
            numbers = tuple(exits.index(end) if end in exits else -1 for end in spec.ends)
            nulls = tuple(end.top_null for end in spec.ends)
            specs.append((spec.lowered, spec.compiled.plan, numbers, nulls, spec.early))
        site = generation.sites[state.index]
        site.reach = self._reach(state)
        # A hit of a whole loop takes all its turns, a miss takes one: their times say nothing of each other.
        comparable = stress.mode() is None and all(spec.graph is not None for spec in state.specs)
        _core.set_first_trial(self.options.trial_hits if comparable else 0)
        site.install(() if state.exprs is None else state.exprs.exprs(), specs)

    def _reach(self, state: SiteState) -> int:
        """Where the site's regions end; one that goes round a loop may hold everything behind its site."""
        landings = [end.target_index for spec in state.specs for end in spec.ends]
        return len(self.program) if any(landing <= state.index for landing in landings) else max(landings, default=state.index)

    def is_current(self, code: CodeType) -> bool:
        return code is self._newest

    def adopt(self, function: FunctionType) -> None:
        """Remember a function that runs this unit's code, so that it gets the newest."""
        self._functions.add(function)

    def swap(self, function: Any) -> None:
        """Let a function, and all that were seen before, run the newest code of this unit from their next calls on."""
        if isinstance(function, FunctionType):
            self.adopt(function)
        code = self.code
        if code is None:
            return
        for known in list(self._functions):
            # Its user may have given it other code meanwhile.
            if known.__code__ is not code and unit_of(known.__code__) is self:
                known.__code__ = code

    def counts(self) -> tuple[int, int, int]:
        """(hits, misses, alarms) of its sites in all generations."""
        self._bury()
        sites = [site for g in self._alive for index, site in g.sites.items() if not self.sites[index].dead]
        alarms = sum(spec.compiled.plan.alarms for state in self.sites.values() for spec in state.specs)
        return self._past_hits + sum(s.hits for s in sites), self._past_misses + sum(s.misses for s in sites), alarms


def _callback(site: _core.Site, live: _core.LiveFrame) -> bool | None:
    if "numpy" not in sys.modules:
        # The translator needs the array library, and the program may want to set it up before it is imported: ask ever more rarely.
        unit = unit_of(live.code)
        state = None if unit is None else unit.sites.get(site.index)
        if state is not None:
            state.idle = min(state.idle + 1, 14)
        site.countdown = 64 << (14 if state is None else state.idle)
        return False
    try:
        from tierup.engine.translate import on_heat
    except Exception as error:  # a broken installation: the program goes on without, and the statistics say so
        site.countdown = 1 << 62
        events.record("error", f"the translator cannot be loaded: {type(error).__name__}: {error}", live.code.co_filename)
        return False
    return on_heat(site, live)


_units: weakref.WeakSet[Unit] = weakref.WeakSet()


def all_units() -> list[Unit]:
    """Units that are alive."""
    return list(_units)


def unit_of(code: CodeType) -> Unit | None:
    """The unit of an original or generated code object."""
    extra = _core.code_extra_get(code)
    if isinstance(extra, weakref.ref):
        found = extra()
        return found if isinstance(found, Unit) else None
    return extra if isinstance(extra, Unit) else None


def unit_for(code: CodeType, options: Options, first_countdown: int = 1) -> Unit:
    """The code's unit, made if there is none."""
    unit = unit_of(code)
    if unit is None:
        unit = Unit(code, options, first_countdown)
        _core.code_extra_set(code, unit)
        _units.add(unit)
    return unit
