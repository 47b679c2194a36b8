"""The operation table: what each operation takes, what its result is, and what it may do besides.

The verifier runs this table; `docs/graph-ops.md` says what the operations mean. Argument patterns: `i` a 64-bit int scalar (box python
or index), `d` a float scalar, `b` a bool scalar, `s` any scalar, `a` an array, `x` an array or a scalar, `o` an object; `X*` any number
of X at the end. A type rule returns what is wrong with a node, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from tierup.graph.ir import DTYPES, INDEX, NOTHING, OBJECT, ArrayType, Node, ScalarType
from tierup.graph.loops import cast_raises, loop_dtypes, loop_raises

Effect = Literal["pure", "flags", "leaves", "writes"]
"""pure: may be dropped if unused; flags: may raise floating-point flags; leaves: leaves the region where Python would raise or a check
fails; writes: changes memory that others see."""

TypeRule = Callable[[Node], str | None]
AttrRule = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the table."""

    args: str
    rule: TypeRule
    attrs: Mapping[str, AttrRule] = field(default_factory=dict)
    effect: Effect | Callable[[Node], Effect] = "pure"


# -- attribute rules ---------------------------------------------------------------------------------------------


def _any(value: object) -> bool:
    return True


def _hashable(value: object) -> bool:
    return value is not None and type(value).__hash__ is not None


def _is_int(value: object) -> bool:
    return type(value) is int


def _is_bool(value: object) -> bool:
    return type(value) is bool


def _is_str(value: object) -> bool:
    return type(value) is str


def _number(value: object) -> bool:
    return type(value) in (int, float, bool, complex)


def _axis_or_none(value: object) -> bool:
    return value is None or type(value) is int


def _one_of(*choices: str) -> AttrRule:
    return lambda value: value in choices


def _ints(value: object) -> bool:
    return isinstance(value, tuple) and all(type(v) is int for v in value)


def _three_bools(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and all(type(v) is bool for v in value)


_CONDITION: Final = _one_of("lt", "le", "eq", "ne", "gt", "ge")
_CHECK_CONDITION: Final = _one_of("lt", "le", "eq", "ne", "nlt", "nle")
_DTYPE: Final = _one_of(*DTYPES)


# -- type rules ----------------------------------------------------------------------------------------------------


def _result(*allowed: object) -> TypeRule:
    names = " or ".join(map(str, allowed))
    return lambda n: None if n.type in allowed else f"the result must be {names}, not {n.type}"


_NOTHING: Final = _result(NOTHING)
_OBJECT: Final = _result(OBJECT)
_PYTHON_INT: Final = ScalarType("i8", "python")
_INT: Final = _result(INDEX, _PYTHON_INT)
_DOUBLE: Final = _result(ScalarType("f8", "python"), ScalarType("f8", "numpy"))
_BOOL: Final = _result(ScalarType("b1", "python"), ScalarType("b1", "numpy"))
_PYTHON_DTYPES: Final = ("i8", "f8", "b1", "c16")


def _unboxed(n: Node) -> str | None:
    if not isinstance(n.type, ScalarType):
        return f"the result must be a scalar, not {n.type}"
    if n.type.box == "index" or (n.type.box == "python" and n.type.dtype not in _PYTHON_DTYPES):
        return f"nothing unboxes to {n.type}"
    return None


def _some_array(n: Node) -> str | None:
    return None if isinstance(n.type, ArrayType) else f"the result must be an array, not {n.type}"


def _literal(n: Node) -> str | None:
    if not isinstance(n.type, ScalarType):
        return f"the result must be a scalar, not {n.type}"
    value = n.attrs["value"]
    kinds = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex)}[n.type.dtype[0]]
    return None if type(value) in kinds else f"{value!r} is no value of {n.type}"


def _cast(n: Node) -> str | None:
    if not isinstance(n.type, ScalarType):
        return f"the result must be a scalar, not {n.type}"
    return _conversion(_scalar(n.args[0]).dtype, n.type.dtype)


def _conversion(source: str, target: str) -> str | None:
    """What is wrong with converting between dtypes: it must have a defined result for every value."""
    if source[0] == "c" and target[0] not in "cb":
        return f"{source} to {target}"
    if source[0] == "f" and target[0] in "iu":
        return f"{source} to {target}: out-of-range values have no defined result"
    return None


