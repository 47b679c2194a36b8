"""Frames, namespaces and tools that look at them: locals(), exec, tracers switched on in the middle, cells, comprehensions, pickles."""

# The programs are written as users write them.
# ruff: noqa: B012

from __future__ import annotations

import asyncio
import builtins
import contextlib
import copy
import inspect
import pickle
import sys
import types
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import tierup

from .scenario import WARM, Scenario, Wrap, caught, check

X = np.array([1.5, -2.0, 4.0])


def locals_and_eval(wrap: Wrap) -> Any:
    def look(v: Any, n: int) -> Any:
        w = v * n
        seen = dict(locals())
        x = w + 1
        total = eval("w.sum() + x.sum() + n")
        exec("y = 3")
        del seen["v"]
        return seen, total, sorted(locals()), sorted(vars())

    f = wrap(look)
    return [f(X, n) for n in (2, 2, 3, 2)]


def cells_written_between_regions(wrap: Wrap) -> Any:
    def outer(v: Any) -> Any:
        w = v * 2
        scale = 3

        def inner(u: Any) -> Any:
            nonlocal w, scale
            w = w + u
            scale += 1
            return w * scale

        first = inner(v)
        w = w * 10
        scale = scale * 2
        second = inner(first)
        del inner
        return w, scale, first, second

    f = wrap(outer)
    return [f(X) for _ in range(WARM)]


def empty_cells(wrap: Wrap) -> Any:
    def late(v: Any, define: bool) -> Any:
        def use() -> Any:
            return w * 2

        if define:
            w = v + 1
        return use() + v

    f = wrap(late)
    return [caught(f, X, flag) for flag in (True, True, False, True)]


def builtins_replaced(wrap: Wrap) -> Any:
    f, original = wrap(lambda v: v * len(v) + abs(-1.5)), builtins.abs
    seen = [f(X) for _ in range(WARM)]
    try:
        builtins.abs = lambda n: 100.0  # type: ignore[assignment]
        seen.append(f(X))
    finally:
        builtins.abs = original
    return [*seen, f(X)]


def attributes_set_past_the_class(wrap: Wrap) -> Any:
    class Holder:
        def __init__(self) -> None:
            self.gain = 2.0

    f, holder = wrap(lambda v, h: v * h.gain + h.gain), Holder()
    seen = [f(X, holder) for _ in range(WARM)]
    vars(holder)["gain"] = 5
    seen.append(f(X, holder))
    holder.__dict__ = {"gain": X}
    seen.append(f(X, holder))
    holder.__dict__.clear()
    return [*seen, caught(f, X, holder)]


def metaclasses_and_dynamic_attributes(wrap: Wrap) -> Any:
    class Meta(type):
        @property
        def rate(cls) -> float:
            calls.append("rate")
            return 4.0

        def __getattr__(cls, name: str) -> Any:
            calls.append(name)
            return len(name)

    class Model(metaclass=Meta):
        step = 2

        def __getattribute__(self, name: str) -> Any:
            calls.append(name)
            return object.__getattribute__(self, name)

    calls: list[str] = []
    f = wrap(lambda v, m: v * Model.rate + Model.unknown * Model.step + m.step)
    return [f(X, Model()) for _ in range(WARM)], calls


def subclasses_of_builtins(wrap: Wrap) -> Any:
    class Ints(int):
        def __mul__(self, other: Any) -> Any:
            return "times"

        __rmul__ = __mul__

    class Pairs(tuple):
        def __getitem__(self, i: Any) -> Any:
            return 7

        def __len__(self) -> int:
            return 9

    class Table(dict):  # type: ignore[type-arg]
        def __missing__(self, key: Any) -> Any:
            return 11

    class Text(str):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    f = wrap(lambda v, n, p, d, s: (v + n * 2, v * p[0] + len(p), v - d["k"], v if s == "a" else v * 3))
    plain = (2, (3, 4), {"k": 5}, "b")
    odd = (Ints(2), Pairs((3, 4)), Table(), Text("b"))
    calls = [plain, plain, odd, plain, (True, [3, 4], OrderedDict(k=5), "a"), (np.int64(2), Pairs(), Table(k=1), "b"), plain]
    return [caught(f, X, *call) for call in calls]


def floats_that_are_subclasses(wrap: Wrap) -> Any:
    class Meters(float):
        def __add__(self, other: Any) -> Any:
            return "sum"

    f = wrap(lambda v, s: (v * s, s + 1, s * 2, s / 4, -s, s > 1))
    return [f(X, s) for s in (1.5, 1.5, np.float64(1.5), Meters(1.5), np.float32(1.5), 1.5)]


def imports_inside(wrap: Wrap) -> Any:
    def work(v: Any) -> Any:
        import math as m
        from math import floor

        w = v * m.pi
        return w + floor(2.5), m.sqrt(4.0) * v

    f = wrap(work)
    return [f(X) for _ in range(WARM)]


