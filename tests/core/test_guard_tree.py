"""The guard tree against its meaning (mirror.py), and the hazards of looking at a user's objects."""

from __future__ import annotations

import gc
import os
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest
from hosts import C, E, spec, splice
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror import ABSENT, Frame, matching

from tierup import _core

_core.init_numpy()

SOURCE = """
def make(h):
    def f(a, b, c):
        if SITE:
            return -SITE
        d = h
        return None
    return f
"""

UNBOUND = 3
FREE = 4


class Subject:
    """f(a, b, c) with a free variable h and an unbound local d; says which specialisation a lookup takes."""

    def __init__(self, h: Any = 0, **globals_: Any) -> None:
        self.h = h
        namespace: dict[str, Any] = dict(globals_)
        exec(compile(SOURCE, "<subject>", "exec"), namespace)
        self.function = namespace["make"](h)
        self.site = _core.Site(0, 0)
        self.function.__code__ = splice(self.function.__code__, SITE=self.site)

    def install(self, exprs: Any, specs: Any) -> None:
        """specs: lists of checks, or (checks, exit) pairs; by default the exit is the position."""
        full = [(s, i) if isinstance(s, list) else s for i, s in enumerate(specs)]
        self.site.install(exprs, [spec(checks, exit=exit) for checks, exit in full])

    def __call__(self, a: Any = None, b: Any = None, c: Any = None) -> int | None:
        result = self.function(a, b, c)
        assert result is None or isinstance(result, int)
        return result

    def frame(self, a: Any = None, b: Any = None, c: Any = None) -> Frame:
        f = self.function
        cell = types.CellType(self.h)
        return Frame([a, b, c, ABSENT, cell], f.__globals__, f.__builtins__)


def one(exprs: Any, check: Any, *args: Any, **globals_: Any) -> bool:
    """Whether a single check holds, by the tree; the mirror must agree."""
    subject = Subject(**globals_)
    subject.install(exprs, [[check]])
    result = subject(*args)
    assert (result == 0) == bool(matching(exprs, [[check]], subject.frame(*args))), (exprs, check)
    return result == 0


def local(i: int) -> tuple[int, int, Any]:
    return (E["LOCAL"], -1, i)


# ---- expressions


class Plain:
    shared = "class value"

    def __init__(self) -> None:
        self.x = 1

    def method(self) -> int:
        return self.x

    @property
    def prop(self) -> int:
        raise AssertionError("a guard ran a property")

    @staticmethod
    def static() -> None: ...

    @classmethod
    def klass(cls) -> None: ...


class Slotted:
    __slots__ = ("empty", "x")

    def __init__(self) -> None:
        self.x = "slot"


class Derived(Slotted):
    pass


class Guarded:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError("a guard ran __getattr__")

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("a guard ran __getattribute__")


class Meta(type):
    @property
    def meta(cls) -> int:
        raise AssertionError("a guard ran a metaclass property")


class WithMeta(metaclass=Meta):
    meta = 5
    plain = 6


def test_roots() -> None:
    assert one([local(1)], (C["INT_EQ"], 0, 2), 1, 2, 3)
    assert one([local(UNBOUND)], (C["NULL"], 0, None))
    assert not one([local(UNBOUND)], (C["NOT_NULL"], 0, None))
    assert one([(E["CELL"], -1, FREE)], (C["STR_EQ"], 0, "free"), h="free")
    assert one([local(FREE)], (C["TYPE_IS"], 0, types.CellType))
    assert one([(E["GLOBAL"], -1, "g")], (C["INT_EQ"], 0, 7), g=7)
    assert one([(E["GLOBAL"], -1, "no")], (C["NULL"], 0, None))
    assert one([(E["BUILTIN"], -1, "len")], (C["IS"], 0, len))
    assert one([(E["BUILTIN"], -1, "no")], (C["NULL"], 0, None))
    assert one([(E["CONST"], -1, "k")], (C["STR_EQ"], 0, "k"))
    assert not one([(E["NAME"], -1, "g")], (C["NULL"], 0, None))  # a function has no f_locals: not known to be absent


