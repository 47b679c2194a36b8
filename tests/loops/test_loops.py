"""Whole loops: the same values, exceptions, warnings and array contents as plain Python, and that the loop was compiled."""

from __future__ import annotations

import copy
import gc
import math
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import tierup
from tierup.capture.executor import Executor
from tierup.engine import units
from tierup.loops.tracer import Tracer
from tierup.runtime import events

from .harness import check, described, grid, loops_of, outcome


def test_a_sum_that_changes_its_type() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        for i in range(len(a)):
            s += a[i]
        return s

    check(f, (np.arange(10.0),), (np.arange(3, dtype="f4"),), (np.arange(0.0),))


def test_nested_loops_with_stores() -> None:
    def f(a: Any) -> Any:
        n = a.shape[0]
        s = 0.0
        for i in range(n):
            for j in range(1, n):
                s += a[i, j] * a[i, j - 1]
                if a[i, j] > 0.5:
                    a[i, j] -= 0.25
        return s, i, j

    check(f, (grid(5),), (grid(17),), (np.asfortranarray(grid(9)),), (grid(12)[::2, ::-1],), (grid(2, "f4"),))


def test_lists_of_indices_out_of_range() -> None:
    def f(a: Any, n: int) -> Any:
        total = 0
        for i in range(n):
            a[i] = a[i] + i
            total += i
        return total

    jitted = check(f, (np.arange(10.0), 10), (np.arange(10.0), 12), (np.arange(10), 3))
    a = np.arange(10.0)
    with pytest.raises(IndexError):
        jitted(a, 20)
    assert a.tolist() == [2.0 * i for i in range(10)]


def test_negative_indices() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        for i in range(-len(a), len(a)):
            s = s * 0.5 + a[i]
        return s

    check(f, (np.arange(7.0),))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "?"])
def test_element_types(dtype: str) -> None:
    def f(a: Any, b: Any, k: Any) -> Any:
        last = None
        for i in range(len(a)):
            last = a[i]
            b[i] = a[i] * k
            a[i] = b[i]
        return last

    calls = [(np.arange(6).astype(dtype), np.zeros(6, to), k) for to in (dtype, "f8", "i8", "i2", "?") for k in (2, 1.5, True)]
    for call in calls:
        check(f, call, loops=0)
    check(f, (np.arange(6).astype("f8"), np.zeros(6), 2.0))


def test_overflow_of_python_ints() -> None:
    def f(n: int, k: int) -> Any:
        product = 1
        for i in range(1, n):
            product *= i * k
        return product

    check(f, (10, 1), (30, 3), (100, -7))


def test_overflow_of_numpy_ints_warns() -> None:
    def f(a: Any, n: int) -> Any:
        x = a[0]
        for _ in range(n):
            x = x * a[1] + a[2]
        return x

    for dtype in ("i8", "i4", "i1", "u1"):
        check(f, (np.array([1, 3, 1], dtype), 4), (np.array([1, 3, 1], dtype), 90))


def test_floats_that_overflow_warn() -> None:
    def f(a: Any, n: int) -> Any:
        x = a[0]
        y = 1.0
        for _ in range(n):
            x = x * a[1]
            y = y * 1e30
        return x, y

    check(f, (np.array([1.0, 1e30]), 5), (np.array([1.0, 1e30]), 20), (np.array([1.0, 1e-30]), 20), (np.array([-1.0, np.nan]), 3))
    with np.errstate(all="raise"):
        check(f, (np.array([1.0, 1e30]), 20), loops=0)
        check(f, (np.array([1.0, 1e-30]), 20), loops=0)


def test_division() -> None:
    def f(a: Any, b: Any, out: Any) -> Any:
        q = r = t = 0
        for i in range(len(a)):
            x, y = int(a[i]), int(b[i])
            q = x // y
            r = x % y
            t = x / y
            out[i] = q * 1000 + r + t
        return q, r, t

    a, b = np.array([7, -7, 7, -7, 0, 9, -9]), np.array([2, 2, -2, -2, 5, -3, -3])
    check(f, (a, b, np.zeros(7)), (a, np.where(b == 5, 0, b), np.zeros(7)))


