"""Whole loops over Python lists and strings."""

from __future__ import annotations

import gc
import math
import sys
from typing import Any, ClassVar

import tierup

from .harness import check, loop_hits, outcome


def test_sieve() -> None:
    def sieve(n: int) -> Any:
        flags = [True] * n
        count = 0
        for i in range(2, n):
            if flags[i]:
                count += 1
                for j in range(i * i, n, i):
                    flags[j] = False
        return count, flags

    check(sieve, (60,), (500,))


def test_edit_distance() -> None:
    def distance(a: str, b: str) -> Any:
        n, m = len(a), len(b)
        d = [[0] * (m + 1) for _ in range(n + 1)]
        for i in range(n + 1):
            d[i][0] = i
        for j in range(m + 1):
            d[0][j] = j
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cost = 0 if a[i - 1] == b[j - 1] else 1
                d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
        return d[n][m], d

    check(
        distance,
        ("kitten sits", "sitting"),
        ("", "abc"),
        ("flaw", "lawn"),
        ("gr\u00fc\u00dfe", "gru\u00dfe"),
        ("\u0395\u03bb\u03bb", "\u0395\u03bb"),
    )


def test_bodies() -> None:
    def step(x: Any, v: Any, m: Any, steps: int, dt: float) -> Any:
        n = len(m)
        for _ in range(steps):
            for i in range(n):
                for j in range(i + 1, n):
                    dx = x[i] - x[j]
                    d = math.sqrt(dx * dx + 0.01)
                    f = dt / (d * d * d)
                    v[i] -= dx * m[j] * f
                    v[j] += dx * m[i] * f
            for i in range(n):
                x[i] += dt * v[i]
        return x, v

    n = 7
    check(step, ([0.1 * i for i in range(n)], [0.0] * n, [1.0 + i for i in range(n)], 5, 0.01))
    check(step, ([0.1 * i for i in range(n)], [0] * n, [1.0 + i for i in range(n)], 5, 0.01))


def test_lists_that_grow() -> None:
    def f(n: int, out: Any) -> Any:
        a = 1
        for i in range(n):
            a = (a * 1103515245 + 12345) % 2147483648
            if a % 2:
                out.append(a)
            if i % 5 == 0:
                out.append(i * 0.5)
            if i % 7 == 0:
                out.append(i == 7)
        return out, len(out)

    check(f, (40, []), (3, [1, 2]), (0, ["x"]))


def test_iteration_over_lists() -> None:
    def f(values: Any, rows: Any) -> Any:
        total, last = 0.0, None
        for x in values:
            total += x
        for row in rows:
            for k in row:
                total += k
            last = row
        return total, last

    check(f, ([1.5, 2.5, -3.0], [[1, 2], [3], []]), ([], [[1]]), ([1.5, 2, True, 3.5], [[1, 2.5], [True]]), loops=0)
    assert loop_hits(check(f, ([1.5, 2.5, -3.0], [[1, 2], [3], [4]])))


def test_items_of_other_types_leave() -> None:
    def f(values: Any) -> Any:
        total = 0
        for i in range(len(values)):
            total = total + values[i]
            values[i] = total
        return total

    lists: list[Any] = [[1, 2, 3], [1, 2.5, 3], [True, 2, False], [1, 2**40, 2**70], [1, "x"], [1, None], [2**29, 2**30, -(2**31)], []]
    check(f, *[(values,) for values in lists])
    check(f, ([1, 2, [3]],), ([1.5, 2.5],), loops=0)


def test_indices_out_of_range_and_negative() -> None:
    def f(values: Any, n: int) -> Any:
        total = 0
        for i in range(-n, n):
            total += values[i]
            values[i] = i
        return total

    check(f, ([1, 2, 3, 4], 4), ([1, 2, 3, 4], 5), ([1, 2], 4))


def test_a_list_that_grows_while_it_is_walked() -> None:
    def f(values: Any, limit: int) -> Any:
        for x in values:
            if len(values) < limit:
                values.append(x + 1)
        return values

    check(f, ([1, 2, 3], 20), ([1.5], 9))


class Loud:
    """Says when it goes."""

    log: ClassVar[list[str]] = []

    def __del__(self) -> None:
        Loud.log.append("gone")


