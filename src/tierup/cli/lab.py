"""`tierup lab`: hands over to the command of the lab, and says its errors in one line."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from tierup.lab.errors import LabError
from tierup.runtime.args import UsageError

COMMANDS: Final = {
    "profile": ("BENCH…", "where the time of benchmarks goes, by category of function"),
    "characterize": ("PROFILES…", "what dominates each benchmark, and groups of benchmarks for compare"),
    "compare": ("BASE HEAD…", "compare result files: reliability, speed-ups, groups, memory"),
    "report": ("BASE HEAD…", "the same as an HTML page with figures, as Markdown, as SVG and PNG"),
    "stats": ("FILE [FILE]", "what an optimizer did, from its statistics; two files side by side"),
}
"""Command → its operands and a line of help; `tierup.lab.commands` has a module of that name."""

HELP: Final = (
    "usage: tierup lab COMMAND …\n\nThe benchmark lab: does a JIT help, for what kind of program, and why not.\n\n"
    + "".join(f"  {f'{name} {operands}':24} {line}\n" for name, (operands, line) in COMMANDS.items())
    + "\n'tierup lab COMMAND --help' says more.\n"
)


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result runs the command."""
    name, *rest = words or [""]
    if name in ("", "-h", "--help", "help"):
        return lambda: _help(0 if name else 2)
    if name not in COMMANDS:
        raise UsageError(f"no command {name!r}; there are {', '.join(COMMANDS)}")
    module = importlib.import_module(f"tierup.lab.commands.{name}")
    try:
        work = module.prepare(rest)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return lambda: _run(name, work)


def _help(code: int) -> int:
    print(HELP, end="")
    return code


def _run(name: str, work: Callable[[], int]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the locale, a name or a µ is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = work()
        sys.stdout.flush()
        return code
    except LabError as error:
        print(f"tierup lab {name}: {error}", file=sys.stderr)
    except OSError as error:
        if error.filename is not None:
            print(f"tierup lab {name}: {error.filename}: {error.strerror}", file=sys.stderr)
            return 1
        # A pipe whose reader has gone is no error of anyone.
        if not isinstance(error, BrokenPipeError):
            print(f"tierup lab {name}: cannot write the output: {error.strerror}", file=sys.stderr)
        # What Python writes at its exit goes nowhere (library reference, note on SIGPIPE).
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1
