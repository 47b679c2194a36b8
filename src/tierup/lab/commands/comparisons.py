"""What the commands that compare results have in common: their operands and options, and reading the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, get_args

from tierup.lab.commands.output import existing
from tierup.lab.compare import Comparison, Method, compare
from tierup.lab.results.groups import read_groups
from tierup.lab.results.model import Results
from tierup.lab.results.read import read
from tierup.runtime.args import Arguments, UsageError

OPTIONS: Final = {"--groups": True, "--exact-names": False, "--hpt": True, "--json": False, "--help": False, "-h": False}

OPTIONS_HELP: Final = """\
  --groups FILE         also compare groups of benchmarks: a JSON file {GROUP: [benchmark, …]}, such as `tierup lab characterize` writes
  --exact-names         take the names in it as they are; else `logging` also means `logging_format` and such
  --hpt METHOD          how reliability is computed: default, or bench-runner, with the same numbers as that tool
"""


@dataclass(frozen=True)
class Comparisons:
    """Heads against one base."""

    base: Results
    method: Method
    heads: Mapping[str, Comparison]
    """Name of the head → comparison, in the order of the command line; names are paths where two files have the same."""

    @property
    def problems(self) -> list[str]:
        """What of the files could not be used, a line each."""
        return [*self.base.problems, *(problem for comparison in self.heads.values() for problem in comparison.head.problems)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        problems = self.problems
        return {
            "base": {"name": self.base.name, "path": str(self.base.path), "python": self.base.python},
            "hpt": self.method,
            "heads": [comparison.to_dict(name) for name, comparison in self.heads.items()],
            "partial": bool(problems),
            "problems": problems,
        }


@dataclass(frozen=True)
class Request:
    """Which files to compare, and how."""

    base: Path
    heads: tuple[Path, ...]
    groups: Path | None
    method: Method
    exact_names: bool

    def load(self) -> Comparisons:
        """Reads and compares the files. Raises LabError."""
        groups = read_groups(self.groups) if self.groups is not None else {}
        base = read(self.base)
        compared = [compare(base, read(path), groups, method=self.method, exact_names=self.exact_names) for path in self.heads]
        return Comparisons(base, self.method, dict(zip(_names([one.head for one in compared]), compared, strict=True)))


def request(command: str, arguments: Arguments) -> Request:
    """What the command line asks for. Raises UsageError."""
    if len(arguments.operands) < 2:
        raise UsageError(f"needs a base and at least one head: tierup lab {command} BASE HEAD…")
    method = arguments.value("--hpt") or "default"
    if method not in get_args(Method):
        raise UsageError(f"--hpt must be one of {', '.join(get_args(Method))}, not {method!r}")
    base, *heads = (existing(word) for word in arguments.operands)
    groups = arguments.value("--groups")
    groups_path = existing(groups) if groups is not None else None
    return Request(base, tuple(heads), groups_path, cast(Method, method), "--exact-names" in arguments.flags)


def _names(heads: Sequence[Results]) -> list[str]:
    counts = Counter(head.name for head in heads)
    seen: Counter[str] = Counter()
    names = []
    for head in heads:
        name = head.name if counts[head.name] == 1 else str(head.path)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