def test_destructors_run_where_plain_python_runs_them() -> None:
    def f(values: Any, log: Any) -> Any:
        seen = []
        for i in range(len(values)):
            values[i] = i
            seen.append(len(log))
        return seen

    jitted = tierup.jit(f)
    for _ in range(3):
        jitted([0, 0, 0], Loud.log)
    results = []
    for function in (f, jitted):
        Loud.log.clear()
        results.append(function([0, Loud(), 0, Loud()], Loud.log))
        gc.collect()
    assert results[0] == results[1]


def test_characters() -> None:
    def f(text: str, wanted: str) -> Any:
        count, codes, last = 0, 0, ""
        for i in range(len(text)):
            last = text[i]
            if text[i] == wanted[0]:
                count += 1
            if text[i] != "b":
                codes += ord(text[i])
        return count, codes, last, last is text[len(text) - 1]

    check(f, ("abracadabra", "ab"), ("xyz", "zz"), ("\u00e4\u00f6\u00fc", "\u00f6a"))
    assert outcome(f, ("\u0395\u03bb\u03bb\u03ac\u03c2", "\u03bbb")) == outcome(
        tierup.jit(f), ("\u0395\u03bb\u03bb\u03ac\u03c2", "\u03bbb")
    )


def test_references_stay_even() -> None:
    def f(rows: Any, n: int) -> Any:
        total = 0
        row = None
        for i in range(n):
            row = rows[i % 2]
            total += row[0]
            row[0] = total
        return row

    jitted = tierup.jit(f)
    rows = [[1], [2]]
    for _ in range(4):
        jitted(rows, 7)
    assert loop_hits(jitted)
    before = [sys.getrefcount(rows), sys.getrefcount(rows[0]), sys.getrefcount(rows[1])]
    for _ in range(50):
        jitted(rows, 7)
    assert [sys.getrefcount(rows), sys.getrefcount(rows[0]), sys.getrefcount(rows[1])] == before


def test_an_iterator_over_a_list_that_others_hold() -> None:
    def f(values: Any) -> Any:
        it = iter(values)
        seen = 0
        for x in it:
            seen += x
            if x == 3:
                seen += next(it) * 100
        return seen, list(it)

    def g(values: Any) -> Any:
        it = iter(values)
        seen = 0
        for x in it:
            seen += x
            if x == 3:
                break
        return seen, list(it)

    check(f, ([1, 2, 3, 4, 5],), loops=0)
    check(g, ([1, 2, 3, 4, 5],), loops=0)


def test_floats_that_others_refer_to_keep_their_value() -> None:
    """A float that only the list holds is written over; what a variable or another list holds is not."""

    def f(items: Any, others: Any, n: int) -> Any:
        kept = items[2]
        for i in range(n):
            for k in range(len(items)):
                items[k] = items[k] * 0.5 + i
        return kept, others, items

    shared = [float(k) * 1.25 for k in range(6)]

    def calls() -> Any:
        own = [x + 0.0 for x in shared]
        return own, [own[1], own[3]], 9

    check(f, calls(), calls())
    jitted = tierup.jit(f)
    for _ in range(3):
        own, others, n = calls()
        plain_own, plain_others, _ = calls()
        assert jitted(own, others, n) == f(plain_own, plain_others, n)
        assert others == plain_others


def test_a_number_in_a_list_and_in_a_variable_is_one_object() -> None:
    def same(*values: Any) -> Any:
        return [[a is b for b in values] for a in values]

    def grows(x: float, n: int) -> Any:
        items: list[float] = []
        first = x
        for i in range(n):
            x = x * 1.5 + 1000 * i
            items.append(x)
            items.append(first)
            items.append(max(x, first))
            before = x
        return same(x, before, first, items[-1], items[-2], items[-3], items[1]), items

    def replaces(items: Any, others: Any, x: float, n: int) -> Any:
        y = last = x
        for i in range(n):
            y = y + 0.25
            items[i % 3] = y
            others[i % 2] = x
            last = y
        return same(y, last, x, *items, *others), items, others

    def large(n: int) -> Any:
        items = [1 << 40]
        k = 5000
        for i in range(n):
            k += i
            items.append(k)
        return same(k, *items[-2:]), items

    check(grows, (1.5, 1), (1.5, 40))
    check(replaces, ([0.5, 1.5, 2.5], [3.5, 4.5], 7.5, 30), ([0.5, 1.5, 2.5], [3.5, 4.5], 7.5, 1))
    check(large, (40,), (2,))
