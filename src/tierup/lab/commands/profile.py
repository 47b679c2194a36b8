"""`tierup lab profile`: where the time of benchmarks goes, by category of function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tierup.lab.commands.output import help_text, print_json, warn
from tierup.lab.errors import LabError, ReadError
from tierup.lab.profile.categories import DEFAULT, load
from tierup.lab.profile.model import Profile
from tierup.lab.profile.readers.csv_reports import to_csv
from tierup.lab.profile.readers.read import read_files, read_folder
from tierup.lab.profile.record import Recorder, Settings, Target, find_target
from tierup.lab.profile.shares import Shares, compute
from tierup.lab.profile.symbols import printable
from tierup.report.tables import print_table
from tierup.runtime.args import Arguments, UsageError, parse

HELP: Final = """\
usage: tierup lab profile [options] BENCH…

Says where the time of benchmarks goes, by category of function. BENCH is a script, the name of a pyperformance benchmark, or a profile that
was recorded before: a CSV report, the text of perf report or perf script, a perf.data file, or a folder of such. Scripts and benchmarks
are run under Linux perf; of those that are made with pyperf only the timed region is sampled. pyperformance keeps the virtual environment
of its benchmarks in ./venv.

  --python PATH         interpreter that runs the benchmarks (this one)
  --env NAME=VALUE      variable to set for them; may be repeated (TIERUP_… and PYTHON_… of the environment reach them, too)
  --tierup              run plain scripts with tierup run
  --rate N              samples a second (999)
  --processes N         processes of a benchmark that is made with pyperf (3)
  --output DIR          leave each profile in DIR as a CSV report, NAME.perf.csv, for `tierup lab characterize`
  --categories FILE     table of categories; `--print-categories` shows the one in use, to start from
  --symbols N           functions to show of each benchmark (10)
  --json                print plain data
