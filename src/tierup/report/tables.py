"""Tables: with rules and colour on a terminal, as aligned plain text anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], file: TextIO | None = None) -> None:
    """Prints rows under column heads. Columns of numbers are set to the right."""
    out = sys.stdout if file is None else file
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [bool(rows) and all(isinstance(row[k], (int, float)) for row in rows) for k in range(len(columns))]
    if out.isatty():
        _print_rich(title, columns, cells, numeric, out)
    else:
        out.write(plain_table(title, columns, cells, numeric))


def plain_table(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """The table as text, for files and pipes."""
    widths = [max(len(line[k]) for line in [columns, *cells]) for k in range(len(columns))]
    lines = [title] if title else []
    for line in [columns, *cells]:
        aligned = (text.rjust(width) if right else text.ljust(width) for text, width, right in zip(line, widths, numeric, strict=True))
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines) + "\n"


def _print_rich(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(Text(text) for text in row))
    Console(file=out).print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
