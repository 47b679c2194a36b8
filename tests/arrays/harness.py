"""Builds graphs from rules as capture does, runs them with the reference evaluator and compares with the plain call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arrays.reference import Left, bits, evaluate
from tierup import _core
from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import LIBRARY
from tierup.arrays.protocol import ArrayFacts
from tierup.arrays.values import (
    ArrayValue,
    Buffer,
    ConstValue,
    ObjectValue,
    ScalarValue,
    SliceValue,
    TupleValue,
    Value,
)
from tierup.graph.ir import OBJECT, ArrayType, Graph, Node, ScalarType
from tierup.graph.verify import verify

_core.init_numpy()

_PYTHON = {int: "i8", float: "f8", bool: "b1", complex: "c16"}


class Const:
    """Marks an argument that is known at translation time."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Session:
    """One graph with the objects its sources name."""

    def __init__(self) -> None:
        self.graph = Graph("test")
        self.constants: dict[str, int] = {}
        self.facts: dict[str, ArrayFacts] = {}
        self.builder = Builder(self.graph, self._guard)

    def _guard(self, value: ScalarValue) -> None:
        self.constants[value.origin.source] = value.hint

    def value(self, obj: Any, source: str) -> Value:
        """The symbolic value of a concrete argument."""
        if isinstance(obj, Const):
            return ConstValue(obj.value)
        if isinstance(obj, tuple):
            return TupleValue(tuple(self.value(item, f"{source}.{i}") for i, item in enumerate(obj)))
        if isinstance(obj, slice):
            parts = (obj.start, obj.stop, obj.step)
            return SliceValue(*(self.value(p, f"{source}.{n}") for p, n in zip(parts, ("start", "stop", "step"), strict=True)))
        origin = ObjectValue(source, obj)
        if LIBRARY.recognise(obj):
            facts = self.facts[source] = LIBRARY.array_facts(obj)
            node = self._node("array", source, ArrayType(facts.dtype, facts.ndim))
            return ArrayValue(node, obj.shape, Buffer(False, source), origin, facts.ccontig, facts.writeable)
        dtype = LIBRARY.is_numpy_scalar(obj)
        if dtype is not None:
            return ScalarValue(self._node("unbox", source, ScalarType(dtype, "numpy")), obj.item(), origin)
        if type(obj) in _PYTHON:
            return ScalarValue(self._node("unbox", source, ScalarType(_PYTHON[type(obj)], "python")), obj, origin)
        return ConstValue(obj)

    def _node(self, op: str, source: str, type: ArrayType | ScalarType) -> Node:
        obj = self.builder.node("object", (), OBJECT, expr=source)
        return self.builder.node(op, (obj,), type)

    def guards_hold(self, objects: dict[str, Any]) -> bool:
        return all(objects[source] == value for source, value in self.constants.items())


def flatten(obj: Any, source: str, into: dict[str, Any]) -> None:
    """The objects of an argument by source."""
    if isinstance(obj, tuple):
        for i, item in enumerate(obj):
            flatten(item, f"{source}.{i}", into)
    elif isinstance(obj, slice):
        for name in ("start", "stop", "step"):
            flatten(getattr(obj, name), f"{source}.{name}", into)
    elif not isinstance(obj, Const):
        into[source] = obj


def plain(obj: Any) -> Any:
    """An argument without Const marks."""
    if isinstance(obj, Const):
        return obj.value
    if isinstance(obj, tuple):
        return tuple(plain(item) for item in obj)
    return obj


Rule = Callable[..., Value | None]


