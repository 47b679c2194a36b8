"""`tierup.jit` end to end: what is captured, and that nothing the user can see changes."""

from __future__ import annotations

import inspect as pyinspect
import pickle
import subprocess
import sys
import textwrap
import traceback
import warnings

import numpy as np
import pytest

import tierup


def runs(fn) -> int:
    """How often specialisations of the function ran."""
    return sum(spec.hits for spec in tierup.inspect(fn).unit.specialisations)


def same(a, b) -> None:
    if isinstance(a, tuple | list):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides and a.flags.owndata == b.flags.owndata
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes()
    else:
        assert a == b


def differential(fn, *calls, repeat: int = 3):
    jitted = tierup.jit(fn)
    for _ in range(repeat):
        for args in calls:
            plain_args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            jit_args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            want, got = fn(*plain_args), jitted(*jit_args)
            same(want, got)
            same(plain_args, jit_args)
    return jitted


def helper(x, scale=2.0):
    return x * scale + 1


def test_whole_function():
    def f(x):
        return x * 2 + 1

    g = differential(f, (np.arange(10.0),))
    assert runs(g) >= 2
    spec = tierup.inspect(g).unit.specialisations[0]
    assert len(spec.kernels) == 1


def test_new_dtype_and_rank_specialise():
    def f(x):
        return x * 2 + 1

    g = differential(f, (np.arange(10.0),), (np.arange(10, dtype=np.int32),), (np.ones((3, 4), np.float32),), (np.arange(12.0)[::-2],))
    assert runs(g) >= 6


def test_stencil_loop_in_place():
    def jacobi(steps, a, b):
        for _ in range(1, steps):
            b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
            a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])

    rng = np.random.default_rng(0)
    g = differential(jacobi, (20, rng.random(100), rng.random(100)))
    assert [one.graph.name for one in tierup.inspect(g).specialisations] == ["a whole loop"]
    before = runs(g)
    differential(jacobi, (20, rng.random(20_000), rng.random(20_000)))
    assert runs(g) > before + 60, "long vectors get kernels of their own"


def test_break_in_the_middle(capsys):
    def f(x, y):
        z = x * y + 1
        print("middle", z.shape)
        w = z - x
        return w * 2, z

    g = differential(f, (np.arange(5.0), np.ones(5)), repeat=5)
    assert runs(g) >= 6
    assert any("print" in b.reason for b in tierup.inspect(g).unit.breaks)


def test_break_with_values_on_the_stack():
    order = []

    def note(v):
        order.append(float(v))
        return v

    def f(x):
        return (x * 2 + 1) - np.float64(note(float(len(x)))) * (x + 3)

    f(np.arange(3.0))
    g = tierup.jit(f)
    for _ in range(5):
        same(f(np.arange(3.0)), g(np.arange(3.0)))
    assert len(order) == 11
    assert runs(g) >= 4


def test_captured_through_calls():
    def f(x):
        return helper(x) - helper(x=x, scale=3.0)

    g = differential(f, (np.arange(6.0),))
    assert runs(g) >= 2


def test_fresh_array_updated_in_place():
    def f(a, b):
        t = a * b
        t += 1.5
        u = t
        t *= a
        return u, np.sqrt(abs(t))

    g = differential(f, (np.arange(6.0), np.linspace(-1, 1, 6)))
    assert runs(g) >= 2


def test_warning_is_raised_at_the_users_line():
    def f(x):
        y = x * 2
        return y / (x - x)

    g = tierup.jit(f)
    line = f.__code__.co_firstlineno + 2
    for _ in range(4):
        with pytest.warns(RuntimeWarning) as seen:
            g(np.array([1.0, 0.0]))
        assert [w.lineno for w in seen] == [line, line]


def test_exception_traceback_is_the_users():
    def f(x, y):
        z = x * 2
        return z + y

    g = tierup.jit(f)
    g(np.ones(3), np.ones(3))
    g(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="broadcast") as caught:
        g(np.ones(3), np.ones(4))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [(f_.name, f_.lineno) for f_ in frames][1:] == [("f", f.__code__.co_firstlineno + 2)]


def test_metadata_and_pickle():
    def f(x, *, k=3):
        """doc"""
        return x * k

    g = tierup.jit(f)
    assert (g.__name__, g.__qualname__, g.__doc__, g.__module__) == (f.__name__, f.__qualname__, f.__doc__, f.__module__)
    assert pyinspect.signature(g) == pyinspect.signature(f)
    assert g.__wrapped__ is f and g.__kwdefaults__ == {"k": 3}
    assert pickle.loads(pickle.dumps(jitted_module_function)) is jitted_module_function


@tierup.jit
def jitted_module_function(x):
    return x + 1


