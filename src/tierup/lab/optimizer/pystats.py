"""CPython's statistics.

A process of a build with `--enable-pystats` writes lines `key: number` to a file in /tmp/py_stats or to stderr (Python/specialize.c,
print_stats and print_optimization_stats); the figures of several processes add up key by key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tierup.lab.errors import ReadError
from tierup.lab.optimizer.model import Counts, OptimizerStats, Share

_ENDS: Final = {
    "trace stack overflow": "too many frames",
    "trace stack underflow": "returned from where it began",
    "trace too long": "too long",
    "inner loop": "inner loop",
    "recursive call": "recursive call",
    "low confidence": "low confidence in the jumps",
    "unknown callee": "unknown callee",
}
"""Key behind `Optimization ` → reason in words why a trace, which may still be good, ends (Python/optimizer.c)."""

_LENGTHS: Final = {
    "Trace length": "trace length",
    "Optimized trace length": "optimized trace length",
    "Trace run length": "trace run length",
}

_EXITS: Final = ("_EXIT_TRACE", "_COLD_EXIT", "_DYNAMIC_EXIT", "_COLD_DYNAMIC_EXIT")
"""Micro-operations that leave a trace by a side exit or its end."""

_INDEXED: Final = re.compile(r"(?P<table>[^\[]+)\[(?P<index>[^\]]*)\](?:\.(?P<field>[\w.]+))?")


def parse_lines(text: str) -> tuple[dict[str, int], list[str]]:
    """The counts of a text, equal keys added up, and the lines that are none; not those before the first count, which a program wrote."""
    counts: dict[str, int] = {}
    foreign = []
    for line in text.splitlines():
        key, colon, value = line.rpartition(":")
        if not line.strip():
            continue
        if colon and value.strip().isdecimal():
            counts[key.strip()] = counts.get(key.strip(), 0) + int(value)
        elif counts:
            foreign.append(line)
    return counts, foreign


def from_counts(path: Path, counts: Counts, problems: Iterable[str] = ()) -> OptimizerStats:
    """Statistics of CPython's optimizer. Raises ReadError where the counts have none."""
    if "Optimization attempts" not in counts:
        built = "that build has no optimizer (--enable-experimental-jit)" if any(key.startswith("opcode[") for key in counts) else ""
        raise ReadError(f"{path} has no statistics of an optimizer" + (f": {built}" if built else ""))

    def optimization(name: str) -> int:
        return counts.get(f"Optimization {name}", 0)

    created = optimization("traces created")
    uops = _table(counts, "uops", "execution_count")
    executed = sum(uops.values())
    lengths = {name: _histogram(counts, prefix) for prefix, name in _LENGTHS.items()}
    return OptimizerStats(
        path,
        "CPython",
        optimization("attempts"),
        created,
        {"too short": optimization("trace too short")},
        ends={words: optimization(name) for name, words in _ENDS.items() if f"Optimization {name}" in counts},
        pipeline=_pipeline(counts, created, sum(lengths["optimized trace length"].values())),
        executions=_executions(counts, uops),
        lengths={name: histogram for name, histogram in lengths.items() if histogram},
        unsupported=_table(counts, "unsupported_opcode", "count"),
        failed=_table(counts, "error_in_opcode", "count"),
        operations={name: Share(count, executed) for name, count in uops.items()},
        missed={name: Share(count, uops.get(name)) for name, count in _table(counts, "uops", "specialization.miss").items()},
        memory={key.removeprefix("JIT "): value for key, value in counts.items() if key.startswith("JIT ") and "[" not in key},
        problems=tuple(problems),
    )


def _pipeline(counts: Counts, created: int, executors: int) -> dict[str, Share]:
    runs = counts.get("Optimization optimizer attempts")
    rows = {"executors made": Share(executors, created)}
    if "Executors invalidated" in counts:
        rows["executors invalidated"] = Share(counts["Executors invalidated"], created)
    if runs is not None:
        rows["optimizer runs"] = Share(runs)
        for key, words in (
            ("Optimization optimizer successes", "optimizer successes"),
            ("Optimization optimizer failure no memory", "optimizer out of memory"),
            ("Optimizer remove globals builtins changed", "globals kept: builtins changed"),
            ("Optimizer remove globals incorrect keys", "globals kept: other keys"),
        ):
            if key in counts:
                rows[words] = Share(counts[key], runs)
    return rows


def _executions(counts: Counts, uops: Counts) -> dict[str, Share]:
    runs = counts.get("Optimization traces executed", 0)
    rows = {"traces executed": Share(runs), "micro-operations executed": Share(counts.get("Optimization uops executed", 0))}
    exits = {name: uops[name] for name in _EXITS if name in uops}
    rows |= {f"left by {name}": Share(count, runs) for name, count in exits.items()}
    misses = sum(_table(counts, "uops", "specialization.miss").values())
    return rows | ({"left where a condition failed": Share(misses, runs)} if misses else {})


def _table(counts: Counts, table: str, field: str) -> dict[str, int]:
    """The counts `table[name].field`, the largest first."""
    found: dict[str, int] = {}
    for key, count in counts.items():
        match = _INDEXED.fullmatch(key)
        if match and match["table"] == table and match["field"] == field and count:
            # Files before April 2024 miss the underscore of some micro-operations.
            name = match["index"] if table != "uops" or match["index"].startswith("_") else f"_{match['index']}"
            found[name] = found.get(name, 0) + count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _histogram(counts: Counts, prefix: str) -> Mapping[int, int]:
    """The buckets from the first to the last that is not empty."""
    buckets: dict[int, int] = {}
    for key, count in counts.items():
        match = _INDEXED.fullmatch(key)
        if match and match["table"] == prefix and match["index"].isdecimal():
            buckets[int(match["index"])] = count
    full = [upper for upper, count in buckets.items() if count]
    return {upper: buckets[upper] for upper in sorted(buckets) if full and min(full) <= upper <= max(full)}
