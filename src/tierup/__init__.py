"""tierup: a JIT tier for Python on stock CPython.

`jit` compiles what it understands of a function and leaves the rest to the interpreter; results are the same, bit for bit.
Importing this package is cheap: the engine, NumPy and LLVM load when they are first needed.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__", "break_graph", "disabled", "explain", "inspect", "jit", "reset", "stats"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tierup.engine.api import break_graph as break_graph
    from tierup.engine.api import disabled as disabled
    from tierup.engine.api import explain as explain
    from tierup.engine.api import inspect as inspect
    from tierup.engine.api import jit as jit
    from tierup.engine.api import reset as reset
    from tierup.engine.api import stats as stats


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tierup.engine import api
    from tierup.runtime import stats as counters

    counters.start()
    # Next time the name is found without this function.
    value: object = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
