"""`enumerate`, `zip` and `reversed` in whole loops: entered in mid-flight, made inside, and left in the middle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tierup

from .harness import check, loop_hits, outcome


def test_enumerate_over_arrays_lists_and_ranges() -> None:
    def f(a: Any, items: Any, n: int) -> Any:
        total = 0.0
        for i, x in enumerate(a):
            total += i * x
        for i, x in enumerate(items, 3):
            total -= i * x
        for i, k in enumerate(range(n, 0, -2)):
            total += i - k
        return total, i, x, k

    jitted = check(f, (np.arange(20.0), [1.5, 2.5, 3.5] * 7, 40), (np.arange(3.0), [1.5], 1), loops=3)
    assert loop_hits(jitted) >= 3


def test_zip_of_unequal_lengths() -> None:
    def f(a: Any, b: Any, items: Any) -> Any:
        total, count = 0.0, 0
        for x, y in zip(a, b):  # noqa: B905
            total += x * y
            count += 1
        for x, k, z in zip(items, range(5, 100), a):  # noqa: B905
            total += x * k - z
            count += k
        return total, count, x

    check(f, (np.arange(20.0), np.arange(30.0), [0.5] * 15), (np.arange(9.0), np.ones(4), [2.5, 1.5]), loops=2)


def test_nested_and_combined() -> None:
    def f(m: Any, w: Any) -> Any:
        total, last = 0.0, (0, 0)
        for i, row in enumerate(m):
            for j, (x, y) in enumerate(zip(row, w)):  # noqa: B905
                total += (i + 1) * x - j * y
                last = (i, j)
            for k in reversed(range(i)):
                total = total * 0.5 + k
            for p, (q, r) in zip(range(3), enumerate(w, i)):  # noqa: B905
                total += p * q * r
        return total, last

    check(f, (np.arange(30.0).reshape(5, 6), np.arange(6.0)), (np.ones((7, 2)), np.arange(9.0)))


def test_reversed_ranges() -> None:
    def f(a: Any, n: int, step: int) -> Any:
        out = 0
        for _ in range(3):
            for i in reversed(range(1, n, step)):
                out = (out * 3 + i * int(a[i % 4])) % 1000003
        return out

    check(f, (np.arange(4), 20, 1), (np.arange(4), 21, 3), (np.arange(4), 0, 2), (np.arange(4), -20, -3), (np.arange(4), 2, 5))


@pytest.mark.parametrize("bad", [2, 7, 11])
def test_left_in_the_middle_and_gone_on_with(bad: int) -> None:
    """The division leaves the loop; the interpreter goes on with the iterators where they are."""

    def f(a: Any, items: Any) -> Any:
        total, seen = 0.0, []
        for i, (x, y) in enumerate(zip(a, items), 5):  # noqa: B905
            try:
                total += y / x
            except ZeroDivisionError:
                seen.append(i)
        return total, seen, i

    def inner(a: Any, items: Any) -> Any:
        total, seen = 0.0, []
        for k in range(4):
            for i, (x, y) in enumerate(zip(a, items), k):  # noqa: B905
                if x == 0:
                    seen.append((k, i))
                total += y / (x + 1)
        return total, seen

    items = [float(k % 5 + 1) for k in range(13)]
    items[bad] = 0.0
    for function in (f, inner):
        check(function, ([1.5] * 13, items), (items, items), ([0.5] * 13, [1.0] * 13), loops=0)


def test_the_break_of_a_loop_leaves_the_iterator_where_it_is() -> None:
    """Another variable holds it, so it is not compiled."""

    def f(a: Any) -> Any:
        pairs = enumerate(a)
        total = 0.0
        for i, x in pairs:
            total += x
            if i == 5:
                break
        rest = list(pairs)
        inner = iter(a.tolist())
        both = []
        for x, y in zip(inner, inner):  # noqa: B905
            both.append(x * y)
        return total, rest, both, list(inner)

    jitted = tierup.jit(f)
    for _ in range(3):
        assert outcome(jitted, (np.arange(15.0),)) == outcome(f, (np.arange(15.0),))


def test_the_list_of_a_zip_that_grows() -> None:
    def f(items: Any, a: Any) -> Any:
        total = 0.0
        for x, y in zip(items, a):  # noqa: B905
            total += x * y
            if total < 50.0:
                items.append(float(total))
        return total, items

    check(f, ([1.5], np.arange(20.0)), ([1.5, 2.5, 3.5], np.arange(2.0)))


def test_strict_zip_and_large_starts_are_left_to_python() -> None:
    def f(a: Any, b: Any, start: int) -> Any:
        total = 0.0
        for x, y in zip(a, b, strict=True):
            total += x * y
        for i, x in enumerate(a, start):
            total += i + x
        return total, i

    jitted = tierup.jit(f)
    for args in (
        (np.ones(5), np.ones(5), 3),
        (np.ones(5), np.ones(6), 3),
        (np.ones(5), np.ones(5), 2**63 - 3),
        (np.ones(5), np.ones(5), 2**70),
    ):
        for _ in range(3):
            assert outcome(jitted, args) == outcome(f, args)
