"""Sources: how to reach a value from a site's frame, as small hashable trees that lower to native guard expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Pinned:
    """An object compared and hashed by identity, so that no user-defined `__eq__` or `__hash__` ever runs."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pinned) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Source:
    """One step of a path to a value. kind: a key of `_core.EXPR_KINDS`; arg: int, str or Pinned (see guard_kinds.def)."""

    kind: str
    base: Source | None = None
    arg: int | str | Pinned | None = None
    label: str = ""
    """The user's name for it (a local's name), for reports only."""

    def __str__(self) -> str:
        if self.base is None:
            return self.label or f"{self.kind.lower()} {self._arg_text()}"
        return _FORMATS.get(self.kind, "{base}<{kind} {arg}>").format(base=self.base, arg=self._arg_text(), kind=self.kind.lower())

    def _arg_text(self) -> str:
        if isinstance(self.arg, Pinned):
            value = self.arg.value
            return str(getattr(value, "__qualname__", None) or type(value).__qualname__)
        return str(self.arg)

    def then(self, kind: str, arg: int | str | Pinned | None = None) -> Source:
        """The source one step further from this one."""
        return Source(kind, self, arg)


_FORMATS = {
    "ATTR": "{base}.{arg}",
    "METHOD": "{base}.{arg}",
    "CLASSATTR": "{base}.{arg}",
    "MODATTR": "{base}.{arg}",
    "ITEM": "{base}[{arg}]",
    "DICTITEM": "{base}[{arg!r}]",
    "FUNC_GLOBAL": "{base}.__globals__[{arg!r}]",
    "FUNC_BUILTIN": "{base}.__builtins__[{arg!r}]",
    "FUNC_CELL": "{base}.__closure__[{arg}]",
    "FUNC_DEFAULT": "{base}.__defaults__[{arg}]",
    "FUNC_KWDEFAULT": "{base}.__kwdefaults__[{arg!r}]",
    "METHOD_SELF": "{base}.__self__",
    "METHOD_FUNC": "{base}.__func__",
    "ITERATED": "iterator {arg} of {base}",
    "TYPE": "type({base})",
}


def local(slot: int, name: str) -> Source:
    return Source("LOCAL", None, slot, name)


def stack(position: int) -> Source:
    return Source("STACK", None, position)


def cell(slot: int, name: str) -> Source:
    return Source("CELL", None, slot, name)


def global_(name: str) -> Source:
    return Source("GLOBAL", None, name)


def builtin(name: str) -> Source:
    return Source("BUILTIN", None, name)


def name(name: str) -> Source:
    return Source("NAME", None, name)


def constant(value: Any) -> Source:
    return Source("CONST", None, Pinned(value))
