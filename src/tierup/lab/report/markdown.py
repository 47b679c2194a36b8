"""A summary for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tierup.lab.compare import Comparison, Pair, Summary
from tierup.lab.results.model import Results
from tierup.lab.statistics.verdict import RELIABILITIES, percent
from tierup.lab.words import factor, quantity, ratio, reliability, remarks, times

TOP = 5
"""Slow-downs and speed-ups that stand in the summary."""


def markdown(base: Results, heads: Mapping[str, Comparison]) -> str:
    """GitHub's Markdown: a table of the groups, and the benchmarks that changed most."""
    return "\n".join(line for name, comparison in heads.items() for line in _head(base, name, comparison))


def _head(base: Results, name: str, comparison: Comparison) -> Iterator[str]:
    summaries = [("all", comparison.whole), *comparison.groups.items()]
    yield f"### {_text(name)} against {_text(base.name)}\n"
    yield from (f"**partial results:** {_text(problem)}\n" for problem in (*base.problems, *comparison.head.problems))
    columns = ("benchmarks", "n", "geometric mean", "reliability", *(f"at {percent(level)}" for level in RELIABILITIES), "memory")
    yield from _table(columns, [_summary(group, summary) for group, summary in summaries])
    yield ""
    yield from (f"- {_text(line)}" for line in remarks(summaries, comparison))
    changed = comparison.changed()
    slower = [pair for pair in changed if pair.samples.shift > 0]
    faster = [pair for pair in reversed(changed) if pair.samples.shift < 0]
    for title, pairs in (("slow-downs", slower), ("speed-ups", faster)):
        if pairs:
            yield f"\n<details><summary>{title}: {len(pairs)}</summary>\n"
            yield from _table(("benchmark", "base", "head", "ratio of means", "at 99 %"), map(_pair, pairs[:TOP]))
            yield "\n</details>\n"


def _summary(group: str, summary: Summary) -> tuple[object, ...]:
    verdict = summary.verdict
    return (
        group,
        len(summary.members),
        "" if summary.geometric_mean is None else ratio(summary.geometric_mean),
        "" if verdict is None else f"{reliability(verdict.reliability)} {verdict.direction}",
        *("" if verdict is None else factor(verdict.speedup[level]) for level in RELIABILITIES),
        times(summary.memory),
    )


def _pair(pair: Pair) -> tuple[object, ...]:
    means = (quantity(side.mean, side.unit) for side in (pair.base, pair.head))
    return (pair.name, *means, ratio(pair.ratio), factor(pair.samples.verdict.speedup[max(RELIABILITIES)]))


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * (len(columns) - 1)}"
    for row in rows:
        yield f"| {' | '.join(_text(str(cell)) for cell in row)} |"


def _text(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", " ".join(text.split()))
