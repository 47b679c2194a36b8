"""Calls inside loops: a table of builtins, `math` and NumPy functions on scalars; Python functions are followed into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tierup.loops import complexes, iterators, lists, math_functions, memory, numbers, products
from tierup.loops.values import Refused, Value, boolean, const, floating, integer, numpy, tuple_of

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

Rule = Callable[["Tracer", Sequence[Value]], Value]
_FAR: Final = 1 << 61
"""Ends and steps of ranges are nearer to zero."""


def _count(args: Sequence[Value], *allowed: int) -> None:
    if len(args) not in allowed:
        raise Refused(f"a call with {len(args)} arguments")


def _len(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    value = args[0]
    if value.kind == "tuple":
        return const(len(value.items))
    if value.kind == "array":
        return integer(memory.geometry(t, value).shape[0])
    if value.kind in ("list", "text"):
        return integer(lists.length(t, value))
    if value.is_const(str, tuple, bytes):
        return const(len(value.constant))  # type: ignore[arg-type]
    raise Refused(f"len of a {value.kind}")


def _range(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1, 2, 3)
    ends = [numbers.number(a) for a in args]
    if any(e.kind not in ("int", "bool") and not (e.kind == "numpy" and e.dtype[0] == "i") for e in ends):
        raise Refused("range of something that is no int")
    names = [numbers.index_of(t, e) if e.kind == "numpy" else numbers.as_int(t, e) for e in ends]
    for name in names:
        if not name.lstrip("-").isdigit() or abs(int(name)) >= _FAR:  # so that no item, and none behind the last, overflows
            t.require(t.fn.let(f"icmp ult i64 {t.fn.let(f'add i64 {name}, {_FAR}')}, {2 * _FAR}"))
    start, stop, step = ("0", names[0], "1") if len(names) == 1 else (*names, "1")[:3]
    return Value("range", None, (start, step, _length(t, start, stop, step)))


def _length(t: Tracer, start: str, stop: str, step: str) -> str:
    """Number of items (Objects/rangeobject.c, get_len_of_range); leaves for a step of zero and for ends too far apart."""
    let = t.fn.let
    if step not in ("1", "-1"):
        t.require(let(f"icmp ne i64 {step}, 0"))
    up = let(f"icmp sgt i64 {step}, 0")
    low, high = let(f"select i1 {up}, i64 {start}, i64 {stop}"), let(f"select i1 {up}, i64 {stop}, i64 {start}")
    size = t.fn.call("i64", "llvm.abs.i64", ("i64", step), ("i1", "false"))
    span = numbers.checked(t, "sub", "s", 64, high, low)
    some = let(f"icmp sgt i64 {span}, 0")
    last = let(f"sub i64 {span}, 1")
    steps = let(f"add i64 {let(f'udiv i64 {last}, {size}')}, 1")
    return let(f"select i1 {some}, i64 {steps}, i64 0")


def _extreme(symbol: str) -> Rule:
    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        """min and max keep the first of equals, and compare each item with the best so far."""
        if len(args) == 1 and args[0].kind == "tuple":
            args = args[0].items
        if len(args) < 2:
            raise Refused("min or max of one argument")
        best = numbers.number(args[0])
        for arg in args[1:]:
            value = numbers.number(arg)
            same = value.kind == best.kind and (value.kind != "numpy" or value.dtype == best.dtype)
            if not same or value.kind not in ("int", "float", "numpy"):
                raise Refused(f"min or max of {best.kind} and {value.kind}")
            best = t.choose(numbers.compare(t, symbol, value, best).one, value, best)
        return best

    return rule


def _ord(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    if args[0].kind != "char":
        raise Refused(f"ord of a {args[0].kind}")
    return integer(args[0].one)


def _abs(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    return numbers.absolute(t, args[0])


def _int(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    value = numbers.number(args[0])
    if value.kind == "int":
        return value
    if value.kind == "bool":
        return integer(numbers.as_int(t, value))
    if value.kind == "numpy" and value.dtype[0] in "iub":
        return integer(numbers.fits(t, numbers.element_as(t, value, "i8"), "u8" if value.dtype == "u8" else "i8"))
    if value.kind in ("float", "numpy"):
        return integer(memory.truncated(t, value))
    raise Refused(f"int of a {value.kind}")


def _float(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    value = numbers.number(args[0])
    if value.kind == "float":
        return value
    if value.kind in ("int", "bool"):
        return floating(numbers.as_double(t, value))
    if value.kind == "numpy":
        return floating(numbers.element_as(t, value, "f8"))
    raise Refused(f"float of a {value.kind}")


def _complex(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1, 2)
    parts = [numbers.number(arg) for arg in args]
    return parts[0] if len(parts) == 1 and parts[0].kind == "complex" else complexes.made(t, parts)


def _bool(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    flag = numbers.truth(t, args[0])
    return const(flag) if isinstance(flag, bool) else boolean(flag)


def _round(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 1)
    value = numbers.number(args[0])
    if value.kind in ("int", "bool"):
        return integer(numbers.as_int(t, value))
    if value.kind == "float":
        return math_functions.rounded_to_even(t, value)
    raise Refused(f"round of a {value.kind}")


def _divmod(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 2)
    if any(numbers.number(arg).kind == "numpy" for arg in args):
        raise Refused("divmod of NumPy scalars")
    return tuple_of([numbers.binary(t, symbol, *args) for symbol in ("//", "%")])


def _pow(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 2)
    return numbers.binary(t, "**", *args)


def _numpy_sqrt(t: Tracer, args: Sequence[Value]) -> Value:
    value = _numpy_float(args)
    of, name = ("double", "llvm.sqrt.f64") if value.dtype == "f8" else ("float", "llvm.sqrt.f32")
    result = t.fn.call(of, name, (of, value.one))
    t.require(numbers.is_finite(t, result, of))
    return numpy(value.dtype, result)


def _numpy_float(args: Sequence[Value]) -> Value:
    _count(args, 1)
    value = args[0]
    if value.kind != "numpy" or value.dtype[0] != "f":
        raise Refused(f"a ufunc of a {value.kind}")
    return value


def _numpy_abs(t: Tracer, args: Sequence[Value]) -> Value:
    return numbers.absolute(t, _numpy_float(args))


def _library_loop(ufunc: np.ufunc) -> Rule:
    """A function of one float, by NumPy's own inner loop on one element; leaves where the result is not finite."""

    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        value = _numpy_float(args)
        char = "d" if value.dtype == "f8" else "f"
        result = t.call_loop(ufunc, f"{char}->{char}", value)
        t.needs_underflow_ignored = True
        t.require(numbers.is_finite(t, result, t.types(value)[0]))
        return numpy(value.dtype, result)

    return rule


