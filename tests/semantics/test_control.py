"""Loops, iterators, blocks, handlers, generators, calls: the language around the arrays."""

# The programs are written as users write them.
# ruff: noqa: B007, B018, B023, F821, PLE0643, PLE1132, PLW0108, PLW0120, PLW0603, RUF021

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import traceback
from typing import Any

import numpy as np
import pytest

from .scenario import WARM, Scenario, Wrap, caught, check

X = np.array([1.5, -2.0, 4.0])


def list_grows_while_iterated(wrap: Wrap) -> Any:
    def total(v: Any) -> Any:
        values = [v.sum()]

        def growing() -> Any:
            for item in values:
                if len(values) < 5:
                    values.append(item * 2 + 1)
                yield item

        acc = 0.0
        for item in growing():
            acc = acc * 10 + item
        for item in values:
            if len(values) < 7:
                values.append(item)
            acc = acc - item
        return acc, len(values)

    f = wrap(total)
    return [f(X) for _ in range(WARM)]


def half_used_iterators(wrap: Wrap) -> Any:
    def rest(v: Any) -> Any:
        it = reversed([1.0, 2.0, 3.0, 4.0, 5.0])
        head = next(it)
        same = iter(it) is it
        some = []
        for x in it:
            some.append(x)
            if x < 4:
                break
        pairs = zip(range(4), iter([v, v * 2, v * 3]), strict=False)
        next(pairs)
        numbered = enumerate(v, 5)
        next(numbered)
        return v * head, same, some, list(it), list(pairs), list(numbered), next(it, "end")

    f = wrap(rest)
    return [f(X) for _ in range(WARM)]


def iterator_seen_from_outside(wrap: Wrap) -> Any:
    def consume(v: Any, it: Any) -> Any:
        out = v
        for n in it:
            out = out * n
            if n > 2:
                break
        return out

    f, seen = wrap(consume), []
    for _ in range(WARM):
        it = iter(range(1, 7))
        seen.append((f(X, it), list(it)))
    return seen


def loop_variable_after_the_loop(wrap: Wrap) -> Any:
    def after(v: Any, n: int) -> Any:
        for i in range(n):
            v = v + i
        else:
            v = v * 10
        return v, i

    f = wrap(after)
    return [caught(f, X, n) for n in (3, 3, 5, 1, 0, 3)]


def nested_loops_with_jumps(wrap: Wrap) -> Any:
    def jumps(v: Any, n: int) -> Any:
        trail = []
        for i in range(n):
            for j in range(i, -1, -1):
                if (i + j) % 3 == 2:
                    continue
                if i * j > 6:
                    break
                v = v + i * j
                trail.append((i, j))
            else:
                v = v * 0.5
        while n > 0:
            n -= 2
            if n == 1:
                continue
            v -= n
        return v, trail, n

    f = wrap(jumps)
    return [f(X, n) for n in (4, 4, 5, 0, 6)]


def star_unpacking(wrap: Wrap) -> Any:
    def parts(v: Any, items: Any) -> Any:
        a, *b, c = items
        (d, e), *rest = [(v, v + 1), 2, 3]
        first, *none = v[:1]
        return a, b, c, d + e, rest, first, none, [*b, *v], {**{"k": 1}, "z": v}

    f = wrap(parts)
    return [caught(f, X, items) for items in ([1, 2, 3, 4], [1, 2, 3, 4], (1, 2), [1], "abcd", X, {3: 1, 4: 2}, range(5))]


def missing_list_item(wrap: Wrap) -> Any:
    f = wrap(lambda v, items, n: v * items.index(n))
    return [caught(f, X, [5, 6, 7], n) for n in (6, 6, 7, 8, 5)]


