"""Program → code object: layout with EXTENDED_ARG, inline caches, exception and location tables, stack size."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

from tierup.bytecode.concrete import Program
from tierup.bytecode.effects import effects
from tierup.bytecode.fields import CodeFields
from tierup.bytecode.opcodes import OpTable, table
from tierup.bytecode.tables import Position, encode_exceptions, encode_locations


class Assembled(NamedTuple):
    """Raw fields and where each instruction landed in them."""

    fields: CodeFields
    units: list[int]
    """First code unit (EXTENDED_ARG included) of each instruction; one more entry for the end."""
    own_units: list[int]
    """Code unit of each instruction's own opcode."""


def assemble(program: Program, *, verify: bool = True) -> CodeType:
    """The code object. Unless `verify` is false, VerificationError is raised where CPython would run into undefined behaviour."""
    fields = assemble_fields(program).fields
    if verify:
        from tierup.bytecode.verify import verify_fields

        verify_fields(fields)
    return fields.build()


def assemble_fields(program: Program) -> Assembled:
    """Raw, unchecked fields. ValueError if a jump goes in a direction its opcode cannot."""
    optable = table()
    sizes, args = _layout(program, optable)
    units = _starts(sizes)
    own = [end - 1 - optable.caches[i.opcode] for i, end in zip(program.instrs, units[1:], strict=True)]
    fields = CodeFields(
        argcount=program.argcount,
        posonlyargcount=program.posonlyargcount,
        kwonlyargcount=program.kwonlyargcount,
        # An unedited program keeps its own size: CPython also counts handlers that nothing can reach.
        stacksize=max(program.stacksize, stack_size(program)),
        flags=program.flags,
        code=_emit(program, args, sizes, optable),
        consts=program.consts,
        names=program.names,
        varnames=program.varnames,
        cellvars=program.cellvars,
        freevars=program.freevars,
        filename=program.filename,
        name=program.name,
        qualname=program.qualname,
        firstlineno=program.firstlineno,
        linetable=_locations(program, sizes, optable),
        exceptiontable=encode_exceptions((units[e.start], units[e.end], units[e.target], e.depth, e.lasti) for e in program.table),
    )
    return Assembled(fields, units, own)


def _starts(sizes: list[int]) -> list[int]:
    units, at = [], 0
    for size in sizes:
        units.append(at)
        at += size
    units.append(at)
    return units


def _extensions(arg: int) -> int:
    """EXTENDED_ARG prefixes that an argument needs."""
    return 0 if arg < 0x100 else 1 if arg < 0x10000 else 2 if arg < 0x1000000 else 3


def _layout(program: Program, optable: OpTable) -> tuple[list[int], list[int]]:
    """Size in units and final argument of every instruction. Jumps grow until nothing changes, and never shrink.

    They start from the size of the argument they were decoded with: a backward jump counts its own EXTENDED_ARG, so with 255 or 256
    units to go both forms are consistent, and CPython's compiler does not always end at the shorter one.
    """
    caches, jump = optable.caches, optable.jump
    args = [i.arg for i in program.instrs]
    sizes = [1 + caches[i.opcode] + _extensions(arg) for i, arg in zip(program.instrs, args, strict=True)]
    jumps = [(k, i.target, jump[i.opcode]) for k, i in enumerate(program.instrs) if i.target is not None]
    while True:
        units = _starts(sizes)
        grown = False
        for k, target, direction in jumps:
            distance = (units[target] - units[k + 1]) * direction
            if distance < 0 or direction == 0:
                raise ValueError(f"{program.instrs[k].name} at index {k} cannot jump to index {target}")
            args[k] = distance
            size = 1 + caches[program.instrs[k].opcode] + _extensions(distance)
            if size > sizes[k]:
                sizes[k] = size
                grown = True
        if not grown:
            return sizes, args


def _emit(program: Program, args: list[int], sizes: list[int], optable: OpTable) -> bytes:
    out = bytearray()
    extended, caches = optable.extended_arg, optable.caches
    for instr, arg, size in zip(program.instrs, args, sizes, strict=True):
        op = instr.opcode
        cache = caches[op]
        for level in range(size - 1 - cache, 0, -1):
            out += bytes((extended, arg >> 8 * level & 255))
        out += bytes((op, arg & 255))
        if cache:
            out += bytes(2 * cache)
    return bytes(out)


def _locations(program: Program, sizes: list[int], optable: OpTable) -> bytes:
    """One run an instruction on 3.11; since 3.12 CPython joins equal neighbours, and so do we."""
    runs: list[tuple[int, Position]] = []
    merge = optable.version >= (3, 12)
    for instr, size in zip(program.instrs, sizes, strict=True):
        if merge and runs and runs[-1][1] == instr.positions:
            runs[-1] = (runs[-1][0] + size, instr.positions)
        else:
            runs.append((size, instr.positions))
    return encode_locations(runs, program.firstlineno)


def stack_size(program: Program) -> int:
    """Deepest stack over everything reachable, as CPython's compiler counts it. ValueError where the stack would underflow."""
    depth = stack_depths(program)
    effect = effects()
    deepest = 1 if table().version >= (3, 13) else 0
    for instr, before in zip(program.instrs, depth, strict=True):
        if before is not None:
            _, pops, pushes = effect.of(instr.opcode, instr.arg)
            deepest = max(deepest, before, before - pops + pushes)
    return deepest


def stack_depths(program: Program) -> list[int | None]:
    """Stack depth before each instruction, None where it cannot be reached. ValueError on underflow or disagreement at a merge."""
    instrs, effect, terminal = program.instrs, effects(), table().terminal
    handlers = _handlers(program)
    depth: list[int | None] = [None] * len(instrs)
    work: list[tuple[int, int]] = [(0, 0)] if instrs else []
    while work:
        index, at = work.pop()
        while True:
            known = depth[index]
            if known is not None:
                if known != at:
                    raise ValueError(f"{instrs[index].name} at index {index} is reached with stack depths {known} and {at}")
                break
            depth[index] = at
            instr = instrs[index]
            need, pops, pushes = effect.of(instr.opcode, instr.arg)
            if at < need:
                raise ValueError(f"{instr.name} at index {index} needs {need} stack slots, has {at}")
            handler = handlers[index]
            if handler is not None:
                work.append(handler)
            at += pushes - pops
            if instr.target is not None:
                work.append((instr.target, at + effect.jump_extra[instr.opcode]))
            index += 1
            if instr.opcode in terminal:
                break
            if index == len(instrs):
                raise ValueError(f"{instr.name} at index {index - 1} falls off the end")
    return depth


def _handlers(program: Program) -> list[tuple[int, int] | None]:
    """(handler, depth there) of every instruction an exception row covers."""
    out: list[tuple[int, int] | None] = [None] * len(program.instrs)
    for entry in program.table:
        handler = (entry.target, entry.depth + entry.lasti + 1)
        for index in range(entry.start, entry.end):
            out[index] = handler
    return out


def covering(program: Program, index: int) -> tuple[int, int, bool] | None:
    """(target, depth, lasti) of the exception row over an instruction."""
    for entry in program.table:
        if entry.start <= index < entry.end:
            return entry.target, entry.depth, entry.lasti
    return None
