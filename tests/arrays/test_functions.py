"""Functions, methods and attributes against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays.harness import Const, agree
from arrays.strategies import LAYOUTS, ArraySpec, broadcastable, dtypes, numbers, specs
from tierup.arrays.numpy_rules import LIBRARY
from tierup.arrays.values import ConstValue
from tierup.graph.ir import DTYPES

shapes = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


def _maker(args: list[Any], kwargs: dict[str, Any]) -> Any:
    def make(o: Any) -> Any:
        return o.make() if isinstance(o, ArraySpec) else o

    return lambda: ([make(a) for a in args], {k: make(v) for k, v in kwargs.items()})


def check(name: str, *args: Any, must: bool = False, others: Any = (), **kwargs: Any) -> str:
    """Method `.name`, attribute `@name`, or function of the numpy module."""
    makers = [_maker(list(args), kwargs), *(_maker(list(o), kwargs) for o in others)]
    if name.startswith("."):
        rule = LIBRARY.method_rule(name[1:])
        return agree(rule, lambda a, *r, **k: getattr(a, name[1:])(*r, **k), *makers, must_capture=must)
    if name.startswith("@"):
        rule = LIBRARY.attribute_rule(name[1:])
        return agree(rule, lambda a: getattr(a, name[1:]), *makers, must_capture=must)
    function = getattr(np, name)
    return agree(LIBRARY.rule_for(function), function, *makers, must_capture=must)


def axes(ndim: int) -> st.SearchStrategy[Any]:
    one = st.integers(-ndim - 1, ndim)
    return st.one_of(st.none(), one, one, st.lists(one, min_size=1, max_size=2).map(tuple))


def _given(data: Any, **options: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Some of the options, as constants or run-time values."""
    out: dict[str, Any] = {}
    for name, strategy in options.items():
        if data.draw(st.booleans()):
            value = data.draw(strategy)
            dynamic = type(value) is int or isinstance(value, tuple)
            out[name] = value if dynamic and data.draw(st.booleans()) else Const(value)
    return out


# -- attributes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["T", "shape", "ndim", "size", "dtype", "itemsize", "nbytes", "real", "imag", "mT"])
@pytest.mark.parametrize("layout", sorted(set(LAYOUTS)))
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (0, 2), (1, 1, 3)])
def test_attributes(name: str, layout: str, shape: tuple[int, ...]) -> None:
    for dtype in ("f8", "c16", "i4", "c8"):
        spec = ArraySpec(dtype, shape, 1, layout, False)
        outcome = check("@" + name, spec, others=[[spec.resized(tuple(n + 1 for n in shape), 4)]] if layout != "broadcast" else [])
        assert outcome == "ran" or (name == "imag" and dtype in ("f8", "i4")) or (name == "mT" and len(shape) == 1)


# -- views -------------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, st.sampled_from((".transpose", "transpose", ".swapaxes", "swapaxes", "moveaxis", "flip", "squeeze", ".squeeze")))
def test_axis_functions(data: Any, shape: tuple[int, ...], name: str) -> None:
    x = data.draw(specs(shape))
    axis = st.integers(-len(shape) - 1, len(shape))
    if "transpose" in name:
        perm = data.draw(st.permutations(range(len(shape))))
        choice = data.draw(st.sampled_from(("none", "tuple", "ints")))
        arguments = {"none": [], "tuple": [tuple(perm)], "ints": list(perm)}[choice]
        if choice == "ints" and name == "transpose":
            arguments = []
    elif name in ("flip", "squeeze", ".squeeze"):
        arguments = [data.draw(axes(len(shape)))] if data.draw(st.booleans()) else []
    else:
        arguments = [data.draw(axis), data.draw(axis)]
    check(name, x, *arguments)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)])
def test_rollaxis(shape: tuple[int, ...]) -> None:
    for axis in range(-len(shape) - 1, len(shape) + 1):
        for start in range(-len(shape) - 1, len(shape) + 2):
            check("rollaxis", ArraySpec("f8", shape, 1, "c", False), axis, Const(start))
        check("rollaxis", ArraySpec("f8", shape, 1, "c", False), axis)


@pytest.mark.parametrize("name", ["flipud", "fliplr"])
def test_flips(name: str) -> None:
    check(name, ArraySpec("f8", (3, 4), 1, "c", False), must=True)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from((".reshape", "reshape", ".ravel", "ravel", ".flatten")))
