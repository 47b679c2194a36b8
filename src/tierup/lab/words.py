"""Figures in words, the same in tables, on pages and in summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tierup.lab.compare import Comparison, Summary
from tierup.lab.statistics.bench_runner import BEYOND

_SECONDS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES: Final = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def quantity(value: float, unit: str) -> str:
    """Three digits of a value of one of pyperf's units: 1.23 ms."""
    for factor, name in {"second": _SECONDS, "byte": _BYTES}.get(unit, ((0.0, ""),)):
        if value >= factor * 0.9995:
            return f"{value / (factor or 1):.3g} {name}".rstrip()
    return f"{value:.3g} {unit}"


def ratio(head_over_base: float) -> str:
    """A ratio of times in words; the factor of both directions is above 1."""
    by = max(head_over_base, 1 / head_over_base)
    if f"{by:.3f}" == "1.000":
        return "1.000x"
    return f"{by:.3f}x {'slower' if head_over_base > 1 else 'faster'}"


def factor(least: float | None) -> str:
    """A speed-up at some reliability."""
    if least is None:
        return "not sure"
    return "over 10x" if least == BEYOND else f"{least:.3f}x"


def reliability(share: float) -> str:
    """A reliability; nothing is sure."""
    return f"{100 * share:.2f} %" if share < 0.99995 else "> 99.99 %"


def times(head_over_base: float | None) -> str:
    """A ratio of something that is neither fast nor slow."""
    return "" if head_over_base is None else f"{head_over_base:.2f}x"


def remarks(summaries: Sequence[tuple[str, Summary]], comparison: Comparison) -> Iterator[str]:
    """What else has to be said, a line each."""
    for note in dict.fromkeys(note for _, summary in summaries for note in summary.notes):
        yield f"{', '.join(group for group, summary in summaries if note in summary.notes)}: {note}"
    yield from (f"{group}: not in both files: {', '.join(summary.unmatched)}" for group, summary in summaries if summary.unmatched)
    yield from comparison.notes
    if comparison.only_base:
        yield f"only in the base: {', '.join(comparison.only_base)}"
    if comparison.only_head:
        yield f"only in the head: {', '.join(comparison.only_head)}"
