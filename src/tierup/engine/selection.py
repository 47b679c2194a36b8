"""Which code objects of a module get sites: those with loops, and, where the module imports an array library, those that may use it."""

from __future__ import annotations

import dis
from types import CodeType

from tierup.engine import stress

_LIBRARIES = ("numpy",)
_CO_NEWLOCALS = 0x2
_STORES = ("STORE_NAME", "STORE_GLOBAL", "STORE_FAST", "STORE_DEREF")


def array_names(module: CodeType) -> frozenset[str]:
    """Names that the module (or a function of it) binds by importing an array library or something from it."""
    names: set[str] = set()
    for code in _nested(module):
        if any(_is_library(name) for name in code.co_names):
            names |= _imported(code)
    return frozenset(names)


def _is_library(name: str) -> bool:
    return name.partition(".")[0] in _LIBRARIES


def _imported(code: CodeType) -> set[str]:
    names: set[str] = set()
    from_library = False
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            from_library = _is_library(str(instruction.argval))
        elif from_library and instruction.opname in _STORES:
            names.add(str(instruction.argval))
        elif instruction.opname == "POP_TOP":
            from_library = False
    return names


def _nested(code: CodeType) -> list[CodeType]:
    out = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            out += _nested(constant)
    return out


def wants_sites(code: CodeType, arrays: frozenset[str]) -> bool:
    """Whether sites can pay in this code: it loops, or it is a function that uses an array library by name."""
    if _has_loop(code) or stress.mode() is not None:
        return True
    if not code.co_flags & _CO_NEWLOCALS or not arrays:
        return False
    # In a module that works with arrays, an operator may be one on arrays.
    return not arrays.isdisjoint(code.co_names + code.co_freevars) or dis.opmap["BINARY_OP"] in code.co_code[::2]


def _has_loop(code: CodeType) -> bool:
    backward = (dis.opmap.get("JUMP_BACKWARD"), dis.opmap.get("JUMP_BACKWARD_NO_INTERRUPT"))
    conditional = tuple(op for name, op in dis.opmap.items() if name.startswith("POP_JUMP_BACKWARD"))
    ops = set(code.co_code[::2])
    return not ops.isdisjoint({*backward, *conditional})