def test_numpy_integer_division() -> None:
    def f(a: Any, b: Any, out: Any) -> Any:
        for i in range(len(a)):
            out[i] = (a[i] // b[i]) * 100 + a[i] % b[i]
        return out.sum()

    a, b = np.array([7, -7, 7, -7, 0, 9, -128]), np.array([2, 2, -2, -2, 5, -3, -1])
    for dtype in ("i8", "i4", "i1"):
        check(f, (a.astype(dtype), b.astype(dtype), np.zeros(7, "i8")), (a.astype(dtype), b.astype(dtype) * 0, np.zeros(7, "i8")))


def test_shifts_and_bits() -> None:
    def f(n: int, poly: int) -> Any:
        crc = 0xFFFF
        for i in range(n):
            cur = i & 0xFF
            for _ in range(8):
                if (crc & 1) ^ (cur & 1):
                    crc = (crc >> 1) ^ poly
                else:
                    crc >>= 1
                cur >>= 1
        return (~crc & 0xFFFF), crc << 3

    check(f, (10, 0x8408), (0, 1))


def test_while_with_break_and_else() -> None:
    def f(limit: int) -> Any:
        steps = []
        for start in range(1, limit):
            n, count = start, 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                count += 1
                if count > 50:
                    break
            else:
                count += 1000
            steps.append(count)
        return steps

    check(f, (30,))


def test_returns_from_inside() -> None:
    def f(a: Any, wanted: float) -> Any:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, j] == wanted:
                    return i, j, a[i]
        return None

    a = grid(8)
    check(f, (a, a[3, 4]), (a, 1000.0), (a, a[0, 0]))


def match(a: Any, b: Any) -> int:
    if a + b == 3:
        return 1
    else:
        return 0


def test_functions_that_are_called() -> None:
    def f(seq: Any, table: Any) -> Any:
        n = len(seq)
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                if j - 1 >= 0:
                    table[i, j] = max(table[i, j], table[i, j - 1])
                if i + 1 < n and j - 1 >= 0:
                    if i < j - 1:
                        table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(seq[i], seq[j]))
                    else:
                        table[i, j] = max(table[i, j], table[i + 1, j - 1])
                for k in range(i + 1, j):
                    table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
        return table[0, n - 1]

    seq = np.random.default_rng(3).integers(0, 4, 14).astype("i4")
    check(f, (seq, np.zeros((14, 14), "i4")))


def test_math_and_conversions() -> None:
    def f(a: Any) -> Any:
        total, count = 0.0, 0
        for i in range(len(a)):
            x = float(a[i])
            total += math.sqrt(abs(x)) + math.fabs(x) + np.sqrt(a[i] * a[i]) + min(x, 1.0) + max(x, -2.0)
            count += int(x) + bool(x)
        return total, count, abs(count)

    check(f, (np.array([1.5, -2.25, 0.0, 9.0]),), (np.array([1.0, np.inf]),), (np.array([np.nan, 1e300]),))


def test_min_and_max_of_arguments_and_others() -> None:
    def f(a: Any, n: int, x: float) -> Any:
        total, most = 0, 0.0
        for i in range(10):
            total += min(n, i) - max(i, n, 3)
            most = max(x, most + 0.5)
        return total, most

    check(f, (np.arange(2.0), 4, 1.5), (np.arange(2.0), 20, -3.0))


def _same(*values: Any) -> list[list[bool]]:
    return [[a is b for b in values] for a in values]


@pytest.mark.parametrize("x, y, z", [(1.5, 2.5, 3.5), (2.5, 1.5, 0.5), (2.5, 2.5, 2.5), (0.0, -0.0, 0.0)])
def test_min_and_max_return_an_argument_itself(x: float, y: float, z: float) -> None:
    def two(x: float, y: float, n: int) -> Any:
        least = 0.0
        for _ in range(n):
            least = min(x, y)
        return least, _same(least, x, y)

    def three(x: float, y: float, z: float, n: int) -> Any:
        most = 0.0
        for _ in range(n):
            most = max(x, y, z)
        return most, _same(most, x, y, z)

    def changing(x: float, z: float, n: int) -> Any:
        last = 0.0
        for _ in range(n):
            z = z * 1.25
            last = min(x, z)
        return last, _same(last, x, z)

    check(two, (x, y, 50))
    check(three, (x, y, z, 50))
    check(changing, (x, z, 1), (x, z, 50))