def errors_of_numpy_caught(wrap: Wrap) -> Any:
    def careful(v: Any, w: Any) -> Any:
        out = []
        try:
            out.append(v[99])
        except IndexError as error:
            out.append(str(error))
        try:
            first = v * 2
            second = first + 1
            third = second + w
        except ValueError as error:
            third = first + second
            out.append(str(error))
        try:
            v.nothing
        except AttributeError as error:
            out.append(str(error))
        try:
            out.append(np.linalg.inv(np.zeros((2, 2))))
        except np.linalg.LinAlgError as error:
            out.append(str(error))
        return out, third

    f = wrap(careful)
    return [f(X, w) for w in (X, X, np.ones(2), X, np.ones(4))]


def errors_with_their_messages(wrap: Wrap) -> Any:
    programs: list[Any] = [
        lambda v: v.no_such_attribute,
        lambda v: undefined_name + v,  # type: ignore[name-defined]
        lambda v: dict(a=1, **{"a": 2}),
        lambda v: (v * 2)["key"],
        lambda v: v @ np.ones((2, 2)),
        lambda v: v + "text",
        lambda v: v if v else 0,
        lambda v: [1, 2][5] + v,
        lambda v: (v + 1).reshape(5, 5),
        lambda v: int("x") + v,
        lambda v: np.clip(v),  # type: ignore[call-overload]
        lambda v: v(1),
        lambda v: v.sum(axis=4),
        lambda v: 1 // 0 + v,
        lambda v: v[::0],
        lambda v: v.astype("nonsense"),
        lambda v: ~v,
        lambda v: {}[1] + v,
        lambda v: next(iter(())) + v,
        lambda v: np.concatenate([v, np.ones((2, 2))]),
    ]
    seen = []
    for program in programs:
        f = wrap(program)
        seen.append([caught(f, X) for _ in range(WARM)])
    return seen


def tracebacks_point_at_the_line(wrap: Wrap) -> Any:
    def inner(w: Any) -> Any:
        u = w * 2
        return u + np.ones(7)

    def outer(v: Any) -> Any:
        w = v + 1
        w = w * 2
        return inner(w) - 1

    f, seen = wrap(outer), []
    for _ in range(WARM):
        try:
            f(X)
        except ValueError as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            seen.append([(frame.name, frame.lineno, frame.line) for frame in frames])
    return seen


def finally_and_reraise(wrap: Wrap) -> Any:
    def work(v: Any, how: int, log: Any) -> Any:
        try:
            try:
                v = v * 2
                if how == 1:
                    raise ValueError("one")
                if how == 2:
                    return v + 1
                v = v + np.ones(how)
            except ValueError as error:
                log.append(str(error))
                v = v - 1
                if how == 1:
                    raise KeyError("second") from error
            else:
                log.append("else")
            finally:
                log.append("finally")
                v = v * 10
        except KeyError as error:
            log.append((type(error.__cause__).__name__, error.args))
        return v

    f, seen = wrap(work), []
    for how in (3, 3, 1, 2, 5, 3, 1):
        log: list[Any] = []
        seen.append((f(X, how, log), log))
    return seen


FLAG = True


def _blocks(v: Any, span: Any) -> Any:
    v = v + 1
    print("one")
    v = v * 2
    if FLAG:
        with span("left"):
            print("two")
            v = v - 3
    else:
        with span("right") as name, contextlib.suppress(ZeroDivisionError):
            print("three", name)
            v = v + 3
            v = v + 1 // 0
    return v * 10


def blocks_with_breaks_inside(wrap: Wrap) -> Any:
    global FLAG
    events: list[str] = []

    @contextlib.contextmanager
    def span(name: str) -> Any:
        events.append("+" + name)
        try:
            yield name
        finally:
            events.append("-" + name)

    f, seen = wrap(_blocks), []
    for FLAG in (True, True, False, True, False):
        seen.append(f(X, span))
    FLAG = True
    return seen, events


def with_that_swallows(wrap: Wrap) -> Any:
    class Swallow:
        def __init__(self, log: Any) -> None:
            self.log = log

        def __enter__(self) -> Any:
            return self

        def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
            self.log.append(kind.__name__ if kind else None)
            return kind is ZeroDivisionError

    def work(v: Any, n: int, log: Any) -> Any:
        with Swallow(log):
            v = v * 2
            v = v + 6 // n
            v = v * 3
        return v

    f, log = wrap(work), []
    return [f(X, n, log) for n in (2, 3, 0, 2, 0)], log