def test_reshape(data: Any, name: str) -> None:
    shape = data.draw(st.sampled_from([(12,), (3, 4), (2, 3, 2), (0, 3), (1, 6, 2)]))
    x = data.draw(specs(shape))
    others = [[x.resized((24,) if len(shape) == 1 else (shape[0] * 2, *shape[1:]), 3)]] if x.layout == "c" else []
    if "reshape" in name:
        fitting = [(12,), (-1,), (4, 3), (2, -1), (-1, 2, 3), (2, 2, 3, 1)]
        new = data.draw(st.sampled_from([*fitting, (0, 3), (3, 0), (5, -1), (-1, 0), (-1, -1)]))
        spread = name == ".reshape" and data.draw(st.booleans())
        arguments = list(new) if spread else [new[0] if len(new) == 1 else new]
        others = [[o, *arguments] for (o,) in others]
        check(name, x, *arguments, others=others)
    else:
        check(name, x, others=others)


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes)
def test_expand_dims(data: Any, shape: tuple[int, ...]) -> None:
    check("expand_dims", data.draw(specs(shape)), data.draw(axes(len(shape) + 1).filter(lambda a: a is not None)))


@settings(max_examples=200, deadline=None)
@given(st.data(), broadcastable(2))
def test_broadcast_to(data: Any, both: list[tuple[int, ...]]) -> None:
    check("broadcast_to", data.draw(specs(both[0])), both[1])


@pytest.mark.parametrize("name", ["real", "imag", "shape", "ndim", "size"])
def test_attribute_functions(name: str) -> None:
    check(name, ArraySpec("c16", (3, 4), 1, "c", False), must=True)


# -- creation ----------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(("zeros", "ones", "full")))
def test_creation(data: Any, name: str) -> None:
    lengths = st.integers(-1, 4)
    shape = data.draw(st.one_of(lengths, st.lists(lengths, min_size=0, max_size=3).map(tuple)))
    dtype = st.sampled_from((*DTYPES, float, int, bool, complex, np.float32, np.dtype("i4"), "float64", "int32", None, "<f4", "d"))
    kwargs = _given(data, dtype=dtype, order=st.sampled_from("CF"))
    fill = [data.draw(numbers())] if name == "full" else []
    check(name, shape, *fill, **kwargs)


@pytest.mark.parametrize("name", ["empty", "ndarray", "empty_like"])
def test_uninitialised(name: str) -> None:
    """Their elements are arbitrary; a store makes them comparable."""
    function = getattr(np, name)
    rule = LIBRARY.rule_for(function)

    def make(first: Any) -> Any:
        out = function(first)
        out[...] = 2.0
        return out

    def captured(b: Any, args: Any, kwargs: Any) -> Any:
        out = rule(b, args, kwargs)
        LIBRARY.setitem(b, out, ConstValue(...), ConstValue(2.0))
        return out

    first: Any = ArraySpec("f8", (3, 4), 1, "fortran", False) if name == "empty_like" else (3, 4)
    agree(captured, make, _maker([first], {}), _maker([first], {}), must_capture=True)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(("zeros_like", "ones_like", "full_like")), shapes)
def test_creation_like(data: Any, name: str, shape: tuple[int, ...]) -> None:
    kwargs = _given(data, dtype=dtypes)
    fill = [data.draw(numbers())] if name == "full_like" else []
    check(name, data.draw(specs(shape)), *fill, **kwargs)


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, st.sampled_from((".copy", "copy", ".astype", "astype", "array", "asarray", "ascontiguousarray", "asanyarray")))
def test_copies(data: Any, shape: tuple[int, ...], name: str) -> None:
    x = data.draw(specs(shape))
    arguments = [Const(np.dtype(data.draw(dtypes)))] if "astype" in name or ("copy" not in name and data.draw(st.booleans())) else []
    kwargs = {}
    if name in (".astype", "astype"):
        kwargs = _given(data, copy=st.booleans())
    elif "copy" in name:
        kwargs = _given(data, order=st.sampled_from("CKA"))
    elif name == "array":
        kwargs = _given(data, copy=st.sampled_from((True, None)))
    check(name, x, *arguments, **kwargs)


@settings(max_examples=200, deadline=None)
@given(st.data(), broadcastable(2))
def test_copyto(data: Any, both: list[tuple[int, ...]]) -> None:
    source = data.draw(st.one_of(specs(both[1]), numbers(), numbers().map(Const)))
    check("copyto", data.draw(specs(both[0])), source)


