"""What a compiled function assumed of the world must be checked again at every call."""

# The programs are written as users write them.
# ruff: noqa: B007, E731, F841, PLW0108, PLW0603

from __future__ import annotations

import dataclasses
import enum
import types
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from .scenario import WARM, Scenario, Wrap, caught, check

X = np.array([1.5, -2.0, 4.0])


class Knobs:
    level = 2.0


def _reads_class(v: Any) -> Any:
    return v * Knobs.level + 1


def class_attribute_rebound(wrap: Wrap) -> Any:
    f, seen = wrap(_reads_class), []
    for level in (2.0, 2.0, 5.0, 2.0, -1.0, "no number"):
        Knobs.level = level  # type: ignore[assignment]
        seen.append(caught(f, X))
    return seen


FACTOR: Any = 3


def _reads_global(v: Any) -> Any:
    return v * FACTOR - 1


def global_rebound(wrap: Wrap) -> Any:
    global FACTOR
    f, seen = wrap(_reads_global), []
    for FACTOR in (3, 3, 4, 3.0, True, np.float32(2), np.arange(3), 3):
        seen.append(f(X))
    del FACTOR
    seen.append(caught(f, X))
    FACTOR = 3
    return seen


def _helper(v: Any) -> Any:
    return v + 1


def _calls_helper(v: Any) -> Any:
    return _helper(v) * 2


def callee_rebound(wrap: Wrap) -> Any:
    global _helper
    f, seen, original = wrap(_calls_helper), [], _helper
    for _ in range(WARM):
        seen.append(f(X))
    _helper = lambda v: v - 1
    seen.append(f(X))
    _helper = original
    seen.append(f(X))
    return seen


def callee_gets_other_code(wrap: Wrap) -> Any:
    def inner(v: Any) -> Any:
        return v + 1

    def other(v: Any) -> Any:
        return v * 10

    f = wrap(lambda v: inner(v) * 2)
    seen = [f(X) for _ in range(WARM)]
    inner.__code__ = other.__code__
    seen.append(f(X))
    return seen


def callee_gets_other_defaults(wrap: Wrap) -> Any:
    def inner(v: Any, by: Any = 2, *, plus: Any = 0) -> Any:
        return v * by + plus

    f = wrap(lambda v: inner(v))
    seen = [f(X) for _ in range(WARM)]
    inner.__defaults__ = (7,)
    seen.append(f(X))
    inner.__kwdefaults__ = {"plus": 5}
    seen.append(f(X))
    inner.__defaults__ = None
    seen.append(caught(f, X))
    return seen


def own_defaults_replaced(wrap: Wrap) -> Any:
    def scaled(v: Any, by: Any = 2) -> Any:
        return v * by

    f = wrap(scaled)
    seen = [f(X) for _ in range(WARM)]
    f.__defaults__ = (3.5,)
    return [*seen, f(X), f(X, 2)]


def set_mutated_in_place(wrap: Wrap) -> Any:
    f = wrap(lambda v, s: v * 2 if 3 in s else v * 5)
    members = {1, 3}
    seen = [f(X, members) for _ in range(WARM)]
    members.discard(3)
    seen.append(f(X, members))
    members.add(3)
    return [*seen, f(X, members), f(X, set()), f(X, frozenset({3}))]


def dict_in_another_order(wrap: Wrap) -> Any:
    def fold(d: Any) -> Any:
        total = np.zeros(3)
        for key, value in d.items():
            total = total * 2 + value * len(key)
        return total, list(d)

    f = wrap(fold)
    one, two = {"x": X, "yyy": X + 1}, {"yyy": X, "x": X + 1}
    return [f(d) for d in (one, one, one, two, one, two)]


def dict_with_another_key(wrap: Wrap) -> Any:
    def names(v: Any, d: Any) -> Any:
        out = v
        for key in d:
            out = out + len(key)
        return out, "zz" in d

    f, d = wrap(names), {"a": 1, "bb": 2}
    seen = [f(X, d) for _ in range(WARM)]
    d["zz"] = 3
    seen.append(f(X, d))
    del d["a"]
    return [*seen, f(X, d)]


def dict_value_changes_kind(wrap: Wrap) -> Any:
    f = wrap(lambda v, d: v * d["by"])
    return [caught(f, X, d) for d in ({"by": 2}, {"by": 2}, {"by": 2.0}, {"by": X}, {}, {"by": None}, {"by": 2})]