def generators(wrap: Wrap) -> Any:
    def steps(v: Any, n: int) -> Any:
        total = v * 0
        for i in range(n):
            total = total + v * i
            got = yield total
            if got is not None:
                total = total + got
        return total.sum()

    f, seen = wrap(steps), []
    for _ in range(WARM):
        gen = f(X, 4)
        out = [next(gen), gen.send(X), gen.send(None)]
        rest = []
        try:
            while True:
                rest.append(next(gen))
        except StopIteration as stop:
            out.append(stop.value)
        seen.append((out, rest))
    closing = f(X, 4)
    next(closing)
    closing.close()
    thrown = f(X, 4)
    next(thrown)
    return seen, caught(thrown.throw, ValueError("in")), caught(next, closing)


def delegating_generators(wrap: Wrap) -> Any:
    def inner(v: Any) -> Any:
        for i in range(3):
            yield v * i
        return "inner"

    def outer(v: Any) -> Any:
        result = yield from inner(v + 1)
        yield result
        yield from (v - i for i in range(2))

    f = wrap(outer)
    return [list(f(X)) for _ in range(WARM)]


def coroutines(wrap: Wrap) -> Any:
    async def leaf(v: Any) -> Any:
        await asyncio.sleep(0)
        return v * 2

    async def tree(v: Any) -> Any:
        w = v + 1
        w = await leaf(w) + 3
        async with contextlib.AsyncExitStack():
            w = w * await leaf(v)
        return w

    f = wrap(tree)

    async def both() -> Any:
        return await asyncio.gather(*(f(X + i) for i in range(WARM)))

    return asyncio.run(both())


def comprehensions(wrap: Wrap) -> Any:
    def build(v: Any, n: int) -> Any:
        i = 10
        squares = [i * i + v for i in range(n)]
        table = {str(i): v * i for i in range(n) if i % 2}
        members = {int(x) for x in v}
        total = sum(x * 2 for x in v)
        nested = [[a + b for a in range(2)] for b in v]
        return i, squares, table, members, total, nested

    f = wrap(build)
    return [f(X, n) for n in (3, 3, 4, 0)]


def variadic_calls(wrap: Wrap) -> Any:
    def many(first: Any, *rest: Any, scale: Any = 1, **named: Any) -> Any:
        total = first * scale
        for item in rest:
            total = total + item
        return total, rest, named

    f, g = wrap(many), wrap(lambda *args, **kwargs: many(*args, scale=3, **kwargs))
    calls = [((X,), {}), ((X, 1, 2), {"scale": 2}), ((X, X), {"z": 1, "a": X}), ((), {"first": X}), ((), {})]
    return [caught(h, *args, **kwargs) for h in (f, g) for args, kwargs in calls * 2], caught(g, X, scale=1)


def methods_and_their_first_parameter(wrap: Wrap) -> Any:
    class Model:
        kind = "base"

        def __init__(this, gain: Any) -> None:
            this.gain = gain

        @wrap
        def forward(this, v: Any, /, by: Any = 2) -> Any:
            return v * this.gain + by

        @classmethod
        @wrap
        def named(klass, v: Any) -> Any:
            return v, klass.kind

        @staticmethod
        @wrap
        def free(v: Any) -> Any:
            return v - 1

        @property
        @wrap
        def twice(me) -> Any:
            return me.gain * 2

        @wrap
        def __call__(self, *args: Any) -> Any:
            return args[0] + len(args)

        def __matmul__(self, other: Any) -> Any:
            return self.forward(other) @ other

    class Child(Model):
        kind = "child"

        @wrap
        def forward(self, v: Any, /, by: Any = 3) -> Any:
            return super().forward(v, by) * 10

    out: list[Any] = []
    for model in (Model(2), Model(2), Child(2), Model(X), Child(0.5)):
        bound = model.forward
        out.append((bound(X), model.forward(X, by=1), model.named(X), model.free(X), model.twice, model(X, 1), model @ X))
        out.append(list(map(model.forward, [X, X + 1])))
    return out, caught(Model.forward, X)


