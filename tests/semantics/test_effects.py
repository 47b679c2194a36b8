"""Mutations happen once, in the program's order, and only if the program gets there."""

# The programs are written as users write them.
# ruff: noqa: B006, RUF012

from __future__ import annotations

import functools
import random
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest

from .scenario import WARM, Scenario, Wrap, caught, check

X = np.array([1.5, -2.0, 4.0])


class Ledger:
    rows: list[Any] = []


def _records(v: Any) -> Any:
    Ledger.rows.append(v.shape[0])
    return v + len(Ledger.rows)


def list_on_a_class(wrap: Wrap) -> Any:
    Ledger.rows.clear()
    f = wrap(_records)
    return [f(np.zeros(n)) for n in (2, 2, 1, 3, 2)], list(Ledger.rows)


def effects_before_an_exception(wrap: Wrap) -> Any:
    def doomed(v: Any, log: Any, box: Any) -> Any:
        log.append("one")
        v[0] = 7.0
        box["twice"] = v * 2
        v[1:] += 1
        if box["limit"] < 3:
            log.append("two")
            raise KeyError("limit")
        log.append("three")
        return v

    f, seen = wrap(doomed), []
    for limit in (5, 5, 1, 5, 0):
        v, log, box = X.copy(), [], {"limit": limit}
        seen.append((caught(f, v, log, box), v, log, box))
    return seen


def nonlocal_counter(wrap: Wrap) -> Any:
    count = 0

    def counting(v: Any) -> Any:
        nonlocal count
        count += 1
        return v * count

    f = wrap(counting)
    return [f(X) for _ in range(6)], count


def counter_of_another_closure(wrap: Wrap) -> Any:
    def maker() -> Any:
        total = 0

        def bump(by: int) -> int:
            nonlocal total
            total += by
            return total

        return bump

    one, two = maker(), maker()
    f = wrap(lambda v, bump: v * bump(2) + bump(1))
    return [f(X, bump) for bump in (one, one, two, one, two)], one(0), two(0)


def cached_function(wrap: Wrap) -> Any:
    calls: list[int] = []

    @functools.lru_cache(maxsize=2)
    def square(n: int) -> int:
        calls.append(n)
        return n * n

    f = wrap(lambda v, n: v + square(n))
    seen = [f(X, n) for n in (2, 2, 3, 4, 2, 2)]
    return seen, calls, tuple(square.cache_info())


def mutable_default(wrap: Wrap) -> Any:
    def inner(v: Any, seen: list[int] = []) -> Any:
        seen.append(len(seen))
        return v + len(seen)

    f = wrap(lambda v: inner(v) * 2)
    own = wrap(inner)
    return [f(X) for _ in range(WARM)], [own(X) for _ in range(WARM)], inner.__defaults__


def in_place_methods(wrap: Wrap) -> Any:
    def edits(v: Any) -> Any:
        w = v * 2
        w.sort()
        v.fill(3)
        v[0] = w[-1]
        u = w.copy()
        u.resize(2, 2)
        np.put(v, [1], [9.0])
        np.copyto(w, -w, where=w > 1)
        np.add(v, 100, out=v, where=v < 4)
        w.partition(1)
        return v, w, u

    f, seen = wrap(edits), []
    for _ in range(WARM):
        v = X.copy()
        seen.append((f(v), v))
    return seen


def view_follows_its_base(wrap: Wrap) -> Any:
    def views(a: Any) -> Any:
        row = a[0]
        column = a[:, 1]
        a[0] = 5
        before = row + 0
        row[1] = -1
        column += 10
        flat = a.reshape(-1)
        flat[::2] *= 2
        a.T[0] = 8
        return row, before, column, flat.base is not None, a + 1

    f, seen = wrap(views), []
    for _ in range(WARM):
        a = np.arange(6.0).reshape(2, 3)
        seen.append((f(a), a))
    return seen