def getattr_default_then_attribute(wrap: Wrap) -> Any:
    f, holder = wrap(lambda v, o: v * getattr(o, "zz", 3)), types.SimpleNamespace()
    seen = [f(X, holder) for _ in range(WARM)]
    holder.zz = 9
    seen.append(f(X, holder))
    del holder.zz
    return [*seen, f(X, holder)]


def hasattr_changes(wrap: Wrap) -> Any:
    f, holder = wrap(lambda v, o: v + 1 if hasattr(o, "zz") else v - 1), types.SimpleNamespace()
    seen = [f(X, holder) for _ in range(WARM)]
    holder.zz = None
    return [*seen, f(X, holder)]


def attribute_removed(wrap: Wrap) -> Any:
    class Holder:
        gain = 2.0

    f, holder = wrap(lambda v, o: v * o.gain), Holder()
    holder.gain = 5.0
    seen = [f(X, holder) for _ in range(WARM)]
    del holder.gain  # the class attribute shows through
    seen.append(f(X, holder))
    del Holder.gain
    seen.append(caught(f, X, holder))
    holder.gain = 5.0
    return [*seen, f(X, holder)]


def method_shadowed_by_instance(wrap: Wrap) -> Any:
    class Model:
        def step(self, v: Any) -> Any:
            return v * 2

    f, model = wrap(lambda v, m: m.step(v) + 1), Model()
    seen = [f(X, model) for _ in range(WARM)]
    model.step = lambda v: v * 7  # type: ignore[method-assign]
    seen.append(f(X, model))
    del model.step
    Model.step = lambda self, v: v * 9  # type: ignore[method-assign]
    return [*seen, f(X, model)]


def property_appears(wrap: Wrap) -> Any:
    class Host:
        pass

    f, host, calls = wrap(lambda v, h: v + h.value), Host(), []
    host.value = 1  # type: ignore[attr-defined]
    seen = [f(X, host) for _ in range(WARM)]
    Host.value = property(lambda self: calls.append(1) or 40)  # type: ignore[attr-defined,func-returns-value]
    return [*seen, f(X, host), f(X, host), len(calls)]


def class_of_an_object_changes(wrap: Wrap) -> Any:
    class One:
        def by(self) -> int:
            return 1

    class Two:
        def by(self) -> int:
            return 2

    f, thing = wrap(lambda v, t: v * t.by()), One()
    seen = [f(X, thing) for _ in range(WARM)]
    thing.__class__ = Two  # type: ignore[assignment]
    return [*seen, f(X, thing)]


def identity_of_two_arguments(wrap: Wrap) -> Any:
    f = wrap(lambda a, b: a + 1 if a is b else a * b)
    other = X.copy()
    return [f(a, b) for a, b in ((X, other), (X, other), (X, other), (X, X), (other, other), (X, other))]


def identity_of_attributes(wrap: Wrap) -> Any:
    def toggle(v: Any, o: Any) -> Any:
        first = o.now is o.left
        o.now = o.right if first else o.left
        return v + 1 if first else v * 10

    holder = types.SimpleNamespace(left=object(), right=object())
    holder.now = holder.left
    f, v, seen = wrap(toggle), X, []
    for _ in range(7):
        v = f(v, holder)
        seen.append((v, holder.now is holder.left))
    return seen


def two_lists_that_alias(wrap: Wrap) -> Any:
    def both(v: Any, p: Any, q: Any) -> Any:
        p.append(1)
        q.append(2)
        return v * len(p) + len(q)

    f, seen = wrap(both), []
    for _ in range(WARM):
        p: list[int] = []
        q: list[int] = []
        seen.append((f(X, p, q), p, q))
    p = []
    return [*seen, f(X, p, p), p]


def two_arrays_that_alias(wrap: Wrap) -> Any:
    def both(a: Any, b: Any) -> Any:
        a += 1
        b *= 2
        return a + b

    f, seen = wrap(both), []
    for _ in range(WARM):
        seen.append(f(X.copy(), X.copy()))
    shared = X.copy()
    seen.append(f(shared, shared))
    seen.append(f(shared[1:], shared[:-1]))
    return [*seen, shared]


