"""Which modules of a program are the user's own: those that `tierup run` compiles without being told to."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

_LIBRARY_FOLDERS: Final = frozenset(("site-packages", "dist-packages"))
_STDLIB: Final = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
_OURSELVES: Final = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


class Selection:
    """The user's modules, and those named by patterns.

    A pattern is a module name with wildcards (`scipy.*`; a plain name means the package and all within), or, if it has
    a slash, a path with wildcards.
    """

    __slots__ = ("_names", "_paths")

    def __init__(self, include: Sequence[str] = ()) -> None:
        self._names = [pattern for pattern in include if "/" not in pattern]
        self._paths = [pattern for pattern in include if "/" in pattern]

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
        if not self._names and not self._paths:
            return False
        from fnmatch import fnmatchcase

        path = os.path.abspath(file)
        return any(fnmatchcase(name, p) or name.startswith(p + ".") for p in self._names) or any(
            fnmatchcase(path, os.path.abspath(p)) for p in self._paths
        )