def read_before_a_later_write(wrap: Wrap) -> Any:
    def early(a: Any) -> Any:
        b = a * 2
        total = a.sum()
        part = a[1:]
        a[:] = 0
        return b, total, part, part + 1

    f = wrap(early)
    return [f(X.copy()) for _ in range(WARM)]


def stores_keep_their_order(wrap: Wrap) -> Any:
    def ordered(a: Any) -> Any:
        flat = a.reshape(-1)
        flat[::2] *= 2
        a.T[0] = 8
        a[1] = a[0] + 1
        flat[-1] = -1
        return a

    f = wrap(ordered)
    return [f(np.arange(6.0).reshape(2, 3)) for _ in range(WARM)]


def kernels_of_nothing_but_library_loops(wrap: Wrap) -> Any:
    f = wrap(lambda z: (np.exp(z * 2 - 0.5), (z > 0).all(), z.any()))
    return [f(z) for z in (X + 1j, X * 1j, X - 2j, X, X)]


def overlapping_in_place(wrap: Wrap) -> Any:
    def shifts(a: Any) -> Any:
        a[1:] = a[:-1]
        a[:-1] += a[1:]
        a[::-1] -= a
        a += a[::-1]
        a[2:] = a[:-2] * 2
        np.add(a[1:], a[:-1], out=a[1:])
        return a

    f = wrap(shifts)
    return [f(np.arange(9.0)) for _ in range(WARM)], [f(np.arange(7)) for _ in range(WARM)]


def attribute_stores_in_order(wrap: Wrap) -> Any:
    log: list[Any] = []

    class Watched:
        def __setattr__(self, name: str, value: Any) -> None:
            log.append((name, np.array(value)))
            object.__setattr__(self, name, value)

    def stores(v: Any, o: Any) -> Any:
        o.first = v * 2
        v += 1
        o.second = v
        o.first = o.second * 3
        return o.first

    f = wrap(stores)
    return [f(X.copy(), Watched()) for _ in range(WARM)], log


def slots_and_properties(wrap: Wrap) -> Any:
    class Slim:
        __slots__ = ("data",)

    class Checked:
        def __init__(self) -> None:
            self.log: list[float] = []

        @property
        def level(self) -> float:
            self.log.append(-1.0)
            return float(len(self.log))

        @level.setter
        def level(self, value: float) -> None:
            self.log.append(float(value))

    def work(v: Any, slim: Any, checked: Any) -> Any:
        slim.data = v * checked.level
        checked.level = slim.data.sum()
        checked.level += 1
        return slim.data + checked.level

    f, checked = wrap(work), Checked()
    return [f(X, Slim(), checked) for _ in range(WARM)], checked.log


def containers_keep_their_rules(wrap: Wrap) -> Any:
    def fill(v: Any) -> Any:
        nothing: Any = deque([1, 2, 3], maxlen=0)
        nothing.append(4)
        few: Any = deque(maxlen=2)
        few.extend([v, v * 2, v * 3])
        ordered: Any = OrderedDict(b=v)
        ordered["a"] = v + 1
        ordered.move_to_end("b")
        counts: Any = defaultdict(list)
        counts["x"].append(v)
        letters = list(deque("abc", maxlen=5) * 2)
        del few[-1]
        return v + len(nothing), list(few), list(ordered), dict(counts), letters

    f = wrap(fill)
    return [f(X) for _ in range(WARM)]


def random_generators_advance(wrap: Wrap) -> Any:
    def draws(v: Any, rng: Any, gen: Any) -> Any:
        order = [0, 1, 2, 3]
        random.shuffle(order)
        return v + rng.randint(1, 100), order, gen.standard_normal(2), np.random.rand(), random.random()

    random.seed(11)
    np.random.seed(12)
    f, rng, gen = wrap(draws), random.Random(0), np.random.default_rng(5)
    return [f(X, rng, gen) for _ in range(5)], rng.random(), gen.random(), random.random(), np.random.rand()


