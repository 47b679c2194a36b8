"""Instrumenting whole modules for `tierup run`: which functions and loops get sites."""

from __future__ import annotations

from types import CodeType

from tierup.engine.selection import array_names, wants_sites
from tierup.runtime import config, events

_FIRST_COUNTDOWN = 2

_kept: list[CodeType] = []
"""Original code objects: units hang on them, and a program's modules live as long as the program."""


def instrument(code: CodeType) -> CodeType:
    """The module's code with sites in its own loops and in those of its functions that have loops or work on arrays.

    What cannot be taken apart stays as it is, with an error event.
    """
    return _instrument(code, array_names(code))


def _instrument(code: CodeType, arrays: frozenset[str]) -> CodeType:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    if inner:
        made = {id(c): _instrument(c, arrays) for c in inner}
        if any(made[id(c)] is not c for c in inner):
            consts = tuple(made.get(id(c), c) if isinstance(c, CodeType) else c for c in code.co_consts)
            code = code.replace(co_consts=consts)
    if not wants_sites(code, arrays):
        return code
    from tierup.engine import units

    try:
        unit = units.unit_for(code, config.current(), _FIRST_COUNTDOWN)
    except Exception as error:  # code that we cannot take apart runs as it is
        events.record("error", f"{type(error).__name__}: {error}", code.co_filename, code.co_firstlineno, code.co_qualname)
        return code
    _kept.append(code)
    return unit.code or code
