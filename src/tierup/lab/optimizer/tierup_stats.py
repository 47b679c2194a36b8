"""tierup's own statistics."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tierup.lab.optimizer.model import OptimizerStats, Share
from tierup.runtime.stats import Stats


def from_stats(path: Path, stats: Stats, problems: Iterable[str] = ()) -> OptimizerStats:
    """The counters of tierup under the names that all optimizers share."""
    visits = stats.hits + stats.misses
    looked_up = stats.cache_hits + stats.cache_misses
    return OptimizerStats(
        path,
        "tierup",
        stats.attempts,
        stats.specialisations,
        stats.rejected,
        ends=stats.by_reason("break"),
        pipeline={
            "kernels made": Share(stats.kernels),
            "found in the object cache": Share(stats.cache_hits, looked_up),
            "sites backed off": Share(stats.backed_off),
            "sites abandoned": Share(stats.abandoned),
            "errors inside": Share(stats.errors),
        },
        executions={
            "visits of sites": Share(visits),
            "hits": Share(stats.hits, visits),
            "misses": Share(stats.misses, visits),
            "left before any effect": Share(stats.side_exits, visits),
        },
        seconds=stats.translate_seconds,
        problems=tuple(problems),
    )
