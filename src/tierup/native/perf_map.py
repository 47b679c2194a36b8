"""Names of kernels for Linux perf and other profilers: a perf map, as the kernel's tools/perf/Documentation/jit-interface.txt has it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tierup.runtime import config, events

DIRECTORY: Final = Path("/tmp")
"""Where profilers look, whatever TMPDIR says."""

_told: dict[int, tuple[int, str]] = {}
"""Address → size and name of what this process has named."""
_pid = 0


def announce(pieces: Iterable[tuple[int, int, str]]) -> None:
    """Adds code to this process's map, where `TIERUP_PERF_MAP` asks for one. pieces: address, size in bytes, name.

    A fork begins a map of its own, with what it took over. A map that cannot be written is an event, and the program goes on.
    """
    global _pid  # noqa: PLW0603 - one map a process
    if not config.current().perf_map:
        return
    new = {address: (size, name) for address, size, name in pieces}
    _told.update(new)
    try:
        _append(_told if _pid != os.getpid() else new)
    except OSError as error:
        events.record("error", "the perf map cannot be written", detail=str(error))
    _pid = os.getpid()


def _append(pieces: dict[int, tuple[int, str]]) -> None:
    text = "".join(f"{address:x} {size:x} tierup:{' '.join(name.split())}\n" for address, (size, name) in pieces.items())
    # The folder is everybody's: a link that someone left there is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(DIRECTORY / f"perf-{os.getpid()}.map", flags, 0o600)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
