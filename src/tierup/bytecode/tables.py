"""The two side tables of a code object, as lists of tuples: exceptions (CPython's Objects/exception_handling_notes.txt) and
locations (Objects/locations.md). Offsets are in code units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Position = tuple[int | None, int | None, int | None, int | None]
"""line, end line, column, end column (columns in UTF-8 bytes), as `code.co_positions()` gives them."""

NO_POSITION: Position = (None, None, None, None)

_SHORT_CODES = 10
_ONE_LINE = 10
_NO_COLUMNS = 13
_LONG = 14
_NONE = 15


# ---- exceptions: big-endian 6-bit varints, bit 6 continues, bit 7 marks the first byte of an entry


def _exception_varint(value: int, first: int) -> bytes:
    groups = [value & 63]
    value >>= 6
    while value:
        groups.append(value & 63)
        value >>= 6
    groups.reverse()
    out = bytearray(g | 64 for g in groups)
    out[-1] &= 63
    out[0] |= first
    return bytes(out)


def encode_exceptions(entries: Iterable[tuple[int, int, int, int, bool]]) -> bytes:
    """Table of (start, end, target, depth, lasti) rows."""
    out = bytearray()
    for start, end, target, depth, lasti in entries:
        out += _exception_varint(start, 128)
        out += _exception_varint(end - start, 0)
        out += _exception_varint(target, 0)
        out += _exception_varint(depth << 1 | lasti, 0)
    return bytes(out)


def decode_exceptions(data: bytes) -> list[tuple[int, int, int, int, bool]]:
    """Rows (start, end, target, depth, lasti) of a table. Raises ValueError if it is cut short or an entry mark is misplaced."""
    values: list[int] = []
    pos = 0
    while pos < len(data):
        byte = data[pos]
        if bool(byte & 128) != (len(values) % 4 == 0):
            raise ValueError(f"exception table: misplaced entry mark at byte {pos}")
        value = byte & 63
        while byte & 64:
            pos += 1
            if pos >= len(data):
                raise ValueError("exception table is cut short")
            byte = data[pos]
            value = value << 6 | byte & 63
        values.append(value)
        pos += 1
    if len(values) % 4:
        raise ValueError("exception table is cut short")
    return [(s, s + n, t, dl >> 1, bool(dl & 1)) for s, n, t, dl in zip(*[iter(values)] * 4, strict=True)]


# ---- locations: little-endian 6-bit varints, entries of 1 to 8 code units


def _varint(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)


def _signed(out: bytearray, value: int) -> None:
    _varint(out, -value << 1 | 1 if value < 0 else value << 1)


def _location(out: bytearray, units: int, position: Position, previous: int) -> int:
    """Appends one entry of at most 8 units; returns the line the next entry's delta counts from."""
    line, end_line, column, end_column = position
    head = 128 | units - 1
    if line is None:
        out.append(head | _NONE << 3)
        return previous
    delta = line - previous
    if column is None or end_column is None:
        # Without columns only a one-line range can be written; this is also all that CPython itself can hold.
        out.append(head | _NO_COLUMNS << 3)
        _signed(out, delta)
    elif end_line == line and delta == 0 and column < 80 and 0 <= end_column - column < 16:
        out.append(head | column >> 3 << 3)
        out.append((column & 7) << 4 | end_column - column)
    elif end_line == line and 0 <= delta < 3 and column < 128 and end_column < 128:
        out.append(head | _ONE_LINE + delta << 3)
        out.append(column)
        out.append(end_column)
    else:
        out.append(head | _LONG << 3)
        _signed(out, delta)
        _varint(out, (line if end_line is None else end_line) - line)
        _varint(out, column + 1)
        _varint(out, end_column + 1)
    return line


def encode_locations(runs: Iterable[tuple[int, Position]], firstlineno: int) -> bytes:
    """Location table of (code units, position) runs."""
    out = bytearray()
    line = firstlineno
    for units, position in runs:
        left = units
        while left > 8:
            line = _location(out, 8, position, line)
            left -= 8
        if left:
            line = _location(out, left, position, line)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def byte(self) -> int:
        if self.pos >= len(self.data):
            raise ValueError("location table is cut short")
        self.pos += 1
        return self.data[self.pos - 1]

    def varint(self) -> int:
        byte = self.byte()
        value, shift = byte & 63, 6
        while byte & 64:
            byte = self.byte()
            value |= (byte & 63) << shift
            shift += 6
        return value

    def signed(self) -> int:
        value = self.varint()
        return -(value >> 1) if value & 1 else value >> 1


def decode_locations(data: bytes, firstlineno: int) -> Iterator[tuple[int, Position]]:
    """(code units, position) runs of a table. Raises ValueError if it is malformed."""
    reader = _Reader(data)
    line = firstlineno
    while reader.pos < len(data):
        head = reader.byte()
        if not head & 128:
            raise ValueError(f"location table: no entry mark at byte {reader.pos - 1}")
        units, code = (head & 7) + 1, head >> 3 & 15
        if code == _NONE:
            yield units, NO_POSITION
        elif code == _NO_COLUMNS:
            line += reader.signed()
            yield units, (line, line, None, None)
        elif code == _LONG:
            line += reader.signed()
            end_line = line + reader.varint()
            column, end_column = reader.varint() - 1, reader.varint() - 1
            yield units, (line, end_line, column if column >= 0 else None, end_column if end_column >= 0 else None)
        elif code >= _ONE_LINE:
            line += code - _ONE_LINE
            column, end_column = reader.byte(), reader.byte()
            yield units, (line, line, column, end_column)
        else:
            second = reader.byte()
            column = code << 3 | second >> 4
            yield units, (line, line, column, column + (second & 15))


_VARINT = rb"[\x40-\x7f]*[\x00-\x3f]"
_ENTRIES = re.compile(
    rb"(?:[\x80-\xcf][\x00-\x7f]|[\xd0-\xe7][\x00-\x7f]{2}|[\xe8-\xef]" + _VARINT + rb"|[\xf0-\xf7](?:" + _VARINT + rb"){4}|[\xf8-\xff])*"
)
_NO_HEADS = bytes(range(128))


def covered_units(data: bytes) -> int:
    """Code units that a location table covers. ValueError if it is malformed."""
    match = _ENTRIES.match(data)
    if match is None or match.end() != len(data):
        raise ValueError(f"location table is malformed at byte {match.end() if match else 0}")
    heads = data.translate(None, _NO_HEADS)
    return len(heads) + sum([head & 7 for head in heads])