"""

_OPTIONS: Final = {
    **dict.fromkeys(("--python", "--env", "--rate", "--processes", "--output", "--categories", "--symbols"), True),
    **dict.fromkeys(("--tierup", "--json", "--print-categories", "--help", "-h"), False),
}


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result records or reads profiles, and shows them."""
    arguments = parse(words, _OPTIONS, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    table_path = Path(arguments.value("--categories") or DEFAULT)
    if "--print-categories" in arguments.flags:
        return lambda: _print_categories(table_path)
    if not arguments.operands:
        raise UsageError("needs a script, a benchmark or a profile: tierup lab profile BENCH…")
    settings = Settings(
        python=arguments.value("--python") or sys.executable,
        rate=whole_number(arguments, "--rate", 999, 1, 100_000),
        processes=whole_number(arguments, "--processes", 3, 1, 1000),
        environment=_environment(arguments),
        tierup="--tierup" in arguments.flags,
    )
    symbols = whole_number(arguments, "--symbols", 10, 0, 1_000_000)
    output = arguments.value("--output")
    targets = [_target(word) for word in arguments.operands]

    def work() -> int:
        table = load(table_path)
        folder = None if output is None else _make_folder(Path(output))
        profiles, failed = _obtain(targets, settings, folder)
        found = [compute(profile, table) for profile in profiles]
        if "--json" in arguments.flags:
            print_json(to_dict(found, failed, symbols))
        else:
            _show_all(found, symbols)
        problems = [f"{printable(shares.name)}: {problem}" for shares in found for problem in shares.problems]
        warn("profile", [*(f"partial profile: {problem}" for problem in problems), *failed])
        return 1 if problems or failed else 0

    return work


def whole_number(arguments: Arguments, option: str, default: int, low: int, high: int) -> int:
    """The value of an option that takes a whole number. Raises UsageError."""
    text = arguments.value(option)
    if text is None:
        return default
    if not text.isdecimal() or not low <= int(text) <= high:
        raise UsageError(f"{option} must be a whole number from {low} to {high}, not {text!r}")
    return int(text)


def to_dict(found: Sequence[Shares], failed: Sequence[str], symbols: int) -> dict[str, Any]:
    """Plain data of profiles; symbols: functions of each."""
    return {
        "top": {shares.name: shares.top for shares in found},
        "shares": {shares.name: dict(shares.categories) for shares in found},
        "benchmarks": {shares.name: _one(shares, symbols) for shares in found},
        "failed": list(failed),
    }


def _one(shares: Shares, symbols: int) -> dict[str, Any]:
    return {
        "region": shares.region,
        "symbols": [
            {"symbol": symbol.name, "object": symbol.object, "category": symbol.category, "share": symbol.share}
            for symbol in shares.symbols[:symbols]
        ],
        "excluded": dict(shares.excluded),
        "stripped": dict(shares.stripped),
        "partial": bool(shares.problems),
        "problems": list(shares.problems),
        "notes": list(shares.notes),
    }


def _environment(arguments: Arguments) -> Mapping[str, str]:
    variables = {}
    for text in arguments.values.get("--env", []):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--env must be NAME=VALUE, not {text!r}")
        variables[name] = value
    return variables


def _target(word: str) -> Target | Path:
    """A benchmark to record, or the path of a profile to read. Raises UsageError."""
    target = find_target(word)
    if target is not None:
        return target
    if Path(word).exists():
        return Path(word)
    raise UsageError(f"there is no file {word!r}, and no benchmark of pyperformance is called so")


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None
    return folder


def _obtain(targets: Sequence[Target | Path], settings: Settings, folder: Path | None) -> tuple[list[Profile], list[str]]:
    """Records or reads what is asked for, one by one; what fails does not stop the rest."""
    profiles: list[Profile] = []
    failed: list[str] = []
    recorder = Recorder.ready(settings) if any(isinstance(target, Target) for target in targets) else None
    for number, target in enumerate(targets, 1):
        try:
            if isinstance(target, Path):
                found = read_folder(target) if target.is_dir() else read_files([target])
                new = list(found.profiles)
                failed += found.failed
            else:
                assert recorder is not None
                print(f"[{number}/{len(targets)}] {printable(target.name)}", file=sys.stderr)
                new = [recorder.record(target)]
        except LabError as error:
            failed.append(str(error))
            continue
        except KeyboardInterrupt:
            failed.append(f"stopped: {len(targets) - number + 1} of {len(targets)} benchmarks have no profile")
            break
        profiles += new
        if folder is not None:
            failed += [problem for profile in new if (problem := _keep(profile, folder))]
    return profiles, failed


def _keep(profile: Profile, folder: Path) -> str | None:
    """Leaves a profile as a CSV report; what went wrong, in words."""
    path = folder / f"{profile.name.replace('/', '_')}.perf.csv"
    try:
        path.write_text(to_csv(profile), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        return f"cannot write {str(path)!r}: {error.strerror}"
    return None


def _print_categories(path: Path) -> int:
    load(path)
    try:
        print(path.read_text(encoding="utf-8"), end="")
    except OSError as error:
        raise ReadError(f"cannot read {str(path)!r}: {error.strerror}") from None
    return 0


def _show_all(found: Sequence[Shares], symbols: int) -> None:
    for number, shares in enumerate(found):
        if number:
            print()
        _show(shares, symbols)


def _show(shares: Shares, symbols: int) -> None:
    rows = [
        (category, f"{share:.1%}", ", ".join(_names(shares, category))) for category, share in shares.categories.items() if share >= 0.0005
    ]
    print_table(printable(shares.name), ("category", "time", "most of it in"), rows)
    if symbols:
        print()
        print_table(
            "",
            ("time", "function", "object", "category"),
            [
                (f"{symbol.share:.1%}", printable(symbol.name), _short(symbol.object), symbol.category)
                for symbol in shares.symbols[:symbols]
            ],
        )
    for what, share in shares.excluded.items():
        print(f"left out: {printable(what)}, another program, with {share:.1%} of what was sampled")
    for note in shares.notes:
        print(f"note: {note}")


def _names(shares: Shares, category: str) -> list[str]:
    return [printable(symbol.name) for symbol in shares.largest(category, 3)]


def _short(obj: str) -> str:
    return printable(obj if obj.startswith("[") else obj.rpartition("/")[2])
