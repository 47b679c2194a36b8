"""A code object as a list of instructions: base opcodes, no caches, EXTENDED_ARG folded, jump targets as indices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import CodeType
from typing import NamedTuple

from tierup.bytecode.fields import KIND_CELL, KIND_FREE, CodeFields, fields_of, localsplus_kinds, localsplus_names
from tierup.bytecode.opcodes import OpTable, table
from tierup.bytecode.tables import NO_POSITION, Position, decode_exceptions, decode_locations
from tierup.bytecode.units import costly_site, unit_starts, unsafe_sites


class ConcreteInstr(NamedTuple):
    """One instruction. `arg` of a jump is what stood in the code it was decoded from; the assembler goes by `target`."""

    opcode: int
    name: str
    arg: int
    offset: int
    """Byte offset of its first code unit (its first EXTENDED_ARG, if it has one)."""
    positions: Position
    target: int | None
    """Index of the instruction it may jump to."""


class ExceptionEntry(NamedTuple):
    """One row of the exception table, by instruction index; `end` is exclusive."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(frozen=True)
class Program:
    """A decoded code object. Immutable; edits make a new one with `edited`."""

    instrs: tuple[ConcreteInstr, ...]
    table: tuple[ExceptionEntry, ...]
    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    flags: int
    consts: tuple[object, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    varnames: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    filename: str
    name: str
    qualname: str
    firstlineno: int
    stacksize: int

    def __len__(self) -> int:
        return len(self.instrs)

    @cached_property
    def localsplus(self) -> tuple[str, ...]:
        """Names of the frame's slots: locals, cells that are no locals, free variables."""
        return localsplus_names(self.varnames, self.cellvars, self.freevars)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """KIND_* bits (fields.py) of each slot."""
        return localsplus_kinds(self.varnames, self.cellvars, self.freevars, self.flags)

    @property
    def nlocalsplus(self) -> int:
        return len(self.localsplus)

    def is_cell_slot(self, slot: int) -> bool:
        """Whether the frame slot holds a cell (own or free) rather than a plain local."""
        return bool(self.kinds[slot] & (KIND_CELL | KIND_FREE))

    @cached_property
    def jump_targets(self) -> frozenset[int]:
        """Indices that some instruction jumps to, or where a handler starts."""
        jumps = {i.target for i in self.instrs if i.target is not None}
        return frozenset(jumps | {e.target for e in self.table})

    @cached_property
    def _unit_starts(self) -> list[int]:
        return unit_starts(self.instrs, self.jump_targets)

    @cached_property
    def _unsafe_sites(self) -> frozenset[int]:
        return unsafe_sites(self.instrs, frozenset(e.target for e in self.table))

    def can_land(self, index: int) -> bool:
        """Whether a frame may go on at the instruction: it is the start of its unit. (RESUME 0: directly behind it.)"""
        return self._unit_starts[index] == index

    def is_boundary(self, index: int) -> bool:
        """Whether a site, or a landing, may stand at the instruction. Stricter than `can_land`: a site can raise."""
        return self._unit_starts[index] == index and index not in self._unsafe_sites

    def boundary(self, index: int) -> int:
        """The index itself where a frame may go on there, else the start of the glued unit around it. In the prologue that is the
        RESUME behind it, at END_FOR what follows."""
        return self._unit_starts[index]

    def boundary_after(self, index: int) -> int:
        """The first boundary behind the instruction (len(self) if there is none)."""
        index += 1
        while index < len(self.instrs) and not self.is_boundary(index):
            index += 1
        return index

    def is_costly_site(self, index: int) -> bool:
        """Whether a site there would undo a specialisation of CPython's that spans two instructions; better one further on."""
        return costly_site(self.instrs, index)

    def edited(
        self, instrs: Iterable[ConcreteInstr], exceptions: Iterable[ExceptionEntry], consts: tuple[object, ...] | None = None
    ) -> Program:
        """A copy with other instructions and exception rows, and other constants where given."""
        return replace(self, instrs=tuple(instrs), table=tuple(exceptions), consts=self.consts if consts is None else consts)


def decode(code: CodeType) -> Program:
    """Decodes a code object; specialised and instrumented instructions come back as their base forms."""
    return decode_fields(fields_of(code))


def decode_fields(fields: CodeFields) -> Program:
    """Decodes raw fields. The code must be well formed (see `verify`); ValueError otherwise."""
    optable = table()
    raw, index_at = _scan(fields.code, optable)
    positions = _positions(fields)
    names = optable.names
    instrs = []
    for op, arg, start, end in raw:
        direction = optable.jump[op]
        target = None
        if direction:
            target = index_at.get(end + direction * arg)
            if target is None:
                raise ValueError(f"{names[op]} at {2 * start} jumps to {2 * (end + direction * arg)}, which is no instruction")
        position = positions[start] if start < len(positions) else NO_POSITION
        instrs.append(ConcreteInstr(op, names[op], arg, 2 * start, position, target))
    index_at[len(fields.code) // 2] = len(instrs)
    try:
        exceptions = [
            ExceptionEntry(index_at[s], index_at[e], index_at[t], depth, lasti)
            for s, e, t, depth, lasti in decode_exceptions(fields.exceptiontable)
        ]
    except KeyError as error:
        raise ValueError(f"exception table names code unit {error.args[0]}, which is no instruction") from None
    return Program(
        instrs=tuple(instrs),
        table=tuple(exceptions),
        argcount=fields.argcount,
        posonlyargcount=fields.posonlyargcount,
        kwonlyargcount=fields.kwonlyargcount,
        flags=fields.flags,
        consts=fields.consts,
        names=fields.names,
        varnames=fields.varnames,
        cellvars=fields.cellvars,
        freevars=fields.freevars,
        filename=fields.filename,
        name=fields.name,
        qualname=fields.qualname,
        firstlineno=fields.firstlineno,
        stacksize=fields.stacksize,
    )


def _scan(code: bytes, optable: OpTable) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
    """(opcode, full argument, first unit, unit behind its caches) of every instruction, and the index by first unit."""
    extended, caches, base = optable.extended_arg, optable.caches, optable.base
    out: list[tuple[int, int, int, int]] = []
    index_at: dict[int, int] = {}
    unit, units = 0, len(code) // 2
    while unit < units:
        start, arg = unit, 0
        op = code[2 * unit]
        while op == extended:
            arg = (arg | code[2 * unit + 1]) << 8
            unit += 1
            if unit >= units:
                raise ValueError("code ends in EXTENDED_ARG")
            op = code[2 * unit]
        if op not in base:
            raise ValueError(f"unit {unit}: {op} is no base opcode")
        end = unit + 1 + caches[op]
        index_at[start] = len(out)
        out.append((op, arg | code[2 * unit + 1], start, end))
        unit = end
    return out, index_at


def _positions(fields: CodeFields) -> list[Position]:
    """Position of every code unit."""
    out: list[Position] = []
    for units, position in decode_locations(fields.linetable, fields.firstlineno):
        out += [position] * units
    return out


# ---- static super-instructions (3.13): two 4-bit locals in one instruction

_PACKED = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
_PACKABLE = {pair: name for name, pair in _PACKED.items()}


def unpack_superinstruction(instr: ConcreteInstr) -> tuple[tuple[str, int], ...]:
    """The (name, local) pairs that a static super-instruction stands for; empty for any other instruction."""
    pair = _PACKED.get(instr.name)
    if pair is None:
        return ()
    return (pair[0], instr.arg >> 4), (pair[1], instr.arg & 15)


def expand_superinstructions(program: Program) -> Program:
    """Splits static super-instructions into single ones, which keep the offset of the pair. The same program where there are none."""
    if not any(i.name in _PACKED for i in program.instrs):
        return program
    opmap = table().opmap
    new_index: list[int] = []
    out: list[ConcreteInstr] = []
    for instr in program.instrs:
        new_index.append(len(out))
        parts = unpack_superinstruction(instr)
        if not parts:
            out.append(instr)
        for name, local in parts:
            out.append(ConcreteInstr(opmap[name], name, local, instr.offset, instr.positions, None))
    new_index.append(len(out))
    return _moved(program, out, new_index)


def fuse_superinstructions(program: Program) -> tuple[Program, list[int]]:
    """Packs again what `expand_superinstructions` split (neighbours of one offset) and nothing jumps or separates. Also returns the new
    index of each instruction, and of the end."""
    if not table().static_superinstructions:
        return program, list(range(len(program) + 1))
    instrs, opmap = program.instrs, table().opmap
    edges = program.jump_targets | {e.start for e in program.table} | {e.end for e in program.table}
    new_index: list[int] = []
    out: list[ConcreteInstr] = []
    index = 0
    while index < len(instrs):
        first = instrs[index]
        new_index.append(len(out))
        second = instrs[index + 1] if index + 1 < len(instrs) and index + 1 not in edges else None
        packed = _PACKABLE.get((first.name, second.name)) if second is not None else None
        if second is not None and packed is not None and first.offset == second.offset and first.arg < 16 and second.arg < 16:
            new_index.append(len(out))
            out.append(ConcreteInstr(opmap[packed], packed, first.arg << 4 | second.arg, first.offset, first.positions, None))
            index += 2
        else:
            out.append(first)
            index += 1
    new_index.append(len(out))
    return _moved(program, out, new_index), new_index


def _moved(program: Program, instrs: list[ConcreteInstr], new_index: list[int]) -> Program:
    """The program with instructions whose targets still are old indices."""
    moved = [i if i.target is None else i._replace(target=new_index[i.target]) for i in instrs]
    rows = [e._replace(start=new_index[e.start], end=new_index[e.end], target=new_index[e.target]) for e in program.table]
    return program.edited(moved, rows)
