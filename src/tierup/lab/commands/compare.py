"""`tierup lab compare`: result files against a base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from tierup.lab.commands.output import existing, help_text, print_json, quantity, ratio, warn
from tierup.lab.compare import CONFIDENCE, Comparison, Method, Pair, Summary, compare
from tierup.lab.results.groups import read_groups
from tierup.lab.results.model import Results
from tierup.lab.results.read import read
from tierup.lab.statistics.bench_runner import BEYOND
from tierup.lab.statistics.verdict import RELIABILITIES, percent
from tierup.report.tables import print_table
from tierup.runtime.args import UsageError, parse

HELP: Final = """\
usage: tierup lab compare [options] BASE HEAD…

Compares result files (of pyperf, pytest-benchmark, asv or hyperfine) with a base: over all benchmarks that both have, by group, and one by
one. Ratios are head / base, so that slower is above 1; `at 99 %` is the factor that is exceeded with that reliability.

  --groups FILE         also compare groups of benchmarks: a JSON file {GROUP: [benchmark, …]}, such as `tierup lab characterize` writes
  --exact-names         take the names in it as they are; else `logging` also means `logging_format` and such
  --hpt METHOD          how reliability is computed: default, or bench-runner, with the same numbers as that tool
  --top N               slow-downs and speed-ups to show of each head (5; 0: all)
  --json                print plain data
"""

_OPTIONS: Final = {"--groups": True, "--exact-names": False, "--hpt": True, "--top": True, "--json": False, "--help": False, "-h": False}


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result compares."""
    arguments = parse(words, _OPTIONS, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    if len(arguments.operands) < 2:
        raise UsageError("needs a base and at least one head: tierup lab compare BASE HEAD…")
    method = arguments.value("--hpt") or "default"
    if method not in get_args(Method):
        raise UsageError(f"--hpt must be one of {', '.join(get_args(Method))}, not {method!r}")
    top = arguments.value("--top") or "5"
    if not top.isdecimal():
        raise UsageError(f"--top must be a whole number, not {top!r}")
    base, *heads = (existing(word) for word in arguments.operands)
    groups = arguments.value("--groups")
    groups_file = existing(groups) if groups is not None else None

    def work() -> int:
        settings = {"method": method, "exact_names": "--exact-names" in arguments.flags}
        return _run(base, heads, groups_file, settings, None if "--json" in arguments.flags else int(top))

    return work


def _run(base_path: Path, head_paths: Sequence[Path], groups_path: Path | None, settings: Mapping[str, Any], top: int | None) -> int:
    groups = read_groups(groups_path) if groups_path is not None else {}
    base = read(base_path)
    comparisons = [compare(base, read(path), groups, **settings) for path in head_paths]
    problems = [*base.problems, *(problem for comparison in comparisons for problem in comparison.head.problems)]
    names = _names([comparison.head for comparison in comparisons])
    if top is None:
        heads = [comparison.to_dict(name) for name, comparison in zip(names, comparisons, strict=True)]
        about = {"name": base.name, "path": str(base.path), "python": base.python}
        print_json({"base": about, "hpt": settings["method"], "heads": heads, "partial": bool(problems), "problems": problems})
    else:
        for number, (name, comparison) in enumerate(zip(names, comparisons, strict=True)):
            if number:
                print()
            _show(base, name, comparison, top)
    warn("compare", [f"partial results: {problem}" for problem in problems])
    return 1 if problems else 0


def _names(heads: Sequence[Results]) -> list[str]:
    """The heads' names; their paths where two have the same."""
    counts = Counter(head.name for head in heads)
    return [head.name if counts[head.name] == 1 else str(head.path) for head in heads]


def _show(base: Results, name: str, comparison: Comparison, top: int) -> None:
    summaries = [("all", comparison.whole), *comparison.groups.items()]
    print_table(f"{name} against {base.name}", _SUMMARY_COLUMNS, [_summary_row(group, summary) for group, summary in summaries])
    for line in _remarks(summaries, comparison):
        print(line)
    changed = comparison.changed()
    _show_pairs("slow-downs", [pair for pair in changed if pair.samples.shift > 0], top)
    _show_pairs("speed-ups", [pair for pair in reversed(changed) if pair.samples.shift < 0], top)
    print(f"\n{len(comparison.pairs) - len(changed)} of {len(comparison.pairs)} benchmarks do not differ significantly")


def _show_pairs(title: str, pairs: Sequence[Pair], top: int) -> None:
    if not pairs:
        return
    shown = pairs[: top or None]
    number = "" if len(shown) == len(pairs) else f" (the first {len(shown)} of {len(pairs)})"
    print()
    print_table(title + number, _PAIR_COLUMNS, [_pair_row(pair) for pair in shown])


_SUMMARY_COLUMNS: Final = (
    *("benchmarks", "n", "differ", "geometric mean", f"{percent(CONFIDENCE)} interval", "of such programs", "reliability"),
    *(f"at {percent(level)}" for level in RELIABILITIES),
    "memory",
)


def _summary_row(group: str, summary: Summary) -> tuple[object, ...]:
    verdict = summary.verdict
    return (
        group,
        len(summary.members),
        summary.significant,
        "" if summary.geometric_mean is None else ratio(summary.geometric_mean),
        _interval(summary.interval),
        _interval(summary.interval_of_such),
        "" if verdict is None else f"{_reliability(verdict.reliability)} {verdict.direction}",
        *("" if verdict is None else _factor(verdict.speedup[level]) for level in RELIABILITIES),
        _times(summary.memory),
    )


_PAIR_COLUMNS: Final = ("benchmark", "base", "head", "ratio of means", f"at {percent(max(RELIABILITIES))}", "p", "memory")


def _pair_row(pair: Pair) -> tuple[object, ...]:
    return (
        pair.name,
        quantity(pair.base.mean, pair.base.unit),
        quantity(pair.head.mean, pair.base.unit),
        ratio(pair.ratio),
        _factor(pair.samples.verdict.speedup[max(RELIABILITIES)]),
        f"{pair.samples.p:.2g}",
        _times(pair.memory),
    )


def _reliability(reliability: float) -> str:
    # Nothing is sure.
    return f"{100 * reliability:.2f} %" if reliability < 0.99995 else "> 99.99 %"


def _factor(factor: float | None) -> str:
    if factor is None:
        return "not sure"
    return "over 10x" if factor == BEYOND else f"{factor:.3f}x"


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else "{:.3f} … {:.3f}".format(*interval)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}x"


def _remarks(summaries: Sequence[tuple[str, Summary]], comparison: Comparison) -> Iterator[str]:
    for group, summary in summaries:
        yield from (f"{group}: {note}" for note in summary.notes)
        if summary.unmatched:
            yield f"{group}: not in both files: {', '.join(summary.unmatched)}"
    yield from comparison.notes
    if comparison.only_base:
        yield f"only in the base: {', '.join(comparison.only_base)}"
    if comparison.only_head:
        yield f"only in the head: {', '.join(comparison.only_head)}"
