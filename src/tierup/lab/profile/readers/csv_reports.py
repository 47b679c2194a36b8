"""CSV reports of perf, one a benchmark.

Columns by name: `self` and `symbol`; `object`, `shared obj` or `shared_obj`; perhaps `pid`, `command`, `children`. With a `pid`, `self` is
a period, else a percentage, as in the public reports of the faster-cpython project.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Final

from tierup.lab.errors import ReadError
from tierup.lab.profile.model import Profile, Row, Unit
from tierup.lab.profile.readers.text import Complaints, finish, weight
from tierup.lab.profile.symbols import printable

_OBJECT: Final = ("object", "shared obj", "shared_obj", "shared object", "dso")


def is_report(text: str) -> bool:
    """Whether the first line names the columns of such a report."""
    first = text.lstrip("\n").partition("\n")[0].lower()
    return "self" in first and "symbol" in first and "," in first


def parse(name: str, text: str, problems: Sequence[str] = ()) -> Profile:
    """The profile of a report's text. Raises ReadError where nothing of it can be used."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    columns = _columns(lines[0])
    unit: Unit = "period" if "pid" in columns else "percent"
    complaints = Complaints()
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            rows.append(_row(line, columns))
        except (ValueError, csv.Error) as error:
            complaints.line(number, str(error))
    return finish(name, rows, unit, (*problems, *complaints.summary()))


def to_csv(profile: Profile) -> str:
    """A profile as such a report, with all that the columns can say."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if profile.unit == "percent":
        writer.writerow(("self", "object", "symbol"))
        writer.writerows((row.weight, printable(row.object), printable(row.symbol)) for row in profile.rows)
    else:
        writer.writerow(("self", "pid", "command", "shared_obj", "symbol"))
        for row in profile.rows:
            pid = "" if row.pid is None else row.pid
            writer.writerow((row.weight, pid, printable(row.command), printable(row.object), printable(row.symbol)))
    return text.getvalue()


def _columns(line: str) -> Mapping[str, int]:
    try:
        names = [name.strip().lower() for name in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise ReadError(f"the first line names no columns: {error}") from None
    columns = {name: place for place, name in enumerate(names)}
    obj = next((columns[name] for name in _OBJECT if name in columns), None)
    missing = [name for name in ("self", "symbol") if name not in columns]
    if missing or obj is None:
        raise ReadError(f"the first line names no column {(missing or ['object'])[0]!r}, but {printable(', '.join(names))[:80]}")
    if columns["symbol"] != len(names) - 1:
        raise ReadError("the symbol has to be the last column")
    return {**columns, "object": obj}


def _row(line: str, columns: Mapping[str, int]) -> Row:
    """One line's row. A symbol may hold commas, since some tools write no quotes."""
    fields = next(csv.reader([line], strict=line.count('"') % 2 == 0))
    last = columns["symbol"]
    if len(fields) <= last:
        raise ValueError(f"{len(fields)} columns where there should be {last + 1} (the file may be cut off)")
    pid = fields[columns["pid"]].strip() if "pid" in columns else ""
    return Row(
        fields[columns["object"]].strip(),
        ",".join(fields[last:]).strip(),
        weight(fields[columns["self"]]),
        int(pid) if pid.isdecimal() else None,
        fields[columns["command"]].strip() if "command" in columns else "",
    )