def zero_and_minus_zero(wrap: Wrap) -> Any:
    f = wrap(lambda v, z: (np.copysign(v, z), v * z, 1 / (v * z + z)))
    with np.errstate(all="ignore"):
        return [f(X, z) for z in (0.0, 0.0, -0.0, 0.0, -0.0, 0, np.float64(-0.0))]


def numbers_that_are_equal(wrap: Wrap) -> Any:
    f = wrap(lambda v, n: (v * n, n, n * 2))
    small = np.array([100, 50], dtype=np.int8)
    values = (1, 1, True, 1.0, np.int64(1), np.float64(1), np.True_, 1 + 0j, np.int8(1))
    return [f(v, n) for v in (X, small) for n in values]


def infinities_and_nans(wrap: Wrap) -> Any:
    f = wrap(lambda v, s: (v + s, v * 0.5, s))
    inf, nan = float("inf"), float("nan")
    return [f(X, s) for s in (1.0, inf, inf, -inf, nan, nan, np.nan, 1.0)]


def enum_and_flags(wrap: Wrap) -> Any:
    class Mode(enum.Enum):
        A = 1
        B = 2

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 4

    f = wrap(lambda v, m, n: v * n if m is Mode.A else v + m.value)
    return [f(X, m, n) for m in (Mode.A, Mode.A, Mode.B) for n in (Level.LOW, Level.HIGH, 1)]


def dataclasses_and_namedtuples(wrap: Wrap) -> Any:
    @dataclasses.dataclass
    class Config:
        gain: float
        table: Any = None

    Point = namedtuple("Point", "x y")
    f = wrap(lambda v, c, p: v * c.gain + p.x - p[1])
    config, seen = Config(2.0), []
    for gain in (2.0, 2.0, 3.0, 4):
        config.gain = gain
        seen.append(f(X, config, Point(1, 2)))
    return [*seen, f(X, dataclasses.replace(config, gain=1), Point(X, 0.5)), f(X, config, Point(y=1, x=2))]


def errstate_around_the_call(wrap: Wrap) -> Any:
    f, seen, log = wrap(lambda v, w: v / w), [], []
    zero = np.array([0.0, 1.0, 0.0])
    for how in ("warn", "ignore", "raise", "call", "warn"):
        with np.errstate(all=how, call=lambda kind, flag: log.append((kind, flag))):  # type: ignore[call-overload]
            seen.append(caught(f, X, zero))
    return seen, log


def errstate_within(wrap: Wrap) -> Any:
    def inside(v: Any, w: Any) -> Any:
        with np.errstate(divide="ignore"):
            first = v / w
        old = np.seterr(divide="ignore", invalid="ignore")
        second = v / w
        np.seterr(**old)
        third = v / w
        return first, second, third, np.geterr()

    f = wrap(inside)
    return [f(X, np.array([0.0, 1.0, 0.0])) for _ in range(WARM)]


def print_options(wrap: Wrap) -> Any:
    def text(v: Any) -> Any:
        w = v * 2
        return f"{w} {w.sum()!r}", str(w)

    f, seen = wrap(text), []
    for precision in (8, 8, 8, 2, 8):
        with np.printoptions(precision=precision):
            seen.append(f(X / 3))
    return seen


def buffer_size(wrap: Wrap) -> Any:
    f, seen = wrap(lambda a: a.sum(dtype="f8") + 0.0), []
    values = (np.arange(20_000) * 2654435761 % 1000).astype("i4") * 3
    swapped = (np.arange(20_000) / 7).astype(">f8")
    old = np.getbufsize()
    for size in (old, old, old, 64, old):
        np.setbufsize(size)
        seen.append((f(values), f(swapped)))
    np.setbufsize(old)
    return seen


def subclasses_of_ndarray(wrap: Wrap) -> Any:
    class Loud(np.ndarray):
        def __mul__(self, other: Any) -> Any:
            return "loud"

    square, total = wrap(lambda v: v * v), wrap(lambda v: v.sum() * 1.0)
    plain = np.array([[1.0, 2.0], [3.0, 4.0]])
    frozen = plain.copy()
    frozen.flags.writeable = False
    seen: list[Any] = [square(plain) for _ in range(WARM)] + [total(plain) for _ in range(WARM)]
    masked = np.ma.masked_greater(plain, 2.5)
    seen += [square(plain.view(np.matrix)), float(total(masked)), square(masked).mask, square(plain.view(Loud)), square(frozen)]
    return seen


