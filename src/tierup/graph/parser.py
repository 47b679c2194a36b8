"""Text → graph: the inverse of `printer.py`."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Final, get_args

from tierup.graph.ir import DTYPES, NOTHING, OBJECT, ArrayType, Box, ExitSlot, Graph, Node, ScalarType, Type


class ParseError(Exception):
    """The text is no graph; the message names the line."""


_HEADER: Final = re.compile(r"graph (?P<name>.+) landing=(?P<landing>-?\d+)$")
_NODE: Final = re.compile(r"%(?P<id>\d+) = (?P<op>\w+)(?:\((?P<args>[^)]*)\))?(?P<rest>.*)$")
_TAIL: Final = re.compile(r" : (?P<type>\S+)(?: @(?P<line>\d+))?$")
_EXIT: Final = re.compile(r"exit (?P<kind>local|stack|cell|name) (?P<index>.+) = (?P<value>null|%\d+)$")
_ATTR: Final = re.compile(r" (\w+)=")
_STRING: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NUMBER: Final = re.compile(r"-?(?:inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_NAN: Final = re.compile(r"nan:(0x[0-9a-f]+)")
_WORDS: Final[dict[str, object]] = {"None": None, "True": True, "False": False}
_ARRAY_TYPE: Final = re.compile(r"(\w+)\[(\d+)\]$")


def parse_graph(text: str, opaque: Mapping[str, object] | None = None) -> Graph:
    """The graph of a text. opaque: the values behind `$0`, `$1` … (see `printer.opaque_values`). Raises ParseError."""
    graph: Graph | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(("where ", "#")):
            continue
        try:
            if graph is None:
                graph = _header(line)
            elif line.startswith("exit "):
                graph.exit.append(_exit(line, graph))
            else:
                graph.nodes.append(_node(line, graph, opaque or {}))
        except (ValueError, LookupError) as e:
            raise ParseError(f"line {number}: {e}: {line}") from e
    if graph is None:
        raise ParseError("no graph")
    return graph


def parse_type(text: str) -> Type:
    """The inverse of str() on types. Raises ValueError."""
    if text in ("object", "()"):
        return OBJECT if text == "object" else NOTHING
    if m := _ARRAY_TYPE.match(text):
        if m[1] in DTYPES:
            return ArrayType(m[1], int(m[2]))
    else:
        dtype, _, box = text.partition(".")
        if dtype in DTYPES and box in get_args(Box):
            return ScalarType(dtype, box)  # type: ignore[arg-type]
    raise ValueError(f"no type {text!r}")


def _header(line: str) -> Graph:
    m = _match(_HEADER, line)
    name, _ = _Values(m["name"], {}).value(0)
    if not isinstance(name, str):
        raise ValueError("the graph's name is no string")
    return Graph(name, landing=int(m["landing"]))


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    m = pattern.match(text)
    if m is None:
        raise ValueError("malformed")
    return m


def _ref(text: str, graph: Graph) -> Node:
    if not text.startswith("%"):
        raise ValueError(f"no node {text!r}")
    return graph.nodes[int(text[1:])]


def _exit(line: str, graph: Graph) -> ExitSlot:
    m = _match(_EXIT, line)
    index, _ = _Values(m["index"], {}).value(0)
    if not isinstance(index, int | str):
        raise ValueError("an exit index is a number or a name")
    return ExitSlot(m["kind"], index, None if m["value"] == "null" else _ref(m["value"], graph))  # type: ignore[arg-type]


def _node(line: str, graph: Graph, opaque: Mapping[str, object]) -> Node:
    m = _match(_NODE, line)
    if int(m["id"]) != len(graph.nodes):
        raise ValueError(f"node %{m['id']} at position {len(graph.nodes)}")
    args = tuple(_ref(a.strip(), graph) for a in m["args"].split(",")) if m["args"] else ()
    attrs, at = _attrs(m["rest"], opaque)
    tail = _match(_TAIL, m["rest"][at:])
    return Node(len(graph.nodes), m["op"], args, attrs, parse_type(tail["type"]), int(tail["line"] or 0))


def _attrs(text: str, opaque: Mapping[str, object]) -> tuple[dict[str, object], int]:
    """Attributes at the start of text, and where they end."""
    attrs: dict[str, object] = {}
    values, at = _Values(text, opaque), 0
    while m := _ATTR.match(text, at):
        attrs[m[1]], at = values.value(m.end())
    return attrs, at


class _Values:
    """Reads attribute values; every method returns the value and the position behind it."""

    def __init__(self, text: str, opaque: Mapping[str, object]) -> None:
        self.text = text
        self.opaque = opaque

    def value(self, at: int) -> tuple[object, int]:
        text = self.text
        if text[at] in "'\"":
            return self._string(at)
        if text[at] == "(":
            return self._tuple(at)
        if text.startswith("complex(", at):
            (re_, im), end = self._items(at + len("complex("))
            if not (isinstance(re_, float) and isinstance(im, float)):
                raise ValueError("a complex number of two floats")
            return complex(re_, im), end
        if text[at] == "$":
            end = at + 1 + len(re.match(r"\d*", text[at + 1 :])[0])  # type: ignore[index]
            return self.opaque[text[at:end]], end
        for word, meaning in _WORDS.items():
            if text.startswith(word, at):
                return meaning, at + len(word)
        return self._number(at)

    def _string(self, at: int) -> tuple[str, int]:
        import ast

        m = _STRING.match(self.text, at)
        if m is None:
            raise ValueError("unterminated string")
        return str(ast.literal_eval(m[0])), m.end()

    def _number(self, at: int) -> tuple[object, int]:
        if m := _NAN.match(self.text, at):
            return struct.unpack("<d", struct.pack("<Q", int(m[1], 16)))[0], m.end()
        m = _NUMBER.match(self.text, at)
        if m is None:
            raise ValueError(f"no value at {self.text[at : at + 20]!r}")
        return (float(m[0]) if any(c in m[0] for c in ".ein") else int(m[0])), m.end()

    def _tuple(self, at: int) -> tuple[tuple[object, ...], int]:
        items, end = self._items(at + 1)
        return tuple(items), end

    def _items(self, at: int) -> tuple[list[object], int]:
        items: list[object] = []
        while self.text[at] != ")":
            item, at = self.value(at)
            items.append(item)
            while self.text[at] in ", ":
                at += 1
        return items, at + 1
