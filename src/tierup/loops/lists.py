"""Python lists of numbers, and strings, inside loops.

An item's type is looked at whenever it is read; one that is not what the first item was leaves the loop. Items that go are numbers or
None, so nobody's code runs.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

from tierup import _core
from tierup.loops import memory, numbers
from tierup.loops.values import OBJECT, Refused, Value, boolean, const, floating, integer

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

_AT: Final = _core.LOOP_HELPERS
_NAMES: Final = {float: "float", int: "int", bool: "bool"}
_TYPES: Final[dict[Hashable, Any]] = {"float": float, "int": int, "bool": bool}
_MAX_NESTING: Final = 4
_COMPACT: Final = sys.version_info >= (3, 12)
"""Whether ints say their sign and size in a tag."""


def items_of(live: list[Any], nesting: int = 0) -> Hashable:
    """What a list's items are taken to be: 'float', 'int', 'bool', ('list', …), or 'any' for an empty list. None: nothing we know."""
    if not live:
        return "any"
    first = live[0]
    if type(first) is list and nesting < _MAX_NESTING:
        inner = items_of(first, nesting + 1)
        return None if inner is None else ("list", inner)
    return _NAMES.get(type(first))


def length(t: Tracer, value: Value) -> str:
    """i64: len of a list or text."""
    if value.kind == "text":
        return value.parts[1]
    return _field(t, value.one, "size", "i64")


def _field(t: Tracer, address: str, name: str, type_: str) -> str:
    place = t.fn.let(f"getelementptr i8, ptr {address}, i64 {_AT[name]}")
    return t.fn.let(f"load {type_}, ptr {place}, align {4 if type_ == 'i32' else 8}")


def _require_type(t: Tracer, address: str, type_: type) -> None:
    t.require(t.fn.let(f"icmp eq ptr {_field(t, address, 'type', 'ptr')}, {t.entry.pointer(id(type_))}"))


def _unboxed(t: Tracer, items: Hashable, address: str) -> Value:
    """The object at an address as what it is taken to be; leaves if it is not."""
    if isinstance(items, tuple):
        _require_type(t, address, list)
        return Value("list", items[1], (address,))
    if items == "bool":
        yes = t.fn.let(f"icmp eq ptr {address}, {t.entry.pointer(id(True))}")
        no = t.fn.let(f"icmp eq ptr {address}, {t.entry.pointer(id(False))}")
        t.require(t.fn.let(f"or i1 {yes}, {no}"))
        return boolean(yes)
    if items not in _TYPES:
        raise Refused("items of a list that was empty")
    _require_type(t, address, _TYPES[items])
    return floating(_field(t, address, "float_value", "double")) if items == "float" else integer(_small_int(t, address))


def _small_int(t: Tracer, address: str) -> str:
    """Value of an int of one digit (30 bits) or none; larger ones leave. See Include/cpython/longintrepr.h."""
    let = t.fn.let
    tag = _field(t, address, "int_tag", "i64")
    digit = let(f"zext i32 {_field(t, address, 'int_digit', 'i32')} to i64")
    if not _COMPACT:
        t.require(let(f"icmp ult i64 {let(f'add i64 {tag}, 1')}, 3"))
        return let(f"mul i64 {tag}, {digit}")
    t.require(let(f"icmp ult i64 {tag}, 16"))
    sign = let(f"sub i64 1, {let(f'and i64 {tag}, 3')}")
    return let(f"mul i64 {sign}, {digit}")


def item_at(t: Tracer, value: Value, index: str) -> Value:
    """value[index] of a list, the index in range."""
    return _unboxed(t, value.detail, _item_address(t, value, index))


def _item_address(t: Tracer, value: Value, index: str) -> str:
    place = t.fn.let(f"getelementptr ptr, ptr {_field(t, value.one, 'list_items', 'ptr')}, i64 {index}")
    return t.fn.let(f"load ptr, ptr {place}, align 8")


def item(t: Tracer, value: Value, key: Value) -> Value:
    """value[key] of a list or text for an int."""
    index = memory.wrapped(t, key, length(t, value))
    if value.kind == "list":
        return item_at(t, value, index)
    code = t.fn.let(f"load i8, ptr {t.fn.let(f'getelementptr i8, ptr {value.parts[0]}, i64 {index}')}, align 1")
    return Value("char", None, (t.fn.let(f"zext i8 {code} to i64"),))


def _stored(t: Tracer, how: str, place: str, new: Value) -> None:
    """Puts a number into a list, at a place or at the end.

    Where a variable holds the number, too, the variable and the list must hold one object: an object of the entry goes in itself, and of
    a number computed in the loop the list's new object is from then on known to the variable (an OBJECT). The list keeps it alive.
    """
    t.settle()
    new = numbers.number(new)
    if new.kind not in ("float", "int", "bool"):
        raise Refused(f"a {new.kind} put into a list")
    pointer = new.parts[1] if new.detail == OBJECT else t.entry.address(new.source) if new.source is not None else ""
    if pointer:
        made = t.fn.let(f"call ptr {t.entry.pointer(_AT[f'{how}_object'])}({place}, ptr {pointer})")
    else:
        operand = f"double {new.one}" if new.kind == "float" else f"i64 {numbers.as_int(t, new)}"
        made = t.fn.let(f"call ptr {t.entry.pointer(_AT[f'{how}_{new.kind}'])}({place}, {operand}, ptr {t.known_object(new)})")
    t.require(t.fn.let(f"icmp ne ptr {made}, null"))  # a helper that did nothing leaves; otherwise there is no way back
    t.effect()
    if not pointer and new.kind != "bool":
        t.state.replace(new, Value(new.kind, OBJECT, (new.one, made)))


def _keep_objects(t: Tracer, value: Value, index: str, new: Value) -> None:
    """Leaves where the item to be replaced is the object that a variable holds."""
    others = t.state.other_objects(new)
    if others:
        item = _item_address(t, value, index)
        for pointer in others:
            t.require(t.fn.let(f"icmp ne ptr {item}, {pointer}"))


def set_item(t: Tracer, value: Value, key: Value, new: Value) -> None:
    """value[key] = new for a number."""
    if isinstance(value.detail, tuple):
        raise Refused("a number put into a list of lists")
    index = memory.wrapped(t, key, length(t, value))
    _keep_objects(t, value, index, new)
    _stored(t, "put", f"ptr {value.one}, i64 {index}", new)


def append(t: Tracer, value: Value, new: Value) -> Value:
    """value.append(new) for a number."""
    _stored(t, "append", f"ptr {value.one}", new)
    return const(None)


def compare_chars(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """== and the like of two characters, or of one and a constant of one character."""
    signs = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}
    codes = []
    for value in (left, right):
        if value.kind == "char":
            codes.append(value.one)
        elif value.is_const(str) and len(value.constant) == 1:  # type: ignore[arg-type]
            codes.append(str(ord(value.constant)))  # type: ignore[arg-type]
        else:
            raise Refused(f"a character compared with a {value.kind}")
    return boolean(t.fn.let(f"icmp {signs[symbol]} i64 {codes[0]}, {codes[1]}"))
