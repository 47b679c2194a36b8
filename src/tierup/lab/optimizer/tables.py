"""Statistics of one optimizer, or of two side by side, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierup.lab.optimizer.model import Counts, OptimizerStats, Share

MOST: Final = 20
"""Rows of a table of operations."""


@dataclass(frozen=True)
class Row:
    """A figure with its share of a whole, 0 to 1, if it is part of one."""

    name: str
    value: float
    share: float | None = None


@dataclass(frozen=True)
class Table:
    """Figures that belong together."""

    title: str
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {row.name: {"value": row.value, "share": row.share} for row in self.rows}


def tables(stats: OptimizerStats) -> list[Table]:
    """All tables that the statistics have something for."""
    return [table for table in _tables(stats) if table.rows]


def _tables(stats: OptimizerStats) -> Iterator[Table]:
    yield Table("attempts", tuple(_attempts(stats)))
    yield _parts("where captures end", stats.ends, stats.all_attempts)
    yield _shares("what became of them", stats.pipeline)
    yield Table("executions", tuple(_executions(stats)))
    for name, histogram in stats.lengths.items():
        counts = {length_range(upper): count for upper, count in histogram.items()}
        yield _parts(name, counts, sum(counts.values()))
    yield _parts("unsupported operations", stats.unsupported, sum(stats.unsupported.values()), MOST)
    yield _parts("operations at which the optimizer gave up", stats.failed, sum(stats.failed.values()), MOST)
    yield _shares("operations executed most", stats.operations, MOST)
    yield _shares("operations whose condition failed most", stats.missed, MOST)
    yield Table("memory, bytes", tuple(Row(name, count) for name, count in stats.memory.items()))
    total = sum(stats.seconds.values())
    yield Table("time in the optimizer, seconds", tuple(Row(phase, time, _ratio(time, total)) for phase, time in stats.seconds.items()))


def length_range(upper: int) -> str:
    """The lengths that a bucket holds: 17 to 32."""
    lower = upper // 2 + 1
    return f"{lower} to {upper}" if lower < upper else str(upper)


def _attempts(stats: OptimizerStats) -> Iterator[Row]:
    everything = stats.all_attempts
    yield Row("attempts", stats.attempts, _ratio(stats.attempts, everything) if stats.uncounted else None)
    if stats.uncounted:
        yield Row("attempts not counted, of side exits", stats.uncounted, _ratio(stats.uncounted, everything))
    yield Row("created", stats.created, _ratio(stats.created, everything))
    for reason, count in stats.rejected.items():
        yield Row(f"rejected: {reason}", count, _ratio(count, everything))
    rest = everything - stats.created - sum(stats.rejected.values())
    if rest > 0:
        yield Row("neither created nor rejected", rest, _ratio(rest, everything))


def _executions(stats: OptimizerStats) -> Iterator[Row]:
    yield from _shares("", stats.executions).rows
    per_trace = micro_operations_per_trace(stats)
    if per_trace is not None:
        yield Row("micro-operations per trace", per_trace)


def micro_operations_per_trace(stats: OptimizerStats) -> float | None:
    """How long a trace runs on average before it is left; None where that is not counted."""
    runs, operations = (stats.executions.get(name, Share(0)).count for name in ("traces executed", "micro-operations executed"))
    return operations / runs if runs else None


def _shares(title: str, rows: Mapping[str, Share], most: int | None = None) -> Table:
    chosen = list(rows.items())[:most]
    return Table(title, tuple(Row(name, share.count, _ratio(share.count, share.of)) for name, share in chosen))


def _parts(title: str, counts: Counts, whole: int, most: int | None = None) -> Table:
    return _shares(title, {name: Share(count, whole) for name, count in counts.items()}, most)


def _ratio(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True)
class Joined:
    """A row of two tables; None where one does not have it."""

    name: str
    base: Row | None
    head: Row | None

    @property
    def change(self) -> float | None:
        """head/base - 1, of the values."""
        return self.head.value / self.base.value - 1 if self.base and self.head and self.base.value else None


def side_by_side(base: Sequence[Table], head: Sequence[Table]) -> list[tuple[str, list[Joined]]]:
    """The tables of two statistics, joined by title and by name of row, in the order of the base."""
    rows = [{table.title: {row.name: row for row in table.rows} for table in side} for side in (base, head)]
    joined = []
    for title in dict.fromkeys(table.title for table in (*base, *head)):
        left, right = (side.get(title, {}) for side in rows)
        names = sorted({*left, *right}, key=_first_number) if title in _LENGTH_TITLES else dict.fromkeys((*left, *right))
        joined.append((title, [Joined(name, left.get(name), right.get(name)) for name in names]))
    return joined


_LENGTH_TITLES: Final = ("trace length", "optimized trace length", "trace run length")


def _first_number(name: str) -> int:
    return int(name.partition(" ")[0])