def _check(n: Node) -> str | None:
    a, b = (_scalar(x) for x in n.args)
    if a.dtype != b.dtype or a.dtype not in ("i8", "f8"):
        return f"compares {a} with {b}"
    if a.dtype == "i8" and n.attrs["cond"] in ("nlt", "nle"):
        return "nlt and nle are for doubles"
    return _NOTHING(n)


def _view(change: int) -> TypeRule:
    """A view of the first argument whose rank differs by `change`."""

    def rule(n: Node) -> str | None:
        base = _array(n.args[0])
        return _expect_array(n, base.dtype, base.ndim + change)

    return rule


def _on_axis(rule: TypeRule, extra: int = 0) -> TypeRule:
    """Also: attribute `axis` is an axis of the first argument (extra: of a result with so many more)."""

    def checked(n: Node) -> str | None:
        axis, ndim = n.attrs["axis"], _array(n.args[0]).ndim + extra
        assert isinstance(axis, int)
        return rule(n) if 0 <= axis < ndim else f"axis {axis} of an array of rank {ndim - extra}"

    return checked


def _slice(n: Node) -> str | None:
    given = n.attrs["given"]
    assert isinstance(given, tuple)
    if len(n.args) != 1 + sum(given):
        return f"{sum(given)} slice parts are given, {len(n.args) - 1} arguments follow"
    return _view(0)(n)


def _transpose(n: Node) -> str | None:
    perm, base = n.attrs["perm"], _array(n.args[0])
    assert isinstance(perm, tuple)
    return _view(0)(n) if sorted(perm) == list(range(base.ndim)) else f"{perm} does not permute {base.ndim} axes"


def _shaped_view(n: Node) -> str | None:
    return _expect_array(n, _array(n.args[0]).dtype, len(n.args) - 1)


def _part(n: Node) -> str | None:
    base = _array(n.args[0])
    part = {"c8": "f4", "c16": "f8"}.get(base.dtype)
    return f"{base} is not complex" if part is None else _expect_array(n, part, base.ndim)


def _load(n: Node) -> str | None:
    base = _array(n.args[0])
    return f"an array of rank {base.ndim}" if base.ndim else _result(ScalarType(base.dtype, "numpy"))(n)


def _elementwise(n: Node, dtype: str) -> str | None:
    ranks = [a.type.ndim for a in n.args if isinstance(a.type, ArrayType)]
    if not ranks or max(ranks) == 0:
        return "needs an array of rank one or more"
    return _expect_array(n, dtype, max(ranks))


def _ufunc(n: Node) -> str | None:
    try:
        ins, out = loop_dtypes(str(n.attrs["loop"]))
    except ValueError as e:
        return str(e)
    if len(ins) != len(n.args) or len(ins) > 3:
        return f"loop {n.attrs['loop']} has {len(ins)} operands"
    return _elementwise(n, out)


def _where(n: Node) -> str | None:
    cond, x, y = (_dtype(a) for a in n.args)
    if cond != "b1" or x != y:
        return f"operands of {cond}, {x} and {y}"
    return _elementwise(n, x)


def _astype(n: Node) -> str | None:
    source, target = _array(n.args[0]), str(n.attrs["dtype"])
    return _conversion(source.dtype, target) or _expect_array(n, target, source.ndim)


def _create(fixed: int) -> TypeRule:
    """A new array of the attribute's dtype; `fixed` arguments come before the shape."""
    return lambda n: _expect_array(n, str(n.attrs["dtype"]), len(n.args) - fixed)


def _full(n: Node) -> str | None:
    value = _scalar(n.args[0])
    return f"a value of {value.dtype}" if value.dtype != n.attrs["dtype"] else _create(1)(n)


def _create_like(n: Node) -> str | None:
    return _expect_array(n, str(n.attrs["dtype"]), _array(n.args[0]).ndim)


def _reduce(n: Node) -> str | None:
    source, axis, keep = _array(n.args[0]), n.attrs["axis"], n.attrs["keepdims"]
    try:
        ins, out = loop_dtypes(str(n.attrs["loop"]))
    except ValueError as e:
        return str(e)
    if ins[-1] != source.dtype:
        return f"loop {n.attrs['loop']} on {source.dtype}"
    if axis is None and not keep:
        return _result(ScalarType(out, "numpy"))(n)
    if axis is not None and not 0 <= int(str(axis)) < source.ndim:
        return f"axis {axis} of an array of rank {source.ndim}"
    if source.ndim == 1 and not keep:
        return _result(ScalarType(out, "numpy"))(n)
    return _expect_array(n, out, source.ndim if keep else source.ndim - 1)


