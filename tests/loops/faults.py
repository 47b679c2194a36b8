"""Faults to plant in the compiler of whole loops. Each makes it wrong in one way; generated programs must show every one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tierup import _core
from tierup.engine import whole_loops
from tierup.guards.checks import Check
from tierup.loops import calls, complexes, instructions, iterators, math_functions, memory, numbers, vectors
from tierup.loops.exits import ExitWriter, PlanWriter
from tierup.loops.function import Function
from tierup.loops.state import Checkpoint, Version
from tierup.loops.tracer import Tracer
from tierup.loops.values import Value

Plant = Callable[[pytest.MonkeyPatch], None]

FAULTS: dict[str, Plant] = {}
"""By name."""


def _fault(name: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        FAULTS[name] = plant
        return plant

    return register


# -- instructions ------------------------------------------------------------------------------------------------------


def _instead(pattern: str, replacement: str) -> Plant:
    """Other LLVM instructions than those that were meant."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = Function.let
        patch.setattr(Function, "let", lambda self, text: original(self, re.sub(pattern, replacement, text)))

    return plant


FAULTS["integers are compared without their signs"] = _instead("^icmp s(lt|gt) i64", r"icmp u\1 i64")
FAULTS["less or equal for less"] = _instead("^fcmp olt double", "fcmp ole double")
FAULTS["NaN equals NaN"] = _instead("^fcmp une double", "fcmp one double")
FAULTS["a negative number is shifted without its sign"] = _instead("^ashr", "lshr")
FAULTS["integers are divided without their signs"] = _instead("^sdiv", "udiv")
FAULTS["minus zero is zero"] = _instead(r"^fneg (\w+)", r"fsub \1 0.0,")
FAULTS["an integer becomes a float without its sign"] = _instead("^sitofp", "uitofp")
FAULTS["True counts as minus one"] = _instead("^zext i1", "sext i1")
FAULTS["small integers lose their sign"] = _instead("^sext i(8|16|32)", r"zext i\1")
FAULTS["unsigned integers get a sign"] = _instead("^zext i(8|16|32)", r"sext i\1")


# -- checks ------------------------------------------------------------------------------------------------------------


@_fault("an overflow is not noticed")
def _no_overflow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers, "checked", lambda t, what, sign, bits, a, b: t.fn.let(f"{what} i{bits} {a}, {b}"))


@_fault("an index out of range is not noticed")
def _no_bounds(patch: pytest.MonkeyPatch) -> None:
    def wrapped(t: Tracer, value: Value, length: str) -> str:
        index, let = numbers.index_of(t, value), t.fn.let
        return let(f"select i1 {let(f'icmp slt i64 {index}, 0')}, i64 {let(f'add i64 {index}, {length}')}, i64 {index}")

    patch.setattr(memory, "wrapped", wrapped)


@_fault("a result that is not finite is not noticed")
def _no_finite(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers, "is_finite", lambda t, name, type_: "true")


@_fault("an underflow is not asked about")
def _no_underflow(patch: pytest.MonkeyPatch) -> None:
    original = PlanWriter._emit
    patch.setattr(PlanWriter, "_emit", lambda self, name, *operands: None if name == "C_UNDERFLOW" else original(self, name, *operands))


@_fault("integers are made to fit")
def _no_fits(patch: pytest.MonkeyPatch) -> None:
    def fits(t: Tracer, name: str, dtype: str) -> str:
        return name if dtype[1] == "8" else t.fn.let(f"trunc i64 {name} to i{8 * int(dtype[1])}")

    patch.setattr(numbers, "fits", fits)


@_fault("a float of half the size may become infinite")
def _no_narrow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers, "narrowed", lambda t, wide: t.fn.let(f"fptrunc double {wide} to float"))