def _dot(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 2)
    return products.dot(t, *args)


def _matmul(t: Tracer, args: Sequence[Value]) -> Value:
    _count(args, 2)
    return products.matmul(t, *args)


def _flip(t: Tracer, args: Sequence[Value]) -> Value:
    """np.flip of a vector is a view."""
    _count(args, 1)
    if args[0].kind != "array" or memory.geometry(t, args[0]).ndim != 1:
        raise Refused("flip of something that is no vector")
    nothing = const(None)
    return memory.item(t, args[0], memory.slice_of(nothing, nothing, const(-1)))


def _scalar_type(dtype: str) -> Rule:
    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        _count(args, 1)
        value = numbers.number(args[0])
        if value.kind == "numpy" and dtype not in (value.dtype, "f8"):
            raise Refused(f"{dtype} of {value.dtype}")
        return numpy(dtype, memory.converted(t, value, dtype))

    return rule


_RULES: Final[dict[Any, Rule]] = {
    enumerate: iterators.enumerated, zip: iterators.zipped, reversed: iterators.backwards,
    len: _len, range: _range, min: _extreme("<"), max: _extreme(">"), abs: _abs, int: _int, float: _float, complex: _complex, bool: _bool,
    ord: _ord, round: _round, divmod: _divmod, pow: _pow,
    **math_functions.RULES,
    np.sqrt: _numpy_sqrt, np.absolute: _numpy_abs, np.fabs: _numpy_abs,
    np.flip: _flip, np.dot: _dot, np.matmul: _matmul,
    np.float64: _scalar_type("f8"), np.int64: _scalar_type("i8"), np.int32: _scalar_type("i4"),
    **{f: _library_loop(f) for f in (np.tanh, np.sin, np.cos, np.tan, np.exp, np.log, np.arctan, np.sinh, np.cosh)},
}  # fmt: skip
"""By function; all of them are compared by identity before the loop runs."""


_BY_ID: Final = {id(function): rule for function, rule in _RULES.items()}


def is_known(function: object) -> bool:
    """Whether there is a rule for exactly this object."""
    return id(function) in _BY_ID


def call(t: Tracer, function: object, args: Sequence[Value]) -> Value:
    """function(*args). Raises Refused."""
    rule = _BY_ID.get(id(function))
    if rule is None:
        raise Refused(f"call of {getattr(function, '__name__', type(function).__name__)}")
    return rule(t, args)


def shape(t: Tracer, array: Value) -> Value:
    """array.shape"""
    return tuple_of([integer(length) for length in memory.geometry(t, array).shape])
