"""What stands out in the statistics of an optimizer, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tierup.lab.optimizer.model import OptimizerStats, Share
from tierup.lab.optimizer.tables import length_range, micro_operations_per_trace

MOSTLY: Final = 0.5
"""A reason that has such a share of the attempts stands out."""
NEARLY_ALL: Final = 0.9
"""Lengths between two powers of two that have such a share stand out."""
SHORT_RUN: Final = 10
"""Micro-operations that pay for entering and leaving a trace: fewer stand out."""


def observations(stats: OptimizerStats) -> list[str]:
    """Sentences, the weightiest first."""
    return [sentence for rule in _RULES for sentence in rule(stats)]


def differences(base: OptimizerStats, head: OptimizerStats) -> list[str]:
    """What is quite different in the head."""
    if base.optimizer != head.optimizer:
        return [f"{base.optimizer}'s optimizer against {head.optimizer}'s: counts of the same name are counted at different places"]
    return [*_changed("attempts", base.all_attempts, head.all_attempts), *_success_changed(base, head)]


def _rejections(stats: OptimizerStats) -> Iterator[str]:
    for reason, count in stats.rejected.items():
        if stats.all_attempts and count / stats.all_attempts >= MOSTLY:
            yield f"{_of(count, stats.all_attempts)} attempts were rejected: {reason}"


def _side_exits(stats: OptimizerStats) -> Iterator[str]:
    if stats.uncounted and stats.attempts:
        times = stats.uncounted / stats.attempts
        yield (
            f"{stats.uncounted:,} traces were created or rejected that were not counted as attempts: attempts from side exits outnumber "
            f"the rest by {times:,.0f} to 1"
            if times >= 1.5
            else f"{stats.uncounted:,} traces were created or rejected that were not counted as attempts, such as those from side exits"
        )


def _success(stats: OptimizerStats) -> Iterator[str]:
    if stats.all_attempts and stats.created / stats.all_attempts < MOSTLY:
        yield f"{_of(stats.created, stats.all_attempts)} attempts gave code"
    runs = stats.pipeline.get("optimizer runs", Share(0)).count
    successes = stats.pipeline.get("optimizer successes", Share(0)).count
    if runs and successes / runs < MOSTLY:
        yield f"{_of(successes, runs)} runs of the optimizer succeeded"
    made = stats.pipeline.get("executors made")
    if made and made.of and made.count / made.of < MOSTLY:
        yield f"{_of(made.count, made.of)} traces created became executors"


def _lengths(stats: OptimizerStats) -> Iterator[str]:
    for name, histogram in stats.lengths.items():
        total = sum(histogram.values())
        upper = max(histogram, key=lambda bucket: histogram[bucket])
        if histogram[upper] / total >= NEARLY_ALL:
            yield f"{_percent(histogram[upper], total)} of the {_PLURALS[name]} have {length_range(upper)} instructions"


_PLURALS: Final = {"trace length": "traces", "optimized trace length": "optimized traces", "trace run length": "runs of traces"}


def _unsupported(stats: OptimizerStats) -> Iterator[str]:
    total = sum(stats.unsupported.values())
    for name, count in list(stats.unsupported.items())[:1]:
        yield f"{name} ends most captures: {_percent(count, total)} of the operations met that are not supported"


def _runs(stats: OptimizerStats) -> Iterator[str]:
    length = micro_operations_per_trace(stats)
    if length is not None and length < SHORT_RUN:
        yield f"a trace runs for {length:.1f} micro-operations before it is left, which hardly pays for entering it"
    if length is None and stats.created and stats.optimizer == "CPython":
        yield "traces were created, but none was executed"


def _waste(stats: OptimizerStats) -> Iterator[str]:
    gone = stats.pipeline.get("executors invalidated")
    if gone and gone.of and gone.count / gone.of >= 0.1:
        yield f"{_percent(gone.count, gone.of)} of the traces created were invalidated again"
    misses = stats.executions.get("misses")
    if misses and misses.of and misses.count / misses.of >= MOSTLY:
        yield f"{_of(misses.count, misses.of)} visits of sites found no specialisation that fits"
    for name in ("sites abandoned", "errors inside"):
        count = stats.pipeline.get(name, Share(0)).count
        if count:
            yield f"{count:,} {name}"


def _time(stats: OptimizerStats) -> Iterator[str]:
    total = sum(stats.seconds.values())
    if total:
        phase = max(stats.seconds, key=lambda name: stats.seconds[name])
        yield f"{total:.3g} s were spent in the optimizer, {_percent(stats.seconds[phase], total)} of that in {phase}"


_RULES: Final[tuple[Callable[[OptimizerStats], Iterator[str]], ...]] = (
    _rejections,
    _side_exits,
    _success,
    _lengths,
    _unsupported,
    _runs,
    _waste,
    _time,
)


def _changed(what: str, base: int, head: int) -> Iterator[str]:
    if base and head and max(base, head) >= 2 * min(base, head):
        word = "more" if head > base else "fewer"
        yield f"{max(base, head) / min(base, head):,.1f} times {'as many' if word == 'more' else 'fewer'} {what}: {base:,} against {head:,}"


def _success_changed(base: OptimizerStats, head: OptimizerStats) -> Iterator[str]:
    rates = [stats.created / stats.all_attempts if stats.all_attempts else 0.0 for stats in (base, head)]
    if abs(rates[1] - rates[0]) >= 0.1:
        yield f"{100 * rates[1]:.1f} % of attempts gave code, against {100 * rates[0]:.1f} % in the base"


def _of(part: int, whole: int) -> str:
    return f"{_percent(part, whole)} of the {whole:,}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"