def test_weak_references() -> None:
    target = Plain()
    ref = weakref.ref(target)
    exprs = [local(0), (E["WEAK"], -1, ref)]
    subject = Subject()
    subject.install(exprs, [[(C["IS_WEAK"], 0, ref)], [(C["TYPE_IS"], 1, Plain)], [(C["NULL"], 1, None)]])
    assert subject(target) == 0
    assert subject(None) == 1
    del target
    gc.collect()
    assert ref() is None
    # A new object may even get the address of the dead one.
    assert subject(Plain()) is None
    assert subject(None) is None
    subject.install(exprs, [[(C["IS_WEAK"], 0, ref)], []])
    assert subject(Plain()) == 1


def test_code_is_held_weakly() -> None:
    def target() -> None: ...

    subject = Subject()
    subject.install([local(0)], [[(C["FUNC_CODE"], 0, target.__code__)]])
    assert subject(target) == 0
    ref = weakref.ref(target.__code__)
    target.__code__ = (lambda: None).__code__
    # The enclosing function's constants still own it; a replaced copy is nobody else's.
    copy = target.__code__.replace(co_name="copy")
    target.__code__ = copy
    subject.install([local(0)], [[(C["FUNC_CODE"], 0, copy)]])
    ref = weakref.ref(copy)
    assert subject(target) == 0
    del copy, target
    gc.collect()
    assert ref() is None
    assert subject(None) is None


@pytest.mark.parametrize("name", ["x", "shared", "method", "prop", "static", "klass", "absent", "__class__", "__dict__", "__doc__"])
@pytest.mark.parametrize("kind", ["ATTR", "METHOD"])
def test_attributes_of_instances(kind: str, name: str) -> None:
    plain, shadowing, slotted, derived = Plain(), Plain(), Slotted(), Derived()
    shadowing.method = shadowing.shared = 5  # type: ignore[method-assign,assignment]
    derived.__dict__["y"] = 1
    materialised = Plain()
    assert materialised.__dict__
    for value in (plain, shadowing, slotted, derived, materialised, Guarded(), 5, "s", None, np.ones(2), Plain, sys, [], lambda: 1):
        exprs = [local(0), (E[kind], 0, name)]
        for check in ((C["NULL"], 1, None), (C["NOT_NULL"], 1, None), (C["INT_EQ"], 1, 1), (C["TYPE_IS"], 1, types.FunctionType)):
            one(exprs, check, value)
    assert one([local(0), (E["ATTR"], 0, "x")], (C["INT_EQ"], 1, 1), plain)
    assert one([local(0), (E["ATTR"], 0, "x")], (C["STR_EQ"], 1, "slot"), slotted)
    assert one([local(0), (E["ATTR"], 0, "x")], (C["STR_EQ"], 1, "slot"), derived)
    assert one([local(0), (E["ATTR"], 0, "empty")], (C["NULL"], 1, None), derived)
    assert one([local(0), (E["METHOD"], 0, "method")], (C["IS"], 1, Plain.method), plain)
    assert not one([local(0), (E["METHOD"], 0, "method")], (C["NOT_NULL"], 1, None), shadowing)


def test_attribute_lookups_leave_instance_dicts_alone() -> None:
    """Inline values stay inline: making the dict would slow the user's attribute accesses down."""
    value = Plain()
    size = sys.getsizeof(value)
    subject = Subject()
    subject.install([local(0), (E["ATTR"], 0, "x")], [[(C["INT_EQ"], 1, 1)]])
    assert subject(value) == 0
    assert not any(isinstance(r, dict) for r in gc.get_referents(value))
    assert sys.getsizeof(value) == size


@pytest.mark.parametrize("name", ["shared", "method", "static", "prop", "meta", "plain", "absent", "__name__", "__dict__", "mro"])
def test_attributes_of_classes(name: str) -> None:
    for value in (Plain, Slotted, Derived, WithMeta, Meta, int, np.ndarray, Plain(), None):
        exprs = [local(0), (E["CLASSATTR"], 0, name)]
        for check in ((C["NULL"], 1, None), (C["NOT_NULL"], 1, None), (C["INT_EQ"], 1, 6), (C["TYPE_IS"], 1, types.FunctionType)):
            one(exprs, check, value)
    assert one([local(0), (E["CLASSATTR"], 0, "plain")], (C["INT_EQ"], 1, 6), WithMeta)
    assert not one([local(0), (E["CLASSATTR"], 0, "meta")], (C["NOT_NULL"], 1, None), WithMeta)