def test_a_running_extreme_may_stay_the_object_it_was() -> None:
    def f(a: Any, x: float) -> Any:
        best, last = x, 0.0
        for i in range(len(a)):
            last = float(a[i]) * 2.0
            best = max(best, last)
        return best, last, _same(best, last, x)

    jitted = check(f, (np.arange(50.0), 300.0), (np.arange(50.0), 3.0), (-np.arange(50.0), -1.0))
    assert loops_of(jitted) == 1


def test_a_chosen_value_in_a_condition_and_a_call() -> None:
    def larger(p: float, q: float) -> Any:
        r = max(p, q)
        return r

    def f(x: float, y: float, n: int) -> Any:
        out = 0.0
        for i in range(n):
            out = max(x, y) if i % 2 else min(x, y)
        return out, _same(out, x, y)

    def g(x: float, y: float, n: int) -> Any:
        out = 0.0
        for _ in range(n):
            out = larger(min(x, y), x)
        return out, _same(out, x, y)

    for function in (f, g):
        check(function, (1.5, 2.5, 50), (1.5, 2.5, 51), (2.5, 1.5, 50), (2.5, 1.5, 51))


def test_variables_that_hold_one_number_still_do_where_ways_meet() -> None:
    def f(n: int) -> Any:
        x, y, larger = 1.5, 2.5, 0.0
        for _ in range(n):
            x, y = x * 1.5, y * 1.25
            if x > y:  # noqa: SIM108 - where variables meet, not where the stack does
                larger = x
            else:
                larger = y
        return x, y, larger, _same(x, y, larger)

    check(f, (3,), (60,))


def test_variables_that_hold_one_view_still_do_where_ways_meet() -> None:
    def f(a: Any, n: int) -> Any:
        v, w = a[0], a[1]
        kept = v
        for i in range(n):
            v, w = a[i], a[i + 1]
            if i % 3 == 0:  # noqa: SIM108
                kept = v
            else:
                kept = w
            v[0] += 1.0
        return v, w, kept, _same(v, w, kept)

    check(f, (np.zeros((40, 3)), 36), (np.zeros((40, 3)), 37))


def test_library_functions_of_scalars() -> None:
    def f(a: Any) -> Any:
        trace = 0.0
        for i in range(a.shape[0]):
            trace += np.tanh(a[i, i]) * np.exp(-a[i, i]) + np.sin(a[i, 0])
        return trace

    check(f, (grid(6),), (grid(6, "f4"),), (np.full((2, 2), -1e4),))


def test_rows_are_views() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        row = None
        for i in range(len(a)):
            row = a[i]
            for j in range(len(row)):
                row[j] = row[j] * 2
                s += row[j]
        row[0] = -1.0
        return s, row

    check(f, (grid(4),), (grid(5)[::2],))


def test_rows_of_an_iterated_array_stay_writeable() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        row = None
        for row in a:
            s += row[0]
        writeable = row.flags.writeable
        if writeable:
            row[1] = -1.0
        return s, writeable

    read_only = grid(4)
    read_only.flags.writeable = False
    jitted = check(f, (grid(4),), (read_only,))
    for _ in range(3):
        assert not jitted(read_only)[1]


def test_aliases_see_each_other() -> None:
    def f(a: Any, b: Any) -> Any:
        for i in range(1, len(a)):
            a[i] = b[i - 1] + 1
        return a

    def same(n: int) -> Any:
        x = np.zeros(n)
        return f(x, x)

    def shifted(n: int) -> Any:
        x = np.arange(n + 0.0)
        return f(x[1:], x[:-1])

    jitted = tierup.jit(f)
    for n in (5, 9):
        for make in (lambda n: (np.zeros(n),) * 2, lambda n: (np.arange(n + 1.0)[1:], np.arange(n + 1.0)[:-1])):
            pair = make(n)
            copies = copy.deepcopy(pair)
            assert jitted(*pair).tobytes() == f(*copies).tobytes()
    assert loops_of(jitted)


def test_types_that_change_from_call_to_call() -> None:
    def f(a: Any, k: Any) -> Any:
        s = k
        for i in range(len(a)):
            s = s + a[i] * k
        return s

    jitted = tierup.jit(f)
    arrays = [np.arange(5.0), np.arange(5), np.arange(5, dtype="f4"), np.arange(10.0)[::2], [1, 2, 3], (1.5, 2), "ab"]
    for _ in range(3):
        for a in arrays:
            for k in (1, 2.5, True, np.float32(2), np.int16(3), 2**70):
                assert outcome(jitted, (a, k)) == outcome(f, (a, k))
    assert loops_of(jitted) >= 4