def foreign_array_protocols(wrap: Wrap) -> Any:
    class Override:
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return ufunc.__name__, method, len(inputs)

        def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
            return function.__name__

    f = wrap(lambda a, b: (a + b, np.add(a, b), np.where(a is not b, a, b)))
    return [f(X, X + 1), f(X, X + 1), f(X, Override()), f(Override(), X)]


def layouts_and_dtypes(wrap: Wrap) -> Any:
    f = wrap(lambda v: (v + v, v * 2, v.T, v.reshape(-1), v[..., ::-1] + 1))
    base = np.arange(12.0).reshape(3, 4)
    unaligned = np.zeros(97, "u1")[1:].view("f8").reshape(3, 4)
    inputs = [base, base, base, np.asfortranarray(base), base[:, ::2], base[::-1], base.T, base.astype("f4"), base.astype("i2")]
    inputs += [base.astype(">f8"), unaligned, base[:0], base[:1], base > 3, base + 1j, base.astype(object), base.astype("M8[s]"), base]
    return [caught(f, v) for v in inputs]


def ranks_change(wrap: Wrap) -> Any:
    f = wrap(lambda v: v.sum(axis=0) * 2 + 1)
    return [f(v) for v in (np.ones((2, 3)), np.ones((2, 3)), np.ones(4), np.ones((2, 2, 2)), np.ones((0, 3)), np.ones((2, 3)))]


def module_attribute_rebound(wrap: Wrap) -> Any:
    f, original = wrap(lambda v: np.sqrt(v * v) + 1), np.sqrt
    seen = [f(X) for _ in range(WARM)]
    try:
        np.sqrt = np.negative
        seen.append(f(X))
    finally:
        np.sqrt = original
    return [*seen, f(X)]


def operators_do_not_follow_a_rebound_function(wrap: Wrap) -> Any:
    f, original = wrap(lambda v: (v + v, np.add(v, v))), np.add
    seen = [f(X) for _ in range(WARM)]
    try:
        np.add = np.multiply
        seen.append(f(X))
    finally:
        np.add = original
    return [*seen, f(X)]


def builtin_shadowed(wrap: Wrap) -> Any:
    code = "def f(v):\n    return v * len(v) + abs(-2)\n"
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    f = wrap(namespace["f"])
    seen = [f(X) for _ in range(WARM)]
    namespace["len"] = lambda v: 100
    seen.append(f(X))
    del namespace["len"]
    return [*seen, f(X)]


def equal_code_in_two_modules(wrap: Wrap) -> Any:
    code = compile("def f(v):\n    return v * FACTOR + helper(v)\n\ndef helper(v):\n    return v - FACTOR\n", "shared.py", "exec")
    spaces: list[dict[str, Any]] = [{"FACTOR": 2}, {"FACTOR": 5.0}]
    for space in spaces:
        exec(code, space)
        space["f"] = wrap(space["f"])
    return [space["f"](X) for _ in range(WARM) for space in spaces]


def objects_with_catch_all_getattr(wrap: Wrap) -> Any:
    class Echo:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return len(name)

        def __call__(self, v: Any) -> Any:
            return v * 3

    f = wrap(lambda v, o: o(v) * o.four + o.seven__)
    return [f(X, Echo()) for _ in range(WARM)]


def objects_equal_to_everything(wrap: Wrap) -> Any:
    class Same:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

    f = wrap(lambda v, o, k: v + 1 if o == 5 else v * k)
    return [f(X, o, k) for o in (5, Same(), 5, 6, Same()) for k in (2, 3)]


def unhashable_and_hostile_arguments(wrap: Wrap) -> Any:
    log: list[str] = []

    class Hostile:
        def __eq__(self, other: object) -> bool:
            log.append("eq")
            raise RuntimeError("compared")

        def __hash__(self) -> int:
            log.append("hash")
            raise RuntimeError("hashed")

        def __bool__(self) -> bool:
            log.append("bool")
            raise RuntimeError("tested")

        def __repr__(self) -> str:
            log.append("repr")
            raise RuntimeError("shown")

        def __len__(self) -> int:
            log.append("len")
            raise RuntimeError("measured")

    f = wrap(lambda v, h: v * 2 if h is None else v * 3)
    return [f(X, h) for h in (None, Hostile(), Hostile(), None)], log


SCENARIOS: list[Scenario] = [value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("wrap") == "Wrap"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_same(scenario: Scenario) -> None:
    check(scenario)