@settings(max_examples=200, deadline=None)
@given(st.data(), broadcastable(2), numbers())
def test_putmask(data: Any, both: list[tuple[int, ...]], value: Any) -> None:
    check("putmask", data.draw(specs(both[0])), data.draw(specs(both[1], st.just("b1"))), value)


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, numbers())
def test_fill(data: Any, shape: tuple[int, ...], value: Any) -> None:
    check(".fill", data.draw(specs(shape)), value)


# -- reductions --------------------------------------------------------------------------------------------------------

REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "ptp")


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, st.sampled_from(REDUCTIONS), st.booleans())
def test_reductions(data: Any, shape: tuple[int, ...], name: str, method: bool) -> None:
    x = data.draw(specs(shape))
    kwargs = _given(data, axis=axes(len(shape)), keepdims=st.booleans())
    if name in ("var", "std"):
        kwargs |= _given(data, ddof=st.integers(0, 2))
    if name in ("sum", "prod", "mean"):
        kwargs |= _given(data, dtype=st.sampled_from((None, "f8", "i8", "f4")))
    others = [] if x.layout == "broadcast" else [[x.resized(tuple(n + 1 if n != 1 else 1 for n in shape), 9)]]
    check(("." if method and name != "ptp" else "") + name, x, others=others, **kwargs)


@pytest.mark.parametrize("name", ["any", "all", "sum"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_reductions_that_cast_arrays_in_another_order(name: str, axis: int | None) -> None:
    """NumPy casts in buffers, so that the result has the order of the axes before the cast, not of a copy."""
    for layout in LAYOUTS:
        check(name, ArraySpec("i1", (1, 1, 2, 2), 0, layout, False), axis=axis)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_float_reductions_are_captured(dtype: str, name: str, axis: Any, keepdims: bool) -> None:
    for shape in ((7, 33), (40, 5)):
        check(name, ArraySpec(dtype, shape, 1, "c", False), axis=Const(axis), keepdims=Const(keepdims), must=True)


# -- selection -----------------------------------------------------------------------------------------------------------


@settings(max_examples=250, deadline=None)
@given(st.data(), broadcastable(3))
def test_where(data: Any, three: list[tuple[int, ...]]) -> None:
    condition = data.draw(specs(three[0], st.one_of(st.just("b1"), st.just("b1"), dtypes)))
    x, y = (data.draw(st.one_of(specs(shape), numbers(), numbers().map(Const))) for shape in three[1:])
    check("where", condition, x, y)


@settings(max_examples=200, deadline=None)
@given(st.data(), broadcastable(3), st.booleans())
def test_clip(data: Any, three: list[tuple[int, ...]], method: bool) -> None:
    bound = st.one_of(numbers(), numbers().map(Const), st.just(Const(None)))
    x = data.draw(specs(three[0]))
    low, high = (data.draw(st.one_of(bound, bound, specs(shape))) for shape in three[1:])
    check(".clip" if method else "clip", x, low, high)


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, st.sampled_from((".round", "round", "around")))
def test_round(data: Any, shape: tuple[int, ...], name: str) -> None:
    check(name, data.draw(specs(shape)), *data.draw(st.sampled_from(([], [0], [1], [-1]))))


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes)
def test_diff(data: Any, shape: tuple[int, ...]) -> None:
    check("diff", data.draw(specs(shape)), **_given(data, axis=st.integers(-3, 2)))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(0, 4), st.integers(0, 4))
def test_outer(data: Any, n: int, m: int) -> None:
    check("outer", data.draw(specs((n,))), data.draw(specs((m,))))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(["add", "subtract", "multiply", "minimum", "less", "arctan2"]), shapes, shapes)
def test_outer_of_a_ufunc(data: Any, name: str, left: Any, right: Any) -> None:
    if len(left) + len(right) > 8:
        return
    ufunc = getattr(np, name)
    maker = _maker([data.draw(specs(left)), data.draw(specs(right))], {})
    agree(LIBRARY.function_method_rule(ufunc, "outer"), ufunc.outer, maker)


def test_outer_of_a_ufunc_is_not_what_somebody_put_there() -> None:
    assert LIBRARY.function_method_rule(np.hypot, "outer") is not None
    assert LIBRARY.function_method_rule(np.hypot, "reduceat") is None
    if hasattr(np.hypot, "__dict__"):
        vars(np.hypot)["outer"] = None
        try:
            assert LIBRARY.function_method_rule(np.hypot, "outer") is None
        finally:
            del vars(np.hypot)["outer"]


@pytest.mark.parametrize("name", [".conj", ".conjugate"])
def test_conjugate(name: str) -> None:
    for dtype in ("f8", "c16", "i4"):
        check(name, ArraySpec(dtype, (3, 4), 1, "c", False))
