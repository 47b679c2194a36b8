"""`tierup lab compare`: result files against a base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tierup.lab.commands.comparisons import OPTIONS, OPTIONS_HELP, Comparisons, request
from tierup.lab.commands.output import help_text, print_json, warn
from tierup.lab.compare import CONFIDENCE, Comparison, Pair, Summary
from tierup.lab.statistics.verdict import RELIABILITIES, percent
from tierup.lab.words import factor, quantity, ratio, reliability, remarks, times
from tierup.report.tables import print_table
from tierup.runtime.args import UsageError, parse

HELP: Final = f"""\
usage: tierup lab compare [options] BASE HEAD…

Compares result files (of pyperf, pytest-benchmark, asv or hyperfine) with a base: over all benchmarks that both have, by group, and one by
one. Ratios are head / base, so that slower is above 1; `at 99 %` is the factor that is exceeded with that reliability.

{OPTIONS_HELP}\
  --top N               slow-downs and speed-ups to show of each head (5; 0: all)
  --json                print plain data
"""


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result compares."""
    arguments = parse(words, OPTIONS | {"--top": True}, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    top = arguments.value("--top") or "5"
    if not top.isdecimal():
        raise UsageError(f"--top must be a whole number, not {top!r}")
    wanted = request("compare", arguments)

    def work() -> int:
        compared = wanted.load()
        if "--json" in arguments.flags:
            print_json(compared.to_dict())
        else:
            _show_all(compared, int(top))
        warn("compare", [f"partial results: {problem}" for problem in compared.problems])
        return 1 if compared.problems else 0

    return work


def _show_all(compared: Comparisons, top: int) -> None:
    for number, (name, comparison) in enumerate(compared.heads.items()):
        if number:
            print()
        _show(f"{name} against {compared.base.name}", comparison, top)


def _show(title: str, comparison: Comparison, top: int) -> None:
    summaries = [("all", comparison.whole), *comparison.groups.items()]
    print_table(title, _SUMMARY_COLUMNS, [_summary_row(group, summary) for group, summary in summaries])
    for line in remarks(summaries, comparison):
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
        "" if verdict is None else f"{reliability(verdict.reliability)} {verdict.direction}",
        *("" if verdict is None else factor(verdict.speedup[level]) for level in RELIABILITIES),
        times(summary.memory),
    )


_PAIR_COLUMNS: Final = ("benchmark", "base", "head", "ratio of means", f"at {percent(max(RELIABILITIES))}", "p", "memory")


def _pair_row(pair: Pair) -> tuple[object, ...]:
    return (
        pair.name,
        quantity(pair.base.mean, pair.base.unit),
        quantity(pair.head.mean, pair.base.unit),
        ratio(pair.ratio),
        factor(pair.samples.verdict.speedup[max(RELIABILITIES)]),
        f"{pair.samples.p:.2g}",
        times(pair.memory),
    )


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else "{:.3f} … {:.3f}".format(*interval)
