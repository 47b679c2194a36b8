"""Programs written to make a region decide something that its guards do not secure."""

from __future__ import annotations

import numpy as np
from test_jit import differential, same

import tierup


class Thing:
    def method(self, x):
        return x


def closure():
    def inner(x):
        return x

    return inner


def choose(x, a, b):
    y = x * 2 + 1
    if a is b:
        return y * 3
    return y - 1


def is_none(x, a):
    y = x * 2 + 1
    if a is None:
        return y * 3
    return y - 1


def fresh(fn):
    """A function of the same source that shares no unit with it."""
    return type(fn)(fn.__code__.replace(), fn.__globals__)


def test_identity_with_none_of_objects_without_a_guard():
    for first in (Thing(), Thing().method, [1] * 100, "text", closure(), 10**30):
        x = np.arange(5.0)
        differential(fresh(is_none), (x, first), (x, None), (x, first))


def test_equal_objects_are_told_apart():
    text = ["".join(["ab", "cd"]) for _ in range(2)]
    numbers = [int("1000") for _ in range(2)]
    thing = Thing()
    pairs = [text, numbers, [thing.method, thing.method], [closure(), closure()], [(1, 2), tuple([1, 2])], [np.float64(1), np.float64(1)]]
    for one, other in pairs:
        x = np.arange(5.0)
        differential(fresh(choose), (x, one, one), (x, one, other), (x, other, one))
        differential(fresh(choose), (x, one, other), (x, other, other), (x, None, other))


def test_identity_with_a_constant():
    source = "def f(x, n):\n    y = x * 2 + 1\n    return (y, n is 5, n is 'abcd', n is ())\n"
    namespace: dict = {}
    exec(compile(source, "constants", "exec"), namespace)
    x = np.arange(5.0)
    values = (5, 6, 5.0, "abcd", "".join(["ab", "cd"]), (), None)
    differential(namespace["f"], *((x, v) for v in values))


def test_all_of_a_tuple_is_the_tuple():
    def f(x, t):
        y = x * 2 + 1
        return y, t[:] is t, tuple(t) is t, (t + ()) is t, (() + t) is t, t[1:] is t, t  # noqa: RUF005

    x = np.arange(5.0)
    differential(f, (x, (1, x)), (x, ()))


def test_several_dicts_keep_their_keys():
    def f(x):
        p, q, r = x * 2, x * 3, x * 4
        return {"a": p, "b": q}, {"c": q, "d": r}, {"e": p}, {"f": q, "g": r, "h": p}

    g = tierup.jit(f)
    for _ in range(4):
        for want, got in zip(f(np.arange(3.0)), g(np.arange(3.0)), strict=True):
            assert list(want) == list(got)
            same(list(want.values()), list(got.values()))


def test_translation_asks_no_metaclass():
    asked = []

    class Meta(type):
        def __getattribute__(cls, name):
            asked.append(name)
            return type.__getattribute__(cls, name)

    class Plain(metaclass=Meta):
        factor = 3.0

        def scaled(self, x):
            return x * self.factor

    def f(x, thing):
        return thing.scaled(x * 2) + thing.factor

    thing = Plain()
    asked.clear()
    differential(f, (np.arange(4.0), thing))
    assert asked == []


def test_module_attribute_of_the_module_itself(tmp_path):
    import subprocess
    import sys
    import textwrap

    program = tmp_path / "own.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            me = sys.modules[__name__]
            x = np.arange(3.0)
            total = x
            for i in range(40):
                total = total * 0.5 + x
                seen = me.total * 2 + 1
                total = seen - total
            print(total.tolist(), seen.tolist())
            """
        )
    )
    plain = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    tiered = subprocess.run([sys.executable, "-m", "tierup", "run", str(program)], capture_output=True, text=True, check=True)
    assert plain.stdout == tiered.stdout


def test_ordering_of_complex_numbers_warns_of_nan():
    import warnings

    def f(a, b):
        return (a >= b) & (a != b)

    a, b = np.full(5, 1 + 1j), np.full(5, complex(np.nan, 1))
    g = tierup.jit(f)
    for _ in range(4):
        for args in ((a, a), (a, b), (b, a)):
            seen = []
            for fn in (f, g):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    fn(*args)
                seen.append([str(w.message) for w in caught])
            assert seen[0] == seen[1]