def printing_between_regions(wrap: Wrap) -> Any:
    def talk(v: Any, loud: Any) -> Any:
        v = v + 1
        print("sum", v.sum())
        v = v * 2
        if loud:
            print("loud", end="! ")
        return (v, print("done", len(v)), v * 3)

    f = wrap(talk)
    return [f(X, loud) for loud in (True, False, True, True)]


def break_with_values_on_the_stack(wrap: Wrap) -> Any:
    log: list[Any] = []

    class Opaque:
        def __call__(self, v: Any) -> Any:
            log.append(v.sum())
            return v - 1

    opaque = Opaque()
    f = wrap(lambda v: [v * 2, opaque(v) * 3, (v + 1, opaque(v + 2)), {"k": v * opaque(v * 2)}])
    return [f(X) for _ in range(WARM)], log


def identity_of_results(wrap: Wrap) -> Any:
    def ids(v: Any, box: Any) -> Any:
        w = v * 2
        box["w"] = w
        pair = (w, w)
        alias = v
        return w is box["w"], pair[0] is pair[1], alias is v, [w, w], v, pair, w[...] is w

    f, seen = wrap(ids), []
    for _ in range(WARM):
        box: dict[str, Any] = {}
        out = f(X, box)
        seen.append((out, out[3][0] is out[3][1], out[4] is X, out[5][0] is box["w"]))
    return seen


def deletes(wrap: Wrap) -> Any:
    def removing(v: Any, d: Any, items: Any) -> Any:
        w = v + 1
        del d["a"], items[-1], items[0]
        del v
        return w * len(items), sorted(locals())

    f = wrap(removing)
    return [f(X, {"a": 1}, [1, 2, 3, 4]) for _ in range(WARM)], caught(f, X, {}, [1, 2])


def what_a_callee_sees(wrap: Wrap) -> Any:
    import sys

    log: list[Any] = []

    def peek() -> int:
        frame = sys._getframe(1)
        log.append((frame.f_lineno - frame.f_code.co_firstlineno, frame.f_code.co_name, sorted(frame.f_locals)))
        log.append({name: value for name, value in frame.f_locals.items() if name != "peek"})
        return len(log)

    def work(v: Any) -> Any:
        w = v * 2
        n = peek()
        x = w + n
        w = x[1:]
        return w * peek() + x[:-1]

    f = wrap(work)
    return [f(X) for _ in range(WARM)], log


def reference_counts(wrap: Wrap) -> Any:
    import sys
    import weakref

    def work(v: Any) -> Any:
        w = v * 2
        x = w + 1
        ref = weakref.ref(w)
        counts = sys.getrefcount(w), sys.getrefcount(v)
        del w
        alive = ref() is not None
        x = x * 3
        return counts, alive, x

    f = wrap(work)
    return [f(X) for _ in range(WARM)]


def arguments_die_with_their_last_reference(wrap: Wrap) -> Any:
    import gc
    import weakref

    def captured(v: Any) -> Any:
        return v * 2

    def rejected(v: Any) -> Any:
        w = np.array(v[::2])
        print(w)
        return sorted(v)

    gc.collect()
    gc.disable()
    try:
        seen = []
        for f in (wrap(captured), wrap(rejected)):
            for _ in range(WARM):
                v = X * 2
                ref = weakref.ref(v)
                f(v)
                del v
                seen.append(ref() is None)
        return seen
    finally:
        gc.enable()


def resize_needs_no_other_reference(wrap: Wrap) -> Any:
    def work(v: Any) -> Any:
        w = v * 2
        w.resize(5)
        x = w + 1
        y = x
        try:
            x.resize(7)
        except ValueError:
            y = y * 2
        return w, x, y

    f = wrap(work)
    return [f(X) for _ in range(WARM)]


SCENARIOS: list[Scenario] = [value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("wrap") == "Wrap"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_same(scenario: Scenario) -> None:
    check(scenario)
