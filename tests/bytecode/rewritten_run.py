"""Runs modules of CPython's own test suite from rewritten code: `python rewritten_run.py KIND MODULE...`.

Every module that is imported from source is compiled, and each of its code objects rewritten, before it runs. Prints one JSON object:
{"ran": number, "failed": [test ids]}.
"""

from __future__ import annotations

import importlib.machinery
import io
import json
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from bytecode import test_splice, transform  # noqa: E402


def _sites(code: CodeType) -> CodeType:
    """Sites everywhere; a float zero misses without running Python."""
    if len(code.co_code) > 20_000:
        return test_splice.reassembled(code)
    return test_splice.quietly(code)


KINDS: dict[str, Callable[[CodeType], CodeType]] = {
    "plain": lambda code: code,
    "reassembled": test_splice.reassembled,
    "sites": _sites,
}


# Sites everywhere cost time to make: they go into the tests and what these lean on most.
_WITH_SITES = ("test.test_", "contextlib", "functools", "dataclasses")


def install(kind: str) -> None:
    """Rewrites whatever is imported from source from now on."""
    rewrite = KINDS[kind]

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType:
        path = self.get_filename(name)
        code = compile(self.get_data(path), path, "exec", dont_inherit=True)
        if kind == "sites" and not name.startswith(_WITH_SITES):
            return code
        return transform.deep(code, rewrite)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]


def main() -> None:
    kind, *modules = sys.argv[1:]
    install(kind)
    # What is loaded already would stay as it was; what the tests exercise is imported anew.
    for name in [n for n in sys.modules if n.split(".")[0] in ("contextlib", "dataclasses", "functools", "test")]:
        del sys.modules[name]
    failed: list[str] = []
    ran = 0
    for module in modules:
        stream = io.StringIO()
        try:
            suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
        except unittest.SkipTest:
            continue
        result = unittest.TextTestRunner(stream, verbosity=0).run(suite)
        ran += result.testsRun
        bad = [*result.failures, *result.errors]
        failed += [f"{module}: {case.id()}" for case, _ in bad]
        for case, text in bad:
            print(case.id(), text, file=sys.stderr)
    print(json.dumps({"ran": ran, "failed": failed}))


if __name__ == "__main__":
    main()