def _store(n: Node) -> str | None:
    target, value = _array(n.args[0]), _dtype(n.args[1])
    return _NOTHING(n) if target.dtype == value else f"stores {value} into {target.dtype}"


def _pairs(n: Node) -> str | None:
    return _OBJECT(n) if len(n.args) % 2 == 0 else "a key without a value"


def _array(n: Node) -> ArrayType:
    assert isinstance(n.type, ArrayType)
    return n.type


def _scalar(n: Node) -> ScalarType:
    assert isinstance(n.type, ScalarType)
    return n.type


def _dtype(n: Node) -> str:
    assert isinstance(n.type, ArrayType | ScalarType)
    return n.type.dtype


def _expect_array(n: Node, dtype: str, ndim: int) -> str | None:
    want = ArrayType(dtype, ndim)
    return None if n.type == want else f"the result must be {want}, not {n.type}"


# -- effects -----------------------------------------------------------------------------------------------------------


def _ufunc_effect(n: Node) -> Effect:
    """Also the casts of operands count."""
    name, loop = str(n.attrs["name"]), str(n.attrs["loop"])
    casts = zip((_dtype(a) for a in n.args), loop_dtypes(loop)[0], strict=False)
    return "flags" if loop_raises(name, loop) or any(cast_raises(s, t) for s, t in casts) else "pure"


def _cast_effect(n: Node) -> Effect:
    return "flags" if cast_raises(_dtype(n.args[0]), _dtype(n)) else "pure"


def _reduce_effect(n: Node) -> Effect:
    """maximum and minimum of nothing raise ValueError."""
    name = str(n.attrs["ufunc"])
    if name in ("maximum", "minimum", "fmax", "fmin"):
        return "leaves"
    return "flags" if loop_raises(name, str(n.attrs["loop"])) else "pure"


def _division_effect(n: Node) -> Effect:
    divisor = n.args[1]
    return "pure" if divisor.op == "literal" and divisor.attrs["value"] != 0 else "leaves"


def _slice_effect(n: Node) -> Effect:
    """A zero step raises."""
    given = n.attrs["given"]
    assert isinstance(given, tuple)
    return _division_effect(Node(-1, "", (n, n.args[-1]), {}, NOTHING)) if given[2] else "pure"


def _fdiv_effect(n: Node) -> Effect:
    return "leaves" if _scalar(n).box == "python" else "flags"


# -- the table -----------------------------------------------------------------------------------------------------------

_AXIS: Final[Mapping[str, AttrRule]] = {"axis": _is_int}
_DT: Final[Mapping[str, AttrRule]] = {"dtype": _DTYPE}

