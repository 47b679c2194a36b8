"""Checks on sources, and the set of them that guards one specialisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tierup.guards.sources import Pinned, Source


@dataclass(frozen=True, slots=True)
class Check:
    """kind: a key of `_core.CHECK_KINDS`; payload: what guard_kinds.def says, objects compared by identity wrapped in Pinned."""

    kind: str
    source: Source
    payload: Any = None
    line: int = field(default=0, compare=False)
    """The user's line that needed it."""

    def __str__(self) -> str:
        payload = self.payload.value if isinstance(self.payload, Pinned) else self.payload
        text = {
            "TYPE_IS": lambda: f"type({self.source}) is {payload.__qualname__}",
            "IS": lambda: f"{self.source} is {_short(payload)}",
            "IS_WEAK": lambda: f"{self.source} is {_short(payload)} (weak)",
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
        self._checks.setdefault(Check(kind, source, payload, line))

    def __iter__(self) -> Any:
        return iter(self._checks)

    def __len__(self) -> int:
        return len(self._checks)

    def truncate(self, length: int) -> None:
        """Forget all checks after the first `length`."""
        for check in list(self._checks)[length:]:
            del self._checks[check]
