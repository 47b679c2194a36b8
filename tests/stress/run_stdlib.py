"""Runs one of CPython's own test modules with its body and all its functions instrumented. Usage: run_stdlib.py test_grammar"""

from __future__ import annotations

import importlib
import sys
import unittest

import numpy  # noqa: F401  (nothing is captured in a process without an array library)

import tierup
from tierup.engine import loader, units


def main(name: str) -> int:
    loader.install([f"test.{name}"])
    module = importlib.import_module(f"test.{name}")
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromModule(module))
    stats = tierup.stats()
    print(f"{len(units.all_units())} units, {stats.specialisations} specialisations, {stats.hits} hits")
    errors = stats.of_kind("error")
    for error in errors:
        print("translator error:", error)
    return int(not result.wasSuccessful() or bool(errors) or not units.all_units())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
