"""The report of `tierup.explain` and `tierup explain`: what was captured, what was not, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tierup.report.records import BreakRecord, GraphRecord, GuardRecord, KernelRecord, SpecialisationRecord, UnitRecord
from tierup.runtime.stats import Stats


class Report:
    """What tierup did with a call or a program. `print(report)` for people, `to_dict()` for programs."""

    def __init__(
        self,
        units: Sequence[UnitRecord],
        *,
        seconds: Mapping[str, float] | None = None,
        stats: Stats | None = None,
        value: object = None,
    ) -> None:
        """units: the code objects involved. seconds: time by phase. stats: the counters of the run. value: what the call returned."""
        self.units = list(units)
        self.seconds = dict(seconds if seconds is not None else stats.translate_seconds if stats is not None else {})
        self.stats = stats
        self.value = value

    @property
    def specialisations(self) -> list[SpecialisationRecord]:
        """Those of all units."""
        return [specialisation for unit in self.units for specialisation in unit.specialisations]

    @property
    def graphs(self) -> list[GraphRecord]:
        """The graph of every specialisation."""
        return [specialisation.graph for specialisation in self.specialisations]

    @property
    def kernels(self) -> list[KernelRecord]:
        """The kernels of all specialisations."""
        return [kernel for specialisation in self.specialisations for kernel in specialisation.kernels]

    @property
    def guards(self) -> list[GuardRecord]:
        """The guards of all specialisations."""
        return [guard for specialisation in self.specialisations for guard in specialisation.guards]

    @property
    def breaks(self) -> list[BreakRecord]:
        """Graph breaks, each place and reason once."""
        return list(dict.fromkeys(entry for unit in self.units for entry in unit.breaks))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; the returned value is not in it."""
        return {
            "units": [asdict(replace(unit, generated_code=None)) for unit in self.units],
            "breaks": [asdict(entry) for entry in self.breaks],
            "graphs": len(self.graphs),
            "kernels": len(self.kernels),
            "guards": len(self.guards),
            "seconds": self.seconds,
            "stats": self.stats.to_dict() if self.stats is not None else None,
        }

    def __repr__(self) -> str:
        return f"<Report: {self._summary()}>"

    def __str__(self) -> str:
        lines = [self._summary()]
        for unit in self.units:
            lines += ["", *_unit_lines(unit)]
        failures = [] if self.stats is None else [*self.stats.of_kind("error"), *self.stats.of_kind("rejected")]
        if failures:
            lines += ["", "given back to the interpreter:", *(f"  {place}" for place in failures)]
        if self.seconds:
            lines += ["", "time by phase:", *(f"  {phase:12} {value * 1e3:9.2f} ms" for phase, value in self.seconds.items())]
        return "\n".join(lines)

    def _summary(self) -> str:
        parts = [
            _counted(len(self.graphs), "graph"),
            f"{_counted(len(self.kernels), 'kernel')} ({sum(kernel.from_cache for kernel in self.kernels)} from the cache)",
            _counted(len(self.breaks), "break"),
            _counted(len(self.guards), "guard"),
        ]
        return ", ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _unit_lines(unit: UnitRecord) -> list[str]:
    lines = [f"{unit.function} ({unit.file}:{unit.line})"]
    for specialisation in unit.specialisations:
        lines += [f"  {line}" for line in specialisation_lines(specialisation)]
    for entry in dict.fromkeys(unit.breaks):
        inside = "" if entry.function == unit.function else f" in {entry.function}"
        lines.append(f"  break at {entry.file}:{entry.line}{inside}: {entry.reason}")
    if not unit.specialisations and not unit.breaks:
        lines.append("  nothing captured")
    return lines


def specialisation_lines(specialisation: SpecialisationRecord) -> list[str]:
    """A specialisation as indented text: where it begins and ends, its guards, graph and kernels."""
    graph = specialisation.graph
    until = f" to line {graph.landing_line}" if graph.landing_line else ""
    lines = [
        f"from line {specialisation.site_line}{until}: {_counted(graph.ops, 'operation')}, "
        f"{_counted(len(specialisation.kernels), 'kernel')}, {_counted(specialisation.hits, 'hit')}"
    ]
    if specialisation.guards:
        lines.append("  guards:")
        lines += [f"    {guard.text}{f'  (line {guard.line})' if guard.line else ''}" for guard in specialisation.guards]
    lines.append(f"  graph {graph.name}:".rstrip())
    lines += [f"    {line}" for line in graph.text.splitlines()]
    for kernel in specialisation.kernels:
        origin = "from the cache" if kernel.from_cache else "compiled"
        lines.append(f"  kernel {kernel.name}: {_counted(kernel.ops, 'operation')}, {origin}")
    return lines
