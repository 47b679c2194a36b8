"""The guard tree's meaning in plain Python: expressions, checks, and which specialisations hold, without any tree.

Written from guard_kinds.def, not from the C code; the two are compared on random trees.
"""

from __future__ import annotations

import struct
import types
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tierup import _core

E_NAMES = {number: name for name, number in _core.EXPR_KINDS.items()}
C_NAMES = {number: name for name, number in _core.CHECK_KINDS.items()}


class _Marker:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


ABSENT = _Marker("ABSENT")
UNSURE = _Marker("UNSURE")


@dataclass
class Frame:
    """localsplus with ABSENT for empty slots, and the namespaces."""

    slots: list[Any]
    globals: dict[str, Any]
    builtins: dict[str, Any]
    locals: Any = None
    stack: list[Any] = field(default_factory=list)


def _dict_get(mapping: Any, key: Any) -> Any:
    if type(mapping) is not dict:
        return UNSURE
    for stored, value in mapping.items():
        if hash_of(stored) == hash(key):
            if type(stored) not in (str, int, bool, float, bytes, complex, type(None)):
                return UNSURE  # its __eq__ would be asked
            if stored == key:
                return value
    return ABSENT


def hash_of(key: Any) -> int:
    return key.remembered if hasattr(type(key), "remembered") else hash(key)


def _type_get(cls: type, name: str) -> Any:
    for base in type.__dict__["__mro__"].__get__(cls):
        found = type.__dict__["__dict__"].__get__(base).get(name, ABSENT)
        if found is not ABSENT:
            return found
    return ABSENT


