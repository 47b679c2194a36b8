"""Which modules of a program are the user's own: those that `tierup run` compiles without being told to."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType
    from typing import Final

_LIBRARY_FOLDERS: Final = frozenset(("site-packages", "dist-packages"))
_STDLIB: Final = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
_OURSELVES: Final = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


class Selection:
    """The user's modules, and those named by patterns.

    A pattern is a module name with wildcards (`scipy.*`; a plain name means the package and all within), or, if it has
    a slash, a path with wildcards.
    """

    __slots__ = ("_fits", "_names", "_paths")

    def __init__(self, include: Sequence[str] = ()) -> None:
        self._names = [pattern for pattern in include if "/" not in pattern]
        self._paths = [os.path.abspath(pattern) for pattern in include if "/" in pattern]
        if include:
            # Not when it is needed: that is in the middle of an import.
            from fnmatch import fnmatchcase

            self._fits = fnmatchcase

    def selects(self, name: str, file: str | None) -> bool:
        """Whether the module `name`, whose source is `file`, is to be compiled."""
        if file is None or name.partition(".")[0] == "tierup":
            return False
        return self._is_users(file) or self._matches(name, file)

    @staticmethod
    def _is_users(file: str) -> bool:
        path = os.path.realpath(file)
        if file.startswith("<") or path.startswith((_STDLIB, _OURSELVES)):
            return False
        # As spelt and as resolved: a virtual environment's packages may be links into a store elsewhere.
        folders = {*path.split(os.sep), *file.split(os.sep)}
        return _LIBRARY_FOLDERS.isdisjoint(folders)

    def _matches(self, name: str, file: str) -> bool:
        path = os.path.abspath(file)
        by_name = any(self._fits(name, pattern) or name.startswith(pattern + ".") for pattern in self._names)
        return by_name or any(self._fits(path, pattern) for pattern in self._paths)


def may_meet_arrays(code: CodeType) -> bool:
    """Whether a module can come to work on arrays: one is loaded already, or it imports something from outside the standard library.

    A program of which this never holds runs without the engine, at plain Python's start-up time and speed.
    """
    return "numpy" in sys.modules or not all(name in sys.stdlib_module_names for name in _imported_modules(code))


def _imported_modules(code: CodeType) -> Iterator[str]:
    """Top-level names of the modules that a code object, or one inside it, imports; an empty name for relative imports."""
    from opcode import opmap

    import_name, extended_arg = opmap["IMPORT_NAME"], opmap["EXTENDED_ARG"]
    extension = 0
    units = code.co_code
    for op, arg in zip(units[::2], units[1::2], strict=True):
        extension = extension << 8 | arg
        if op == import_name:
            yield code.co_names[extension].partition(".")[0]
        if op != extended_arg:
            extension = 0
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from _imported_modules(constant)
