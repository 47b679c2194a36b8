"""The rooms of the package and who may import whom (docs/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tierup

PACKAGE = Path(tierup.__file__).parent

MAY_IMPORT: dict[str, set[str]] = {
    "runtime": set(),
    "bytecode": {"runtime"},
    "graph": {"runtime", "bytecode"},
    "arrays": {"runtime", "bytecode", "graph"},
    "guards": {"runtime", "bytecode", "graph", "arrays"},
    "native": {"runtime", "bytecode", "graph", "arrays", "guards"},
    "capture": {"runtime", "bytecode", "graph", "arrays", "guards", "native"},
    "loops": {"runtime", "bytecode", "graph", "arrays", "guards", "native", "capture"},
    "engine": {"runtime", "bytecode", "graph", "arrays", "guards", "native", "capture", "loops"},
    "report": {"runtime", "bytecode", "graph", "arrays", "guards", "native", "capture", "engine"},
    "lab": {"runtime"},
    "cli": {"runtime", "report", "engine", "lab", "native", "capture", "guards", "arrays", "graph", "bytecode"},
}
"""Room → rooms it may import; every room may also import `tierup._core`."""

EXCEPTIONS: dict[str, set[str]] = {
    # The public functions return reports, and fill the records they are made of.
    "tierup.engine.api": {"report"},
    "tierup.engine.records": {"report"},
    # The commands print with the tables that all commands print with.
    "tierup.lab.commands": {"report"},
}
"""Module, or package with all in it → further rooms."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Absolute names of the modules a file imports, anywhere in it, with the line."""
    module = dotted(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield f"{origin}.{alias.name}", node.lineno


def room_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "tierup" and len(parts) > 1 and parts[1] in MAY_IMPORT else None


@pytest.mark.parametrize("path", MODULES, ids=[dotted(path) for path in MODULES])
def test_imports_follow_the_order_of_the_rooms(path):
    room = room_of(dotted(path))
    if room is None:
        return  # the package itself and __main__ are the doors to everything
    further = [rooms for name, rooms in EXCEPTIONS.items() if f"{dotted(path)}.".startswith(f"{name}.")]
    allowed = {room}.union(MAY_IMPORT[room], *further)
    wrong = [f"line {line}: {name}" for name, line in imported(path) if (target := room_of(name)) is not None and target not in allowed]
    assert not wrong, f"{dotted(path)} may import {sorted(allowed)}"


def test_every_folder_is_a_known_room():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__" and list(path.glob("*.py"))}
    assert folders <= set(MAY_IMPORT)


def test_rooms_say_what_they_do():
    for room in {path.parent for path in MODULES if path.name == "__init__.py"}:
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
        assert text, f"{room} has no docstring"


def test_every_room_is_a_package():
    folders = {path.parent for path in MODULES}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
