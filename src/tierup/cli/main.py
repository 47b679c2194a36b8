"""The `tierup` command: picks the subcommand and turns usage errors into one line and exit code 2."""

from __future__ import annotations

import sys

from tierup.runtime.args import UsageError
from tierup.runtime.config import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

USAGE: Final = """\
usage: tierup COMMAND …

  run [options] script.py [args …]       run a program with tierup (also: -m module, -c code)
  explain [options] script.py [args …]   run a program and say what was compiled, what was not, and why
  stats [DIR] [--json]                   sum up the statistics that processes left in DIR (or $TIERUP_STATS_DIR)
  doctor [--json]                        say what works on this machine
  lab COMMAND …                          the benchmark lab: compare results, characterise benchmarks
  --version                              print the version

'tierup COMMAND --help' says more.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line (without the program's name) and returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = words.pop(0) if words else ""
    if command in ("", "-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if command else 2
    if command in ("--version", "-V"):
        from tierup import __version__

        print(f"tierup {__version__}")
        return 0
    load = _COMMANDS.get(command)
    if load is None:
        return _usage_error("tierup", f"no command {command!r}; there are {', '.join(_COMMANDS)}")
    try:
        # Only reading the command line can fail in this way; what it returns does the work.
        work = load()(words)
    except (UsageError, ConfigError) as error:
        return _usage_error(f"tierup {command}", str(error))
    return work()


def _usage_error(command: str, message: str) -> int:
    print(f"{command}: {message}", file=sys.stderr)
    return 2


def _run() -> Callable[[Sequence[str]], Callable[[], int]]:
    from tierup.cli import run

    return run.prepare


def _explain() -> Callable[[Sequence[str]], Callable[[], int]]:
    from tierup.cli import explain

    return explain.prepare


def _stats() -> Callable[[Sequence[str]], Callable[[], int]]:
    from tierup.cli import stats

    return stats.prepare


def _doctor() -> Callable[[Sequence[str]], Callable[[], int]]:
    from tierup.cli import doctor

    return doctor.prepare


def _lab() -> Callable[[Sequence[str]], Callable[[], int]]:
    from tierup.cli import lab

    return lab.prepare


_COMMANDS: Final = {"run": _run, "explain": _explain, "stats": _stats, "doctor": _doctor, "lab": _lab}
