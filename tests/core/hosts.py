"""Code objects with sites, for testing the C core without the rooms above it.

`host` compiles ordinary source in which the global name `SITE` stands for a site: each load of it becomes, in place, a load of a constant.
So `if SITE: return [None, ~SITE]` is a site with a hit block, at whatever stack depth the expression has.
"""

from __future__ import annotations

import dis
import struct
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from tierup import _core

E = _core.EXPR_KINDS
C = _core.CHECK_KINDS
OPS = _core.PLAN_OPS
MISS = "miss"


def _global_loads(code: CodeType, name: str) -> list[tuple[int, int]]:
    """(code unit, units it takes) of every load of the global."""
    out = []
    listing = list(dis.get_instructions(code))
    for at, instruction in enumerate(listing):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval == name:
            end = listing[at + 1].offset
            out.append((instruction.offset // 2, (end - instruction.offset) // 2))
    return out


def _patch(code: CodeType, name: str, site: _core.Site) -> tuple[CodeType, list[int]]:
    """The code with the global replaced by the constant; code units of the instructions behind the loads."""
    raw = bytearray(code.co_code)
    const = len(code.co_consts)
    assert const < 256
    behind = []
    for at, units in _global_loads(code, name):
        for unit in range(at, at + units):
            raw[2 * unit : 2 * unit + 2] = bytes([dis.opmap["NOP"], 0])
        raw[2 * (at + units - 1) : 2 * (at + units)] = bytes([dis.opmap["LOAD_CONST"], const])
        behind.append(at + units)
    assert behind, f"{name} is not used"
    return code.replace(co_code=bytes(raw), co_consts=(*code.co_consts, site)), behind


def splice(code: CodeType, **sites: _core.Site) -> CodeType:
    """`code` with each named global replaced by a site, bound to its first use."""
    bindings = []
    for name, site in sites.items():
        code, behind = _patch(code, name, site)
        bindings.append((site, behind[0]))
    for site, instr in bindings:
        site.bind(code, instr)
    return code


def host(source: str, name: str = "f", depth: int = 0, **globals_: Any) -> tuple[Any, _core.Site]:
    """The function `name` of the source, and its site."""
    namespace: dict[str, Any] = dict(globals_)
    exec(compile(source, "<host>", "exec"), namespace)
    function = namespace[name]
    site = _core.Site(0, depth)
    function.__code__ = splice(function.__code__, SITE=site)
    return function, site


def inner_code(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def words(ops: Sequence[Sequence[int | str]]) -> bytes:
    """Plan code from (name, operands…) tuples."""
    flat = [OPS[w] if isinstance(w, str) else w for op in ops for w in op]
    return struct.pack(f"={len(flat)}i", *flat)


def plan(
    ops: Sequence[Sequence[int | str]] = (),
    *,
    constants: tuple[object, ...] = (),
    nobjects: int = 0,
    exit: Sequence[tuple[int, int, int]] = (),
) -> _core.Plan:
    return _core.Plan(words(ops), constants, (), nobjects, 0, 0, b"", list(exit))


def constant_plan(exit: Sequence[tuple[int, int, int]], *constants: object) -> _core.Plan:
    """Loads the constants into registers 0, 1, …"""
    n = len(constants)
    return plan([("O_CONST", i, i) for i in range(n)], constants=constants, nobjects=n, exit=exit)


def spec(checks: Sequence[tuple[int, int, object]], p: _core.Plan | None = None, exit: int = 0, top_null: bool = False) -> Any:
    return (list(checks), plan() if p is None else p, exit, top_null)


def slot(function: FunctionType, name: str) -> int:
    """localsplus slot of a variable."""
    code = function.__code__
    names = [*code.co_varnames, *(c for c in code.co_cellvars if c not in code.co_varnames), *code.co_freevars]
    return names.index(name)


IMMORTAL = sys.version_info >= (3, 12)