@_fault("large integers count as exact floats")
def _no_exact(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(numbers, "_EXACT", 1 << 61)


@_fault("a zero divisor of floats is not noticed")
def _no_zero(patch: pytest.MonkeyPatch) -> None:
    original = numbers._floats

    def floats(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
        if symbol != "/":
            return original(t, symbol, left, right)
        return Value("float", None, (t.fn.let(f"fdiv double {numbers.as_double(t, left)}, {numbers.as_double(t, right)}"),))

    patch.setattr(numbers, "_floats", floats)


@_fault("a shift to the left loses bits")
def _no_shift(patch: pytest.MonkeyPatch) -> None:
    original = numbers._shift

    def shift(t: Tracer, symbol: str, a: str, b: str) -> Value:
        return Value("int", None, (t.fn.let(f"shl i64 {a}, {b}"),)) if symbol == "<<" else original(t, symbol, a, b)

    patch.setattr(numbers, "_shift", shift)


@_fault("the events of the interpreter are not looked at")
def _no_poll(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tracer, "_poll", lambda self: None)


# -- guards ------------------------------------------------------------------------------------------------------------


def _without(*kinds: str) -> Plant:
    """Guards of some kinds are not checked."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = vars(whole_loops)["lower_checks"]

        def lowered(checks: Iterable[Check], table: Any) -> Any:
            return original([check for check in checks if check.kind not in kinds], table)

        patch.setattr(whole_loops, "lower_checks", lowered)

    return plant


FAULTS["the guard on identities is dropped"] = _without("IS")


# -- operations --------------------------------------------------------------------------------------------------------


@_fault("the remainder has the dividend's sign")
def _truncate(patch: pytest.MonkeyPatch) -> None:
    def division(t: Tracer, a: str, b: str, bits: int) -> tuple[str, str]:
        t.require(t.fn.let(f"icmp ne i{bits} {b}, 0"))
        return t.fn.let(f"sdiv i{bits} {a}, {b}"), t.fn.let(f"srem i{bits} {a}, {b}")

    patch.setattr(numbers, "_floor_division", division)


@_fault("a float's remainder has the dividend's sign")
def _dividend_sign(patch: pytest.MonkeyPatch) -> None:
    original = math_functions.quotient_and_rest

    def division(t: Tracer, a: str, b: str) -> tuple[str, str]:
        return original(t, a, b)[0], math_functions.library(t, "fmod", a, b)

    patch.setattr(math_functions, "quotient_and_rest", division)


@_fault("the imaginary part of a product has half of its terms")
def _half_product(patch: pytest.MonkeyPatch) -> None:
    original = complexes._product

    def product(t: Tracer, a: complexes.Parts, b: complexes.Parts) -> complexes.Parts:
        return original(t, a, b)[0], t.fn.let(f"fmul double {a[0]}, {b[1]}")

    patch.setattr(complexes, "_product", product)


@_fault("zip asks only the first that it goes through")
def _first_of_zip(patch: pytest.MonkeyPatch) -> None:
    original = iterators.is_over
    patch.setattr(iterators, "is_over", lambda t, value: original(t, value.items[0] if value.kind == "zip" else value))


@_fault("enumerate always counts from zero")
def _from_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(calls._BY_ID, id(enumerate), lambda t, args: iterators.enumerated(t, args[:1]))


@_fault("a float stored among integers is rounded")
def _round(patch: pytest.MonkeyPatch) -> None:
    original = memory.truncated

    def rounded(t: Tracer, value: Value) -> str:
        wide = value.one if value.kind == "float" else numbers.element_as(t, value, "f8")
        return original(t, Value("float", None, (t.fn.call("double", "llvm.rint.f64", ("double", wide)),)))

    patch.setattr(memory, "truncated", rounded)


@_fault("min and max keep the last of equals")
def _last_of_equals(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(calls._BY_ID, id(min), calls._extreme("<="))
    patch.setitem(calls._BY_ID, id(max), calls._extreme(">="))


@_fault("a negative index counts from the last but one")
def _wrap_wrong(patch: pytest.MonkeyPatch) -> None:
    original = memory.wrapped

    def wrapped(t: Tracer, value: Value, length: str) -> str:
        index, let = numbers.index_of(t, value), t.fn.let
        moved = let(f"select i1 {let(f'icmp slt i64 {index}, -1')}, i64 {let(f'add i64 {index}, 1')}, i64 {index}")
        return original(t, Value("int", None, (moved,)), length)

    patch.setattr(memory, "wrapped", wrapped)


@_fault("the last turn of a range is left out")
def _short_range(patch: pytest.MonkeyPatch) -> None:
    original = calls._length

    def length(t: Tracer, start: str, stop: str, step: str) -> str:
        count = original(t, start, stop, step)
        return t.fn.call("i64", "llvm.smax.i64", ("i64", t.fn.let(f"sub i64 {count}, 1")), ("i64", "0"))

    patch.setattr(calls, "_length", length)


@_fault("a slice ends one too early")
def _short_slice(patch: pytest.MonkeyPatch) -> None:
    original = memory._sliced

    def sliced(t: Tracer, key: Value, address: str, length: str, stride: str) -> tuple[str, str, str]:
        address, length, stride = original(t, key, address, length, stride)
        return address, t.fn.call("i64", "llvm.smax.i64", ("i64", t.fn.let(f"sub i64 {length}, 1")), ("i64", "0")), stride

    patch.setattr(memory, "_sliced", sliced)


@_fault("operands on arrays are exchanged")
def _swap_vectors(patch: pytest.MonkeyPatch) -> None:
    original = vectors.binary
    patch.setattr(vectors, "binary", lambda t, symbol, left, right: original(t, symbol, right, left))


@_fault("`not` is forgotten")
def _no_not(patch: pytest.MonkeyPatch) -> None:
    from tierup.bytecode.canonical import Op

    patch.setitem(instructions.HANDLERS, Op.UNARY_NOT, instructions._unary(instructions._to_bool))


@_fault("`is None` is `is not None`")
def _none(patch: pytest.MonkeyPatch) -> None:
    from tierup.loops import tracer

    for module in (tracer, instructions):
        original = vars(module)["is_none"]
        patch.setattr(module, "is_none", lambda value, original=original: not original(value))


# -- exits -------------------------------------------------------------------------------------------------------------


@_fault("a place to leave to is kept behind a store")
def _keep_checkpoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tracer, "effect", lambda self: None)


def _changed_writes(change: Callable[[list[tuple[int, int, int]]], list[tuple[int, int, int]]]) -> Plant:
    """Other writes of locals at the exits."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = ExitWriter._locals

        def written(self: ExitWriter, point: Checkpoint) -> None:
            original(self, point)
            self.branches[-1].writes[:] = change(self.branches[-1].writes)

        patch.setattr(ExitWriter, "_locals", written)

    return plant


def _exchanged(writes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    if len(writes) < 2 or any(kind != _core.EXIT_LOCAL for kind, _, _ in writes):
        return writes
    (kind, one, first), (_, other, second), *rest = writes
    return [(kind, one, second), (kind, other, first), *rest]


FAULTS["a local is lost at an exit"] = _changed_writes(lambda writes: writes[:-1])
FAULTS["two locals are exchanged at an exit"] = _changed_writes(_exchanged)


@_fault("an iterator stands one too far at an exit")
def _skip(patch: pytest.MonkeyPatch) -> None:
    original = ExitWriter._stack

    def moved(t: Tracer, value: Value) -> Value:
        if value.kind != "iterator":
            return value
        item, step, left = value.parts
        after = t.fn.let(f"add i64 {item}, {step}"), step, t.fn.let(f"sub i64 {left}, 1")
        return Value("iterator", value.detail, after)

    def stack(self: ExitWriter, point: Checkpoint) -> None:
        original(self, Checkpoint(point.landing, point.locals, tuple(moved(self.t, value) for value in point.stack), point.label))

    patch.setattr(ExitWriter, "_stack", stack)


@_fault("a float leaves as a NumPy scalar")
def _other_box(patch: pytest.MonkeyPatch) -> None:
    original = ExitWriter._box

    def box(self: ExitWriter, value: Value) -> int:
        return original(self, Value("numpy", "f8", value.parts) if value.kind == "float" else value)

    patch.setattr(ExitWriter, "_box", box)


# -- joins -------------------------------------------------------------------------------------------------------------


@_fault("two values are exchanged where blocks meet")
def _swap_joins(patch: pytest.MonkeyPatch) -> None:
    original = Version.joins

    def joins(self: Version) -> Iterator[str]:
        same = [k for k, (type_, _) in enumerate(self.names) if type_ == "double"]
        if len(same) > 1 and len(self.incoming) > 1:
            label, parts = self.incoming[-1]
            one, other = same[:2]
            parts = list(parts)
            parts[one], parts[other] = parts[other], parts[one]
            self.incoming[-1] = label, parts
        return original(self)

    patch.setattr(Version, "joins", joins)
