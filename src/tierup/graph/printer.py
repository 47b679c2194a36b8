"""Graph → text. `parser.py` reads it back.

One line per node: `%3 = ufunc(%1, %2) name='add' loop='dd->d' : f8[1] @12`, where `@12` is the user's line. Attribute values that
have no literal form (sources, constants) are numbered `$0`, `$1` …; the lines behind `where` say what they are, for readers only.
"""

from __future__ import annotations

import math
import struct

from tierup.graph.ir import Graph, Node


def print_graph(graph: Graph) -> str:
    """The text form."""
    return _Printer().graph(graph)


def opaque_values(graph: Graph) -> dict[str, object]:
    """What the text's `$` numbers stand for: give it to the parser to read the text back."""
    printer = _Printer()
    printer.graph(graph)
    return printer.opaque


def format_value(value: object) -> str | None:
    """The literal form of an attribute value that has one: None, bool, int, float, complex, str, and tuples of them."""
    if type(value) is float:
        return _float(value)
    if type(value) is complex:
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if type(value) is tuple:
        items = [format_value(v) for v in value]
        if None in items:
            return None
        return "(" + ", ".join(map(str, items)) + ("," if len(items) == 1 else "") + ")"
    return None


def _float(value: float) -> str:
    """repr, but a NaN with its bits."""
    return f"nan:{struct.unpack('<Q', struct.pack('<d', value))[0]:#x}" if math.isnan(value) else repr(value)


class _Printer:
    def __init__(self) -> None:
        self.opaque: dict[str, object] = {}
        self._numbers: dict[int, str] = {}

    def graph(self, graph: Graph) -> str:
        lines = [f"graph {graph.name!r} landing={graph.landing}"]
        lines += [self.node(n) for n in graph.nodes]
        lines += [f"exit {s.kind} {s.index!r} = {'null' if s.value is None else repr(s.value)}" for s in graph.exit]
        lines += [f"where {name} is {_one_line(value)}" for name, value in self.opaque.items()]
        return "\n".join(lines) + "\n"

    def node(self, n: Node) -> str:
        args = f"({', '.join(map(repr, n.args))})" if n.args else ""
        attrs = "".join(f" {name}={self.value(value)}" for name, value in n.attrs.items())
        line = f" @{n.line}" if n.line else ""
        return f"{n!r} = {n.op}{args}{attrs} : {n.type}{line}"

    def value(self, value: object) -> str:
        text = format_value(value)
        if text is not None:
            return text
        if id(value) not in self._numbers:
            self._numbers[id(value)] = f"${len(self._numbers)}"
            self.opaque[self._numbers[id(value)]] = value
        return self._numbers[id(value)]


def _one_line(value: object) -> str:
    """A description that runs no code of the user."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "tierup":
        return " ".join(str(value).split())
    name = getattr(value, "__name__", "") if kind.__module__ in ("builtins", "numpy") else ""
    return f"{kind.__module__}.{kind.__qualname__} {name}".rstrip()
