"""`tierup explain`: runs a program and says what was compiled, what was not, and why."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

from tierup.cli import run
from tierup.runtime import config
from tierup.runtime.args import parse

HELP: Final = """\
usage: tierup explain [options] script.py [args …]
       tierup explain [options] -m module [args …]
       tierup explain [options] -c code [args …]

Runs a program as `tierup run` does; when it ends, prints its graphs, kernels, guards, graph breaks with their reasons, and times.

  --output FILE         write the report to FILE instead of standard output
  --json                write it as JSON
  (and the options of `tierup run`)
"""

_OPTIONS: Final = run.OPTIONS | {"--output": True, "--json": False}


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result runs the program and leaves the report for its exit."""
    arguments = parse(words, _OPTIONS, stop_at=run.STOP_AT)
    if arguments.flags & {"-h", "--help"}:
        return lambda: run.print_help(HELP)
    target = run.find_target(arguments)
    include = run.set_up(arguments)
    # Registered before the program's exit handlers, so it runs behind them.
    out = arguments.value("--output")
    path = os.path.abspath(out) if out is not None else None
    run.at_exit(lambda: _write_report(path, "--json" in arguments.flags))
    return lambda: run.run(target, include)


def _write_report(path: str | None, as_json: bool) -> None:
    text = _report_text(as_json) + "\n"
    try:
        if path is not None:
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        else:
            # The program may have replaced or closed sys.stdout; what it has written goes first.
            if sys.__stdout__ is not None and not sys.__stdout__.closed:
                sys.__stdout__.flush()
            with open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as file:
                file.write(text)
    except (OSError, ValueError) as error:
        print(f"tierup explain: cannot write the report: {error}", file=sys.stderr)


def _report_text(as_json: bool) -> str:
    if not config.current().enabled:
        return json.dumps(None) if as_json else "tierup is off (TIERUP=0)"
    try:
        from tierup.engine import api

        report = api.report()
    except ImportError as error:
        return json.dumps({"error": str(error)}) if as_json else f"tierup does not work here: {error}; see `tierup doctor`"
    return json.dumps(report.to_dict(), indent=1) if as_json else str(report)
