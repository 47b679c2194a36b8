"""The verifier: refuses every code object that breaks what CPython assumes of code without checking it.

It looks at raw fields, before a code object exists. A violation is a `VerificationError` whose text shows the instruction in its
surroundings.
"""

from __future__ import annotations

from tierup.bytecode.abstract import NO_LANDINGS, Landings, interpret
from tierup.bytecode.fields import CodeFields
from tierup.bytecode.opcodes import table
from tierup.bytecode.structure import Fault, scan

__all__ = ["NO_LANDINGS", "Landings", "VerificationError", "verify_fields"]

_CONTEXT = 6


class VerificationError(ValueError):
    """Code that must not run."""

    def __init__(self, reason: str, unit: int, fields: CodeFields) -> None:
        self.reason = reason
        self.unit = unit
        """Code unit of the offending instruction, -1 for the code object as a whole."""
        super().__init__(f"{fields.qualname} ({fields.filename}:{fields.firstlineno}): {reason}{_listing(fields, unit)}")


def verify_fields(fields: CodeFields, landings: Landings = NO_LANDINGS) -> None:
    """Raises VerificationError if a code object of these fields could crash or confuse the interpreter."""
    try:
        interpret(scan(fields, landings.hits), landings)
    except Fault as fault:
        raise VerificationError(fault.message, fault.unit, fields) from None


def _listing(fields: CodeFields, unit: int) -> str:
    """The instructions around a code unit, one a line, the offending one marked."""
    if unit < 0:
        return ""
    lines = _lines(fields.code)
    marked = next((k for k, (start, end, _) in enumerate(lines) if start <= unit < end), len(lines) - 1)
    around = range(max(0, marked - _CONTEXT), min(len(lines), marked + _CONTEXT))
    return "".join(f"\n {'-->' if k == marked else '   '} {lines[k][0]:5} {lines[k][2]}" for k in around)


def _lines(code: bytes) -> list[tuple[int, int, str]]:
    """(first unit, unit behind, text) of each instruction; tolerates anything."""
    optable = table()
    out, unit, units = [], 0, len(code) // 2
    while unit < units:
        start, arg = unit, 0
        while code[2 * unit] == optable.extended_arg and unit + 1 < units:
            arg = (arg | code[2 * unit + 1]) << 8
            unit += 1
        op = code[2 * unit]
        arg |= code[2 * unit + 1]
        end = unit + 1 + (optable.caches[op] if op in optable.base else 0)
        jump = optable.jump[op]
        where = f" (to {end + jump * arg})" if jump else ""
        out.append((start, end, f"{optable.names[op]} {arg}{where}"))
        unit = end
    return out
