"""The import hook of `tierup run`: the code of the user's modules passes through the engine on its way into execution.

Finders, loaders, `get_code` and bytecode files stay as they are; only the `exec` that importlib and runpy call on a module's code is
another one. So `sys.meta_path`, `__loader__` and the traceback of a failing import are what the program expects.
"""

from __future__ import annotations

import sys

from tierup import _core
from tierup.runtime.selection import Selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any


def install(selection: Selection, instrument: Callable[[CodeType], CodeType], extra: tuple[str, ...] = ()) -> None:
    """From now on, selected modules are instrumented before they are executed by importlib and by the modules named in `extra`."""

    def prepare(code: CodeType, namespace: dict[str, object]) -> CodeType:
        return instrument(code) if selection.selects(str(namespace.get("__name__")), code.co_filename) else code

    for name in ("_frozen_importlib_external", *extra):
        module: Any = sys.modules[name]
        # A global of this name comes before the builtin function.
        module.exec = _core.make_exec(prepare)
