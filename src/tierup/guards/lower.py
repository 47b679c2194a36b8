"""Lowering: sources to a site's expression table, checks to tuples over it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tierup import _core
from tierup.guards.checks import Check, WeakPinned
from tierup.guards.sources import Pinned, Source


class ExpressionTable(Mapping[Source, int]):
    """The expressions of one site, shared by all its specialisations: each source once, bases before what builds on them.

    As a mapping it knows every source: one that is looked up is added.
    """

    def __init__(self) -> None:
        self._index: dict[Source, int] = {}
        self._exprs: list[tuple[int, int, object]] = []

    def index(self, source: Source) -> int:
        """Position of the source, added if new."""
        known = self._index.get(source)
        if known is not None:
            return known
        base = -1 if source.base is None else self.index(source.base)
        arg = source.arg.value if isinstance(source.arg, Pinned) else source.arg
        if source.kind == "WEAK":
            arg = weakref.ref(arg)
        self._exprs.append((_core.EXPR_KINDS[source.kind], base, arg))
        self._index[source] = len(self._exprs) - 1
        return len(self._exprs) - 1

    def __getitem__(self, source: Source) -> int:
        return self.index(source)

    def __contains__(self, source: object) -> bool:
        return isinstance(source, Source)

    def __iter__(self) -> Iterator[Source]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def exprs(self) -> tuple[tuple[int, int, object], ...]:
        return tuple(self._exprs)


def lower_checks(checks: Iterable[Check], table: ExpressionTable) -> tuple[tuple[int, int, Any], ...]:
    """The native form of a specialisation's checks."""
    out = []
    for check in checks:
        payload = check.payload.ref if isinstance(check.payload, WeakPinned) else check.demanded
        out.append((_core.CHECK_KINDS[check.kind], table.index(check.source), payload))
    return tuple(out)
