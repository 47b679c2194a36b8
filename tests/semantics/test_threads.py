"""Many threads call, translate and change what guards watch at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import tierup

THREADS, CALLS = 4, 50


def _in_threads(work: Callable[[int], None]) -> list[BaseException]:
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def body(number: int) -> None:
        try:
            start.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def _polynomial(v: Any, n: int) -> Any:
    out = v * 0
    for i in range(n):
        out = out * v + i
    return out.sum(), out + n


def test_one_function_from_many_threads() -> None:
    """First calls too: translation is entered by several threads."""
    f = tierup.jit(_polynomial)
    inputs = [np.linspace(0, 1, 5 + i % 7).astype("f4" if i % 3 == 0 else "f8") for i in range(CALLS)]
    want = [_polynomial(v, i % 5) for i, v in enumerate(inputs)]
    results: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        results[number] = [f(v, i % 5) for i, v in enumerate(inputs)]

    assert _in_threads(work) == []
    for got in results.values():
        for (total, out), (want_total, want_out) in zip(got, want, strict=True):
            assert type(total) is type(want_total) and total == want_total
            assert out.dtype == want_out.dtype and out.tobytes() == want_out.tobytes()


def test_each_thread_its_own_closure() -> None:
    def maker(factor: float) -> Any:
        @tierup.jit
        def scaled(v: Any) -> Any:
            return v * factor + len(v)

        return scaled

    def work(number: int) -> None:
        for i in range(CALLS):
            f = maker(number + i / 8)
            v = np.arange(float(3 + i % 4))
            assert np.array_equal(f(v), v * (number + i / 8) + len(v))

    assert _in_threads(work) == []


class Shared:
    gain = 1.0


def test_guards_under_change() -> None:
    """A class attribute flips between two values while others read it: every result belongs to one of the two."""
    f = tierup.jit(lambda v: v * Shared.gain + Shared.gain)
    v = np.arange(4.0)
    allowed = [(v * a + b).tolist() for a in (1.0, 3.0) for b in (1.0, 3.0)]
    stop = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for i in range(20 * CALLS):
                Shared.gain = 3.0 if i % 2 else 1.0
            stop.set()
            return
        while not stop.is_set():
            assert f(v).tolist() in allowed

    try:
        assert _in_threads(work) == []
    finally:
        Shared.gain = 1.0


def test_generators_moved_between_threads() -> None:
    @tierup.jit
    def steps(v: Any) -> Any:
        for i in range(CALLS):
            v = v * 0.5 + i
            yield v.sum()

    want, v = [], np.ones(3)
    for i in range(CALLS):
        v = v * 0.5 + i
        want.append(v.sum())
    gen, lock, got = steps(np.ones(3)), threading.Lock(), []

    def work(number: int) -> None:
        while True:
            with lock:
                value = next(gen, None)
                if value is None:
                    return
                got.append(value)

    assert _in_threads(work) == []
    assert got == want
