"""`tierup stats`: the sum of what processes left in a statistics directory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

from tierup.report.tables import print_table
from tierup.runtime import config
from tierup.runtime.args import UsageError, parse
from tierup.runtime.stats import COUNTERS, Place, Stats, read_directory

HELP: Final = """\
usage: tierup stats [DIR] [--json] [--limit N]

Sums up the statistics files in DIR, by default $TIERUP_STATS_DIR, that processes wrote at their exit.

  --limit N             places to show of each kind (20; 0: all)
  --json                print plain data
"""


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result prints the tables."""
    arguments = parse(words, {"--json": False, "--limit": True, "--help": False, "-h": False}, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return _help
    if len(arguments.operands) > 1:
        raise UsageError("more than one directory given")
    directory = arguments.operands[0] if arguments.operands else config.current().stats_dir
    if directory is None:
        raise UsageError("no directory given and TIERUP_STATS_DIR is not set")
    text = arguments.value("--limit") or "20"
    if not text.isdecimal():
        raise UsageError(f"--limit must be a whole number, not {text!r}")
    try:
        total, problems = read_directory(directory)
    except OSError as error:
        raise UsageError(f"cannot read {directory!r}: {error.strerror}") from None
    limit = int(text) or sys.maxsize
    return lambda: _show(total, problems, limit, "--json" in arguments.flags)


def _help() -> int:
    print(HELP, end="")
    return 0


def _show(total: Stats, problems: Sequence[str], limit: int, as_json: bool) -> int:
    for problem in problems:
        print(f"tierup stats: skipped {problem}", file=sys.stderr)
    if as_json:
        print(json.dumps(total.to_dict(), indent=1))
    else:
        _print_tables(total, limit)
    return 1 if problems else 0


def _print_tables(total: Stats, limit: int) -> None:
    noun = "process" if total.processes == 1 else "processes"
    rows = [(name.replace("_", " "), getattr(total, name)) for name in COUNTERS]
    print_table(f"{total.processes} {noun}", ("counter", "count"), rows)
    if total.translate_seconds:
        print()
        print_table("translation", ("phase", "seconds"), sorted(total.translate_seconds.items()))
    for kind in dict.fromkeys(place.kind for place in total.places):
        places = total.of_kind(kind)
        print()
        title = kind if len(places) <= limit else f"{kind} (the first {limit} of {len(places)} places)"
        print_table(title, ("count", "reason", "place", "function"), [_row(place) for place in places[:limit]])


def _row(place: Place) -> tuple[object, ...]:
    return (place.count, place.reason, f"{place.file}:{place.line}" if place.file else "", place.function)