def test_attributes_of_modules() -> None:
    lazy = types.ModuleType("lazy")
    lazy.__getattr__ = lambda name: 1 / 0  # type: ignore[method-assign]
    plain = types.ModuleType("plain")
    plain.x = 1  # type: ignore[attr-defined]

    class Special(types.ModuleType):
        pass

    for value in (lazy, plain, Special("s"), np, 5):
        for name in ("x", "absent", "__name__", "__dict__", "sin", "__getattr__"):
            for check in ((C["NULL"], 1, None), (C["NOT_NULL"], 1, None), (C["INT_EQ"], 1, 1)):
                one([local(0), (E["MODATTR"], 0, name)], check, value)
    assert one([(E["GLOBAL"], -1, "np"), (E["MODATTR"], 0, "sin")], (C["IS"], 1, np.sin), np=np)
    assert not one([local(0), (E["MODATTR"], 0, "absent")], (C["NULL"], 1, None), lazy)


def test_parts_of_functions_and_methods() -> None:
    n = 5

    def target(a: int, b: int = 1, *, k: int = 2) -> int:
        return n

    bound = Plain().method
    for value in (target, bound, len, None, Plain):
        for kind, arg in (
            ("FUNC_GLOBAL", "np"),
            ("FUNC_GLOBAL", "absent"),
            ("FUNC_BUILTIN", "len"),
            ("FUNC_CELL", 0),
            ("FUNC_CELL", 3),
            ("FUNC_DEFAULT", 0),
            ("FUNC_DEFAULT", 1),
            ("FUNC_KWDEFAULT", "k"),
            ("FUNC_KWDEFAULT", "j"),
            ("METHOD_SELF", None),
            ("METHOD_FUNC", None),
            ("TYPE", None),
        ):
            for check in ((C["NULL"], 1, None), (C["NOT_NULL"], 1, None), (C["INT_EQ"], 1, 1), (C["INT_EQ"], 1, 5)):
                one([local(0), (E[kind], 0, arg)], check, value)
    assert one([local(0), (E["FUNC_CELL"], 0, 0)], (C["INT_EQ"], 1, 5), target)
    assert one([local(0)], (C["FUNC_DEFAULTS"], 0, (1, ("k",))), target)
    assert not one([local(0)], (C["FUNC_DEFAULTS"], 0, (1, ())), target)
    assert one([local(0)], (C["FUNC_DEFAULTS"], 0, (0, ())), Plain.method)
    assert one([local(0), (E["METHOD_FUNC"], 0, None)], (C["FUNC_CODE"], 1, Plain.method.__code__), bound)


class Spy:
    """A key whose __eq__ must not be called by a guard."""

    remembered = 0

    def __init__(self, like: object) -> None:
        self.remembered = hash(like)

    def __hash__(self) -> int:
        return self.remembered

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a guard ran a key's __eq__")


def test_keys_with_their_own_eq_are_never_asked() -> None:
    assert not one([local(0), (E["DICTITEM"], 0, "k")], (C["NULL"], 1, None), {Spy("k"): 1})
    assert one([local(0), (E["DICTITEM"], 0, "k")], (C["NULL"], 1, None), {Spy("other"): 1})
    assert one([local(0), (E["DICTITEM"], 0, "k")], (C["INT_EQ"], 1, 2), {Spy("other"): 1, "k": 2})
    assert not one([local(0), (E["DICTITEM"], 0, 5)], (C["NOT_NULL"], 1, None), {Spy(5): 1})
    assert not one([local(0)], (C["DICT_KEYS"], 0, ("k",)), {Spy("k"): 1})
    holder = Plain()
    holder.__dict__[Spy("y")] = 1  # type: ignore[index]
    assert not one([local(0), (E["ATTR"], 0, "y")], (C["NULL"], 1, None), holder)
    assert one([local(0), (E["ATTR"], 0, "x")], (C["INT_EQ"], 1, 1), holder)


