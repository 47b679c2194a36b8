"""The protocol, its registry, and what NumPy's library recognises."""

from __future__ import annotations

import subprocess
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

from tierup.arrays import protocol
from tierup.arrays.numpy_rules import LIBRARY
from tierup.graph.ir import DTYPES


def test_numpy_implements_the_protocol() -> None:
    assert isinstance(LIBRARY, protocol.ArrayLibrary)
    assert protocol.active() == (LIBRARY,)


def test_a_library_is_loaded_only_with_its_module() -> None:
    code = "import sys; from tierup.arrays import protocol; assert protocol.active() == (); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_registering_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_FACTORIES", dict(protocol._FACTORIES))
    other: Any = object()
    protocol.register("an_array_library", other)
    assert other not in protocol.active()
    monkeypatch.setitem(sys.modules, "an_array_library", types.ModuleType("an_array_library"))
    assert protocol.active() == (LIBRARY, other)


@pytest.mark.parametrize("code", DTYPES)
def test_recognised_arrays(code: str) -> None:
    a = np.zeros((3, 4), code)
    assert LIBRARY.recognise(a)
    assert LIBRARY.array_facts(a) == protocol.ArrayFacts(code, 2, True, True)
    assert LIBRARY.array_facts(a.T) == protocol.ArrayFacts(code, 2, False, True)
    assert LIBRARY.is_numpy_scalar(a[0, 0]) == code


class _Sub(np.ndarray):
    pass


@pytest.mark.parametrize(
    "obj",
    [
        np.float64(1),
        np.array(1.0),
        np.zeros(3, ">f8"),
        np.zeros(3, "f2"),
        np.zeros(3, "g"),
        np.zeros(3, object),
        np.zeros(3, "U3"),
        np.zeros(3, "M8[s]"),
        np.zeros(3, [("x", "f8")]),
        np.zeros((1,) * 9),
        np.zeros(3).view(_Sub),
        np.zeros(25, "u1")[1:].view("f8"),
        np.zeros(3, np.dtype("f8", metadata={"unit": "m"})),
        [1.0],
        None,
    ],
)
def test_other_objects_are_not_recognised(obj: Any) -> None:
    assert not LIBRARY.recognise(obj)


def test_int64_is_one_type() -> None:
    """On Linux 'long long' has int64's size but is another type, which shows in results."""
    for char in "lqLQ":
        a = np.zeros(3, char)
        assert LIBRARY.recognise(a) == (a.dtype.num in {np.dtype(code).num for code in DTYPES})


@pytest.mark.parametrize("obj", [1, 1.0, True, 1j, "x", np.str_("x"), np.float16(1), np.longdouble(1), np.datetime64(1, "s")])
def test_other_scalars(obj: Any) -> None:
    assert LIBRARY.is_numpy_scalar(obj) is None


def test_functions_are_found_by_identity() -> None:
    assert LIBRARY.rule_for(np.sum) is not None
    assert LIBRARY.rule_for(np.add) is not None
    assert LIBRARY.rule_for(np.matmul) is None
    assert LIBRARY.rule_for(np.frompyfunc(lambda x: x, 1, 1)) is None
    assert LIBRARY.rule_for(test_functions_are_found_by_identity) is None
    assert LIBRARY.method_rule("dot") is None
    assert LIBRARY.attribute_rule("flags") is None


def test_objects_with_hostile_methods_are_only_looked_at_by_type() -> None:
    class Hostile:
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def __hash__(self) -> int:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError

    obj = Hostile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not LIBRARY.recognise(obj)
        assert LIBRARY.is_numpy_scalar(obj) is None
        assert LIBRARY.rule_for(obj) is None
