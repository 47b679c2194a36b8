"""Applies a code transformation to a module's text, all nested code included, and looks at what its `case_*` functions do."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tierup.bytecode.fields import fields_of

SAMPLES = Path(__file__).with_name("samples.py")

Transform = Callable[[CodeType], CodeType]


def deep(code: CodeType, transform: Transform) -> CodeType:
    """Transforms a code object inside out."""
    consts = tuple(deep(c, transform) if isinstance(c, CodeType) else c for c in code.co_consts)
    return transform(code if consts == code.co_consts else replace_constants(code, consts))


def replace_constants(code: CodeType, consts: tuple[object, ...]) -> CodeType:
    """`code.replace` would make fast locals of optimised-away comprehensions visible to `locals()`."""
    return replace(fields_of(code), consts=consts).build()


def load(transform: Transform | None = None, path: Path = SAMPLES) -> dict[str, Any]:
    """The module's namespace, run from transformed code."""
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    if transform is not None:
        code = deep(code, transform)
    space: dict[str, Any] = {"__name__": "samples"}
    exec(code, space)
    return space


def case_names(path: Path = SAMPLES) -> list[str]:
    """Names of the cases."""
    lines = path.read_text().splitlines()
    return [line.split("(")[0].removeprefix("def ") for line in lines if line.startswith("def case_")]


def outcome(space: dict[str, Any], name: str) -> object:
    """What the case returns, or its exception and where it passed."""
    space["LOG"].clear()
    try:
        return "returned", repr(space[name]()), repr(space["LOG"])
    except Exception as error:
        lines = [(f.lineno, f.end_lineno, f.colno, f.end_colno, f.name) for f in traceback.extract_tb(error.__traceback__)[1:]]
        return "raised", type(error).__name__, str(error), lines, repr(space["LOG"])


def line_events(space: dict[str, Any], name: str) -> list[tuple[str, str, int]]:
    """Events a tracer sees in the module's functions."""
    events: list[tuple[str, str, int]] = []

    def tracer(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != str(SAMPLES):
            return None
        events.append((event, frame.f_code.co_name, frame.f_lineno))
        return tracer

    sys.settrace(tracer)
    try:
        outcome(space, name)
    finally:
        sys.settrace(None)
    return events


def monitored_lines(space: dict[str, Any], name: str) -> list[tuple[str, int]]:
    """LINE events of `sys.monitoring` (3.12 and later)."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool, events = monitoring.DEBUGGER_ID, []
    monitoring.use_tool_id(tool, "test")
    try:

        def on_line(code: CodeType, line: int) -> None:
            if code.co_filename == str(SAMPLES):
                events.append((code.co_name, line))

        monitoring.register_callback(tool, monitoring.events.LINE, on_line)
        monitoring.set_events(tool, monitoring.events.LINE)
        outcome(space, name)
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    return events