class Captured:
    """A rule's graph for one set of arguments, to be run on others of the same kinds."""

    def __init__(self, rule: Rule, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> None:
        """Raises NoRule as the rule does."""
        session = self.session = Session()
        values = tuple(session.value(arg, str(i)) for i, arg in enumerate(args))
        keywords = {name: session.value(arg, name) for name, arg in (kwargs or {}).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.result = rule(session.builder, values, keywords)
        verify(session.graph)
        self.values = values

    def run(self, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """The result on concrete arguments. Raises Left."""
        objects: dict[str, Any] = {}
        for name, arg in [*((str(i), arg) for i, arg in enumerate(args)), *(kwargs or {}).items()]:
            flatten(arg, name, objects)
        for name, facts in self.session.facts.items():
            if LIBRARY.array_facts(objects[name]) != facts:
                raise Left("a guard failed")
        if not self.session.guards_hold(objects):
            raise Left("a guard failed")
        wanted: list[Node] = []
        _nodes(self.result, wanted)
        found = evaluate(self.session.graph, objects, wanted)
        if isinstance(self.result, ArrayValue):
            check_claims(self.result, found[0])
        return _rebuild(self.result, dict(zip(wanted, found, strict=True)))


def check_claims(value: ArrayValue, a: np.ndarray) -> None:
    """What a rule says of an array must be true of every array it can be."""
    assert (value.ndim, np.dtype(value.dtype)) == (a.ndim, a.dtype)
    assert a.flags.c_contiguous or not value.ccontig
    assert value.writeable == a.flags.writeable
    strides = [abs(stride) for stride, n in zip(a.strides, a.shape, strict=True) if n > 1]
    assert not value.corder or a.size == 0 or (strides == sorted(strides, reverse=True) and (0 not in strides or len(strides) == 1))


def _nodes(value: Value | None, into: list[Node]) -> None:
    if isinstance(value, ArrayValue | ScalarValue):
        into.append(value.node)
    elif isinstance(value, TupleValue):
        for item in value.items:
            _nodes(item, into)


def _rebuild(value: Value | None, found: dict[Node, Any]) -> Any:
    if isinstance(value, ArrayValue | ScalarValue):
        return found[value.node]
    if isinstance(value, TupleValue):
        return tuple(_rebuild(item, found) for item in value.items)
    return value.value if isinstance(value, ConstValue) else None


def run_plain(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """(result, None) or (None, what Python raised or warned of)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return function(*(plain(a) for a in args), **{k: plain(v) for k, v in (kwargs or {}).items()}), None
        except Exception as error:
            return None, error


Maker = Callable[[], tuple[list[Any], dict[str, Any]]]


def agree(rule: Rule, function: Callable[..., Any], make: Maker, *others: Maker, must_capture: bool = False) -> str:
    """Capture with make()'s arguments; run on them and on others' (same kinds), each against the plain call. Returns what happened with the
    first: 'refused', 'left' or 'ran'. Arguments are made anew for each run, so that mutations can be compared."""
    args, kwargs = make()
    try:
        captured = Captured(rule, args, kwargs)
    except NoRule:
        if must_capture:
            raise
        return "refused"
    first = ""
    for maker in (make, *others):
        outcome = _one(captured, function, maker)
        first = first or outcome
    if must_capture:
        assert first == "ran", first
    return first


def _one(captured: Captured, function: Callable[..., Any], make: Maker) -> str:
    (ours, our_kwargs), (theirs, their_kwargs) = make(), make()
    expected, error = run_plain(function, theirs, their_kwargs)
    before = bits(_arrays(ours))
    try:
        result = captured.run(ours, our_kwargs)
    except Left:
        assert bits(_arrays(ours)) == before, "a region that was left had an effect"
        return "left"
    assert error is None, f"the plain call fails with {error!r}, the graph gives {result!r}"
    assert bits(result) == bits(expected), (result, expected)
    _same_identity(result, expected, ours, theirs)
    mine, plains = _arrays([*ours, *our_kwargs.values()]), _arrays([*theirs, *their_kwargs.values()])
    assert bits(mine) == bits(plains), "arguments were changed differently"
    return "ran"


def _arrays(obj: Any) -> list[np.ndarray]:
    if isinstance(obj, np.ndarray):
        return [obj]
    if isinstance(obj, tuple | list):
        return [a for item in obj for a in _arrays(item)]
    return []


def _same_identity(result: Any, expected: Any, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """The result is the same argument, or a view on the same argument's memory, as the plain result is."""
    if not isinstance(result, np.ndarray):
        return
    for mine, plain_one in zip(_arrays(list(ours)), _arrays(list(theirs)), strict=True):
        assert (result is mine) == (expected is plain_one)
        assert np.may_share_memory(result, mine) == np.may_share_memory(expected, plain_one)
        assert (result.base is _owner(mine)) == (expected.base is _owner(plain_one))


def _owner(a: np.ndarray) -> np.ndarray:
    return a if a.base is None else a.base
