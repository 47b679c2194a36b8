"""Runs one of CPython's own test modules with its body and all its functions instrumented. Usage: run_stdlib.py test_grammar"""

from __future__ import annotations

import importlib.util
import sys
import unittest
from importlib.machinery import SourceFileLoader
from types import ModuleType

import numpy  # noqa: F401  (nothing is captured in a process without an array library)

import tierup
from tierup.engine import loader, units


def _instrumented(name: str) -> ModuleType:
    """The module, executed with all its code instrumented."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and isinstance(spec.loader, SourceFileLoader)
    code = spec.loader.get_code(name)
    assert code is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    exec(loader.instrument(code), vars(module))
    return module


def main(name: str) -> int:
    module = _instrumented(f"test.{name}")
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(module))
    stats = tierup.stats()
    print(f"{len(units.all_units())} units, {stats.specialisations} specialisations, {stats.hits} hits")
    errors = stats.of_kind("error")
    for error in errors:
        print("translator error:", error)
    return int(not result.wasSuccessful() or bool(errors) or not units.all_units())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
