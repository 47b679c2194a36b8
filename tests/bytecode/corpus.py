"""Code objects to test on: the running interpreter's standard library, sampled unless TIERUP_FULL_STDLIB=1."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

FULL = os.environ.get("TIERUP_FULL_STDLIB", "") not in ("", "0")
_SAMPLE_BYTES = 1_500_000
"""Source text compiled in a sampled run."""


def walk(code: CodeType) -> Iterator[CodeType]:
    """A code object and all those nested in it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from walk(value)


def files() -> list[Path]:
    """The library's source files, in an order that a sample can be cut from."""
    root = Path(os.__file__).parent
    found = sorted(p for p in root.rglob("*.py") if not {"site-packages", "lib2to3"} & set(p.parts))
    random.Random(20240311).shuffle(found)
    # Files that are rich in unusual constructs always come first.
    first = ("test_grammar.py", "test_patma.py", "test_asyncgen.py", "test_except_star.py", "test_listcomps.py", "test_type_params.py")
    return sorted(found, key=lambda p: p.name not in first)


def module_code(path: Path) -> CodeType | None:
    """The compiled file, or None where it is meant not to compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None


def library() -> Iterator[CodeType]:
    """All code objects of the (sampled) library."""
    left = _SAMPLE_BYTES
    for path in files():
        if not FULL:
            left -= path.stat().st_size
            if left < 0:
                return
        code = module_code(path)
        if code is not None:
            yield from walk(code)
