"""Where translation is: the frames (the loop's own and those of functions followed into) and the last place the loop can be left at."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from tierup.bytecode.listing import Listing
from tierup.capture.scope import Names
from tierup.loops.values import Value, flat_parts, with_parts


@dataclass(slots=True)
class Frame:
    """One Python frame during translation; position is that of the next canonical instruction."""

    listing: Listing
    names: Names
    locals: list[Value]
    stack: list[Value]
    position: int

    def copy(self) -> Frame:
        return Frame(self.listing, self.names, list(self.locals), list(self.stack), self.position)

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()


@dataclass(eq=False, slots=True)
class Checkpoint:
    """A place at which the interpreter can take over, with all that it needs there. Written as an exit if anything leaves to it."""

    landing: int
    locals: tuple[Value, ...]
    stack: tuple[Value, ...]
    label: str = ""
    """Label of its exit block, empty as long as nothing leaves to it."""


@dataclass(slots=True)
class State:
    """The frames, the loop's own first. checkpoint: None behind an effect."""

    frames: list[Frame]
    checkpoint: Checkpoint | None = None

    @property
    def top(self) -> Frame:
        return self.frames[-1]

    def copy(self) -> State:
        return State([f.copy() for f in self.frames], self.checkpoint)

    def key(self, fixed: Callable[[int, Value], bool], at_landing: bool) -> Hashable:
        """What versions of a block are told apart by. Values that stay what they are count with their names."""
        frames = []
        for depth, frame in enumerate(self.frames):
            count = len(frame.locals) if depth == 0 else 0
            values = tuple(
                (v.key, v.parts if fixed(slot if slot < count else -1, v) else ()) for slot, v in enumerate((*frame.locals, *frame.stack))
            )
            frames.append((id(frame.listing), frame.position, len(frame.stack), values))
        return (tuple(frames), None if at_landing else id(self.checkpoint))


@dataclass(slots=True)
class Version:
    """A basic block for one combination of kinds: its label, and what flows in over its edges."""

    label: str
    state: State
    slots: list[tuple[int, int, bool]]
    """(frame, position, on the stack) of the values that are joined."""
    names: list[tuple[str, str]]
    """(type, name) of the joined parts."""
    incoming: list[tuple[str, list[str]]] = field(default_factory=list)
    """(label of the predecessor, its parts)."""

    def joins(self) -> Iterator[str]:
        """Lines of the block's head."""
        for k, (type_, name) in enumerate(self.names):
            edges = ", ".join(f"[{parts[k]}, %{label}]" for label, parts in self.incoming)
            yield f"  {name} = phi {type_} {edges}"


def varying(state: State, fixed: Callable[[int, Value], bool]) -> list[tuple[int, int, bool]]:
    """Where a state's values are that edges may bring different parts for."""
    out = []
    for depth, frame in enumerate(state.frames):
        for slot, value in enumerate(frame.locals):
            if not fixed(slot if depth == 0 else -1, value):
                out.append((depth, slot, False))
        for slot, value in enumerate(frame.stack):
            if not fixed(-1, value):
                out.append((depth, slot, True))
    return out


def value_at(state: State, place: tuple[int, int, bool]) -> Value:
    depth, slot, on_stack = place
    frame = state.frames[depth]
    return (frame.stack if on_stack else frame.locals)[slot]


def joined(state: State, places: list[tuple[int, int, bool]], name: Callable[[], str]) -> tuple[State, list[tuple[str, str]]]:
    """A copy of a state with new names for what varies, and (type, name) of these."""
    out, made = state.copy(), []
    for depth, slot, on_stack in places:
        frame = out.frames[depth]
        values = frame.stack if on_stack else frame.locals
        fresh = [(type_, name()) for type_, _ in flat_parts(values[slot])]
        made += fresh
        values[slot] = with_parts(values[slot], iter([n for _, n in fresh]))
    return out, made


def with_position(state: State, position: int) -> State:
    """A copy that goes on elsewhere in the top frame."""
    out = state.copy()
    out.top.position = position
    return out
