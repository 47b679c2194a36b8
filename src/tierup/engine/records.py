"""Units as the plain records that reports show."""

from __future__ import annotations

from tierup.engine.units import SiteState, Specialisation, Unit
from tierup.graph.printer import print_graph
from tierup.report.records import BreakRecord, GraphRecord, GuardRecord, KernelRecord, SpecialisationRecord, UnitRecord


def unit_record(unit: Unit, texts: bool = False) -> UnitRecord:
    """Everything known of a unit. texts: with LLVM IR and assembly (made on demand)."""
    specs = [_specialisation(unit, site, i, texts) for site in unit.sites.values() for i in range(len(site.specs))]
    return UnitRecord(unit.name, unit.filename, unit.firstlineno, specs, _breaks(unit), unit.generated)


def _breaks(unit: Unit) -> list[BreakRecord]:
    stops = {stop.index: stop for site in unit.sites.values() for stop in site.stops.values()}
    ends = ("return", "the end of a loop's body")
    return [
        BreakRecord(stop.reason, unit.filename, stop.line, stop.inlined or unit.name)
        for _, stop in sorted(stops.items())
        if stop.reason not in ends
    ]


def _specialisation(unit: Unit, site: SiteState, number: int, texts: bool) -> SpecialisationRecord:
    spec = site.specs[number]
    guards = [GuardRecord(str(check), check.line) for check in spec.checks]
    landing = unit.line(spec.ends[-1].target_index)
    if spec.graph is None:
        lines = sorted({unit.line(end.target_index) for end in spec.ends})
        text = "left at line" + ("s " if len(lines) > 1 else " ") + ", ".join(map(str, lines))
        graph = GraphRecord("a whole loop", text, spec.operations, landing, unit.line(site.index))
    else:
        graph = GraphRecord(spec.graph.name, print_graph(spec.graph), spec.operations, landing, unit.line(site.index))
    return SpecialisationRecord(site.index, unit.line(site.index), guards, graph, _kernels(spec, texts), spec.compiled.plan.runs)


def _kernels(spec: Specialisation, texts: bool) -> list[KernelRecord]:
    return [
        KernelRecord(k.name, len(k.ops), k.from_cache, k.llvm_ir if texts else "", k.asm if texts else "") for k in spec.compiled.kernels
    ]
