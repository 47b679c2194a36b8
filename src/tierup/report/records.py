"""What the engine tells about its work, as plain data: the only form in which reports see units and specialisations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """A captured graph in its text form."""

    name: str
    text: str
    ops: int
    """Array and scalar operations, without bookkeeping."""
    landing_line: int
    """The user's line at which the interpreter goes on; 0 if unknown."""
    site_line: int


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One native function. llvm_ir and assembly are empty where the kernel is a loop of NumPy's or its text was not kept."""

    name: str
    ops: int
    from_cache: bool
    llvm_ir: str = ""
    assembly: str = ""


@dataclass(frozen=True, slots=True)
class BreakRecord:
    """A place where capture ended, and why."""

    reason: str
    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """One condition under which a specialisation applies. line: the user's line that needs it; 0 if unknown."""

    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class SpecialisationRecord:
    """Compiled code for one site under one set of guards."""

    site_index: int
    """Instruction index of the site in the original code."""
    site_line: int
    guards: Sequence[GuardRecord]
    graph: GraphRecord
    kernels: Sequence[KernelRecord]
    hits: int


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """One code object and everything tierup made of it."""

    function: str
    file: str
    line: int
    specialisations: Sequence[SpecialisationRecord] = ()
    breaks: Sequence[BreakRecord] = ()
    generated_code: CodeType | None = field(default=None, compare=False)
