"""Chains of operations: what rules claim of their results must hold, and the results are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays.harness import agree
from arrays.strategies import ArraySpec, specs
from tierup.arrays.builder import Builder
from tierup.arrays.numpy_rules import LIBRARY
from tierup.arrays.numpy_rules.arguments import array_argument
from tierup.arrays.values import ConstValue, SliceValue, TupleValue, Value


class _Plain:
    """The chain's steps on arrays."""

    @staticmethod
    def method(a: Any, name: str, *args: Any) -> Any:
        return getattr(a, name)(*args)

    attribute = staticmethod(getattr)
    item = staticmethod(lambda a, key: a[key])
    function = staticmethod(lambda a, name, *args: getattr(np, name)(a, *args))
    add = staticmethod(lambda a, other: a + other)


class _Symbolic:
    """The chain's steps on symbolic values."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def method(self, a: Value, name: str, *args: Any) -> Any:
        return LIBRARY.method_rule(name)(self.b, (a, *map(_constant, args)), {})  # type: ignore[misc]

    def attribute(self, a: Value, name: str) -> Any:
        return LIBRARY.attribute_rule(name)(self.b, (a,), {})  # type: ignore[misc]

    def item(self, a: Any, key: Any) -> Any:
        return LIBRARY.getitem(self.b, array_argument(a), _constant(key))

    def function(self, a: Value, name: str, *args: Any) -> Any:
        return LIBRARY.rule_for(getattr(np, name))(self.b, (a, *map(_constant, args)), {})  # type: ignore[misc]

    def add(self, a: Value, other: Any) -> Any:
        return LIBRARY.binary_op(self.b, "+", a, _constant(other) if isinstance(other, int | float) else other)


def _constant(obj: Any) -> Value:
    if isinstance(obj, tuple):
        return TupleValue(tuple(map(_constant, obj)))
    if isinstance(obj, slice):
        return SliceValue(*map(ConstValue, (obj.start, obj.stop, obj.step)))
    return ConstValue(obj)


_KEYS = (
    *(slice(1, None), slice(None, None, -1), slice(None, None, 2), (Ellipsis, slice(None, -1)), None, (slice(None), None), 0),
    (Ellipsis, 0),
)
Step = Callable[[Any, Any], Any]
_STEPS: dict[str, Step] = {
    "T": lambda on, a: on.attribute(a, "T"),
    "copy": lambda on, a: on.method(a, "copy"),
    "np.copy": lambda on, a: on.function(a, "copy"),
    "astype": lambda on, a: on.method(a, "astype", np.float32),
    "ravel": lambda on, a: on.method(a, "ravel"),
    "flatten": lambda on, a: on.method(a, "flatten"),
    "squeeze": lambda on, a: on.method(a, "squeeze"),
    "reshape": lambda on, a: on.method(a, "reshape", -1, 1),
    "ascontiguousarray": lambda on, a: on.function(a, "ascontiguousarray"),
    "zeros_like": lambda on, a: on.function(a, "zeros_like"),
    "sqrt": lambda on, a: on.function(on.function(a, "abs"), "sqrt"),
    "add": lambda on, a: on.add(a, 1),
    "add itself": lambda on, a: on.add(a, a),
    "add transposed": lambda on, a: on.add(a, on.attribute(a, "T")),
    "sum": lambda on, a: on.method(a, "sum", 0),
    "max": lambda on, a: on.method(a, "max", -1),
    "mean": lambda on, a: on.method(a, "mean", 0),
    "swapaxes": lambda on, a: on.method(a, "swapaxes", 0, -1),
    "flip": lambda on, a: on.function(a, "flip"),
    "expand_dims": lambda on, a: on.function(a, "expand_dims", 0),
    "where": lambda on, a: on.function(on.function(a, "isnan"), "where", 0.0, 1.0),
    **{f"[{key}]": lambda on, a, key=key: on.item(a, key) for key in _KEYS},
}


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


@settings(max_examples=600, deadline=None)
@given(st.data(), shapes, st.lists(st.sampled_from(sorted(_STEPS)), min_size=1, max_size=6))
def test_chains(data: Any, shape: tuple[int, ...], steps: list[str]) -> None:
    x = data.draw(specs(shape, st.sampled_from(("f8", "f8", "i4")), special=False))

    def rule(b: Builder, args: Any, kwargs: Any) -> Any:
        return _run(_Symbolic(b), args[0])

    def plain(a: Any) -> Any:
        return _run(_Plain, a)

    def _run(on: Any, value: Any) -> Any:
        for step in steps:
            value = _STEPS[step](on, value)
        return value

    others = [x.resized(tuple(n + 1 if n > 1 else n for n in shape), 7)] if x.layout != "broadcast" else []
    agree(rule, plain, *(_maker(spec) for spec in (x, *others)))


def _maker(spec: ArraySpec) -> Any:
    return lambda: ([spec.make()], {})


def test_complex_products_in_place():
    """NumPy's products of complex numbers have other bits where an operand is the output, or for other strides of it."""
    import tierup

    def fresh(a):
        v = a + 3
        v *= v
        return v

    def view(a):
        v = a + 3
        w = v[::-2]
        w += 1
        w *= w
        return w

    def out(a):
        v = a + 3
        return np.multiply(v, a, out=v)

    rng = np.random.default_rng(0)
    for function in (fresh, view, out):
        jitted = tierup.jit(function)
        for n in (*range(1, 40), 300, 5000):
            for dtype in ("c8", "c16"):
                a = (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
                want, got = function(a), jitted(a)
                assert (
                    np.asarray(want[-1] if function is view else want).tobytes()
                    == np.asarray(got[-1] if function is view else got).tobytes()
                )
