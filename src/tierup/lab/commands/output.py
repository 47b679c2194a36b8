"""What the commands have in common: help, files, JSON, warnings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tierup.runtime.args import UsageError


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
