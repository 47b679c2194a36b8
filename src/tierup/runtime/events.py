"""What happened, with its reason and its place: a bounded log of events, and the stage log of `TIERUP_LOG`."""

from __future__ import annotations

import os

from tierup.runtime import config, stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

KINDS: Final = ("attempt", "specialised", "break", "miss", "rejected", "backoff", "abandoned", "error", "cache", "note")
"""attempt: a translation began; specialised: a site got a specialisation; break: capture ended at something it does not know;
miss: a site had no specialisation for the values at hand; rejected: a translation was thrown away; backoff: a site waits longer until
the next attempt; abandoned: a site is never tried again; error: something failed inside tierup and the user's code ran without it;
cache: the object cache was hit, missed or could not be used; note: anything else worth telling."""

LIMIT: Final = 4096
"""So many events are kept, the newest ones; counts and places in `stats` are complete."""


class Event:
    """One thing that happened. line is 0 and file empty where there is no place."""

    __slots__ = ("detail", "file", "function", "kind", "line", "reason")

    def __init__(self, kind: str, reason: str, file: str = "", line: int = 0, function: str = "", detail: str = "") -> None:
        self.kind = kind
        self.reason = reason
        self.file = file
        self.line = line
        self.function = function
        self.detail = detail

    def __str__(self) -> str:
        place = f" at {self.file}:{self.line}" if self.file else ""
        inside = f" in {self.function}" if self.function else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind}: {self.reason}{place}{inside}{detail}"

    def __repr__(self) -> str:
        return f"<Event {self}>"

    def to_dict(self) -> dict[str, object]:
        """Field names and values."""
        return {name: getattr(self, name) for name in self.__slots__}


_log: list[Event] = []


def record(kind: str, reason: str, file: str = "", line: int = 0, function: str = "", detail: str = "") -> Event:
    """Notes that something happened: counted in the statistics, kept in the event log, printed if `TIERUP_LOG` has `runtime`."""
    if kind not in KINDS:
        raise ValueError(f"unknown event kind {kind!r}")
    event = Event(kind, reason, file, line, function, detail)
    stats.count_event(kind, reason, file, line, function)
    _log.append(event)
    if len(_log) >= 2 * LIMIT:
        del _log[:-LIMIT]
    if wants("runtime"):
        log("runtime", str(event))
    return event


def recent(kind: str | None = None) -> list[Event]:
    """The newest events, oldest first, of one kind or of all."""
    return [event for event in _log[-LIMIT:] if kind is None or event.kind == kind]


def clear() -> None:
    """Forgets all events."""
    _log.clear()


def wants(stage: str) -> bool:
    """Whether `TIERUP_LOG` asks for this stage; ask before building a long text."""
    return stage in config.current().log


def log(stage: str, text: str) -> None:
    """Prints text to stderr, each line marked with the stage, if `TIERUP_LOG` asks for it.

    Straight to the file descriptor: `sys.stderr` may be an object of the user's, and translation runs no user code.
    """
    if stage not in config.current().log:
        return
    data = "".join(f"tierup {stage}: {line}\n" for line in text.splitlines() or [""]).encode(errors="backslashreplace")
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        # stderr is closed or full: there is nobody left to tell, and a log must not stop the program.
        return
