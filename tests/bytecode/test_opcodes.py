"""The opcode table: consistent with `dis`, and honest about interpreters it does not know."""

from __future__ import annotations

import dis
import sys
from collections import namedtuple
from types import SimpleNamespace

import pytest

from tierup.bytecode import opcodes
from tierup.bytecode.opcodes import SUPPORTED, UnsupportedPython, table

Version = namedtuple("Version", "major minor micro releaselevel serial")


@pytest.mark.parametrize("version", [(3, 10), (3, max(b for _, b in SUPPORTED) + 1), (4, 0)])
def test_unknown_versions_are_refused_at_use(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> None:
    table.cache_clear()
    monkeypatch.setattr(opcodes.sys, "version_info", Version(*version, 0, "final", 0))
    try:
        with pytest.raises(UnsupportedPython, match=rf"cpython {version[0]}\.{version[1]} is not supported \(known: CPython 3\.11"):
            table()
    finally:
        monkeypatch.undo()
        table.cache_clear()


def test_other_implementations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table.cache_clear()
    monkeypatch.setattr(opcodes.sys, "implementation", SimpleNamespace(name="pypy"))
    try:
        with pytest.raises(UnsupportedPython, match="pypy"):
            table()
    finally:
        monkeypatch.undo()
        table.cache_clear()


def test_missing_instruction() -> None:
    with pytest.raises(UnsupportedPython, match="no instruction LOAD_FAST_BORROWED"):
        table().op("LOAD_FAST_BORROWED")
    assert not table().has("CACHE") and not any(table().has(n) for n in dis.opmap if n.startswith("INSTRUMENTED_"))


def test_caches_agree_with_dis() -> None:
    """dis lists the cache units of compiled code; ours are as many."""
    optable = table()
    for name in ("LOAD_GLOBAL", "CALL", "BINARY_OP", "COMPARE_OP", "STORE_ATTR"):
        code = compile("a.b = f(a) + (a < 1)", "x", "exec") if name != "LOAD_GLOBAL" else (lambda: nowhere).__code__  # type: ignore[name-defined] # noqa: F821
        shown = [i for i in dis.get_instructions(code, show_caches=True)]
        if sys.version_info >= (3, 13):
            found = [sum(size for _, size, _ in i.cache_info or ()) for i in shown if i.opname == name]
        else:
            at = [k for k, i in enumerate(shown) if i.opname == name]
            found = [next(n for n in range(20) if k + 1 + n >= len(shown) or shown[k + 1 + n].opname != "CACHE") for k in at]
        assert found and set(found) == {optable.caches[optable.op(name)]}, name
