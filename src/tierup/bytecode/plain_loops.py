"""Copies of loops without sites, appended to spliced code.

A frame cannot be given new code while it runs, so a loop whose sites turned out useless would pay for them to its end. Instead such a site
sends the frame into a copy of its innermost loop that has no sites; when that loop ends, control is back in the spliced code.

A copy stands behind everything it can leave to, so ways out are backward jumps; an instruction that can only jump forward leaves through a
stub behind the copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tierup.bytecode.concrete import ConcreteInstr, ExceptionEntry, Program
from tierup.bytecode.flow import Flow
from tierup.bytecode.opcodes import OpTable


class Output(Protocol):
    """What the splicer has made so far."""

    program: Program
    flow: Flow
    table: OpTable
    out: list[ConcreteInstr]
    rows: list[ExceptionEntry]
    entry: list[int]
    """New index at which control comes to an original instruction, its site first."""


Emit = Callable[[str, int, ConcreteInstr, int], int]


def append_loop(output: Output, body: frozenset[int], emit: Emit) -> dict[int, int]:
    """Appends a copy of a natural loop; returns the new index of each of its original instructions.

    emit(name, arg, like, target) appends an instruction of our own. ValueError for a loop that leaves in a way that cannot be copied.
    """
    return _Copy(output, body, emit).run()


class _Copy:
    def __init__(self, output: Output, body: frozenset[int], emit: Emit) -> None:
        self.output = output
        self.body = body
        self.emit = emit
        self.new: dict[int, int] = {}

    def run(self) -> dict[int, int]:
        out, instrs = self.output.out, self.output.program.instrs
        order = sorted(self.body)
        for index in order:
            if instrs[index].name == "SEND" and instrs[index].target not in self.body:
                raise ValueError("a loop that is left by SEND")
            self.new[index] = len(out)
            out.append(instrs[index])
            if instrs[index].opcode not in self.output.table.terminal and index + 1 not in self.body:
                self._leave(instrs[index], index + 1)
        self._patch_targets(order)
        self._cover(order)
        return self.new

    def _leave(self, like: ConcreteInstr, index: int) -> None:
        """A jump back to the spliced code."""
        self.emit("JUMP_BACKWARD_NO_INTERRUPT", 0, like, self.output.entry[index])

    def _patch_targets(self, order: list[int]) -> None:
        out, instrs = self.output.out, self.output.program.instrs
        stubs: dict[tuple[int, bool], int] = {}
        for index in order:
            instr = instrs[index]
            if instr.target is None:
                continue
            if instr.target in self.body:
                target = self.new[instr.target]
            elif instr.target < index:
                target = self.output.entry[instr.target]
            else:
                exhausted = instr.name == "FOR_ITER"
                key = (instr.target, exhausted)
                if key not in stubs:
                    stubs[key] = self._stub(instr, exhausted)
                target = stubs[key]
            out[self.new[index]] = instr._replace(target=target)

    def _stub(self, instr: ConcreteInstr, exhausted: bool) -> int:
        """FOR_ITER skips what must follow its target (END_FOR, on 3.13 and POP_TOP) without looking; so that stands here, too."""
        at, target = len(self.output.out), instr.target
        assert target is not None
        if exhausted:
            for _ in range(self._skipped(target)):
                self.output.out.append(self.output.program.instrs[target])
                target += 1
        self._leave(instr, target)
        return at

    def _skipped(self, target: int) -> int:
        """How many instructions an exhausted FOR_ITER skips at its target."""
        if self.output.program.instrs[target].name != "END_FOR":
            return 0
        return 2 if self.output.table.version >= (3, 13) else 1

    def _cover(self, order: list[int]) -> None:
        """Exception rows of the copy: as those of the original, with handlers in the copy where they are part of the loop."""
        rows = []
        for row in self.output.program.table:
            target = self.new.get(row.target, self.output.entry[row.target])
            start = None
            previous = -2
            for index in [i for i in order if row.start <= i < row.end] + [-2]:
                here = self.new.get(index, -2)
                if start is not None and here != previous + 1:
                    rows.append(row._replace(start=start, end=previous + 1, target=target))
                    start = None
                if start is None and index >= 0:
                    start = here
                previous = here
        self.output.rows.extend(sorted(rows))
