"""The harness itself: plain against plain shows nothing, and jits that are wrong on purpose are found out."""

from __future__ import annotations

import builtins
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .inputs import LAYOUTS, VALUE_SETS, make
from .observe import How, difference
from .programs import Program, from_seed
from .reduce import reduced
from .statements import render

Change = Callable[[Any], Any]
PROGRAMS = 300


def _edited(edit: Callable[[str], str]) -> Callable[[Any], Any]:
    """A jit that recompiles a function from edited source."""

    def jit(function: types.FunctionType) -> Any:
        path = function.__code__.co_filename
        module = compile(edit(Path(path).read_text()), path, "exec")
        code = _find(module, function.__code__)
        assert code is not None
        new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        new.__kwdefaults__ = function.__kwdefaults__
        new.__qualname__ = function.__qualname__
        return new

    return jit


def _find(code: types.CodeType, wanted: types.CodeType) -> types.CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_qualname == wanted.co_qualname and constant.co_freevars == wanted.co_freevars:
                return constant
            found = _find(constant, wanted)
            if found is not None:
                return found
    return None


def _seen(edit: Callable[[str], str], control: Callable[[str], str], folder: Path) -> bool:
    """Whether some generated program shows a faulty edit and does not show the control, which does the same without the fault."""
    for seed in range(PROGRAMS):
        program = from_seed(seed)
        if edit(program.source) == program.source:
            continue
        path = folder / f"program{seed}.py"
        if difference(program, path, How(_edited(edit))) and not difference(program, path, How(_edited(control))):
            return True
    return False


def _through_change(text: str) -> str:
    """The source with every returned value passed through a builtin `__change__`."""
    return re.sub(r"^(\s+return )(.+)$", r"\1__change__(\2)", text, flags=re.MULTILINE)


def _change_arrays(change: Callable[[np.ndarray], Any]) -> Change:
    def walk(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.size and value.ndim:
            return change(value)
        if type(value) in (tuple, list):
            return type(value)(walk(item) for item in value)
        return value

    return walk


def _other_sign_of_zero(array: np.ndarray) -> Any:
    if array.dtype.kind == "f" and array.flags.writeable:
        array[array == 0] *= -1
    return array


def _last_bit(array: np.ndarray) -> Any:
    if array.dtype == np.float64 and array.flags.writeable:
        array[...] = np.nextafter(array, 0)
    return array


WRONG_RESULTS = {
    "a copy instead of the array": lambda array: array.copy(order="K"),
    "a view instead of the array": lambda array: array[...],
    "another memory order": lambda array: np.array(array, order="F" if array.ndim > 1 else "C", copy=array.ndim > 1),
    "read-only": lambda array: np.lib.stride_tricks.as_strided(array, array.shape, array.strides, writeable=False),
    "the sign of a zero": _other_sign_of_zero,
    "one unit in the last place": _last_bit,
    "the other byte order": lambda array: array.astype(array.dtype.newbyteorder()) if array.dtype.itemsize > 1 else array,
}


@pytest.mark.parametrize("fault", WRONG_RESULTS)
def test_wrong_results_are_seen(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "__change__", _change_arrays(WRONG_RESULTS[fault]), raising=False)
    monkeypatch.setattr(builtins, "__same__", lambda value: value, raising=False)
    assert _seen(_through_change, lambda text: _through_change(text).replace("__change__", "__same__"), tmp_path)


def test_a_kept_reference_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def keep(value: Any) -> Any:
        kept.append(value)
        return value

    monkeypatch.setattr(builtins, "__change__", keep, raising=False)
    monkeypatch.setattr(builtins, "__same__", lambda value: value, raising=False)
    assert _seen(_through_change, lambda text: _through_change(text).replace("__change__", "__same__"), tmp_path)


WRONG_CODE = {
    "sum of a product": ("(a * ", "(a + "),
    "a lost append": ("    LOG.append(k)", "    k"),
    "a lost global write": ("    COUNT += 1", "    COUNT"),
    "a branch taken wrongly": ("if flag:", "if not flag:"),
    "a guard on None": ("if t is None:", "if True:"),
    "a lost print": ("    print('at', k, s)", "    k"),
    "a lost handler": ("except Exception as error:", "except OSError as error:"),
    "a copy instead of a view": ("np.asarray(", "np.array("),
    "a slice clipped at the wrong end": ("[1:]", "[:-1]"),
    "an in-place operation made into another": (" += ", " -= "),
    "another function": ("np.sqrt(", "np.fabs("),
}


@pytest.mark.parametrize("fault", WRONG_CODE)
def test_wrong_code_is_seen(fault: str, tmp_path: Path) -> None:
    old, new = WRONG_CODE[fault]
    assert _seen(lambda text: text.replace(old, new), lambda text: text, tmp_path)


def _program(call: str, *lines: str, environment: str = "always") -> Program:
    """A program of one function without generated parts."""
    calls = [f"    ({environment!r}, lambda: (({call},), {{}})),"]
    return Program(["@jit", "def f(v):"], [], [f"    {line}" for line in lines], calls, exact_nans=False)


def test_constants_of_the_code_are_seen_by_value_and_arguments_as_objects(tmp_path: Path) -> None:
    def anew(name: str) -> How:
        return How(_edited(lambda text: text.replace(f"r = {name}\n", f"r = float(str({name}))\n")))

    program = _program("2.75", "r = 0.125", "return r, r")
    assert difference(program, tmp_path / "constant.py", anew("0.125")) is None
    assert difference(program, tmp_path / "other.py", How(_edited(lambda text: text.replace("0.125", "-0.125"))))
    assert difference(_program("2.75", "r = v", "return r, v"), tmp_path / "argument.py", anew("v"))


@pytest.mark.parametrize("value", ["", "v"])
def test_that_a_generator_ended_is_no_event_however_long_its_loop(value: str, tmp_path: Path) -> None:
    """CPython 3.13 sends another one to sys.settrace, or none, where the body is longer than 255 code units."""
    items = ["def items():", "    yield 1", f"    return {value}", "for x in items():", "    x += 0", "return x"]
    program = _program("[1]", *items, environment="trace")
    longer = How(_edited(lambda text: text.replace("x += 0\n", "x += 0; " * 100 + "\n")))
    assert difference(program, tmp_path / "program.py", longer) is None


def test_plain_programs_do_not_differ(tmp_path: Path) -> None:
    for seed in range(60):
        program = from_seed(seed)
        assert difference(program, tmp_path / f"program{seed}.py", How(_edited(lambda text: text))) is None


def test_a_program_is_reduced(tmp_path: Path) -> None:
    """A fault that needs one statement leaves little else of the program."""
    jit = _edited(lambda text: text.replace("    COUNT += 1", "    COUNT"))

    def fails(program: Program) -> bool:
        return difference(program, tmp_path / "candidate.py", How(jit)) is not None

    program = next(program for program in map(from_seed, range(PROGRAMS)) if "    COUNT += 1" in program.source and fails(program))
    small = reduced(program, fails)
    assert fails(small)
    assert len(small.calls) == 1 and len(list(render(small.body, 0))) <= 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_are_deterministic(layout: str) -> None:
    for values in VALUE_SETS:
        for dtype in ("f8", "f4", "i2", "?", "c16", "u8"):
            for shape in ((3, 4), (5,), (0,), ()):
                one, two = (make(dtype, shape, layout, 3, values) for _ in range(2))
                assert type(one) is type(two) and one.strides == two.strides
                assert np.asarray(one).tobytes() == np.asarray(two).tobytes()
