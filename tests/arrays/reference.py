"""A slow, obvious evaluator of graphs in plain NumPy: the oracle for rules (tests here) and for native code.

`evaluate` runs a graph's nodes on concrete objects. It leaves the region (raises `Left`) where a check fails, an index is out of range, an
integer overflows or a floating-point flag is raised that `np.errstate` does not ignore; nothing was changed then. Stores are applied last.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy._core import umath

from tierup.graph.ir import ArrayType, Graph, Node, ScalarType

INT64 = range(-(2**63), 2**63)


class Left(Exception):
    """The region was left without any effect; the original instructions run."""


def evaluate(graph: Graph, objects: Mapping[str, Any], wanted: Iterable[Node]) -> list[Any]:
    """The values of `wanted` nodes as Python objects, after all stores. objects: by the `expr` of `object` nodes."""
    values: dict[Node, Any] = {}
    stores: list[tuple[Any, Any]] = []
    errors = {kind: "ignore" if action == "ignore" else "raise" for kind, action in np.geterr().items()}
    with np.errstate(**errors):  # type: ignore[arg-type]
        for node in graph.nodes:
            args = [values[arg] for arg in node.args]
            try:
                if node.op == "object":
                    values[node] = objects[str(node.attrs["expr"])]
                elif node.op == "store":
                    _require(args[0].flags.writeable)
                    np.broadcast_to(args[1], args[0].shape)
                    assert np.asarray(args[1]).dtype == args[0].dtype or not isinstance(args[1], np.ndarray)
                    stores.append((args[0], args[1]))
                else:
                    values[node] = _OPS[node.op](node, *args)
            except FloatingPointError as alarm:
                raise Left(f"{node}: {alarm}") from None
    boxed = [_box(values[node], node) for node in wanted]
    for target, value in stores:
        target[...] = value
    return boxed


def _require(holds: Any) -> None:
    if not holds:
        raise Left("a check failed")


def _box(value: Any, node: Node) -> Any:
    if isinstance(node.type, ScalarType):
        kind = {"i8": int, "f8": float, "b1": bool, "c16": complex}[node.type.dtype] if node.type.box != "numpy" else None
        assert type(value) is (kind or np.dtype(node.type.dtype).type), (value, node.type)
    return value


# -- scalars -----------------------------------------------------------------------------------------------------------


def _scalar(value: Any, type: ScalarType) -> Any:
    """value, which is exactly representable, as the Python object that its type says."""
    if type.box == "numpy":
        return np.dtype(type.dtype).type(value)
    return {"i8": int, "f8": float, "b1": bool, "c16": complex}[type.dtype](value)


def _unbox(node: Node, obj: Any) -> Any:
    assert isinstance(node.type, ScalarType)
    if node.type.box == "numpy":
        assert type(obj) is np.dtype(node.type.dtype).type
    elif node.type.dtype == "i8":
        assert type(obj) is int
        _require(obj in INT64)
    else:
        assert type(obj) is {"f8": float, "b1": bool, "c16": complex}[node.type.dtype]
    return obj


def _int_op(op: Callable[..., int], divides: bool = False) -> Callable[..., int]:
    def run(node: Node, *args: int) -> int:
        assert all(type(a) is int for a in args), args
        if divides:
            _require(args[1] != 0)
        out = op(*args)
        _require(out in INT64)
        return out

    return run


def _itodouble(node: Node, i: int) -> float:
    _require(abs(i) <= 2**53)
    return float(i)


def _float_op(op: Callable[..., Any]) -> Callable[..., Any]:
    def run(node: Node, *args: Any) -> Any:
        assert isinstance(node.type, ScalarType)
        return _scalar(op(*(np.asarray(a, "f8") for a in args)), node.type)

    return run


def _fpow(node: Node, a: Any, b: Any) -> Any:
    """Python's float power, where neither operand nor result is special."""
    assert isinstance(node.type, ScalarType)
    a, b = float(a), float(b)
    _require(math.isfinite(a) and math.isfinite(b) and a != 0 and (a > 0 or b.is_integer()))
    try:
        out = a**b
    except OverflowError:
        raise Left("overflow") from None
    _require(math.isfinite(out) and abs(out) >= 2**-1022)
    return _scalar(out, node.type)


_CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    **{name: getattr(operator, name) for name in ("lt", "le", "eq", "ne", "gt", "ge")},
    "nlt": lambda a, b: not a < b,
    "nle": lambda a, b: not a <= b,
}


