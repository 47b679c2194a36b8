"""A plan in the making: virtual registers, instructions, requests for kernels, and the allocation of registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tierup import _core
from tierup.native.fuse import Bound

SLOT_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class Reg:
    """A virtual register: kind 'o', 's' or 'a', and a number of its own."""

    kind: str
    number: int


@dataclass(slots=True)
class Instr:
    """A plan instruction before register allocation. Plain ints stand for themselves; a Kernel request for an index of
    `Program.kernels`.
    """

    op: str
    operands: list[Reg | int]


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """A kernel that is one of NumPy's inner loops. identity: start value of a reduction."""

    ufunc: str
    loop: str
    ins: tuple[str, ...]
    scalars: tuple[str, ...]
    out: str
    identity: bytes | None = None


@dataclass(frozen=True, slots=True)
class FusedRequest:
    bound: Bound


Request = LoopRequest | FusedRequest


@dataclass(slots=True)
class Program:
    """What the plan is built from; kernels still have to be made."""

    words: list[int] = field(default_factory=list)
    constants: list[object] = field(default_factory=list)
    kernels: list[Request] = field(default_factory=list)
    nobjects: int = 0
    nslots: int = 0
    narrays: int = 0
    slot_image: bytes = b""
    exit: list[tuple[int, int, int]] = field(default_factory=list)

    def listing(self) -> str:
        """The program as text, one instruction a line."""
        names = {number: name for name, number in _core.PLAN_OPS.items()}
        lines, at = [], 0
        while at < len(self.words):
            name = names[self.words[at]]
            size = 1 + instruction_operands(_core.PLAN_OPERANDS[name], self.words, at + 1)
            lines.append(f"{at:5} {name} {' '.join(map(str, self.words[at + 1 : at + size]))}".rstrip())
            at += size
        return "\n".join(lines)


def instruction_operands(layout: str, words: Sequence[int], at: int) -> int:
    """How many operand words an instruction has: the number before a `*` counts the rest."""
    if not layout.endswith("*"):
        return len(layout)
    fixed = len(layout) - 1
    count = words[at + fixed - 1]
    return fixed + count


# -- registers ---------------------------------------------------------------------------------------------------------------

_ALLOCATES: Final = frozenset(
    ("KERNEL", "A_EMPTY", "A_ZEROS", "A_FULL", "A_EMPTY_LIKE", "A_ZEROS_LIKE", "A_COPY", "A_APART", "REDUCE_AXIS")
)


def allocate(program: Program, code: list[Instr], image: dict[Reg, bytes], counts: dict[str, int]) -> None:
    """Free array registers behind their last use where memory is allocated later on, and write the words.

    Literals come first among the slots, so that the image is short. Objects and slots keep a register of their own each.
    """
    slots = {reg: k for k, reg in enumerate(image)}
    program.slot_image = b"".join(raw.ljust(SLOT_SIZE, b"\0") for raw in image.values())
    arrays = _ArrayRegisters(code, program.kernels)
    last_allocation = max((k for k, i in enumerate(code) if i.op in _ALLOCATES), default=-1)
    for at, instr in enumerate(code):
        words = [_core.PLAN_OPS[instr.op]]
        for r in instr.operands:
            if isinstance(r, int):
                words.append(r)
            elif r.kind == "a":
                words.append(arrays.number(r))
            else:
                words.append(r.number if r.kind == "o" else slots.setdefault(r, len(slots)))
        program.words += words
        if at < last_allocation:
            for register in arrays.release(at):
                program.words += [_core.PLAN_OPS["A_FREE"], register]
    program.nobjects, program.nslots, program.narrays = counts["o"], len(slots), arrays.used
    program.slot_image = program.slot_image.ljust(program.nslots * SLOT_SIZE, b"\0")


_VIEWS: Final = frozenset(
    ("A_SLICE", "A_INDEX", "A_NEWAXIS", "A_TRANSPOSE", "A_BROADCAST", "A_RESHAPE", "A_RAVEL_KEEP", "A_REAL", "A_IMAG")
)


class _ArrayRegisters:
    """Array registers over memory of the region's own are freed and taken again; others only borrow what an object register keeps
    alive.
    """

    def __init__(self, code: list[Instr], kernels: Sequence[Request]) -> None:
        self.used = 0
        self._number: dict[Reg, int] = {}
        self._free: list[int] = []
        self._dying: dict[int, list[Reg]] = {}
        own: set[Reg] = set()
        last: dict[Reg, int] = {}
        for at, instr in enumerate(code):
            arrays = [r for r in instr.operands if isinstance(r, Reg) and r.kind == "a"]
            for r in arrays:
                last[r] = at
            if instr.op == "KERNEL":
                index = instr.operands[0]
                assert isinstance(index, int)
                own.update(arrays[-_output_count(kernels[index]) :])
            elif instr.op in _ALLOCATES or (instr.op in _VIEWS and arrays[1] in own):
                own.add(arrays[0])
        for r in own:
            self._dying.setdefault(last[r], []).append(r)

    def number(self, reg: Reg) -> int:
        if reg not in self._number:
            if self._free:
                self._number[reg] = self._free.pop()
            else:
                self._number[reg] = self.used
                self.used += 1
        return self._number[reg]

    def release(self, at: int) -> list[int]:
        registers = [self._number[r] for r in self._dying.get(at, ())]
        self._free += registers
        return registers


def _output_count(request: Request) -> int:
    return len(request.bound.outputs) if isinstance(request, FusedRequest) else 1
