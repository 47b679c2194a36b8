"""What one CPython version's opcodes mean: numbers, inline caches, operand kinds, jumps.

Everything is read from the running interpreter's `opcode` module; the few facts that module does not say (operand shifts,
comparison encodings, the order of NULL and callable) stand here, one line a version. A version that is not listed raises
`UnsupportedPython` when a table is asked for, never at import.
"""

from __future__ import annotations

import opcode as _opcode
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

SUPPORTED: Final = ((3, 11), (3, 12), (3, 13))

# Opcodes that the evaluation loop or its helpers write into running code; they never stand in a code object that is made.
_INTERNAL: Final = frozenset({"CACHE", "RESERVED", "INTERPRETER_EXIT", "ENTER_EXECUTOR", "EXIT_INIT_CHECK"})

EXTENDED_ARG: Final = "EXTENDED_ARG"

CO_OPTIMIZED: Final = 0x1
CO_VARARGS: Final = 0x4
CO_VARKEYWORDS: Final = 0x8
CO_GENERATOR: Final = 0x20
CO_COROUTINE: Final = 0x80
CO_ASYNC_GENERATOR: Final = 0x200
CO_ANY_GENERATOR: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


class UnsupportedPython(RuntimeError):
    """This interpreter's bytecode is not known to this release."""


@dataclass(frozen=True, slots=True)
class OpTable:
    """One version's opcodes. Lists are indexed by opcode number (0..255)."""

    version: tuple[int, int]
    opmap: dict[str, int]
    """Base opcodes by name, EXTENDED_ARG included."""
    names: list[str]
    """Name by number; `<n>` where the number is no base opcode."""
    caches: list[int]
    """Code units of inline cache behind the instruction."""
    base: frozenset[int]
    """Numbers that may stand in a new code object."""
    jump: list[int]
    """+1 for a forward jump, -1 for a backward jump, 0 for no jump."""
    hasconst: frozenset[int]
    hasname: frozenset[int]
    haslocal: frozenset[int]
    hasfree: frozenset[int]
    name_shift: list[int]
    """Low operand bits that are flags, not part of the name index."""
    terminal: frozenset[int]
    """Instructions that never fall through."""
    extended_arg: int
    binary_symbols: tuple[str, ...]
    compare_symbols: tuple[str, ...]
    compare_shift: int
    compare_bool: int
    """COMPARE_OP operand bit that makes the result an exact bool (0: no such bit)."""
    static_superinstructions: bool
    """The compiler itself packs two locals into one instruction (LOAD_FAST_LOAD_FAST …)."""

    def op(self, name: str) -> int:
        """Number of the base opcode `name`."""
        try:
            return self.opmap[name]
        except KeyError:
            raise UnsupportedPython(f"CPython {self.version[0]}.{self.version[1]} has no instruction {name}") from None

    def has(self, name: str) -> bool:
        """Whether this version has the instruction `name`."""
        return name in self.opmap


def null_below_callable(version: tuple[int, int]) -> bool:
    """Order of a call's two lowest stack slots: (NULL or method, callable or self) before 3.13, (callable, NULL or self) since."""
    return version < (3, 13)


@lru_cache(maxsize=1)
def table() -> OpTable:
    """The running interpreter's table. Raises UnsupportedPython on a version (or implementation) that is not known."""
    version = sys.version_info[:2]
    if sys.implementation.name != "cpython" or version not in SUPPORTED:
        known = ", ".join(f"{a}.{b}" for a, b in SUPPORTED)
        raise UnsupportedPython(f"{sys.implementation.name} {version[0]}.{version[1]} is not supported (known: CPython {known})")
    return _build(version)


def _cache_counts(opmap: dict[str, int]) -> list[int]:
    """3.11 and 3.12 list the counts by opcode, 3.13 maps names to them."""
    raw: Any = getattr(_opcode, "_inline_cache_entries")  # noqa: B009  (private, absent from the type stubs)
    counts = [0] * 256
    for name, op in opmap.items():
        counts[op] = raw.get(name, 0) if isinstance(raw, dict) else raw[op]
    return counts


def _direction(name: str) -> int:
    return -1 if "BACKWARD" in name else 1


def _build(version: tuple[int, int]) -> OpTable:
    opmap = {n: o for n, o in _opcode.opmap.items() if o < 256 and n not in _INTERNAL and not n.startswith("INSTRUMENTED_")}
    base = frozenset(opmap.values())
    names = [f"<{i}>" for i in range(256)]
    for name, op in opmap.items():
        names[op] = name
    jump = [0] * 256
    for op in _opcode.hasjrel:
        if op in base:
            jump[op] = _direction(names[op])
    shift = [0] * 256
    for name, bits in (("LOAD_GLOBAL", 1), ("LOAD_ATTR", 1 if version >= (3, 12) else 0), ("LOAD_SUPER_ATTR", 2)):
        if name in opmap:
            shift[opmap[name]] = bits
    terminal = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
    nb_ops: Any = getattr(_opcode, "_nb_ops")  # noqa: B009
    return OpTable(
        version=version,
        opmap=opmap,
        names=names,
        caches=_cache_counts(opmap),
        base=base,
        jump=jump,
        # KW_NAMES is listed by hasconst on every version that has it.
        hasconst=frozenset(_opcode.hasconst) & base,
        hasname=frozenset(_opcode.hasname) & base,
        haslocal=frozenset(_opcode.haslocal) & base,
        hasfree=frozenset(_opcode.hasfree) & base,
        name_shift=shift,
        terminal=frozenset(opmap[n] for n in terminal if n in opmap),
        extended_arg=opmap[EXTENDED_ARG],
        binary_symbols=tuple(symbol for _, symbol in nb_ops),
        compare_symbols=tuple(_opcode.cmp_op),
        compare_shift={(3, 11): 0, (3, 12): 4, (3, 13): 5}[version],
        compare_bool=16 if version >= (3, 13) else 0,
        static_superinstructions="LOAD_FAST_LOAD_FAST" in opmap,
    )
