"""Small functions that together use every kind of control flow; `test_splice` runs them with sites everywhere.

Odd style is the point here: several statements a line, split expressions, names that do not exist.
Every `case_*` function takes no arguments and returns something comparable, or raises. This module is also run as text.
"""
# ruff: noqa
# fmt: off

import asyncio
import contextlib
import sys

LOG = []
x = "module x"
squares = [n * n for n in range(5) if n]
pairs = {(a, b): a * b for a in range(3) for b in range(2)}
nested = [[x for x in range(n)] for n in range(3)]


class Manager:
    """A context manager that logs and may swallow."""

    kind = "manager"
    names = [kind_letter for kind_letter in "ab"]

    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        LOG.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, traceback):
        LOG.append(("exit", self.name, kind and kind.__name__))
        return self.swallow

    async def __aenter__(self):
        await asyncio.sleep(0)
        return self.__enter__()

    async def __aexit__(self, *what):
        await asyncio.sleep(0)
        return self.__exit__(*what)


class Child(Manager):
    kind = "child"

    def __init__(self, name):
        super().__init__(name, swallow=True)
        self.parent_kind = super().kind

    def describe(self):
        return f"{self.name!r:>8}|{self.parent_kind:<9}|{self.kind}|{__class__.__name__}"


def case_arithmetic():
    total = 0
    for i in range(20):
        if i % 3 == 0:
            continue
        total += i * 2 - 1
        if total > 100:
            break
    else:
        total = -1
    return total, -total, ~total, +total, not total, total // 7, total % 7, total**2, total << 1, total & 7 | 8 ^ 3


def case_while_else():
    n, seen = 7, []
    while n:
        n -= 1
        if n == 3:
            seen.append("three")
        elif n < 3 and n != 1 or n == 6:
            seen.append(n)
    else:
        seen.append("done")
    return seen


def case_try_finally():
    out = []
    for i in range(4):
        try:
            out.append(i)
            if i == 1:
                continue
            if i == 2:
                raise ValueError(i)
            if i == 3:
                break
        except ValueError as error:
            out.append(("caught", error.args, sys.exc_info()[0].__name__))
        else:
            out.append("else")
        finally:
            out.append(("finally", sys.exc_info()[1]))
    return out


def _return_in_finally(flag):
    try:
        if flag:
            return "body"
        raise KeyError(flag)
    except KeyError:
        return "handler"
    finally:
        LOG.append(flag)
        if flag == 2:
            return "finally"


def case_return_in_finally():
    return [_return_in_finally(flag) for flag in (0, 1, 2)], LOG


def case_nested_handlers():
    try:
        try:
            {}["missing"]
        except KeyError as first:
            try:
                raise TypeError("second") from first
            finally:
                LOG.append("cleaned")
    except TypeError as second:
        return second.args, second.__cause__.args, second.__context__ is second.__cause__, LOG


def case_exception_star():
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), OSError(3)])
    except* ValueError as group:
        out.append(group.exceptions[0].args)
    except* (TypeError, OSError) as group:
        out.append(len(group.exceptions))
    return out


def case_with():
    with Manager("a") as a, Manager("b", swallow=True) as b:
        LOG.append((a.name, b.name))
        raise RuntimeError("inside")
    with Child("c") as c:
        return c.describe(), LOG


def case_with_escapes():
    for i in range(3):
        with Manager(i):
            if i == 1:
                continue
            if i == 2:
                break
    return LOG


def _count(n):
    got = []
    try:
        for i in range(n):
            got.append((yield i * 2))
    except GeneratorExit:
        LOG.append("closed")
        raise
    except ValueError as error:
        got.append(error.args)
        yield "recovered"
    finally:
        LOG.append(("final", got))
    return got


def case_generator():
    g = _count(5)
    out = [next(g), g.send("a"), g.send("b")]
    out.append(g.throw(ValueError("thrown")))
    try:
        next(g)
    except StopIteration as stop:
        out.append(stop.value)
    h = _count(3)
    next(h)
    h.close()
    return out, list(_count(2)), LOG


def _delegate(n):
    first = yield from _count(n)
    second = yield from (k for k in range(n))
    return first, second


def case_yield_from():
    g = _delegate(2)
    out = [next(g), g.gi_yieldfrom is not None, g.send(1), g.send(2), next(g)]
    try:
        while True:
            next(g)
    except StopIteration as stop:
        out.append(stop.value)
    h = _delegate(4)
    next(h)
    with contextlib.suppress(KeyError):
        h.throw(KeyError("up"))
    return out, LOG


def case_stop_iteration():
    def bad():
        yield 1
        raise StopIteration

    try:
        return list(bad())
    except RuntimeError as error:
        return str(error), type(error.__cause__).__name__


async def _agen(n):
    for i in range(n):
        await asyncio.sleep(0)
        try:
            yield i
        finally:
            LOG.append(i)


async def _main():
    out = [i async for i in _agen(3) if i != 1]
    async with Manager("async", swallow=True) as m:
        async for i in _agen(5):
            out.append((m.name, i))
            if i == 2:
                raise LookupError
    agen = _agen(4)
    out.append(await agen.__anext__())
    await agen.aclose()
    out.append(await asyncio.gather(*(asyncio.sleep(0, k) for k in range(3))))
    return out


def case_coroutines():
    return asyncio.run(_main()), LOG


