"""The table of handlers: one function per canonical instruction, registered by the modules that group them by meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tierup.bytecode.canonical import Canon, Op

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope

Handler = Callable[["Executor", "Scope", Canon], None]
HANDLERS: dict[Op, Handler] = {}


def handles(*ops: Op) -> Callable[[Handler], Handler]:
    """Registers a function as the handler of canonical instructions."""

    def register(fn: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = fn
        return fn

    return register
