"""One frame of symbolic execution: the site's own, or that of a function captured through."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Protocol

from tierup.arrays.values import ConstValue, ObjectValue, Value
from tierup.bytecode.listing import Listing
from tierup.capture.outcome import Break
from tierup.capture.region import Region
from tierup.guards import sources
from tierup.guards.sources import Source


class Names(Protocol):
    """Where a scope's global names and closure cells come from."""

    def global_value(self, region: Region, name: str) -> Value: ...
    def local_name(self, region: Region, name: str) -> Value: ...
    def cell_value(self, region: Region, slot: int) -> Value: ...


@dataclass(slots=True)
class Scope:
    """State of one frame. `locals` covers localsplus; None is an unbound local."""

    listing: Listing
    names: Names
    locals: list[Value | None]
    stack: list[Value] = field(default_factory=list)
    position: int = 0
    module: dict[str, Value | None] | None = None
    """Names stored (or deleted: None) by a module body in this region; None for functions."""
    cells: dict[int, Value] = field(default_factory=dict)
    """Cells written in this region, by slot."""
    inlined: bool = False
    label: str = ""

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def popn(self, n: int) -> list[Value]:
        if n == 0:
            return []
        items = self.stack[-n:]
        del self.stack[-n:]
        return items

    def jump(self, index: int) -> None:
        self.position = self.listing.position[index]


class FrameNames:
    """Names of the site's own frame."""

    def __init__(self, live: Any, slot_names: tuple[str, ...]) -> None:
        self._live = live
        self._slot_names = slot_names

    def global_value(self, region: Region, name: str) -> Value:
        live_globals = self._live.globals
        if name in live_globals:
            return ObjectValue(sources.global_(name), live_globals[name])
        if name not in self._live.builtins:
            raise Break(f"name {name!r} is not defined")
        region.guard("NULL", sources.global_(name))
        return ObjectValue(sources.builtin(name), self._live.builtins[name])

    def local_name(self, region: Region, name: str) -> Value:
        """LOAD_NAME in a module body: its own names, then builtins."""
        names = self._live.locals
        if type(names) is not dict:
            raise Break("a class body or exec with its own namespace")
        if name in names:
            return ObjectValue(sources.name(name), names[name])
        region.guard("NULL", sources.name(name))
        return self.global_value(region, name)

    def cell_value(self, region: Region, slot: int) -> Value:
        cell = self._live.slots[slot]
        try:
            return ObjectValue(sources.cell(slot, self._slot_names[slot]), cell.cell_contents)
        except (ValueError, AttributeError):
            raise Break("an empty closure cell") from None


class FunctionNames:
    """Names of a function that is captured through; everything is reached from the function object."""

    def __init__(self, function: FunctionType, source: Source, free_offset: int, outer: Scope) -> None:
        self._function = function
        self._source = source
        self._free_offset = free_offset
        self._outer = outer

    def global_value(self, region: Region, name: str) -> Value:
        if self._outer.module and name in self._outer.module:
            raise Break("a called function reads a global that the region has just changed")
        names = self._function.__globals__
        if name in names:
            return ObjectValue(self._source.then("FUNC_GLOBAL", name), names[name])
        function: Any = self._function  # type checkers disagree on whether functions have it
        builtins = function.__builtins__
        if name not in builtins:
            raise Break(f"name {name!r} is not defined")
        region.guard("NULL", self._source.then("FUNC_GLOBAL", name))
        return ObjectValue(self._source.then("FUNC_BUILTIN", name), builtins[name])

    def local_name(self, region: Region, name: str) -> Value:
        raise Break("a class body")

    def cell_value(self, region: Region, slot: int) -> Value:
        index = slot - self._free_offset
        cells = self._function.__closure__
        if index < 0 or cells is None or index >= len(cells):
            raise Break("a cell variable of a called function")
        if self._outer.cells:
            raise Break("a called function reads a cell while the region has changed one")
        try:
            return ObjectValue(self._source.then("FUNC_CELL", index), cells[index].cell_contents)
        except ValueError:
            raise Break("an empty closure cell") from None


def constant(value: Any) -> ConstValue:
    return ConstValue(value)