def test_an_iterator_that_others_hold() -> None:
    def f(a: Any) -> Any:
        it = iter(range(len(a)))
        seen = []
        for i in it:
            a[i] += 1
            if i == 2:
                seen.append(next(it))
        return seen, list(it)

    check(f, (np.zeros(8),), loops=0)


def test_an_iterator_that_a_variable_holds() -> None:
    def f(a: Any, stop: int) -> Any:
        it = iter(range(len(a)))
        for i in it:
            a[i] += 1
            if i == stop:
                break
        return list(it)

    jitted = tierup.jit(f)
    for _ in range(3):
        for stop in (2, 20):
            assert outcome(jitted, (np.zeros(8), stop)) == outcome(f, (np.zeros(8), stop))

    def g(a: Any, stop: int) -> Any:
        it = iter(a)
        s = 0.0
        for x in it:
            s += x
            if x > stop:
                break
        return s, list(it)

    jitted = tierup.jit(g)
    for _ in range(3):
        for stop in (2, 20):
            assert outcome(jitted, (np.arange(8.0), stop)) == outcome(g, (np.arange(8.0), stop))


def test_globals_are_read_anew() -> None:
    namespace: dict[str, Any] = {"K": 2.0}
    exec("def f(a):\n    s = 0.0\n    for i in range(len(a)):\n        s += a[i] * K\n    return s\n", namespace)
    jitted = tierup.jit(namespace["f"])
    a = np.arange(5.0)
    for value in (2.0, 3.0, 4, np.float32(2), 1.0):
        namespace["K"] = value
        for _ in range(3):
            assert described(jitted(a)) == described(namespace["f"](a))
    namespace["range"] = lambda n: [0, 1]
    assert described(jitted(a)) == described(namespace["f"](a))
    assert loops_of(jitted)


def _spin(flag: list[bool], a: np.ndarray) -> int:
    i = 0
    while a[0] == 0:
        i += 1
        if i > 1 << 40:
            break
    return i


def test_another_thread_gets_its_turn() -> None:
    """A loop that waits for an array to change ends when another thread changes it."""
    jitted = tierup.jit(_spin)
    for _ in range(3):
        jitted([], np.ones(1))
    a = np.zeros(1)

    def change() -> None:
        time.sleep(0.2)
        a[0] = 1

    thread = threading.Thread(target=change)
    thread.start()
    start = time.monotonic()
    assert jitted([], a) > 0
    assert time.monotonic() - start < 5
    thread.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread(), reason="needs alarms")
def test_signals_are_handled_inside() -> None:
    jitted = tierup.jit(_spin)
    for _ in range(3):
        jitted([], np.ones(1))
    a = np.zeros(1)

    class Stop(Exception):
        pass

    def handler(number: int, frame: Any) -> None:
        raise Stop(frame.f_code.co_name)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Stop, match="_spin"):
            jitted([], a)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_read_only_arrays() -> None:
    def f(a: Any) -> Any:
        for i in range(len(a)):
            a[i] = 1.0
        return a

    a = np.zeros(4)
    a.flags.writeable = False
    check(f, (np.zeros(4),))
    jitted = tierup.jit(f)
    for _ in range(3):
        jitted(np.zeros(4))
        with pytest.raises(ValueError, match="read-only"):
            jitted(a)


def test_references_do_not_pile_up() -> None:
    def f(a: Any, n: int) -> Any:
        row = None
        for i in range(n):
            row = a[i % 3]
        return row

    jitted = tierup.jit(f)
    a = np.zeros((3, 3))
    for _ in range(5):
        jitted(a, 7)
    assert loops_of(jitted)
    before = sys.getrefcount(a)
    for _ in range(100):
        jitted(a, 7)
    assert sys.getrefcount(a) == before


def test_numbers_that_are_not_replaced_stay_the_objects_they_are() -> None:
    def f(x: Any, y: Any, n: int) -> Any:
        copied = None
        for i in range(n):
            copied = float(y)
            if i > 5:
                x = x * 2
        return x, copied

    jitted = tierup.jit(f)
    for value in (1.5, 10**12, np.float64(2.5), np.int32(7)):
        x, y = type(value)(value), 2.5e10
        for _ in range(4):
            same, copied = jitted(x, y, 3)
            assert same is x
            assert copied is y
            other, _ = jitted(x, y, 9)
            assert other is not x
            assert other == f(x, y, 9)[0]
    assert loops_of(jitted)


