"""Code objects by hand: instructions by name, with or without their faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tierup.bytecode.fields import CodeFields
from tierup.bytecode.opcodes import CO_OPTIMIZED, table
from tierup.bytecode.tables import encode_exceptions, encode_locations

CO_NEWLOCALS = 2
Instr = str | tuple[str, int] | bytes
"""A name, (name, argument) or raw bytes."""


def encode(instrs: Sequence[Instr]) -> bytes:
    """Code bytes; caches are added, arguments above 255 get EXTENDED_ARG."""
    optable, out = table(), bytearray()
    for instr in instrs:
        if isinstance(instr, bytes):
            out += instr
            continue
        name, arg = instr if isinstance(instr, tuple) else (instr, 0)
        op = optable.op(name)
        for level in (2, 1):
            if arg >> 8 * level:
                out += bytes((optable.extended_arg, arg >> 8 * level & 255))
        out += bytes((op, arg & 255)) + bytes(2 * optable.caches[op])
    return bytes(out)


def fields(instrs: Sequence[Instr], rows: Sequence[tuple[int, int, int, int, bool]] = (), **changes: Any) -> CodeFields:
    """Fields of a function without arguments; everything can be changed."""
    code = encode(instrs)
    values: dict[str, Any] = {
        "argcount": 0,
        "posonlyargcount": 0,
        "kwonlyargcount": 0,
        "stacksize": 12,
        "flags": CO_OPTIMIZED | CO_NEWLOCALS,
        "code": code,
        "consts": (None, 1, True, ("k",)),
        "names": ("n0", "n1"),
        "varnames": ("a", "b"),
        "cellvars": (),
        "freevars": (),
        "filename": "<raw>",
        "name": "raw",
        "qualname": "raw",
        "firstlineno": 1,
        "linetable": encode_locations([(len(code) // 2, (1, 1, 0, 1))], 1),
        "exceptiontable": encode_exceptions(rows),
    }
    return CodeFields(**(values | changes))


def function(*body: Instr, rows: Sequence[tuple[int, int, int, int, bool]] = (), **changes: Any) -> CodeFields:
    """RESUME, the body, `return None`."""
    return fields([("RESUME", 0), *body, ("LOAD_CONST", 0), "RETURN_VALUE"], rows, **changes)


def unit_of(instrs: Sequence[Instr]) -> int:
    """Code units that instructions take."""
    return len(encode(instrs)) // 2