def _instance_dict(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _is_data(descr: Any) -> bool:
    return hasattr(type(descr), "__get__") and hasattr(type(descr), "__set__")


_WITH_THEIR_OWN = (type, types.ModuleType, types.MethodType, super)
"""Built-in types that do not use the generic attribute access."""


def _generic(value: Any) -> bool:
    getter = _type_get(type(value), "__getattribute__")
    return (
        type(getter) is types.WrapperDescriptorType
        and _type_get(type(value), "__getattr__") is ABSENT
        and not _isinstance_of_builtin(value)
    )


def _isinstance_of_builtin(value: Any) -> bool:
    return any(t in type.__dict__["__mro__"].__get__(type(value)) for t in _WITH_THEIR_OWN)


def _attr(value: Any, name: str) -> Any:
    if not _generic(value):
        return UNSURE
    descr = _type_get(type(value), name)
    if descr is not ABSENT and _is_data(descr):
        if type(descr) is not types.MemberDescriptorType or descr.__objclass__.__flags__ & (1 << 9) == 0:
            return UNSURE  # only members of heap types are __slots__
        try:
            return descr.__get__(value)
        except AttributeError:
            return ABSENT
    own = _instance_dict(value)
    if own is not None:
        found = _dict_get(own, name)
        if found is not ABSENT:
            return found
    if descr is ABSENT:
        return ABSENT
    return UNSURE if hasattr(type(descr), "__get__") else descr


def _method(value: Any, name: str) -> Any:
    descr = _type_get(type(value), name)
    if not _generic(value) or type(descr) not in (types.FunctionType, types.MethodDescriptorType):
        return UNSURE
    own = _instance_dict(value)
    return UNSURE if own is not None and _dict_get(own, name) is not ABSENT else descr


def _classattr(value: Any, name: str) -> Any:
    if not isinstance(value, type) or _type_get(type(value), "__getattribute__") is not type.__dict__["__getattribute__"]:
        return UNSURE
    if _type_get(type(value), "__getattr__") is not ABSENT:
        return UNSURE
    meta = _type_get(type(value), name)
    if meta is not ABSENT and _is_data(meta):
        return UNSURE
    own = _type_get(value, name)
    if own is not ABSENT and (not hasattr(type(own), "__get__") or type(own) is types.FunctionType):
        return own
    return ABSENT if own is ABSENT and meta is ABSENT else UNSURE


def _modattr(value: Any, name: str) -> Any:
    if type(value) is not types.ModuleType or _type_get(types.ModuleType, name) is not ABSENT:
        return UNSURE
    found = _dict_get(value.__dict__, name)
    if found is ABSENT and _dict_get(value.__dict__, "__getattr__") is not ABSENT:
        return UNSURE
    return found


def _item(sequence: Any, index: int) -> Any:
    if sequence is None:
        return ABSENT
    if type(sequence) not in (tuple, list):
        return UNSURE
    return sequence[index] if -len(sequence) <= index < len(sequence) else ABSENT


def _cell(cell: Any) -> Any:
    if type(cell) is not types.CellType:
        return UNSURE
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _function(kind: str, value: Any, arg: Any) -> Any:
    if type(value) is not types.FunctionType:
        return UNSURE
    if kind == "FUNC_GLOBAL":
        return _dict_get(value.__globals__, arg)
    if kind == "FUNC_BUILTIN":
        return _dict_get(value.__builtins__, arg)  # type: ignore[attr-defined]
    if kind == "FUNC_CELL":
        cell = _item(value.__closure__, arg)
        return UNSURE if cell is ABSENT else _cell(cell)
    if kind == "FUNC_DEFAULT":
        return _item(value.__defaults__, arg)
    return ABSENT if value.__kwdefaults__ is None else _dict_get(value.__kwdefaults__, arg)


def _iterated(value: Any, k: int) -> Any:
    if type(value) not in (enumerate, zip):
        return UNSURE
    state = value.__reduce__()
    inner = state[1][:1] if type(value) is enumerate else state[1]
    return inner[k] if len(state) == 2 and k < len(inner) else UNSURE


def evaluate(exprs: Sequence[tuple[int, int, Any]], index: int, frame: Frame) -> Any:
    number, base_index, arg = exprs[index]
    kind = E_NAMES[number]
    if base_index < 0:
        return _root(kind, arg, frame)
    base = evaluate(exprs, base_index, frame)
    if base is ABSENT or base is UNSURE:
        return UNSURE
    simple = {"ATTR": _attr, "METHOD": _method, "CLASSATTR": _classattr, "MODATTR": _modattr, "DICTITEM": _dict_get}
    if kind in simple:
        return simple[kind](base, arg)
    if kind == "ITEM":
        return UNSURE if base is None else _item(base, arg)
    if kind == "ITERATED":
        return _iterated(base, arg)
    if kind == "TYPE":
        return type(base)
    if kind.startswith("METHOD_"):
        if type(base) is not types.MethodType:
            return UNSURE
        return base.__self__ if kind == "METHOD_SELF" else base.__func__
    return _function(kind, base, arg)


def _root(kind: str, arg: Any, frame: Frame) -> Any:
    if kind == "LOCAL":
        return frame.slots[arg]
    if kind == "STACK":
        return frame.stack[arg]
    if kind == "CELL":
        return _cell(frame.slots[arg])
    if kind == "CONST":
        return arg
    if kind == "WEAK":
        referent = arg()
        return UNSURE if referent is None else referent
    return _dict_get({"GLOBAL": frame.globals, "BUILTIN": frame.builtins, "NAME": frame.locals}[kind], arg)


def _bits(x: float) -> bytes:
    return struct.pack("=d", x)


def _keys_are(mapping: Any, keys: tuple[Any, ...]) -> bool:
    stored = list(mapping)
    return len(stored) == len(keys) and all(type(a) is type(b) and a == b for a, b in zip(stored, keys, strict=True))


def _defaults_are(value: Any, payload: tuple[int, tuple[Any, ...]]) -> bool:
    if type(value) is not types.FunctionType or len(value.__defaults__ or ()) != payload[0]:
        return False
    return _keys_are(value.__kwdefaults__ or {}, payload[1])


_HOLDS: dict[str, Any] = {
    "TYPE_IS": lambda v, p: type(v) is p,
    "IS": lambda v, p: v is p,
    "IS_WEAK": lambda v, p: p() is not None and v is p(),
    "NOT_NULL": lambda v, p: True,
    "ARRAY": lambda v, p: type(v) is np.ndarray and _core.array_key(v) & p[0] == p[1],
    "INT_EQ": lambda v, p: type(v) is int and v == p,
    "FLOAT_EQ": lambda v, p: type(v) is float and _bits(v) == _bits(p),
    "STR_EQ": lambda v, p: type(v) is str and v == p,
    "BYTES_EQ": lambda v, p: type(v) is bytes and v == p,
    "TUPLE_LEN": lambda v, p: type(v) is tuple and len(v) == p,
    "LIST_LEN": lambda v, p: type(v) is list and len(v) == p,
    "DICT_KEYS": lambda v, p: type(v) is dict and _keys_are(v, p),
    "FUNC_CODE": lambda v, p: type(v) is types.FunctionType and v.__code__ is p,
    "FUNC_DEFAULTS": _defaults_are,
    "DTYPE_IS": lambda v, p: isinstance(v, np.dtype) and v == p and v.isnative,
}


def holds(exprs: Sequence[tuple[int, int, Any]], check: tuple[int, int, Any], frame: Frame) -> bool:
    value = evaluate(exprs, check[1], frame)
    kind = C_NAMES[check[0]]
    if kind == "NULL":
        return value is ABSENT
    return value is not ABSENT and value is not UNSURE and bool(_HOLDS[kind](value, check[2]))


def matching(exprs: Sequence[tuple[int, int, Any]], specs: Sequence[Sequence[tuple[int, int, Any]]], frame: Frame) -> list[int]:
    """Specialisations all of whose checks hold, in order."""
    return [i for i, checks in enumerate(specs) if all(holds(exprs, c, frame) for c in checks)]


__all__ = ["ABSENT", "UNSURE", "Frame", "evaluate", "holds", "matching", "weakref"]
