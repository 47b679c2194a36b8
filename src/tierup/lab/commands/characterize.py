"""`tierup lab characterize`: what dominates each benchmark, and groups of benchmarks for the other commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tierup.lab.commands.output import existing, help_text, print_json, warn
from tierup.lab.errors import LabError
from tierup.lab.profile.categories import DEFAULT, load
from tierup.lab.profile.characterize import THRESHOLD, Characterization, characterize
from tierup.lab.profile.readers.read import Folder, read_files, read_folder
from tierup.lab.profile.symbols import printable
from tierup.lab.results.names import match
from tierup.lab.results.read import read
from tierup.report.tables import print_table
from tierup.runtime.args import Arguments, UsageError, parse

HELP: Final = """\
usage: tierup lab characterize [options] PROFILES…

Says for each benchmark which category of function most of its time goes to, and which benchmarks are dominated by one. PROFILES are folders
or files: CSV reports, the text of perf report or perf script, or perf.data, each named after its benchmark.

  --threshold SHARE     a category with more of the time than this dominates: 0.5 (the default), or 50%
  --write-groups FILE   write groups of benchmarks by category for `tierup lab compare --groups`
  --by WHAT             what makes these groups: top (the default), or over: more time than the threshold
  --results FILE        also say which profiles have no result in this file of results, and which results no profile
  --exact-names         match their names as they are; else `logging` also means `logging_format` and such
  --categories FILE     table of categories; `tierup lab profile --print-categories` shows the one in use
  --json                print plain data
"""

_OPTIONS: Final = {
    **dict.fromkeys(("--threshold", "--write-groups", "--by", "--results", "--categories"), True),
    **dict.fromkeys(("--exact-names", "--json", "--help", "-h"), False),
}


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result reads the profiles and shows what dominates them."""
    arguments = parse(words, _OPTIONS, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    if not arguments.operands:
        raise UsageError("needs a folder of profiles: tierup lab characterize DIR")
    paths = [existing(word) for word in arguments.operands]
    threshold = _threshold(arguments.value("--threshold"))
    by = arguments.value("--by") or "top"
    if by not in ("top", "over"):
        raise UsageError(f"--by must be top or over, not {by!r}")
    results = arguments.value("--results")
    results_path = None if results is None else existing(results)

    def work() -> int:
        return _run(arguments, paths, threshold, by, results_path)

    return work


def _threshold(text: str | None) -> float:
    """The share above which a category dominates. Raises UsageError."""
    if text is None:
        return THRESHOLD
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise UsageError(f"--threshold must be a share from 0 to 1, such as 0.5 or 50%, not {text!r}")
    return share


def _run(arguments: Arguments, paths: Sequence[Path], threshold: float, by: str, results: Path | None) -> int:
    table = load(Path(arguments.value("--categories") or DEFAULT))
    folder = _read(paths)
    found = characterize(folder.profiles, table, threshold)
    names = _match(found, results, exact="--exact-names" in arguments.flags)
    target = arguments.value("--write-groups")
    if target is not None:
        _write_groups(Path(target), found.by_top if by == "top" else found.over)
    if "--json" in arguments.flags:
        print_json({**found.to_dict(), **names, "failed": list(folder.failed)})
    else:
        _show(found, names)
    partial = [f"partial profile: {printable(name)}: {problem}" for name, problems in found.partial.items() for problem in problems]
    warn("characterize", [*partial, *folder.failed])
    return 1 if partial or folder.failed else 0


def _read(paths: Sequence[Path]) -> Folder:
    """All profiles of folders and files. Raises ReadError for a folder that cannot be read or has none."""
    files = [path for path in paths if not path.is_dir()]
    found = [read_files(files), *(read_folder(path) for path in paths if path.is_dir())]
    profiles = {profile.name: profile for folder in reversed(found) for profile in folder.profiles}
    twice = [
        f"{printable(profile.name)}: there are profiles of it in several places, of which the first was taken"
        for folder in found
        for profile in folder.profiles
        if profiles[profile.name] is not profile
    ]
    ordered = [profile for folder in found for profile in folder.profiles if profiles[profile.name] is profile]
    return Folder(tuple(ordered), (*(line for folder in found for line in folder.failed), *twice))


def _match(found: Characterization, results: Path | None, *, exact: bool) -> dict[str, Any]:
    """Profiles without results, and results without profiles; nothing is unmatched where no results are given."""
    if results is None:
        return {"unmatched": []}
    file = read(results)
    matched = match(list(found.benchmarks), list(file.benchmarks), exact=exact)
    claimed = set(matched.names)
    return {
        "results": {name: list(means) for name, means in matched.found.items()},
        "unmatched": list(matched.unmatched),
        "without_profile": [name for name in file.benchmarks if name not in claimed],
    }


def _write_groups(path: Path, groups: dict[str, list[str]]) -> None:
    try:
        path.write_text(json.dumps(groups, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the groups {str(path)!r}: {error.strerror}") from None


def _show(found: Characterization, names: dict[str, Any]) -> None:
    rows = []
    for name, shares in sorted(found.benchmarks.items(), key=lambda item: (item[1].top or "", item[0])):
        rest = [f"{category} {share:.0%}" for category, share in shares.categories.items() if category != shares.top][:3]
        if shares.top is not None:
            rows.append((printable(name), shares.top, f"{shares.categories[shares.top]:.1%}", ", ".join(rest)))
    print_table(f"top category of {len(rows)} benchmarks", ("benchmark", "category", "time", "then"), rows)
    print()
    over = [(category, len(members), ", ".join(printable(name) for name in members)) for category, members in found.over.items()]
    print_table(f"more than {found.threshold:.0%} in one category", ("category", "n", "benchmarks"), over)
    for key, what in (("unmatched", "profiles without a result"), ("without_profile", "results without a profile")):
        if names.get(key):
            print(f"\n{len(names[key])} {what}: {', '.join(map(printable, names[key]))}")
    if found.undecided:
        print(f"\nno function known: {', '.join(map(printable, found.undecided))}")
    for shares in found.benchmarks.values():
        for note in shares.notes:
            print(f"\n{printable(shares.name)}: {note}")