def test_dict_lookups() -> None:
    big = {i: i for i in range(70_000)}
    big.update({str(i): i for i in range(1000)})
    for key in (0, 69_999, 70_000, "5", "x", -1):
        one([local(0), (E["DICTITEM"], 0, key)], (C["NOT_NULL"], 1, None), big)
    mixed: dict[Any, Any] = {True: "t", 2.0: "two", None: 0, b"k": 1, "k": 2, (1, 2): 3, 2**61 - 1: 4}
    for key in (1, 2, "k", 0, 2**61 - 1, -2, 3):
        for check in ((C["NULL"], 1, None), (C["STR_EQ"], 1, "t"), (C["STR_EQ"], 1, "two"), (C["INT_EQ"], 1, 2)):
            one([local(0), (E["DICTITEM"], 0, key)], check, mixed)
    assert one([local(0), (E["DICTITEM"], 0, 1)], (C["STR_EQ"], 1, "t"), mixed)
    small = dict.fromkeys("abcdefgh", 1)
    del small["a"], small["h"]
    for key in "ahbz":
        one([local(0), (E["DICTITEM"], 0, key)], (C["NULL"], 1, None), small)
    made = "".join(["b", ""]) + "c"
    one([local(0), (E["DICTITEM"], 0, "bc")], (C["NOT_NULL"], 1, None), {made: 1})

    class Sub(dict):  # type: ignore[type-arg]
        def __missing__(self, key: object) -> int:
            raise AssertionError

    assert not one([local(0), (E["DICTITEM"], 0, "k")], (C["NULL"], 1, None), Sub())


def _mutations() -> list[tuple[str, Any]]:
    """Every way to change the entry "k" of a dict that is the attributes of `o`, too."""
    return [
        ("setitem", lambda d, o: d.__setitem__("k", 2)),
        ("setattr", lambda d, o: setattr(o, "k", 3)),
        ("update", lambda d, o: d.update(k=4)),
        ("ior", lambda d, o: d.__ior__({"k": 5})),
        ("init", lambda d, o: d.__init__(k=6)),
        ("delattr", lambda d, o: delattr(o, "k")),
        ("setdefault", lambda d, o: d.setdefault("k", 7)),
        ("pop", lambda d, o: d.pop("k")),
        ("exec", lambda d, o: exec("k = 8", d)),
        ("global", lambda d, o: exec("def f():\n global k\n k = 9\nfor _ in range(40): f()", d)),
        ("popitem", lambda d, o: [d.popitem() for _ in range(len(d))]),
        ("specialised", lambda d, o: _specialised_store(o)),
        ("clear", lambda d, o: d.clear()),
        ("again", lambda d, o: d.__setitem__("k", 1)),
    ]


def _specialised_store(o: Any) -> None:
    for n in range(40):
        o.k = n


@pytest.mark.parametrize("kind", ["DICTITEM", "FUNC_GLOBAL", "MODATTR", "ATTR"])
@pytest.mark.parametrize("many", [0, 40])
def test_remembered_lookups_notice_every_change(kind: str, many: int) -> None:
    holder: Any = types.ModuleType("m") if kind == "MODATTR" else Plain()
    namespace = holder.__dict__
    if many == 0 and kind != "MODATTR":
        namespace.clear()
    for n in range(many):  # beyond the size of a shared-key table
        namespace[f"name{n}"] = n
    namespace["k"] = 1
    base = (
        types.FunctionType(_specialised_store.__code__, namespace) if kind == "FUNC_GLOBAL" else namespace if kind == "DICTITEM" else holder
    )
    exprs = [local(0), (E[kind], 0, "k")]
    subject = Subject()
    subject.install(exprs, [[(C["INT_EQ"], 1, n)] for n in range(50)] + [[(C["NULL"], 1, None)]])
    for name, change in _mutations():
        change(namespace, holder)
        for _ in range(2):
            expected = namespace.get("k", 50)
            assert subject(base) == expected, name