def _compare(node: Node, a: Any, b: Any) -> Any:
    assert isinstance(node.type, ScalarType)
    return _scalar(_CONDITIONS[str(node.attrs["cond"])](a, b), node.type)


def _check(node: Node, a: Any, b: Any) -> None:
    assert type(a) is type(b)
    _require(_CONDITIONS[str(node.attrs["cond"])](a, b))


def _cast(node: Node, value: Any) -> Any:
    assert isinstance(node.type, ScalarType)
    return _scalar(np.asarray(value).astype(node.type.dtype)[()], node.type)


# -- views -------------------------------------------------------------------------------------------------------------


def _axis(node: Node) -> tuple[slice, ...]:
    return (slice(None),) * int(str(node.attrs["axis"]))


def _slice(node: Node, a: np.ndarray, *limits: int) -> np.ndarray:
    rest = iter(limits)
    given: Any = node.attrs["given"]
    parts = [next(rest) if there else None for there in given]
    assert next(rest, None) is None
    _require(parts[2] != 0)
    return a[(*_axis(node), slice(*parts))]


def _index(node: Node, a: np.ndarray, i: int) -> np.ndarray:
    axis = int(str(node.attrs["axis"]))
    _require(-a.shape[axis] <= i < a.shape[axis])
    return a[(*_axis(node), i, ...)]


def _reshape(node: Node, a: np.ndarray, *shape: int) -> np.ndarray:
    _require(a.flags.c_contiguous and all(n >= 0 for n in shape) and int(np.prod(shape, dtype=object)) == a.size)
    # NumPy keeps unusual strides of axes of length one if the shape stays the same, but not if a length was written as -1.
    _require(a.size > 0 and (shape != a.shape or a.strides == np.empty(shape, a.dtype).strides))
    return a.reshape(shape)


def _broadcast(node: Node, a: np.ndarray, *shape: int) -> np.ndarray:
    try:
        return np.broadcast_to(a, shape)
    except ValueError:
        raise Left("shapes that do not broadcast") from None


def _load(node: Node, a: np.ndarray) -> Any:
    assert a.ndim == 0
    return a[()]


# -- arrays ------------------------------------------------------------------------------------------------------------


def _operands(args: Iterable[Any], chars: str) -> list[Any]:
    """Arrays as they are (the ufunc casts them), numbers as rank 0 arrays of the loop's type."""
    return [a if isinstance(a, np.ndarray) else _number(a, np.dtype(char)) for a, char in zip(args, chars, strict=True)]


def _number(value: Any, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        assert np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max
    if type(value) is int and dtype.kind in "fc":
        raise AssertionError("an int for a loop of floats was not converted to a double")
    return np.asarray(value).astype(dtype)


def _ufunc(node: Node, *args: Any) -> np.ndarray:
    name, loop = str(node.attrs["name"]), str(node.attrs["loop"])
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc):
        ufunc = getattr(umath, name)
    assert loop in ufunc.types
    assert any(isinstance(a, np.ndarray) and a.ndim for a in args)
    try:
        return ufunc(*_operands(args, loop.split("->", maxsplit=1)[0]), signature=loop, casting="unsafe")
    except ValueError as error:
        if "broadcast" in str(error):
            raise Left("shapes that do not broadcast") from None
        raise


def _where(node: Node, test: Any, x: Any, y: Any) -> np.ndarray:
    assert isinstance(node.type, ArrayType)
    dtype = np.dtype(node.type.dtype)
    for a in (x, y):
        assert not isinstance(a, np.ndarray) or a.dtype == dtype
    x, y = _operands((x, y), dtype.char * 2)
    return np.where(test, x, y)


def _dtype(node: Node) -> Any:
    assert isinstance(node.type, ArrayType) and node.type.dtype == node.attrs["dtype"]
    return np.dtype(node.type.dtype)


def _lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    _require(all(n >= 0 for n in shape))
    return shape


def _astype(node: Node, a: np.ndarray) -> np.ndarray:
    assert not (a.dtype.kind in "fc" and _dtype(node).kind in "iu") and not (a.dtype.kind == "c" and _dtype(node).kind == "f")
    return a.astype(_dtype(node))


def _full(node: Node, value: Any, *shape: int) -> np.ndarray:
    assert np.asarray(value).dtype == _dtype(node)
    return np.full(_lengths(shape), value, dtype=_dtype(node))


