"""Where translation is: the frames (the loop's own and those of functions followed into) and the last place the loop can be left at."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from tierup.bytecode.listing import Listing
from tierup.capture.scope import Names
from tierup.loops.function import Block
from tierup.loops.values import OBJECT, Value, flat_parts, with_parts

Place = tuple[int, int, bool]
"""Of a value: frame, position, whether on the stack."""


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

    def holds(self, value: Value) -> bool:
        """Whether a variable or a stack slot holds the same object, not only an equal one."""
        mine = value.identity
        return mine is not None and any(other.identity == mine for frame in self.frames for other in (*frame.locals, *frame.stack))

    def other_objects(self, value: Value) -> list[str]:
        """Addresses of the objects that are in lists and that a variable or a stack slot holds, but for this one."""
        held = [item for frame in self.frames for other in (*frame.locals, *frame.stack) for item in (other, *other.items)]
        return [*dict.fromkeys(item.parts[1] for item in held if item.detail == OBJECT and item.identity != value.identity)]

    def replace(self, value: Value, by: Value) -> None:
        """Wherever the same object is held, hold `by`."""
        mine = value.identity
        for frame in self.frames:
            for values in (frame.locals, frame.stack):
                for slot, other in enumerate(values):
                    if mine is not None and other.identity == mine:
                        values[slot] = by

    def key(self, fixed: Callable[[int, Value], bool], at_landing: bool) -> Hashable:
        """What versions of a block are told apart by. Values that stay what they are count with their names; of the others, which of them
        are the same object, so that joining them makes no two objects of one. Those without identity are none of these: two constants
        must not be joined as one number."""
        frames = []
        met: dict[Hashable, int] = {}
        for depth, frame in enumerate(self.frames):
            count = len(frame.locals) if depth == 0 else 0
            values = tuple(
                (v.key, v.parts if fixed(slot if slot < count else -1, v) else v.identity and met.setdefault(v.identity, len(met)))
                for slot, v in enumerate((*frame.locals, *frame.stack))
            )
            frames.append((id(frame.listing), frame.position, len(frame.stack), values))
        return (tuple(frames), None if at_landing else id(self.checkpoint))


@dataclass(slots=True)
class Version:
    """A basic block for one combination of kinds: its label, and what flows in over its edges."""

    label: str
    state: State
    slots: list[list[Place]]
    """Of the values that are joined, all places of each."""
    names: list[tuple[str, str]]
    """(type, name) of the joined parts."""
    incoming: list[tuple[str, list[str]]] = field(default_factory=list)
    """(label of the predecessor, its parts)."""
    block: Block | None = None
    """Its text, once it is translated."""

    def joins(self) -> Iterator[str]:
        """Lines of the block's head."""
        for k, (type_, name) in enumerate(self.names):
            edges = ", ".join(f"[{parts[k]}, %{label}]" for label, parts in self.incoming)
            yield f"  {name} = phi {type_} {edges}"


def varying(state: State, fixed: Callable[[int, Value], bool]) -> list[list[Place]]:
    """Where a state's values are that edges may bring different parts for; the places of one object together."""
    found: dict[Hashable, list[Place]] = {}
    for depth, frame in enumerate(state.frames):
        for on_stack, values in ((False, frame.locals), (True, frame.stack)):
            for slot, value in enumerate(values):
                if not fixed(slot if depth == 0 and not on_stack else -1, value):
                    place = (depth, slot, on_stack)
                    found.setdefault(value.identity or place, []).append(place)
    return list(found.values())


def value_at(state: State, place: Place) -> Value:
    depth, slot, on_stack = place
    frame = state.frames[depth]
    return (frame.stack if on_stack else frame.locals)[slot]


def joined(state: State, slots: list[list[Place]], name: Callable[[], str]) -> tuple[State, list[tuple[str, str]]]:
    """A copy of a state with new names for what varies, and (type, name) of these."""
    out, made = state.copy(), []
    for places in slots:
        before = value_at(out, places[0])
        fresh = [(type_, name()) for type_, _ in flat_parts(before)]
        made += fresh
        value = with_parts(before, iter([n for _, n in fresh]))
        for depth, slot, on_stack in places:
            frame = out.frames[depth]
            (frame.stack if on_stack else frame.locals)[slot] = value
    return out, made


def with_position(state: State, position: int) -> State:
    """A copy that goes on elsewhere in the top frame."""
    out = state.copy()
    out.top.position = position
    return out
