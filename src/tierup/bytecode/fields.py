"""The raw fields of a code object, before it exists: what the assembler makes and the verifier judges."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import CodeType
from typing import Final

from tierup.bytecode.opcodes import CO_OPTIMIZED, table

KIND_HIDDEN: Final = 0x10
KIND_LOCAL: Final = 0x20
KIND_CELL: Final = 0x40
KIND_FREE: Final = 0x80


@dataclass(frozen=True, slots=True)
class CodeFields:
    """Every argument of the code object's constructor, unchecked."""

    argcount: int
    posonlyargcount: int
    kwonlyargcount: int
    stacksize: int
    flags: int
    code: bytes
    consts: tuple[object, ...]
    names: tuple[str, ...]
    varnames: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    filename: str
    name: str
    qualname: str
    firstlineno: int
    linetable: bytes
    exceptiontable: bytes

    @property
    def localsplus(self) -> tuple[str, ...]:
        """Names of the frame's slots, in order: locals, cells that are no locals, free variables."""
        return localsplus_names(self.varnames, self.cellvars, self.freevars)

    @property
    def kinds(self) -> tuple[int, ...]:
        """KIND_* bits of each slot."""
        return localsplus_kinds(self.varnames, self.cellvars, self.freevars, self.flags)

    def build(self) -> CodeType:
        """The code object. Only the constructor's own checks are made here; see `verify`."""
        varnames = self.varnames
        if varnames and not self.flags & CO_OPTIMIZED and sys.version_info >= (3, 12):
            varnames = self._shielded_varnames()
        return CodeType(
            self.argcount,
            self.posonlyargcount,
            self.kwonlyargcount,
            len(self.varnames),
            self.stacksize,
            self.flags,
            self.code,
            self.consts,
            self.names,
            varnames,
            self.filename,
            self.name,
            self.qualname,
            self.firstlineno,
            self.linetable,
            self.exceptiontable,
            self.freevars,
            self.cellvars,
        )

    def _shielded_varnames(self) -> tuple[str, ...]:
        """Names of a module's or class body's fast locals, those of comprehensions that were optimised away made unusable.

        The constructor hides a fast local from `locals()` only if the code has a LOAD_FAST_AND_CLEAR for it; for one that never occurs
        3.12's `locals()` would delete the module's or class's own variable of that name.
        """
        cleared = self._cleared_locals()
        cells = set(self.cellvars)
        return tuple(v if slot in cleared or v in cells else f".unused.{v}" for slot, v in enumerate(self.varnames))

    def _cleared_locals(self) -> set[int]:
        optable = table()
        clear, extended = optable.op("LOAD_FAST_AND_CLEAR"), optable.extended_arg
        cleared, arg = set(), 0
        for unit in range(0, len(self.code), 2):
            arg = arg << 8 | self.code[unit + 1]
            if self.code[unit] == clear:
                cleared.add(arg)
            if self.code[unit] != extended:
                arg = 0
        return cleared


def fields_of(code: CodeType) -> CodeFields:
    """The fields of an existing code object, with specialised and instrumented instructions undone."""
    return CodeFields(
        argcount=code.co_argcount,
        posonlyargcount=code.co_posonlyargcount,
        kwonlyargcount=code.co_kwonlyargcount,
        stacksize=code.co_stacksize,
        flags=code.co_flags,
        code=code.co_code,
        consts=code.co_consts,
        names=code.co_names,
        varnames=code.co_varnames,
        cellvars=code.co_cellvars,
        freevars=code.co_freevars,
        filename=code.co_filename,
        name=code.co_name,
        qualname=code.co_qualname,
        firstlineno=code.co_firstlineno,
        linetable=code.co_linetable,
        exceptiontable=code.co_exceptiontable,
    )


def localsplus_names(varnames: tuple[str, ...], cellvars: tuple[str, ...], freevars: tuple[str, ...]) -> tuple[str, ...]:
    """Slot names in frame order, as CPython's code constructor lays them out."""
    own = set(varnames)
    return (*varnames, *(c for c in cellvars if c not in own), *freevars)


def localsplus_kinds(varnames: tuple[str, ...], cellvars: tuple[str, ...], freevars: tuple[str, ...], flags: int) -> tuple[int, ...]:
    """Slot kinds in frame order. Fast locals of a body that has a namespace of its own can only come from inlined comprehensions,
    which the compiler and the code constructor mark hidden from `locals()` (compile.c, push_inlined_comprehension_state)."""
    local = KIND_LOCAL
    if not flags & CO_OPTIMIZED and sys.version_info >= (3, 12):
        local |= KIND_HIDDEN
    cells, own = set(cellvars), set(varnames)
    kinds = [local | (KIND_CELL if v in cells else 0) for v in varnames]
    kinds += [KIND_CELL for c in cellvars if c not in own]
    kinds += [KIND_FREE] * len(freevars)
    return tuple(kinds)