def test_methods_of_all_kinds():
    class A:
        k = 2.0

        @tierup.jit
        def plain(self, x):
            return x * self.k

        @tierup.jit
        @staticmethod
        def static(x):
            return x * 3

        @tierup.jit
        @classmethod
        def klass(cls, x):
            return x * cls.k

        @tierup.jit
        @property
        def prop(self):
            return np.ones(3) * self.k

    a = A()
    x = np.arange(3.0)
    for _ in range(3):
        same(a.plain(x), x * 2.0)
        same(A.static(x), x * 3)
        same(A.klass(x), x * 2.0)
        same(a.prop, np.ones(3) * 2.0)
    A.k = 5.0
    same(a.plain(x), x * 5.0)
    same(A.klass(x), x * 5.0)


def test_generator_and_coroutine():
    @tierup.jit
    def gen(x):
        for i in range(4):
            y = x * i + 1
            yield y - x

    @tierup.jit
    async def coro(x):
        y = x * 2 + 1
        return y

    x = np.arange(4.0)
    for _ in range(3):
        for i, got in enumerate(gen(x)):
            same(got, (x * i + 1) - x)
        c = coro(x)
        with pytest.raises(StopIteration) as stop:
            c.send(None)
        same(stop.value.value, x * 2 + 1)


def test_recursion_is_as_deep_as_plain():
    @tierup.jit
    def down(n, x):
        x * 2
        return 0 if n == 0 else 1 + down(n - 1, x)

    assert down(700, np.ones(3)) == 700


def test_callables_that_are_no_functions_come_back():
    assert tierup.jit(len) is len
    with pytest.raises(TypeError, match="takes a function"):
        tierup.jit(3)


def test_module_body_loop():
    program = textwrap.dedent("""
        import numpy as np
        a = np.arange(50.0); b = np.zeros(50)
        for t in range(200):
            b[1:-1] = (a[:-2] + a[2:]) * 0.5
            a = b + 0.25
            s = a.sum()
        print(a.tobytes().hex()[:64], float(s), t)
    """)
    plain = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    tiered = subprocess.run([sys.executable, "-m", "tierup", "run", "--stats", "-c", program], capture_output=True, text=True, check=True)
    assert tiered.stdout == plain.stdout
    assert "hits" in tiered.stderr


def test_disabled():
    def f(x):
        return x * 2 + 1

    g = tierup.jit(f)
    x = np.arange(4.0)
    g(x), g(x)
    before = runs(g)
    with tierup.disabled():
        same(g(x), f(x))
    assert runs(g) == before
    g(x)
    assert runs(g) == before + 1


@pytest.mark.parametrize("size", [5, 40_000])
@pytest.mark.parametrize("at", [0, -1])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.tanh(x) * np.sqrt(x),
        lambda x: (np.logical_not(x) * np.tanh(x)) // np.sqrt(x),
        lambda x: np.sqrt(x) * np.tanh(x) + np.sin(x) * np.cos(x),
        lambda x: np.exp(x * 1e3) * np.tanh(x),
        lambda x: np.log(x) + np.floor_divide(x, 2.0) * np.tanh(x),
    ],
)
def test_flags_survive_loops_of_numpys_that_clear_them(fn, at, size):
    """One element raises, in the first or the last block; loops like tanh's end with all flags cleared."""
    x = np.full(size, 0.5)
    jitted = tierup.jit(fn)
    jitted(x)
    x[at] = -3.0
    for big in (-3.0, 5.0):
        x[at] = big
        seen = []
        for f in (fn, jitted):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                f(x)
            seen.append([str(w.message) for w in caught])
        assert seen[0] == seen[1]


def in_place(a, b):
    a += b


def in_place_of_three(a, b):
    a[1:-1] = (b[1:-1] + b[2:] + b[:-2]) * 0.5


def test_one_operation_in_place_on_a_large_array_is_left_to_numpy():
    """It goes through memory once in NumPy; a region computes it first and stores it then. On few elements the region is faster."""
    small, large = (np.ones(20), np.ones(20)), (np.ones(50_000), np.ones(50_000))
    for function, args, ran in ((in_place, large, False), (in_place_of_three, large, True), (in_place, small, True)):
        tierup.reset()
        jitted = tierup.jit(function, min_graph_size=1)
        for _ in range(3):
            jitted(*args)
        assert bool(runs(jitted)) is ran
        assert bool([reason for reason in tierup.stats().rejected if "would not pay" in reason]) is not ran


def test_assignment_of_an_array_that_may_overlap():
    def f(a, b):
        c = b * 2.0
        a[1:] = b[:-1]
        return c

    def shifted(a):
        return f(a, a)

    differential(f, (np.arange(9.0), np.arange(9.0) + 1))
    g = differential(shifted, (np.arange(9.0),))
    assert runs(g) >= 1


def test_outer_of_a_ufunc_in_a_loop():
    def shortest_paths(path):
        for k in range(path.shape[0]):
            path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
        return path

    rng = np.random.default_rng(5)
    g = differential(shortest_paths, (rng.integers(1, 100, (12, 12)),))
    assert runs(g) >= 12
