"""Subscripts against NumPy: views, single elements, assignment with its casts, broadcasting and overlaps."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays.harness import Captured, Const, agree
from arrays.strategies import ArraySpec, dtypes, numbers, specs
from tierup.arrays.builder import NoRule
from tierup.arrays.numpy_rules import LIBRARY

small = st.one_of(st.integers(-5, 5), st.integers(-5, 5).map(np.int64))
limits = st.one_of(st.none(), small)
slices = st.builds(slice, limits, limits, st.one_of(st.none(), st.sampled_from((-2, -1, 1, 2, 3))))
part = st.one_of(small, slices, st.just(Ellipsis), st.none(), st.just(slice(None)), st.just(slice(1, -1)))
index = st.one_of(part, st.lists(part, min_size=1, max_size=4).map(tuple))
shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


def getitem(b: Any, args: Any, kwargs: Any) -> Any:
    return LIBRARY.getitem(b, *args)


def setitem(b: Any, args: Any, kwargs: Any) -> Any:
    return LIBRARY.setitem(b, *args)


def _make(*args: Any) -> Any:
    return lambda: ([a.make() if isinstance(a, ArraySpec) else a for a in args], {})


def _vary(obj: Any, data: Any) -> Any:
    """Another index of the same kind."""
    if type(obj) in (int, np.int64):
        return type(obj)(data.draw(small))
    if isinstance(obj, tuple):
        return tuple(_vary(o, data) for o in obj)
    if isinstance(obj, slice):
        return slice(*(_vary(limit, data) for limit in (obj.start, obj.stop, obj.step)))
    return obj


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, index, st.booleans())
def test_getitem(data: Any, shape: tuple[int, ...], key: Any, constant: bool) -> None:
    x = data.draw(specs(shape))
    if constant:
        agree(getitem, operator.getitem, _make(x, Const(key)))
    else:
        agree(getitem, operator.getitem, _make(x, key), _make(x, _vary(key, data)))


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, index)
def test_setitem_of_arrays(data: Any, shape: tuple[int, ...], key: Any) -> None:
    x = data.draw(specs(shape))
    try:
        target = x.make()[key]
    except IndexError:
        return
    value_shape = tuple(1 if data.draw(st.integers(0, 3)) == 0 else n for n in np.shape(target)) or (1,)
    drop, add = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    value = data.draw(specs((1,) * add + value_shape[drop if len(value_shape) > 1 else 0 :], st.one_of(st.just(x.dtype), dtypes)))
    agree(setitem, operator.setitem, _make(x, key, value), _make(x, _vary(key, data), value))


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, index, numbers(), st.booleans())
def test_setitem_of_numbers(data: Any, shape: tuple[int, ...], key: Any, value: Any, constant: bool) -> None:
    x = data.draw(specs(shape))
    again = data.draw(numbers().filter(lambda n: type(n) is type(value)))
    agree(setitem, operator.setitem, _make(x, key, Const(value) if constant else value), _make(x, key, Const(value) if constant else again))


@settings(max_examples=200, deadline=None)
@given(st.data(), shapes, numbers(), st.booleans())
def test_masked_assignment(data: Any, shape: tuple[int, ...], value: Any, same: bool) -> None:
    x = data.draw(specs(shape))
    mask = data.draw(specs(shape if same else data.draw(shapes), st.just("b1")))
    grown = tuple(n + 1 for n in shape)
    others = [_make(x.resized(grown, 1), mask.resized(grown, 2), value), _make(x, mask.resized(grown, 2), value)]
    agree(setitem, operator.setitem, _make(x, mask, value), *([] if "broadcast" in (x.layout, mask.layout) else others))


@pytest.mark.parametrize(
    "source, target", [(slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1)), (slice(None, None, -1), slice(None))]
)
def test_overlapping_assignment(source: slice, target: slice) -> None:
    def rule(b: Any, args: Any, kwargs: Any) -> Any:
        x, s, t = args
        return LIBRARY.setitem(b, x, t, LIBRARY.getitem(b, x, s))

    def plain(x: Any, s: Any, t: Any) -> None:
        x[t] = x[s]

    agree(rule, plain, _make(ArraySpec("f8", (7,), 1, "c", False), source, target), must_capture=True)


@pytest.mark.parametrize("key", [3, slice(1, 4), slice(None, None, 2), (slice(None), 1), (1, slice(None)), (2, 3), (Ellipsis, slice(1, 3))])
@pytest.mark.parametrize("symbol, plain", [("+=", operator.iadd), ("*=", operator.imul)])
def test_augmented_assignment_of_an_item(key: Any, symbol: str, plain: Any) -> None:
    """`x[i] += y` reads the view, updates it in place and assigns it to itself."""

    def rule(b: Any, args: Any, kwargs: Any) -> Any:
        x, k, y = args
        item = LIBRARY.binary_op(b, symbol, LIBRARY.getitem(b, x, k), y)
        return LIBRARY.setitem(b, x, k, item)

    def function(x: Any, k: Any, y: Any) -> None:
        x[k] = plain(x[k], y)

    agree(rule, function, _make(ArraySpec("f8", (5, 6), 1, "c", False), key, 2.5), must_capture=True)


def test_a_value_of_this_region_is_stored_without_a_copy() -> None:
    def rule(b: Any, args: Any, kwargs: Any) -> Any:
        x, y = args
        return LIBRARY.setitem(b, x, session_slice, LIBRARY.binary_op(b, "*", y, y))

    from tierup.arrays.values import ConstValue, SliceValue

    session_slice = SliceValue(ConstValue(None), ConstValue(None), ConstValue(None))
    captured = Captured(rule, [np.zeros(4), np.arange(4.0)])
    assert [n.op for n in captured.session.graph.nodes if n.op in ("copy", "store")] == ["store"]


@pytest.mark.parametrize("key", [np.array([0, 1]), True, np.bool_(True), [0, 1], 1.0, "a", np.int32(1), (0, [1])])
def test_other_indices_are_refused(key: Any) -> None:
    with pytest.raises(NoRule):
        Captured(getitem, [np.zeros((3, 3)), Const(key)])


def test_read_only_targets_are_refused() -> None:
    x = np.zeros(3)
    x.flags.writeable = False
    with pytest.raises(NoRule):
        Captured(setitem, [x, 0, 1.0])


def test_length() -> None:
    agree(lambda b, args, kwargs: LIBRARY.length(b, *args), len, _make(ArraySpec("f8", (3, 4), 1, "c", False)), must_capture=True)
