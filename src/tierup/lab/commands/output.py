"""How the commands say things: numbers with their units, what is partial, JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from tierup.runtime.args import UsageError

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
    factor = max(head_over_base, 1 / head_over_base)
    if f"{factor:.3f}" == "1.000":
        return "1.000x"
    return f"{factor:.3f}x {'slower' if head_over_base > 1 else 'faster'}"


def help_text(text: str) -> Callable[[], int]:
    """The work of `--help`."""

    def work() -> int:
        print(text, end="")
        return 0

    return work


def existing(word: str) -> Path:
    """The path that a word of the command line names. Raises UsageError where there is nothing."""
    path = Path(word)
    if not path.exists():
        raise UsageError(f"there is no file {word!r}")
    return path


def print_json(data: Any) -> None:
    """Prints plain data; not-a-number and infinity, which JSON does not have, are an error of ours."""
    print(json.dumps(data, indent=1, allow_nan=False))


def warn(command: str, lines: Iterable[str]) -> None:
    """Says on stderr what is not as it should be."""
    for line in lines:
        print(f"tierup lab {command}: {line}", file=sys.stderr)
