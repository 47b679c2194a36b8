"""The symbolic executor: runs canonical instructions from a site until something ends the region, then picks the landing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tierup.arrays.builder import NoRule
from tierup.arrays.values import ArrayValue, ConstValue, ObjectValue, Value
from tierup.bytecode.canonical import Canon, Op
from tierup.bytecode.listing import Listing
from tierup.capture import attributes, calls, containers, control, names, operators, stack_ops
from tierup.capture.dispatch import HANDLERS
from tierup.capture.outcome import Break, BreakPoint, Captured, Rejected, Split
from tierup.capture.region import Mark, Memo, Region
from tierup.capture.scope import FrameNames, Scope
from tierup.capture.variables import NULL, NullValue
from tierup.graph.ir import ExitSlot
from tierup.guards import sources

_HANDLER_MODULES = (attributes, calls, containers, control, names, operators, stack_ops)
_MAX_STEPS = 6000
_MAX_NODES = 3000


class Stop(Exception):
    """The site's frame reached an instruction at which every region ends: a return or a backward jump."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place where the region could end, with the state there."""

    index: int
    mark: Mark
    stack: tuple[Value, ...]
    locals: tuple[Value | None, ...]
    module: dict[str, Value | None] | None
    cells: dict[int, Value]


@dataclass(frozen=True, slots=True)
class Request:
    """What to capture: a listing, the concrete index of the site, the frame, and where the region may end."""

    listing: Listing
    index: int
    depth: int
    live: Any
    """A `_core.LiveFrame`."""
    slot_names: tuple[str, ...]
    cell_slots: frozenset[int]
    allowed: frozenset[int] | None
    """Concrete indices at which the generated code has a landing for this site; None: anywhere."""
    min_operations: int
    listing_of: Callable[[FunctionType], Listing | None]
    """The listing of a function to capture through, None if it must not be."""
    is_boundary: Callable[[int], bool]
    limit: int = 0
    """Instructions of the site's own frame after which the region ends in any case; 0: no limit."""