def test_remembered_class_attributes_notice_every_change() -> None:
    class Base:
        pass

    class Middle(Base):
        pass

    class Leaf(Middle):
        pass

    instance = Leaf()
    exprs = [local(0), (E["ATTR"], 0, "k"), local(1), (E["CLASSATTR"], 2, "k"), (E["METHOD"], 0, "m")]
    attr, klass = Subject(), Subject()
    for subject, e in ((attr, 1), (klass, 3)):
        subject.install(exprs, [[(C["INT_EQ"], e, n)] for n in range(9)] + [[(C["NULL"], e, None)]])

    def now() -> Any:
        for _ in range(3):
            getattr(instance, "k", None), getattr(Leaf, "k", None)  # lets CPython give the types versions
            seen = attr(instance, Leaf), klass(instance, Leaf)
        return seen

    assert now() == (9, 9)
    Base.k = 1  # type: ignore[attr-defined]
    assert now() == (1, 1)
    Middle.k = 2  # type: ignore[attr-defined]
    assert now() == (2, 2)
    instance.k = 3  # type: ignore[attr-defined]
    assert now() == (3, 2)
    del instance.k, Middle.k  # type: ignore[attr-defined]
    assert now() == (1, 1)
    Other = type("Other", (Base,), {"k": 4})
    Middle.__bases__ = (Other,)
    assert now() == (4, 4)
    Leaf.k = property(lambda self: 1)  # type: ignore[attr-defined]
    assert now() == (None, None)
    del Leaf.k  # type: ignore[attr-defined]
    instance.__class__ = Base  # type: ignore[assignment]
    assert now() == (1, 4)
    methods = Subject()
    methods.install(exprs, [[(C["NOT_NULL"], 4, None)]])
    assert methods(instance) is None
    Base.m = lambda self: 1  # type: ignore[attr-defined]
    assert methods(instance) == 0
    instance.m = 5  # type: ignore[attr-defined]
    assert methods(instance) is None


def test_items() -> None:
    class Tuple(tuple):  # type: ignore[type-arg]
        pass

    for value in ((1, 2), [1, 2], (), Tuple((1, 2)), "12", None):
        for i in (0, 1, 2, -1, -2, -3):
            for check in ((C["NULL"], 1, None), (C["INT_EQ"], 1, 2)):
                one([local(0), (E["ITEM"], 0, i)], check, value)
    assert one([local(0), (E["ITEM"], 0, -1)], (C["INT_EQ"], 1, 2), [1, 2])


# ---- checks


def test_scalar_checks() -> None:
    class Int(int):
        pass

    class Str(str):
        pass

    values: list[Any] = [
        0, 1, -1, 2**31, 2**62, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40, True, False, Int(1), 1.0, 0.0, -0.0, float("nan"),
        float("inf"), "", "a", "é", "aé", "\U0001f600", Str("a"), b"", b"a", np.float64(1.0), np.int64(1), np.str_("a"), None,
    ]  # fmt: skip
    for payload in values:
        kinds = {int: "INT_EQ", float: "FLOAT_EQ", str: "STR_EQ", bytes: "BYTES_EQ"}
        if type(payload) in kinds:
            for value in values:
                one([local(0)], (C[kinds[type(payload)]], 0, payload), value)
        for value in values:
            one([local(0)], (C["IS"], 0, payload), value)
            one([local(0)], (C["TYPE_IS"], 0, type(payload)), value)
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0].item()
    assert not one([local(0)], (C["FLOAT_EQ"], 0, float("nan")), other_nan)


def test_array_checks() -> None:
    arrays: list[Any] = [
        np.ones(3), np.ones(3, np.float32), np.ones((2, 3)), np.ones((2, 3), order="F"), np.ones((4, 4))[::2, ::2], np.empty(0),
        np.ones(3, ">f8"), np.array(1.0), np.ma.ones(3), [1.0], None, np.float64(1),
    ]  # fmt: skip
    masks = [0xFF, 0xFFFF, 0x10000, 0x7FFFFF, 0x400000, 0]
    for value in arrays:
        for mask in masks:
            for other in arrays[:8]:
                one([local(0)], (C["ARRAY"], 0, (mask, _core.array_key(other) & mask)), value)
    for dtype in ("f8", "f4", ">f8", "i8"):
        for value in (np.dtype("f8"), np.dtype(">f8"), np.dtype("i8"), "f8", None, np.float64):
            one([local(0)], (C["DTYPE_IS"], 0, np.dtype(dtype)), value)