def callables_of_every_kind(wrap: Wrap) -> Any:
    class Functor:
        def __call__(self, v: Any) -> Any:
            return v * 3

    partial = functools.partial(np.multiply, 2)
    f = wrap(lambda v, g: g(v) + 1)
    kinds: list[Any] = [
        np.negative,
        np.sum,
        partial,
        Functor(),
        Functor().__call__,
        abs,
        list,
        np.asarray,
        X.dot,
        float.__abs__,
        np.float32,
    ]
    return [caught(f, X, g) for g in kinds for _ in range(2)]


def recursion(wrap: Wrap) -> Any:
    def halve(v: Any, depth: int) -> Any:
        if depth == 0:
            return v
        return halve(v * 0.5, depth - 1) + depth

    def endless(v: Any) -> Any:
        return endless(v + 1)

    halve = wrap(halve)
    endless = wrap(endless)
    return [halve(X, depth) for depth in (3, 3, 0, 5)], type(caught(endless, X)).__name__


def closures_made_again(wrap: Wrap) -> Any:
    def maker(factor: Any) -> Any:
        @wrap
        def scaled(v: Any) -> Any:
            return v * factor + len(str(factor))

        return scaled

    made = [maker(factor) for factor in (2, 3.5, X, 2, "no")]
    return [caught(f, X) for f in made for _ in range(2)]


def late_binding(wrap: Wrap) -> Any:
    functions = [wrap(lambda v: v + i) for i in range(3)]
    fixed = [wrap(lambda v, i=i: v + i) for i in range(3)]
    return [f(X) for f in functions for _ in range(2)], [f(X) for f in fixed]


def match_statements(wrap: Wrap) -> Any:
    def kind(v: Any, shape: Any) -> Any:
        match shape:
            case (n,) if n > 2:
                return v * n
            case [0, *rest]:
                return v + len(rest)
            case {"by": by, **others}:
                return v * by, others
            case str() as text:
                return v, text
            case None | False:
                return v - 1
        return "nothing"

    f = wrap(kind)
    return [f(X, shape) for shape in ((3,), (3,), (1,), [0, 1, 2], {"by": 2, "z": 1}, "text", None, False, 0, 5)]


def unbound_locals(wrap: Wrap) -> Any:
    def maybe(v: Any, n: int) -> Any:
        if n > 1:
            w = v * 2
        v = v + 1
        return w + v

    def deleted(v: Any, n: int) -> Any:
        w = v * 2
        if n:
            del w
        return w

    f, g = wrap(maybe), wrap(deleted)
    return [caught(f, X, n) for n in (2, 2, 0, 3)], [caught(g, X, n) for n in (0, 0, 1, 0)]


def walrus_and_chains(wrap: Wrap) -> Any:
    def chain(v: Any, n: int) -> Any:
        if (m := n * 2) > 3 and 0 < m < 9 or not n:
            v = v + m
        return v if -1 < n <= 2 else v * n, m, [k for x in range(3) if (k := x * n) != 2]

    f = wrap(chain)
    return [f(X, n) for n in (1, 2, 3, 4, 5, 0, -4, 2)]


def itertools_and_functools(wrap: Wrap) -> Any:
    def combine(v: Any) -> Any:
        total = functools.reduce(lambda a, b: a * 2 + b, v, 0.0)
        pairs = [a * b for a, b in itertools.product(v, repeat=2)]
        ordered = sorted(v, key=lambda x: -x)
        return total, pairs, ordered, list(map(lambda x: x + 1, v)), list(filter(None, v - v[0])), max(v), any(v > 3)

    f = wrap(combine)
    return [f(X) for _ in range(WARM)]


SCENARIOS: list[Scenario] = [value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("wrap") == "Wrap"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_same(scenario: Scenario) -> None:
    check(scenario)
