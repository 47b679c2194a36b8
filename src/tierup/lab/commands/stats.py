"""`tierup lab stats`: what an optimizer did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tierup.lab.commands.output import existing, help_text, print_json, warn
from tierup.lab.optimizer.model import OptimizerStats
from tierup.lab.optimizer.observations import differences, observations
from tierup.lab.optimizer.read import read_stats
from tierup.lab.optimizer.tables import Joined, Row, side_by_side, tables
from tierup.report.tables import print_table
from tierup.runtime.args import UsageError, parse

HELP: Final = """\
usage: tierup lab stats [--json] FILE [FILE]

Says what an optimizer did: CPython's, from what a build with --enable-pystats writes (text, its folder, or the JSON of
summarize_stats.py), or tierup's (a file or folder of TIERUP_STATS_DIR). Two files stand side by side, the first as the base.

  --json                print plain data
"""


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result prints the tables."""
    arguments = parse(words, {"--json": False, "--help": False, "-h": False}, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    if len(arguments.operands) not in (1, 2):
        raise UsageError("needs one file of statistics, or two")
    paths = [existing(word) for word in arguments.operands]
    return lambda: _run(paths, "--json" in arguments.flags)


def _run(paths: Sequence[Path], as_json: bool) -> int:
    everything = [read_stats(path) for path in paths]
    problems = [problem for stats in everything for problem in stats.problems]
    if as_json:
        print_json(_data(everything, problems))
    else:
        _show(everything)
    warn("stats", [f"partial results: {problem}" for problem in problems])
    return 1 if problems else 0


def _data(everything: Sequence[OptimizerStats], problems: Sequence[str]) -> dict[str, Any]:
    files = [
        {
            "path": str(stats.path),
            "optimizer": stats.optimizer,
            "attempts": stats.attempts,
            "attempts_not_counted": stats.uncounted,
            "created": stats.created,
            "rejected": dict(stats.rejected),
            "tables": {table.title: table.to_dict() for table in tables(stats)},
            "observations": observations(stats),
        }
        for stats in everything
    ]
    data: dict[str, Any] = {"files": files, "partial": bool(problems), "problems": list(problems)}
    if len(everything) == 2:
        base, head = everything
        joined = side_by_side(tables(base), tables(head))
        data["changes"] = {title: {row.name: row.change for row in rows} for title, rows in joined}
        data["differences"] = differences(base, head)
    return data


def _show(everything: Sequence[OptimizerStats]) -> None:
    base, head = everything[0], everything[-1]
    if len(everything) == 1:
        for table in tables(base):
            print_table(table.title, ("", "value", "share"), [(row.name, _value(row), _share(row)) for row in table.rows])
            print()
    else:
        print(f"{base.path} against {head.path}\n")
        for title, rows in side_by_side(tables(base), tables(head)):
            print_table(title, ("", "base", "share", "head", "share", "change"), [_joined(row) for row in rows])
            print()
    for stats in everything:
        print(f"what stands out in {stats.path} ({stats.optimizer})")
        for sentence in observations(stats) or ["nothing"]:
            print(f"  {sentence}")
    if len(everything) == 2:
        print("what differs")
        for sentence in differences(base, head) or ["nothing much"]:
            print(f"  {sentence}")


def _joined(row: Joined) -> tuple[str, ...]:
    change = "" if row.change is None else f"{100 * row.change:+.1f} %"
    return (row.name, _value(row.base), _share(row.base), _value(row.head), _share(row.head), change)


def _value(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row.value:,}" if isinstance(row.value, int) else f"{row.value:.3g}"


def _share(row: Row | None) -> str:
    return "" if row is None or row.share is None else f"{100 * row.share:.1f} %"