def test_lengths_and_keys() -> None:
    for value in ((), (1,), [1], [], {}, {"a": 1}, {"b": 1, "a": 2}, {1: 1, "a": 2}, "ab", None, {True: 1, "a": 2}):
        for n in (0, 1, 2, 3):
            one([local(0)], (C["TUPLE_LEN"], 0, n), value)
            one([local(0)], (C["LIST_LEN"], 0, n), value)
        for keys in ((), ("a",), ("a", "b"), ("b", "a"), (1, "a")):
            one([local(0)], (C["DICT_KEYS"], 0, keys), value)


# ---- trees


def test_many_specialisations_become_a_switch() -> None:
    subject = Subject()
    shared = [(C["TYPE_IS"], 1, np.ndarray), (C["NOT_NULL"], 2, None)]
    exprs = [local(0), local(1), local(2)]
    subject.install(exprs, [[*shared, (C["INT_EQ"], 0, n * n)] for n in range(64)])
    assert [subject(n * n, np.ones(1)) for n in range(64)] == list(range(64))
    assert subject(2, np.ones(1)) is None
    assert subject(4, 1) is None
    text = subject.site.tree_text()
    assert text.count("switch") == 1 and text.count("TYPE_IS LOCAL(1)") == 1
    assert "case 49:" in text and "try specialisation 7" in text


def test_the_order_of_specialisations_is_kept() -> None:
    subject = Subject()
    exprs = [local(0), local(1)]
    is_int, is_one, second = (C["TYPE_IS"], 0, int), (C["INT_EQ"], 0, 1), (C["INT_EQ"], 1, 2)
    subject.install(exprs, [([is_one, second], 0), ([is_int], 1), ([is_one], 2), ([], 3)])
    assert [subject(1, 2), subject(1, 3), subject(5), subject("")] == [0, 1, 1, 3]
    subject.install(exprs, [([is_one, second], -1), ([is_one], -1), ([second], 2), ([is_int], 3)])
    assert [subject(1, 2), subject(1, 3), subject(5, 2), subject("")] == [2, 3, 2, None]


def test_contradictory_and_repeated_checks() -> None:
    subject = Subject()
    one_check, two = (C["INT_EQ"], 0, 1), (C["INT_EQ"], 0, 2)
    subject.install([local(0)], [[one_check, two], [one_check, one_check, two], [one_check, one_check], [two]])
    assert [subject(1), subject(2), subject(3)] == [2, 3, None]


def test_a_large_random_forest_stays_small() -> None:
    """Checks that no two specialisations share must not multiply."""
    subject = Subject()
    exprs: list[Any] = [local(i) for i in range(3)]
    exprs += [(E["ITEM"], 0, i) for i in range(40)]
    specs = [[(C["INT_EQ"], 3 + (k * 7 + j) % 40, (k * j) % 5) for j in range(8)] for k in range(60)]
    subject.install(exprs, specs)
    frame = subject.frame([0] * 40)
    expected = matching(exprs, specs, frame)
    assert subject([0] * 40) == (expected[0] if expected else None)
    assert len(subject.site.tree_text()) < 2_000_000


def test_huge_trees_are_refused_or_work() -> None:
    subject = Subject()
    n = 3000
    subject.install([local(0)], [[(C["INT_EQ"], 0, i)] for i in range(n)])
    assert [subject(i) for i in (0, 1, n - 1, n)] == [0, 1, n - 1, None]
    with pytest.raises(ValueError, match="limit"):
        subject.install([local(0)], [[(C["INT_EQ"], 0, i)] for i in range(5000)])
    with pytest.raises(ValueError, match="limit"):
        subject.install([local(0)] * 5000, [[]])
    with pytest.raises(ValueError, match="limit"):
        subject.install([local(0)], [[(C["NOT_NULL"], 0, None)] * 20000])
    chain: list[Any] = [local(0)] + [(E["ITEM"], i, 0) for i in range(2000)]
    subject.install(chain, [[(C["INT_EQ"], 2000, 1)]])
    nested: Any = 1
    for _ in range(2000):
        nested = [nested]
    assert subject(nested) == 0
    long = [[(C["INT_EQ"], i, i) for i in range(1500)] for _ in range(4)]
    subject.install([local(0), *((E["ITEM"], 0, i) for i in range(1, 1500))], [[(C["TYPE_IS"], 0, list), *long[0][1:]]])
    assert subject(list(range(1500))) == 0