def _reduce(node: Node, a: np.ndarray) -> Any:
    loop = str(node.attrs["loop"])
    assert a.dtype.char == loop[0] == loop[-1]
    ufunc: np.ufunc = getattr(np, str(node.attrs["ufunc"]))
    axis: Any = node.attrs["axis"]
    _require(ufunc.identity is not None or a.size > 0)
    out = ufunc.reduce(a, axis=axis, keepdims=bool(node.attrs["keepdims"]), dtype=a.dtype)
    assert isinstance(out, np.ndarray) == isinstance(node.type, ArrayType)
    return out


def _zeros_like(node: Node, a: np.ndarray) -> np.ndarray:
    return np.zeros_like(a, dtype=_dtype(node))


_OPS: dict[str, Callable[..., Any]] = {
    "constant": lambda node: node.attrs["value"],
    "literal": lambda node: _scalar(node.attrs["value"], node.type),
    "unbox": _unbox,
    "array": lambda node, a: a,
    "iadd": _int_op(operator.add),
    "isub": _int_op(operator.sub),
    "imul": _int_op(operator.mul),
    "ifloordiv": _int_op(operator.floordiv, divides=True),
    "imod": _int_op(operator.mod, divides=True),
    "imin": _int_op(min),
    "imax": _int_op(max),
    "ineg": _int_op(operator.neg),
    "iabs": _int_op(abs),
    "itodouble": _itodouble,
    "icmp": _compare,
    "fcmp": _compare,
    "fadd": _float_op(np.add),
    "fsub": _float_op(np.subtract),
    "fmul": _float_op(np.multiply),
    "fdiv": _float_op(np.divide),
    "fpow": _fpow,
    "fneg": _float_op(np.negative),
    "fabs": _float_op(np.absolute),
    "fsqrt": _float_op(np.sqrt),
    "cast": _cast,
    "check": _check,
    "check_true": lambda node, b: _require(b),
    "check_false": lambda node, b: _require(not b),
    "check_is": lambda node, a, b: _require(a is b),
    "check_isnot": lambda node, a, b: _require(a is not b),
    "check_nooverlap": lambda node, a, b: _require(not np.may_share_memory(a, b)),
    "check_contiguous": lambda node, a: _require(a.flags.c_contiguous),
    "dim": lambda node, a: a.shape[node.attrs["axis"]],
    "size": lambda node, a: a.size,
    "slice": _slice,
    "index": _index,
    "newaxis": lambda node, a: a[(*_axis(node), None)],
    "transpose": lambda node, a: a.transpose(node.attrs["perm"]),
    "reshape": _reshape,
    "broadcast": _broadcast,
    "real": lambda node, a: a.real,
    "imag": lambda node, a: a.imag,
    "load": _load,
    "ufunc": _ufunc,
    "where": _where,
    "astype": _astype,
    "copy": lambda node, a: a.copy(node.attrs["order"]),
    "empty": lambda node, *shape: np.zeros(_lengths(shape), _dtype(node)),
    "zeros": lambda node, *shape: np.zeros(_lengths(shape), _dtype(node)),
    "full": _full,
    "empty_like": _zeros_like,
    "zeros_like": _zeros_like,
    "reduce": _reduce,
    "box": lambda node, value: value,
    "tuple": lambda node, *items: items,
    "list": lambda node, *items: list(items),
    "shape": lambda node, a: a.shape,
}


# -- comparison --------------------------------------------------------------------------------------------------------


def bits(value: Any) -> Any:
    """Something that is equal for two results exactly if they are the same to a user: types, dtypes, shapes, strides, flags and bits
    (NaNs without sign and payload)."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = (value.shape, value.strides, flags.writeable, flags.owndata, flags.c_contiguous, value.base is None)
        return (type(value), value.dtype.str, value.dtype.char, layout, _canonical(value).tobytes())
    if isinstance(value, np.generic):
        return (type(value), _canonical(np.asarray(value)).tobytes())
    if isinstance(value, tuple | list):
        return (type(value), tuple(bits(item) for item in value))
    if isinstance(value, float):
        return (float, "nan" if math.isnan(value) else struct.pack("d", value))
    return (type(value), value)


def _canonical(a: np.ndarray) -> np.ndarray:
    """A C-ordered copy with every NaN made the same."""
    out = np.array(a, order="C", copy=True, ndmin=1)
    if out.dtype.kind == "c":
        parts = out.view(out.real.dtype)
        parts[np.isnan(parts)] = np.nan
    elif out.dtype.kind == "f":
        out[np.isnan(out)] = np.nan
    return out
