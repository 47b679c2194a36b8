"""Counters of the process, by reason and place; their file form and its merge.

The counters are plain dict entries changed under the GIL. Hits and misses are counted inside the sites; whoever owns the sites
registers a provider that adds them up when a snapshot is taken.
"""

from __future__ import annotations

import atexit
import os
import sys
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, Final

COUNTERS: Final = (
    "attempts",
    "specialisations",
    "hits",
    "misses",
    "side_exits",
    "rejections",
    "backed_off",
    "abandoned",
    "errors",
    "kernels",
    "cache_hits",
    "cache_misses",
)
"""The plain counters. side_exits: runs of a specialisation that gave up before any effect (overflow, floating-point alarm)."""

_COUNTER_OF_KIND: Final = {
    "attempt": "attempts",
    "specialised": "specialisations",
    "miss": "misses",
    "rejected": "rejections",
    "backoff": "backed_off",
    "abandoned": "abandoned",
    "error": "errors",
}
_COUNTER_OF_CACHE_REASON: Final = {"hit": "cache_hits", "miss": "cache_misses"}

MAX_PLACES: Final = 10_000
"""From so many different places on, further ones are counted by kind and reason only."""

FILE_VERSION: Final = 1


class Place:
    """How often one thing happened for one reason at one place."""

    __slots__ = ("count", "file", "function", "kind", "line", "reason")

    def __init__(self, kind: str, reason: str, file: str, line: int, function: str, count: int) -> None:
        self.kind = kind
        self.reason = reason
        self.file = file
        self.line = line
        self.function = function
        self.count = count

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """Everything but the count."""
        return (self.kind, self.reason, self.file, self.line, self.function)

    def to_dict(self) -> dict[str, object]:
        """Field names and values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file else "?"
        inside = f" in {self.function}" if self.function else ""
        return f"{self.count} × {self.reason} ({where}{inside})"

    def __repr__(self) -> str:
        return f"<Place {self.kind}: {self}>"


class Stats:
    """A snapshot of the counters, or the sum of several processes' snapshots."""

    attempts: int
    specialisations: int
    hits: int
    misses: int
    side_exits: int
    rejections: int
    backed_off: int
    abandoned: int
    errors: int
    kernels: int
    cache_hits: int
    cache_misses: int

    def __init__(
        self,
        counters: Mapping[str, int] | None = None,
        places: Iterable[Place] = (),
        translate_seconds: Mapping[str, float] | None = None,
        processes: int = 1,
    ) -> None:
        for name in COUNTERS:
            setattr(self, name, (counters or {}).get(name, 0))
        self.places = sorted(places, key=lambda place: (-place.count, place.key))
        """Every reason and place, most frequent first."""
        self.translate_seconds = dict(translate_seconds or {})
        """Seconds by phase; a phase does not include the phases inside it."""
        self.processes = processes

    def of_kind(self, kind: str) -> list[Place]:
        """The places of one kind of event, most frequent first."""
        return [place for place in self.places if place.kind == kind]

    def by_reason(self, kind: str) -> dict[str, int]:
        """Counts of one kind of event by reason, most frequent first."""
        counts: dict[str, int] = {}
        for place in self.of_kind(kind):
            counts[place.reason] = counts.get(place.reason, 0) + place.count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def breaks(self) -> list[Place]:
        """Graph breaks, with reason and place."""
        return self.of_kind("break")

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected attempts by reason."""
        return self.by_reason("rejected")

    def merged(self, other: Stats) -> Stats:
        """The sum of two snapshots."""
        counters = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        places: dict[tuple[str, str, str, int, str], Place] = {}
        for place in (*self.places, *other.places):
            known = places.get(place.key)
            places[place.key] = Place(*place.key, place.count + (known.count if known else 0))
        seconds = dict(self.translate_seconds)
        for phase, value in other.translate_seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + value
        return Stats(counters, places.values(), seconds, self.processes + other.processes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "version": FILE_VERSION,
            "processes": self.processes,
            **{name: getattr(self, name) for name in COUNTERS},
            "translate_seconds": self.translate_seconds,
            "places": [place.to_dict() for place in self.places],
        }

    @classmethod
    def from_dict(cls, data: object) -> Stats:
        """The inverse of `to_dict`. Raises ValueError where the data are not such a dict."""
        try:
            assert isinstance(data, dict) and data["version"] == FILE_VERSION
            places = [Place(**{name: _typed(place[name], Place, name) for name in Place.__slots__}) for place in data["places"]]
            seconds = {str(phase): float(value) for phase, value in data["translate_seconds"].items()}
            counters = {name: int(data[name]) for name in COUNTERS}
            return cls(counters, places, seconds, int(data["processes"]))
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("not a statistics file of this version") from error

    def __str__(self) -> str:
        lines = [f"{name.replace('_', ' '):16}{getattr(self, name)}" for name in COUNTERS]
        if self.translate_seconds:
            phases = ", ".join(f"{phase} {value * 1e3:.1f} ms" for phase, value in sorted(self.translate_seconds.items()))
            lines.append(f"translation     {phases}")
        for kind in dict.fromkeys(place.kind for place in self.places):
            lines.append(f"{kind}:")
            lines += [f"  {place}" for place in self.of_kind(kind)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={getattr(self, name)}" for name in COUNTERS if getattr(self, name))
        return f"Stats({changed})"


def _typed(value: object, _cls: type, name: str) -> Any:
    wanted: type = int if name in ("line", "count") else str
    if type(value) is not wanted:
        raise TypeError(name)
    return value


_counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
_places: dict[tuple[str, str, str, int, str], int] = {}
_seconds: dict[str, float] = {}
_providers: list[Callable[[], Mapping[str, int]]] = []
_baseline: dict[str, int] = {}


def count(counter: str, amount: int = 1) -> None:
    """Adds to one of COUNTERS."""
    _counters[counter] += amount


def count_event(kind: str, reason: str, file: str, line: int, function: str) -> None:
    """Counts an event; called by `events.record`."""
    counter = _COUNTER_OF_CACHE_REASON.get(reason) if kind == "cache" else _COUNTER_OF_KIND.get(kind)
    if counter is not None:
        _counters[counter] += 1
    if kind == "attempt" or (kind == "cache" and counter is not None):
        return  # the counter says it all
    key = (kind, reason, file, line, function)
    if key not in _places and len(_places) >= MAX_PLACES:
        key = (kind, reason, "", 0, "")
    _places[key] = _places.get(key, 0) + 1


def add_provider(provider: Callable[[], Mapping[str, int]]) -> None:
    """Registers a function that returns counts kept elsewhere, as totals since the process began; they are added at a snapshot."""
    _providers.append(provider)


def _provided() -> dict[str, int]:
    totals: dict[str, int] = {}
    for provider in _providers:
        for name, value in provider().items():
            totals[name] = totals.get(name, 0) + value
    return totals


def snapshot() -> Stats:
    """The counters now."""
    counters = dict(_counters)
    for name, value in _provided().items():
        # A total may shrink when its owner forgets sites; a count never goes below zero for it.
        counters[name] += max(0, value - _baseline.get(name, 0))
    places = [Place(*key, number) for key, number in list(_places.items())]
    return Stats(counters, places, dict(_seconds))


def translated_seconds() -> float:
    """Seconds spent on translation so far, all phases."""
    return sum(_seconds.values())


def reset() -> None:
    """Starts all counters at zero again."""
    _baseline.clear()
    _baseline.update(_provided())
    for name in COUNTERS:
        _counters[name] = 0
    _places.clear()
    _seconds.clear()


class timed:
    """`with timed("capture"):` adds the time of the block to a phase, less the time of `timed` blocks inside it."""

    __slots__ = ("inner", "outer", "phase", "start")
    _innermost: timed | None = None

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __enter__(self) -> None:
        # Translation happens in one thread at a time (the engine's lock), so one chain is enough.
        self.outer = timed._innermost
        timed._innermost = self
        self.inner = 0.0
        self.start = perf_counter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        elapsed = perf_counter() - self.start
        timed._innermost = self.outer
        if self.outer is not None:
            self.outer.inner += elapsed
        _seconds[self.phase] = _seconds.get(self.phase, 0.0) + elapsed - self.inner


def start() -> None:
    """Arranges for the statistics to be written at exit if `TIERUP_STATS_DIR` asks for it. Called once tierup is really used."""
    global _started  # noqa: PLW0603
    if _started:
        return
    _started = True
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(_dump_at_exit)


_started = False


def _after_fork() -> None:
    """A child counts for itself. Children of multiprocessing leave by os._exit, past atexit, but run its finalizers."""
    reset()
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_dump_at_exit, lambda dump: util.Finalize(None, dump, exitpriority=0))


def _dump_at_exit() -> None:
    from tierup.runtime import config

    directory = config.current().stats_dir
    if directory is None:
        return
    try:
        write_file(directory)
    except OSError as error:
        os.write(2, f"tierup: cannot write statistics to {directory}: {error.strerror}\n".encode())


def write_file(directory: str) -> str:
    """Writes this process's snapshot to a file of its own in the directory, at once or not at all; returns its path."""
    import json
    import time

    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"tierup-{os.getpid()}-{time.time_ns()}.json")
    data = snapshot().to_dict()
    data["program"] = list(sys.orig_argv)
    data["python"] = ".".join(map(str, sys.version_info[:3]))
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(data, file, indent=1)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    return path


def read_directory(directory: str) -> tuple[Stats, list[str]]:
    """The sum of a directory's statistics files, and a line for each that could not be read. Raises OSError for the directory itself."""
    import json

    total = Stats(processes=0)
    problems = []
    for name in sorted(os.listdir(directory)):
        if not (name.startswith("tierup-") and name.endswith(".json")):
            continue
        path = os.path.join(directory, name)
        try:
            with open(path, encoding="utf-8") as file:
                total = total.merged(Stats.from_dict(json.load(file)))
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {error}")
    return total, problems