POOL: list[Any] = [
    0, 1, 2, 3, True, 2**70, 1.0, 0.0, -0.0, "a", "b", "x", b"a", None, (), (1, "a"), [1], [1, [2, 3]], {}, {"a": 1},
    {"a": {"b": 2}, "b": 3},
    {1: 2, "a": 0}, Plain(), Slotted(), Derived(), Plain, WithMeta, Plain().method, Plain.method, len, np, np.ones(3),
    np.ones((2, 2), np.float32), np.dtype("f8"), lambda x=1, *, k=2: x,
    enumerate([1]), zip([1], (2, 3), strict=False), zip([1], [2], strict=True),
]  # fmt: skip
WEAKLY = [v for v in POOL if isinstance(v, Plain | types.FunctionType | type | np.ndarray)]
NAMES = ["a", "b", "x", "shared", "method", "k", "plain", "empty", "len"]
GLOBALS = {"a": POOL[20], "b": 1, "x": POOL[22]}


@st.composite
def expressions(draw: st.DrawFn) -> list[tuple[int, int, Any]]:
    out: list[tuple[int, int, Any]] = [local(0), local(1)]
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(sorted(E)))
        if kind == "STACK":
            continue
        base = -1 if kind in ("LOCAL", "CELL", "GLOBAL", "BUILTIN", "NAME", "CONST", "WEAK") else draw(st.integers(0, len(out) - 1))
        if kind in ("LOCAL", "CELL"):
            arg: Any = draw(st.integers(0, FREE))
        elif kind in ("ITEM", "FUNC_CELL", "FUNC_DEFAULT", "ITERATED"):
            arg = draw(st.integers(-2 if kind == "ITEM" else 0, 2))
        elif kind == "CONST":
            arg = draw(st.sampled_from(POOL))
        elif kind == "WEAK":
            arg = weakref.ref(draw(st.sampled_from(WEAKLY)))
        elif kind == "DICTITEM":
            arg = draw(st.sampled_from([*NAMES, 0, 1, 2]))
        else:
            arg = draw(st.sampled_from(NAMES))
        out.append((E[kind], base, arg))
    return out


def payloads(kind: str) -> st.SearchStrategy[Any]:
    of_type = lambda *types_: st.sampled_from([v for v in POOL if type(v) in types_])  # noqa: E731
    table: dict[str, st.SearchStrategy[Any]] = {
        "TYPE_IS": st.sampled_from(sorted({type(v) for v in POOL}, key=repr)),
        "IS": st.sampled_from(POOL),
        "IS_WEAK": st.sampled_from([weakref.ref(v) for v in WEAKLY]),
        "ARRAY": st.sampled_from([(m, _core.array_key(a) & m) for m in (0xFF, 0x7FFFFF) for a in POOL if type(a) is np.ndarray]),
        "INT_EQ": of_type(int),
        "FLOAT_EQ": of_type(float),
        "STR_EQ": of_type(str),
        "BYTES_EQ": of_type(bytes),
        "TUPLE_LEN": st.integers(0, 2),
        "LIST_LEN": st.integers(0, 2),
        "DICT_KEYS": st.sampled_from([(), ("a",), ("a", "b"), (1, "a")]),
        "FUNC_CODE": st.sampled_from([f.__code__ for f in POOL if type(f) is types.FunctionType]),
        "FUNC_DEFAULTS": st.sampled_from([(0, ()), (1, ("k",))]),
        "DTYPE_IS": st.just(np.dtype("f8")),
    }
    return table.get(kind, st.none())


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Any], list[tuple[list[Any], int]]]:
    exprs = draw(expressions())
    pool = []
    for _ in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(sorted(C)))
        pool.append((C[kind], draw(st.integers(0, len(exprs) - 1)), draw(payloads(kind))))
    specs = []
    for i in range(draw(st.integers(0, 9))):
        checks = draw(st.lists(st.sampled_from(pool), max_size=5))
        specs.append((checks, draw(st.sampled_from([i, i, -1]))))
    return exprs, specs


SUBJECT = Subject(h=POOL[20], **GLOBALS)


