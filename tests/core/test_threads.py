"""Large launches: threads change no bit, flags are merged, forks and concurrent callers are safe."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from plan_tools import assert_same, elementwise, loop_kernel, run

from tierup import _core


@pytest.fixture(autouse=True)
def many_threads() -> Iterator[None]:
    before = _core.num_threads()
    _core.set_launch_limits(1000.0, 1000.0)
    yield
    _core.set_launch_limits(100e3, 50e3)
    _core.set_num_threads(before)


ADD, EXP, DIVIDE = (elementwise(loop_kernel(u, s), n) for u, s, n in ((np.add, "dd->d", 2), (np.exp, "d->d", 1), (np.divide, "dd->d", 2)))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_same_bits(n: int) -> None:
    _core.set_num_threads(n)
    rng = random.Random(n)
    x = np.random.default_rng(n).standard_normal(60000)
    for shape in ((60000,), (3, 20000), (20000, 3), (2, 3, 10000), (100, 600), (30, 40, 50)):
        a = x.reshape(shape)
        b = a.transpose(rng.sample(range(a.ndim), a.ndim))
        for view in (a, b, a[..., ::-1], a[::2], b[..., 1:]):
            got = run(EXP, view)
            assert got is not None
            assert_same(got[1], np.exp(view))
            broadcast = view[..., :1]
            got = run(ADD, view, broadcast)
            assert got is not None
            assert_same(got[2], view + broadcast)


def test_flags_of_workers() -> None:
    _core.set_num_threads(4)
    a, b = np.ones(200000), np.ones(200000)
    for position in (0, 70001, 150000, 199999):
        b[:] = 1
        b[position] = 0
        for _ in range(5):
            assert run(DIVIDE, a, b) is None
        with np.errstate(divide="ignore"):
            got = run(DIVIDE, a, b)
        assert got is not None
        assert np.isinf(got[2][position])
        b[position] = 1
        assert run(DIVIDE, a, b) is not None


def test_allocation_on_threads() -> None:
    _core.set_num_threads(2)
    a = np.arange(1e7)
    got = run(ADD, a, a)
    assert got is not None
    assert_same(got[2], a + a)


def test_concurrent_callers() -> None:
    _core.set_num_threads(3)
    x = np.random.default_rng(0).standard_normal(50000)
    expected = np.exp(x).tobytes()
    wrong: list[int] = []

    def work() -> None:
        for i in range(30):
            got = run(EXP, x)
            if got is None or got[1].tobytes() != expected:
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong


def test_gil_is_released() -> None:
    _core.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal(4_000_000)
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = ticks
        run(EXP, x)
        assert ticks > before
    finally:
        stop.set()
        thread.join(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork() -> None:
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from plan_tools import elementwise, loop_kernel, run
from tierup import _core
_core.set_launch_limits(1000.0, 1000.0)
_core.set_num_threads(3)
plan = elementwise(loop_kernel(np.exp, 'd->d'), 1)
x = np.linspace(0, 1, 100000)
expected = np.exp(x).tobytes()
assert run(plan, x)[1].tobytes() == expected
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if all(run(plan, x)[1].tobytes() == expected for _ in range(3)) else 1)
    assert run(plan, x)[1].tobytes() == expected
    assert os.waitpid(pid, 0)[1] == 0
"""
    here = os.path.dirname(__file__)
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, here], check=True, timeout=60)


def test_number_of_threads_from_the_environment() -> None:
    script = "from tierup import _core; print(_core.num_threads())"

    def count(value: str) -> int:
        environment = {**os.environ, "TIERUP_NUM_THREADS": value}
        return int(subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, timeout=60).stdout)

    assert count("5") == 5
    cores = len(os.sched_getaffinity(0))
    assert [count(v) for v in ("", "0", "-3", "many")] == [cores] * 4
    with pytest.raises(ValueError, match="positive"):
        _core.set_num_threads(0)