class Executor:
    """One attempt at one site."""

    def __init__(self, request: Request, library: Any) -> None:
        self.request = request
        self.region = Region(request.listing.program.name, library)
        self.builder = self.region.builder
        self.library = library
        self.steps = 0
        self.depth = 0
        """Nesting of calls captured through."""
        self.scope = self._entry_scope()
        self._initial = (tuple(self.scope.locals), tuple(self.scope.stack))
        self._checkpoints: list[Checkpoint] = []
        self._inlined_at = ""

    def _entry_scope(self) -> Scope:
        request, live = self.request, self.request.live
        slots = live.slots
        count = len(slots) - request.depth
        names_ = FrameNames(live, request.slot_names)
        local_values: list[Value | None] = []
        for slot in range(count):
            if request.cell_slots and slot in request.cell_slots:
                local_values.append(None)
            else:
                local_values.append(self._entry_value(sources.local(slot, request.slot_names[slot]), slots[slot]))
        stack = [self._entry_value(sources.stack(k), slots[count + k]) or NULL for k in range(request.depth)]
        module: dict[str, Value | None] | None = None if live.locals is None else {}
        return Scope(request.listing, names_, local_values, stack, request.listing.position[request.index], module)

    @staticmethod
    def _entry_value(source: sources.Source, live: Any) -> Value | None:
        from tierup import _core

        return None if live is _core.NULL else ObjectValue(source, live)

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self) -> Captured | Rejected:
        """Execute until the region ends; never raises for what is merely not captured."""
        return self._finish(self._execute())

    def _execute(self) -> BreakPoint:
        scope = self.scope
        own_steps = 0
        while True:
            canon = scope.listing.canons[scope.position]
            own_steps += 1
            mark = self.region.mark()
            if self.request.is_boundary(canon.index) and scope.listing.position[canon.index] == scope.position:
                self._checkpoints.append(self._checkpoint(canon.index, mark))
                if self.request.limit and own_steps > self.request.limit:
                    return BreakPoint("the limit of instructions", canon.index, canon.line or 0, True)
            try:
                self.step(scope)
            except Stop as stop:
                return BreakPoint(str(stop), canon.index, canon.line or 0, False)
            except (Break, NoRule) as reason:
                self.region.rollback(mark)
                inlined, self._inlined_at = self._inlined_at, ""
                return BreakPoint(str(reason), canon.index, canon.line or 0, isinstance(reason, Split), inlined, self._promising(canon))

    def _promising(self, canon: Canon) -> bool:
        if canon.op in (Op.CALL, Op.CALL_FUNCTION_EX, Op.OTHER):
            return True
        return any(isinstance(self.region.known(value), ArrayValue) for value in self.scope.stack[-3:])

    def step(self, scope: Scope) -> None:
        """Execute one canonical instruction. Raises Break, NoRule or Stop."""
        canon = scope.listing.canons[scope.position]
        self.steps += 1
        if self.steps > _MAX_STEPS or len(self.region.graph.nodes) > _MAX_NODES:
            raise Break("the region grew too long")
        handler = HANDLERS.get(canon.op)
        if handler is None:
            raise Break(f"instruction {canon.arg if canon.op is Op.OTHER else canon.op}")
        if not scope.inlined:
            self.region.line = self.builder.line = canon.line or 0
        before = len(self.region.graph.nodes)
        scope.position += 1
        handler(self, scope, canon)
        if len(self.region.graph.nodes) > before:
            self.region.check_order(before)

    def note_inlined(self, place: str) -> None:
        """Remember the innermost called function in which a break happened."""
        if not self._inlined_at:
            self._inlined_at = place

    def _checkpoint(self, index: int, mark: Mark) -> Checkpoint:
        scope = self.scope
        module = None if scope.module is None else dict(scope.module)
        return Checkpoint(index, mark, tuple(scope.stack), tuple(scope.locals), module, dict(scope.cells))

    # -- ending ----------------------------------------------------------------------------------------------------

    def _finish(self, stop: BreakPoint) -> Captured | Rejected:
        wanted = -1
        reason = stop.reason
        for point in reversed(self._ends(stop)):
            self.region.rollback(point.mark)
            operations = self.region.operations()
            if point is self._checkpoints[0] or point.index == self.request.index or operations < self.request.min_operations:
                too_short = f"too short: {operations} array operations before: {reason}"
                return Rejected(too_short if operations else reason, stop, wanted)
            try:
                exit_slots = self._exit(point)
            except Break:
                self.region.rollback(point.mark)
                continue
            if wanted < 0:
                wanted = point.index
            if self.request.allowed is None or point.index in self.request.allowed:
                graph = self.region.graph
                graph.exit, graph.landing = exit_slots, point.index
                top_null = bool(point.stack) and isinstance(point.stack[-1], NullValue)
                return Captured(graph, self.region.guards, point.index, top_null, stop, operations, wanted)
        return Rejected(f"no landing before: {reason}", stop, wanted)

    def _ends(self, stop: BreakPoint) -> list[Checkpoint]:
        """Checkpoints at which the region may end. After a store the next region begins with a whole statement, not in mid-expression."""
        store = next((n.id for n in self.region.graph.nodes if n.op == "store"), None)
        if not stop.resume_at_break or store is None:
            return self._checkpoints
        shallow = min((len(p.stack) for p in self._checkpoints if p.mark.nodes > store), default=0)
        return [p for p in self._checkpoints if p.mark.nodes <= store or len(p.stack) <= shallow]

    def _exit(self, point: Checkpoint) -> list[ExitSlot]:
        memo: Memo = {}
        region = self.region
        initial_locals, initial_stack = self._initial
        out = []
        # A frame that returns next takes its locals with it; nobody can see them change.
        returns = self.request.listing.canons[self.request.listing.position[point.index]].op in (Op.RETURN_VALUE, Op.RETURN_CONST)
        for slot, value in enumerate(() if returns else point.locals):
            if value is not initial_locals[slot]:
                out.append(ExitSlot("local", slot, None if value is None else region.materialise(value, memo)))
        for slot, value in point.cells.items():
            out.append(ExitSlot("cell", slot, region.materialise(value, memo)))
        for name, named in (point.module or {}).items():
            out.append(ExitSlot("name", name, None if named is None else region.materialise(named, memo)))
        for k, value in enumerate(point.stack):
            if k >= len(initial_stack) or value is not initial_stack[k]:
                out.append(ExitSlot("stack", k, region.materialise(value, memo)))
        for k in range(len(point.stack), len(initial_stack)):
            # The hit block pops these slots, and POP_TOP takes no NULL.
            if isinstance(initial_stack[k], NullValue):
                out.append(ExitSlot("stack", k, region.materialise(ConstValue(None), memo)))
        return out


def capture(request: Request, library: Any) -> Captured | Rejected:
    """Try to capture a region at a site. library: the array library (see arrays.protocol)."""
    executor = Executor(request, library)
    try:
        return executor.run()
    finally:
        executor.region.release()