@settings(max_examples=int(os.environ.get("TIERUP_TEST_EXAMPLES", "300")), deadline=None)
@given(trees(), st.lists(st.tuples(st.sampled_from(POOL), st.sampled_from(POOL), st.sampled_from(POOL)), min_size=1, max_size=4))
def test_random_trees_agree_with_the_mirror(tree: Any, calls: Any) -> None:
    exprs, specs = tree
    SUBJECT.install(exprs, specs)
    for args in calls:
        expected = [i for i in matching(exprs, [checks for checks, _ in specs], SUBJECT.frame(*args)) if specs[i][1] >= 0]
        assert SUBJECT(*args) == (expected[0] if expected else None)
    assert SUBJECT.site.tree_text()


# ---- malformed input


def test_malformed_expressions_and_checks_are_refused() -> None:
    subject = Subject()
    bad_exprs: list[Any] = [
        None, 5, (1, 2), [E["LOCAL"], -1, 0], (999, -1, 0), (-1, -1, 0), (2**80, -1, 0), ("LOCAL", -1, 0), (E["LOCAL"], 0, 0),
        (E["LOCAL"], -1, "a"), (E["LOCAL"], -1, -1), (E["LOCAL"], -1, 2**40),
        (E["GLOBAL"], -1, 5), (E["ATTR"], -1, "a"), (E["ATTR"], 0, "a"),
        (E["WEAK"], -1, 5), (E["DICTITEM"], 5, "a"), (E["LOCAL"], 2**80, 0), (E["LOCAL"], -1, True),
    ]  # fmt: skip
    for bad in bad_exprs:
        with pytest.raises((TypeError, ValueError)):
            subject.site.install([bad], [spec([])])
    bad_checks: list[Any] = [
        None, (C["IS"], 0), (999, 0, None), (-1, 0, None), (2**80, 0, None), (C["IS"], 5, None), (C["IS"], -1, None), (C["IS"], 2**80, 0),
        (C["TYPE_IS"], 0, 5), (C["IS_WEAK"], 0, 5), (C["ARRAY"], 0, 5), (C["ARRAY"], 0, (1, 2)), (C["ARRAY"], 0, (-1, 0)),
        (C["INT_EQ"], 0, 1.0),
        (C["INT_EQ"], 0, True), (C["FLOAT_EQ"], 0, 1), (C["STR_EQ"], 0, b""), (C["BYTES_EQ"], 0, ""), (C["TUPLE_LEN"], 0, -1),
        (C["LIST_LEN"], 0, 2**80), (C["DICT_KEYS"], 0, [1]), (C["DICT_KEYS"], 0, (1.0,)), (C["FUNC_CODE"], 0, len),
        (C["FUNC_DEFAULTS"], 0, (1, 2)),
    ]  # fmt: skip
    for bad in bad_checks:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            subject.site.install([local(0)], [spec([bad])])
    for exprs in (None, 5, [None]):
        with pytest.raises(TypeError):
            subject.site.install(exprs, [spec([])])
    assert subject() is None


def test_constants_are_owned_and_released() -> None:
    value = Plain()
    before = sys.getrefcount(value)
    subject = Subject()
    exprs = [(E["CONST"], -1, value), local(0)]
    subject.install(exprs, [[(C["IS"], 1, value)], [(C["IS"], 0, value)]])
    assert sys.getrefcount(value) == before + 4  # the list here, the expression, a check on each expression
    assert subject(value) == 0
    subject.install([], [])
    del exprs
    assert sys.getrefcount(value) == before
    for _ in range(50):
        with pytest.raises(ValueError):
            subject.install([(E["CONST"], -1, value), local(99)], [[(C["IS"], 0, value)]])
    assert sys.getrefcount(value) == before


def test_the_listing_calls_no_repr() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("a listing ran a user's __repr__")

    subject = Subject()
    value = Loud()
    exprs = [local(0), (E["CONST"], -1, value), (E["ATTR"], 0, "x"), (E["ITEM"], 2, -1), (E["TYPE"], 0, None)]
    subject.install(
        exprs,
        [[(C["IS"], 0, value), (C["IS"], 1, value)], [(C["TYPE_IS"], 4, Loud)], [(C["TUPLE_LEN"], 3, 2), (C["ARRAY"], 2, (0xFF, 12))]],
    )
    text = subject.site.tree_text()
    assert "ITEM(ATTR(LOCAL(0), 'x'), -1)" in text and "mask=0xff key=0xc" in text and "Loud at 0x" in text
