"""Instrumenting whole modules for `tierup run`: which functions and loops get sites, and the import hook for the user's own modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tierup.engine.selection import array_names, wants_sites
from tierup.runtime import config, events
from tierup.runtime.selection import Selection

_FIRST_COUNTDOWN = 2

_kept: list[CodeType] = []
"""Original code objects: units hang on them, and a program's modules live as long as the program."""


def instrument(code: CodeType, user: bool = True) -> CodeType:
    """The module's code with sites in its own loops and in those of its functions that have loops or work on arrays.

    What cannot be taken apart stays as it is, with an error event. user: False leaves the code alone.
    """
    if not user:
        return code
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


class _Loader(SourceFileLoader):
    """Loads a module of the user's: the bytecode cache stays plain, the code that runs is instrumented."""

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        return None if code is None else instrument(code)


class _Finder(MetaPathFinder):
    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not self._selection.selects(fullname, spec.origin):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install(include: Sequence[str] = ()) -> None:
    """From now on, modules of the user's (and those that match a pattern of `include`) are instrumented when they are imported."""
    position = next((i for i, finder in enumerate(sys.meta_path) if finder is PathFinder), len(sys.meta_path))
    sys.meta_path.insert(position, _Finder(Selection(include)))