def case_closures():
    counter = 0

    def bump(by=1, *, twice=False):
        nonlocal counter
        counter += by * (2 if twice else 1)
        return lambda: counter + by

    later = [bump(), bump(3), bump(by=2, twice=True)]
    cells = [lambda: (i, counter) for i in range(3)]
    return [f() for f in later], [f() for f in cells], counter, bump.__closure__[0].cell_contents


def case_deleted():
    value = 1
    del value
    try:
        return value
    except UnboundLocalError as error:
        LOG.append(str(error))
    if LOG:
        value = 2
    try:
        del value
        del value
    except UnboundLocalError as error:
        LOG.append(str(error))

    def free():
        return cell

    try:
        free()
    except NameError as error:
        LOG.append(str(error))
    cell = 3
    LOG.append(free())
    del cell
    return LOG


def case_comprehensions():
    y = [3, 1, 2]
    z = {k: [v for v in y if v < k] for k in y}
    s = {abs(v) for v in (-1, 1, 2)}
    g = sum(a * b for a in y for b in range(a))
    q = [(lambda v=v: v + 1)() for v in y]
    try:
        w = [1 // (v - 1) for v in y]
    except ZeroDivisionError:
        w = "zero"
    return y, z, s, g, q, w, [*y, *s], {**z, 0: y}, (*y, 4), sorted({*y, 9})


def _calls(*args, **kwargs):
    return args, kwargs


def case_calls():
    a, k = (1, 2), {"p": 3}
    out = [_calls(), _calls(1, x=2), _calls(*a), _calls(0, *a, q=1, **k), _calls(**k), "a-b-c".split("-", maxsplit=1)]
    out += [max(1, 2), max([4, 3], key=lambda v: -v), str.join(",", ["a", "b"]), f"{a}{k!r}{1.5:>{6}.{2}f}{x!s}"]
    try:
        _calls(**k, **k)
    except TypeError as error:
        out.append(str(error).split(".")[-1])
    return out


def _match(subject):
    match subject:
        case 0 | 1:
            return "small"
        case [a, b]:
            return "two", a, b
        case [a, *rest]:
            return "many", a, rest
        case {"k": v, **rest}:
            return "map", v, rest
        case Manager(name=str() as n):
            return "manager", n
        case str(s) if s.isdigit():
            return "digits", s
        case None:
            return "none"
        case _:
            return "other"


def case_match():
    return [_match(s) for s in (0, 1, [1, 2], (3, 4, 5), [], {"k": 1, "z": 2}, Manager("m"), Manager(1), "12", "ab", None, 3.5)]


def case_containers():
    d, l = {}, [5, 4, 3, 2, 1]
    d["a"] = d.setdefault("b", 1)
    l[1:3] = [9]
    del l[0], d["a"]
    a, (b, *c), e = 1, (2, 3, 4), 5
    l[0], l[-1] = l[-1], l[0]
    m = Manager("m")
    m.name += "n"
    del m.swallow
    text = ""
    for part in "xyz":
        text += part
    return d, l, l[::-1], a, b, c, e, m.name, hasattr(m, "swallow"), text, 3 in l, 3 not in l, m is None, m is not None


def case_chained():
    out = []
    for v in (-1, 0, 5, 10):
        out.append((0 <= v < 10, 0 < v, v or "zero", v and "set", None if v else v, 1 if v > 0 else 2))
    return out, all(isinstance(o, tuple) for o in out), any(not o for o in out)


def case_asserts():
    try:
        assert len(LOG) == 1, ("message", len(LOG))
    except AssertionError as error:
        return error.args


def case_scopes():
    global made_global
    made_global = 1
    made_global += 1

    class Local:
        a = made_global
        b = [a for _ in range(2)] if sys.version_info >= (3, 12) and False else [a]
        locals()["c"] = 3

        def method(self):
            return __class__.a, self.b

    exec("made_global = 7", globals())
    got = made_global, Local().method(), Local.c, sorted(locals())
    del made_global
    return got


def case_imports():
    from os import path as p
    from os.path import join, split

    import os.path

    return join("a", "b"), split("a/b"), p is os.path


def case_decorated():
    def twice(f):
        return lambda *a: f(f(*a))

    @twice
    @twice
    def add(n: int = 0, /, *, by: "int" = 1) -> int:
        return n + by

    return add(3)


def _deep(n):
    if n == 0:
        return {}["deep"]
    try:
        return _deep(n - 1)
    finally:
        LOG.append(n)


def case_traceback():
    value = (
        _deep(2)
        + 1
    )
    return value


def case_recursion():
    def f():
        return f()

    try:
        f()
    except RecursionError:
        return "deep"


def case_unpack_error():
    a, b = [1, 2, 3]
    return a, b


def case_many_locals():
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = a8 = a9 = 1
    b0 = b1 = b2 = b3 = b4 = b5 = b6 = b7 = b8 = b9 = 2
    a0, b9 = b9, a0
    return a0 + b0 + a9 + b9, (a1, a2, a3, a4, a5, a6, a7, a8), (b1, b2, b3, b4, b5, b6, b7, b8)


def case_line_by_line():
    total = 0; total += 1
    for i in (1, 2): total += i
    while total < 9: total += 1
    if total: total = (total +
                       len("abc"))
    return [total,
            total + 1]