OPS: Final[dict[str, Op]] = {
    # objects and numbers in
    "object": Op("", _OBJECT, {"expr": _hashable}),
    "constant": Op("", _OBJECT, {"value": _any}),
    "unbox": Op("o", _unboxed),
    "array": Op("o", _some_array),
    "literal": Op("", _literal, {"value": _number}),
    "cast": Op("s", _cast, effect=_cast_effect),
    # Python ints
    "iadd": Op("ii", _INT), "isub": Op("ii", _INT), "imul": Op("ii", _INT),
    "ifloordiv": Op("ii", _INT, effect=_division_effect), "imod": Op("ii", _INT, effect=_division_effect),
    "ipow": Op("ii", _INT, effect="leaves"),
    "imin": Op("ii", _INT), "imax": Op("ii", _INT), "ineg": Op("i", _INT), "iabs": Op("i", _INT),
    "itodouble": Op("i", _DOUBLE),
    "icmp": Op("ii", _BOOL, {"cond": _CONDITION}),
    "dim": Op("a", _on_axis(_INT), _AXIS),
    "size": Op("a", _INT),
    # doubles
    "fadd": Op("dd", _DOUBLE, effect="flags"), "fsub": Op("dd", _DOUBLE, effect="flags"), "fmul": Op("dd", _DOUBLE, effect="flags"),
    "fdiv": Op("dd", _DOUBLE, effect=_fdiv_effect),
    "fneg": Op("d", _DOUBLE), "fabs": Op("d", _DOUBLE), "fsqrt": Op("d", _DOUBLE, effect="flags"),
    "fpow": Op("dd", _DOUBLE, effect="leaves"),
    "fcmp": Op("dd", _BOOL, {"cond": _CONDITION}),
    # checks
    "check": Op("ss", _check, {"cond": _CHECK_CONDITION}, "leaves"),
    "check_true": Op("b", _NOTHING, effect="leaves"), "check_false": Op("b", _NOTHING, effect="leaves"),
    "check_is": Op("oo", _NOTHING, effect="leaves"), "check_isnot": Op("oo", _NOTHING, effect="leaves"),
    "check_nooverlap": Op("aa", _NOTHING, effect="leaves"), "check_contiguous": Op("a", _NOTHING, effect="leaves"),
    # views
    "slice": Op("ai*", _on_axis(_slice), {**_AXIS, "given": _three_bools}, _slice_effect),
    "index": Op("ai", _on_axis(_view(-1)), _AXIS, "leaves"),
    "newaxis": Op("a", _on_axis(_view(1), extra=1), _AXIS),
    "transpose": Op("a", _transpose, {"perm": _ints}),
    "reshape": Op("ai*", _shaped_view, effect="leaves"), "broadcast": Op("ai*", _shaped_view, effect="leaves"),
    "real": Op("a", _part), "imag": Op("a", _part),
    "load": Op("a", _load),
    # new arrays
    "ufunc": Op("xx*", _ufunc, {"name": _is_str, "loop": _is_str}, _ufunc_effect),
    "where": Op("xxx", _where),
    "astype": Op("a", _astype, _DT, _cast_effect),
    "copy": Op("a", _view(0), {"order": _one_of("C", "K")}),
    "empty": Op("i*", _create(0), _DT, "leaves"), "zeros": Op("i*", _create(0), _DT, "leaves"),
    "full": Op("si*", _full, _DT, "leaves"),
    "empty_like": Op("a", _create_like, _DT), "zeros_like": Op("a", _create_like, _DT),
    "reduce": Op("a", _reduce, {"ufunc": _is_str, "loop": _is_str, "axis": _axis_or_none, "keepdims": _is_bool}, _reduce_effect),
    # effects
    "store": Op("ax", _store, effect="writes"),
    # objects out
    "box": Op("x", _OBJECT),
    "tuple": Op("o*", _OBJECT), "list": Op("o*", _OBJECT), "dict": Op("o*", _pairs),
    "slice_object": Op("ooo", _OBJECT), "method": Op("oo", _OBJECT),
    "shape": Op("a", _OBJECT),
}  # fmt: skip

VIEWS: Final = frozenset(("slice", "index", "newaxis", "transpose", "reshape", "broadcast", "real", "imag"))
"""Operations whose result aliases their first argument's memory."""

_NEW_ARRAYS: Final = ("ufunc", "where", "astype", "copy", "empty", "zeros", "full", "empty_like", "zeros_like")
_NEW_OBJECTS: Final = ("box", "tuple", "list", "dict", "slice_object", "method", "shape")


def makes_new(node: Node) -> bool:
    """Whether running the node twice makes two things: memory or objects that can be told apart, or an effect."""
    if node.op == "reduce":
        return isinstance(node.type, ArrayType)
    return node.op in _NEW_ARRAYS or node.op in _NEW_OBJECTS or node.op == "store"


def effect(node: Node) -> Effect:
    """What running the node may do besides giving its value."""
    e = OPS[node.op].effect
    return e if isinstance(e, str) else e(node)


def keep_alive(node: Node) -> bool:
    """Whether the node runs even if nobody uses its value."""
    return effect(node) != "pure" or _hands_over_int(node)


def _hands_over_int(node: Node) -> bool:
    """Whether it gives a computed Python int to NumPy or makes a float of it: without the node nobody would see that it does not fit."""
    if node.op == "cast":
        into_c = isinstance(node.type, ScalarType) and node.type.box == "numpy"
    else:
        into_c = node.op in ("ufunc", "where", "full", "itodouble")
    return into_c and any(arg.type == _PYTHON_INT and arg.op != "literal" for arg in node.args)


def raises_flags(node: Node) -> bool:
    """Whether the node may raise floating-point flags that NumPy would report."""
    if node.op == "fdiv":
        return True
    if node.op == "reduce":
        return loop_raises(str(node.attrs["ufunc"]), str(node.attrs["loop"]))
    return effect(node) == "flags"
