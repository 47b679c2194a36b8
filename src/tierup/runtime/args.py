"""A small command-line parser: options up to the first operand, then operands. Loads faster than argparse; errors are one line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class UsageError(Exception):
    """The command line is wrong. The message is one line."""


class Arguments:
    """What was on the command line: flags given, option values in order, and operands."""

    __slots__ = ("flags", "operands", "values")

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.operands: list[str] = []

    def value(self, option: str) -> str | None:
        """The last value given for an option, or None."""
        return self.values[option][-1] if option in self.values else None


def parse(argv: Sequence[str], options: Mapping[str, bool], *, stop_at: Sequence[str] = (), mixed: bool = False) -> Arguments:
    """Parses a command's arguments. Raises UsageError.

    options: option name → whether it takes a value. stop_at: options after whose value everything is an operand (`-m`).
    mixed: options may also stand behind operands; else everything from the first operand on is one.
    """
    result = Arguments()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            result.operands += rest
            break
        if not word.startswith("-") or word == "-":
            result.operands.append(word)
            if mixed:
                continue
            result.operands += rest
            break
        if _option(word, rest, options, result) in stop_at:
            result.operands += rest
            break
    return result


def _option(word: str, rest: list[str], options: Mapping[str, bool], result: Arguments) -> str:
    """Takes one option, and its value from `--name=value`, `-xvalue` or the next word."""
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    if name not in options:
        raise UsageError(f"unknown option {name}")
    if not options[name]:
        if equals:
            raise UsageError(f"option {name} takes no value")
        result.flags.add(name)
        return name
    if not equals:
        if not rest:
            raise UsageError(f"option {name} needs a value")
        value = rest.pop(0)
    result.values.setdefault(name, []).append(value)
    return name
