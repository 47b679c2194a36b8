"""Glued units: runs of instructions that nothing may be inserted into and no frame may be left in the middle of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierup.bytecode.concrete import ConcreteInstr

# An instruction and those directly behind it that belong to it.
#  - KW_NAMES sets a variable of the evaluation loop that the very next call consumes; PRECALL's specialised forms skip over CALL.
#  - After YIELD_VALUE, generator methods look at the RESUME behind it (genobject.c, _PyGen_yf).
#  - An exhausted FOR_ITER skips END_FOR (3.12) or END_FOR and POP_TOP (3.13) without looking.
_FOLLOWERS = {
    "KW_NAMES": ("PRECALL", "CALL"),
    "PRECALL": ("CALL",),
    "YIELD_VALUE": ("RESUME",),
    "ASYNC_GEN_WRAP": ("YIELD_VALUE",),
}
_STOP_ITERATION_ERROR = 3
_SKIPS_POP_TOP = sys.version_info >= (3, 13)


def unit_starts(instrs: Sequence[ConcreteInstr], jump_targets: frozenset[int]) -> list[int]:
    """For every instruction the index at which its unit starts (its own index where it may be a boundary)."""
    starts = list(range(len(instrs)))
    _glue_prologue(instrs, starts)
    for index, instr in enumerate(instrs):
        if index + 1 < len(instrs) and _glued(instr, instrs[index + 1], index + 1 in jump_targets):
            starts[index + 1] = starts[index]
        if instr.name == "SEND":
            _glue_send(instrs, index, starts)
        elif instr.name == "FOR_ITER" and instr.target is not None:
            _glue_loop_end(instrs, instr.target, starts)
    return starts


def _glued(instr: ConcreteInstr, after: ConcreteInstr, is_target: bool) -> bool:
    if after.name in _FOLLOWERS.get(instr.name, ()):
        return True
    # The names of a 3.13 keyword call are a constant on the stack; canonically they are part of the call.
    return after.name == "CALL_KW" and instr.name == "LOAD_CONST" and not is_target


def _glue_prologue(instrs: Sequence[ConcreteInstr], starts: list[int]) -> None:
    """Up to RESUME the frame counts as incomplete: everything before it belongs to the RESUME."""
    for index, instr in enumerate(instrs):
        if instr.name == "RESUME":
            starts[:index] = [index] * index
            return


def _glue_send(instrs: Sequence[ConcreteInstr], index: int, starts: list[int]) -> None:
    """The loop SEND, YIELD_VALUE, RESUME, JUMP_BACKWARD, up to and with END_SEND where there is one."""
    target = instrs[index].target
    if target is None or target <= index:
        return
    end = target + 1 if target < len(instrs) and instrs[target].name == "END_SEND" else target
    for inner in range(index + 1, end):
        starts[inner] = starts[index]


def _glue_loop_end(instrs: Sequence[ConcreteInstr], target: int, starts: list[int]) -> None:
    """END_FOR (and 3.13's POP_TOP) is skipped over; whoever wants to be there means what follows."""
    if target >= len(instrs) or instrs[target].name != "END_FOR":
        return
    behind = loop_end(instrs, target)
    starts[target:behind] = [behind] * (behind - target)


def loop_end(instrs: Sequence[ConcreteInstr], target: int) -> int:
    """Where an exhausted FOR_ITER with that jump target really goes on."""
    if instrs[target].name != "END_FOR":
        return target
    return target + 2 if _SKIPS_POP_TOP else target + 1


def unsafe_sites(instrs: Sequence[ConcreteInstr], handlers: frozenset[int]) -> frozenset[int]:
    """Instructions in front of which no site may be put, though a frame may well go on there.

    Where a handler starts, the exception is not in `exc_info` yet (and END_ASYNC_FOR begins no line); before POP_EXCEPT, and in the
    clean-up `COPY; POP_EXCEPT; RERAISE`, no row covers the code that would take it out again. An exception there (a KeyboardInterrupt)
    would leave `exc_info` wrong. A jump back to SEND is no line event for tracers, one back to a site would be. The handler that turns
    a generator's StopIteration into RuntimeError is for CPython alone.
    """
    unsafe = set(handlers)
    for index, instr in enumerate(instrs):
        if instr.name in ("PUSH_EXC_INFO", "SEND"):
            unsafe.add(index)
        elif instr.name == "CALL_INTRINSIC_1" and instr.arg == _STOP_ITERATION_ERROR:
            unsafe |= {index, index + 1}
        elif instr.name == "POP_EXCEPT":
            unsafe.add(index)
            if index and instrs[index - 1].name == "COPY":
                unsafe |= {index - 1, index + 1}
    return frozenset(unsafe)


_BRANCHES = ("POP_JUMP", "TO_BOOL")


def costly_site(instrs: Sequence[ConcreteInstr], index: int) -> bool:
    """Whether a site there parts two instructions that CPython specialises as a pair (specialize.c): `s += t` and its STORE_FAST,
    without which string building is quadratic; `list.append(x)` and its POP_TOP; on 3.11 a comparison and its branch."""
    if index == 0:
        return False
    before, instr = instrs[index - 1], instrs[index]
    if before.name == "BINARY_OP":
        # 0 and 13 are + and +=.
        return instr.name.startswith("STORE_FAST") and before.arg in (0, 13)
    if before.name == "CALL":
        return instr.name == "POP_TOP" and before.arg == 1
    return before.name == "COMPARE_OP" and instr.name.startswith(_BRANCHES)