def test_a_loop_that_is_left_again_and_again_is_dropped() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        for i in range(len(a)):
            s = a[i] + 1
            s = s - a[i]
        return s

    jitted = tierup.jit(f)
    for _ in range(3):
        jitted(np.ones(5))
    assert loops_of(jitted)
    for _ in range(3):
        assert np.isnan(jitted(np.full(1000, np.inf)))
    assert not loops_of(jitted)
    assert any(event.reason == "the loop is left too often" for event in events.recent("abandoned"))
    assert jitted(np.ones(5)) == 1.0


def test_nothing_of_a_translation_outlives_it() -> None:
    """A reference cycle would keep the frame's values, and the loop, entered again, would see that others hold what it moves."""

    def f(a: Any, n: int) -> Any:
        total = 0.0
        for i in range(1, n):
            a[i, 1:] = a[i - 1, 1:] * 0.5 + a[i, 1:]
            total = max(total, float(a[i, 0]))
        return total

    gc.collect()
    gc.disable()
    try:
        check(f, (grid(12), 12))
        assert not [found for found in gc.get_objects() if isinstance(found, Tracer | Executor)]
    finally:
        gc.enable()


def test_elements_exchanged_in_one_statement() -> None:
    """The second store cannot fail: both indices were in range when the elements were read."""

    def f(a: Any, n: int) -> Any:
        swaps = 0
        for i in range(n):
            for j in range(len(a) - 1):
                if a[j] > a[j + 1]:
                    a[j], a[j + 1] = a[j + 1], a[j]
                    swaps += 1
            a[i], a[-1] = a[-1], a[i]
        return swaps

    check(f, (np.random.default_rng(8).random(30), 30), (np.arange(9)[::-1].copy(), 5), (np.arange(4.0), 6))


def test_what_is_not_compiled_leaves_the_loop_where_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    """A report now and then, an error that is raised in a rare case, a call of an unknown function."""

    def f(a: Any, limit: float, seen: Any) -> Any:
        total = 0.0
        for i in range(len(a)):
            if i % 40 == 3:
                print(f"{i}: {total:.3f}")
            total += a[i] * 0.5
            if total > limit:
                raise ValueError(f"too much at {i}")
            if i == 57:
                seen.append(sorted([total, 1.0]))
        return total

    jitted = check(f, (np.arange(90.0), 1e9, []), (np.arange(90.0), 500.0, []))
    unit = units.unit_of(jitted.__code__)
    assert unit is not None
    cuts = [cut for site in unit.sites.values() for spec in site.specs if spec.graph is None for cut in spec.compiled.cuts]  # type: ignore[union-attr]
    assert {line for line, _ in cuts} >= {f.__code__.co_firstlineno + k for k in (4, 9)}
    assert [str(e) for e in events.recent("break") if "the loop is left" in str(e)]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 * 3 * (3 + 2) and len(set(printed)) == 3  # plain and compiled, repeats, until the end and until the error


def test_a_loop_that_is_left_in_every_turn_is_not_compiled() -> None:
    def f(a: Any) -> Any:
        out = []
        for i in range(len(a)):
            x = a[i] * 2.0
            out.append({"x": x})
        return out

    jitted = tierup.jit(f)
    for _ in range(3):
        assert outcome(jitted, (np.arange(30.0),)) == outcome(f, (np.arange(30.0),))
    assert loops_of(jitted) == 0


def test_an_inner_loop_over_something_else_leaves_the_outer_one() -> None:
    def f(a: Any, words: Any) -> Any:
        count, total = 0, 0.0
        for i in range(len(a)):
            total += a[i]
            if i % 20 == 5:
                for word in words:
                    count += len(word)
        return total, count

    check(f, (np.arange(70.0), {"one": 1, "three": 3}), (np.arange(70.0), ("a", "bc")))


def test_two_constants_are_not_taken_for_one_number_that_two_variables_hold() -> None:
    def f(a: Any) -> Any:
        while True:
            k = int(a[0])
            if k < 0:
                break
            a[0] -= 1
            if k % 3:
                x = 3
                y = 7
            else:
                x = y = k * 1000
            a[1] += x - 2 * y
        return a

    check(f, (np.array([40, 0]),), (np.array([41, 0]),), (np.array([42, 5]),))