def comprehensions_that_raise(wrap: Wrap) -> Any:
    def work(v: Any, j: Any) -> Any:
        try:
            out = [v / (6 // j) for j in (1, 2, 0)]
        except ZeroDivisionError as error:
            out = [v * 2, str(error)]
        more = [[i * j for i in range(2)] for k in range(2)]
        return out, j, more, [j for j in v][-1], j

    f = wrap(work)
    return [f(X, j) for j in (5, 5, 7)]


def exception_groups(wrap: Wrap) -> Any:
    def work(v: Any, errors: Any) -> Any:
        w = v * 2
        try:
            w = w + 1
            raise ExceptionGroup("many", errors)
        except* ValueError as group:
            w = w * len(group.exceptions)
        except* KeyError:
            w = w - 1
        return w

    f = wrap(work)
    groups = ([ValueError(1)], [ValueError(1), KeyError(2), ValueError(3)], [KeyError(1)], [OSError(1)])
    return [caught(f, X, errors) for errors in groups for _ in range(2)]


def asynchronous_generators(wrap: Wrap) -> Any:
    async def ticks(v: Any, n: int) -> Any:
        for i in range(n):
            await asyncio.sleep(0)
            v = v * 0.5 + i
            yield v

    async def collect() -> Any:
        return [[w async for w in f(X, n)] for n in (3, 3, 2, 0)]

    f = wrap(ticks)
    return asyncio.run(collect())


def returns_through_finally(wrap: Wrap) -> Any:
    def work(v: Any, how: int) -> Any:
        for i in range(3):
            try:
                v = v + i
                if how == 0:
                    return v
                if how == 1 and i == 1:
                    continue
                v = v * 2
                if how == 2:
                    raise KeyError(i)
            finally:
                v = v - 1
                if how == 2:
                    break
                if how == 3:
                    return "finally", v
        return v

    f = wrap(work)
    return [caught(f, X, how) for how in (0, 1, 2, 3, 4, 0, 1, 2, 3, 4)]


def tracer_switched_on_in_the_middle(wrap: Wrap) -> Any:
    log: list[Any] = []

    def tracer(frame: types.FrameType, event: str, arg: object) -> Any:
        log.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return tracer

    def begin() -> None:
        frame = sys._getframe(1)
        frame.f_trace = tracer
        sys.settrace(tracer)

    def work(v: Any, trace: bool) -> Any:
        w = v * 2
        w = w + 1
        if trace:
            begin()
        x = w * 3
        for i in range(2):
            x = x + i
        sys.settrace(None)
        return x - w

    f = wrap(work)
    return [f(X, trace) for trace in (False, False, True, False, True)], log


def profiler_sees_the_calls(wrap: Wrap) -> Any:
    log: list[Any] = []

    def helper(v: Any) -> Any:
        return v + 1

    def work(v: Any) -> Any:
        w = helper(v) * 2
        return len(w) + helper(w)

    f = wrap(work)
    seen = [f(X) for _ in range(WARM)]
    sys.setprofile(lambda frame, event, arg: log.append((event, frame.f_code.co_name)))
    seen.append(f(X))
    sys.setprofile(None)
    return [*seen, f(X)], [entry for entry in log if entry[1] in ("work", "helper")]


def redirected_output_and_contexts(wrap: Wrap) -> Any:
    import contextvars
    import io

    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=1)

    def work(v: Any) -> Any:
        sink = io.StringIO()
        with contextlib.redirect_stdout(sink):
            w = v * variable.get()
            print(w.sum())
            token = variable.set(5)
            w = w + variable.get()
            variable.reset(token)
        return w, sink.getvalue(), variable.get()

    f = wrap(work)
    seen = [f(X) for _ in range(WARM)]
    return [*seen, contextvars.Context().run(f, X), f(X)]


SCENARIOS: list[Scenario] = [value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("wrap") == "Wrap"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_same(scenario: Scenario) -> None:
    check(scenario)


def _documented(v: Any, n: int = 2, *, by: float = 0.5) -> Any:
    """A function with a docstring."""
    return v * n + by


@tierup.jit
def decorated(v: Any, n: int = 2) -> Any:
    """The decorated one."""
    return v * n


def test_a_jitted_function_is_a_function() -> None:
    f = tierup.jit(_documented)
    assert f(X).tolist() == _documented(X).tolist()
    assert isinstance(f, types.FunctionType)
    assert inspect.signature(f) == inspect.signature(_documented)
    assert inspect.getsource(f) == inspect.getsource(_documented)
    assert (f.__name__, f.__qualname__, f.__module__, f.__doc__) == (
        _documented.__name__,
        _documented.__qualname__,
        _documented.__module__,
        _documented.__doc__,
    )
    assert f.__wrapped__ is _documented  # type: ignore[attr-defined]


def test_pickled_by_reference_and_copied() -> None:
    for _ in range(WARM):
        decorated(X)
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated


def test_pickled_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    f = tierup.jit(lambda v: v * 2 + 1)
    for _ in range(WARM):
        f(X)
    again = pickle.loads(cloudpickle.dumps(f))
    assert again(X).tolist() == f(X).tolist()
