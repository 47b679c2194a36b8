"""Checks on sources, and the set of them that guards one specialisation."""

from __future__ import annotations

import types
import weakref
from dataclasses import dataclass, field
from typing import Any, Final

from tierup.guards.sources import Pinned, Source

_HEAP_TYPE: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class made by a class statement (or by an extension module at run time)."""

_FLAGS: Any = vars(type)["__flags__"]
"""Read past the user's metaclass."""


class WeakPinned:
    """As Pinned, without keeping the object alive."""

    __slots__ = ("_id", "ref")

    def __init__(self, value: Any) -> None:
        self.ref: weakref.ref[Any] = weakref.ref(value)
        self._id = id(value)

    @property
    def value(self) -> Any:
        """The object, None if it is gone."""
        return self.ref()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakPinned) and other.ref is self.ref

    def __hash__(self) -> int:
        return self._id


def _may_own_code(value: Any) -> bool:
    """Whether an object may reach the functions of the user's module. A unit belongs to a code object, which the cycle collector does not
    look into: what it guards must not lead back to a function that runs that code, or the whole module would never be freed."""
    if isinstance(value, type):
        return bool(_FLAGS.__get__(value) & _HEAP_TYPE)
    if isinstance(value, types.BuiltinFunctionType):
        return not (value.__self__ is None or type(value.__self__) is types.ModuleType)
    return type(value) is types.ModuleType


@dataclass(frozen=True, slots=True)
class Check:
    """kind: a key of `_core.CHECK_KINDS`; payload: what guard_kinds.def says, objects compared by identity wrapped in Pinned."""

    kind: str
    source: Source
    payload: Any = None
    line: int = field(default=0, compare=False)
    """The user's line that needed it."""

    @property
    def demanded(self) -> Any:
        """The payload itself, without the wrapper."""
        return self.payload.value if isinstance(self.payload, Pinned | WeakPinned) else self.payload

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for checks that demand the same."""
        pinned = isinstance(self.payload, Pinned | WeakPinned)
        return self.kind, self.source, type(self.payload), id(self.demanded) if pinned else repr(self.payload)

    def __str__(self) -> str:
        payload = self.demanded
        text = {
            "TYPE_IS": lambda: f"type({self.source}) is {payload.__qualname__}",
            "IS": lambda: f"{self.source} is {_short(payload)}",
            "IS_WEAK": lambda: f"{self.source} is {_short(payload)}",
            "NULL": lambda: f"{self.source} is absent",
            "NOT_NULL": lambda: f"{self.source} is present",
            "ARRAY": lambda: f"{self.source} is an ndarray with key & {payload[0]:#x} == {payload[1]:#x}",
            "FUNC_CODE": lambda: f"{self.source}.__code__ is {payload.co_qualname}",
            "DICT_KEYS": lambda: f"list({self.source}) == {list(payload)!r}",
        }.get(self.kind)
        return text() if text else f"{self.source} {self.kind.lower().replace('_', ' ')} {payload!r}"


def _short(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else f"<{type(value).__qualname__} object>"


class GuardSet:
    """Checks in the order in which capture needed them, each once."""

    def __init__(self) -> None:
        self._checks: dict[Check, None] = {}

    def add(self, kind: str, source: Source, payload: Any = None, line: int = 0) -> None:
        if kind in ("IS", "TYPE_IS") and isinstance(payload, Pinned) and _may_own_code(payload.value):
            source = source.then("TYPE") if kind == "TYPE_IS" else source
            kind, payload = "IS_WEAK", WeakPinned(payload.value)
        self._checks.setdefault(Check(kind, source, payload, line))

    def __iter__(self) -> Any:
        return iter(self._checks)

    def __len__(self) -> int:
        return len(self._checks)

    def truncate(self, length: int) -> None:
        """Forget all checks after the first `length`."""
        for check in list(self._checks)[length:]:
            del self._checks[check]
