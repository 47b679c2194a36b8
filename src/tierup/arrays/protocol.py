"""The protocol an array library implements so that its operations can be captured, and the registry of such libraries.

An author writes one object with the methods of `ArrayLibrary` and registers it under the name of the module whose import makes it
relevant. Capture asks `active()` at every translation; a library is loaded only when that module already is in the process, so tierup never
imports an array library on its own.

What a rule must do
-------------------
A rule sees symbolic values and emits graph nodes through the `Builder`. It must produce exactly what the library's own call returns:
bits, dtype, memory order, aliasing; and must raise `NoRule` with a reason wherever it cannot promise that. Then the original instruction
makes the call, so refusing is always right and only costs speed. In particular:

* A rule relies on nothing but kinds of values, dtypes, ranks and constants. Shapes, sizes and values of scalars are hints: a decision
  taken by a hint is secured with `Builder.compare` or `Builder.check`.
* A rule runs no code of the user and draws no random numbers, warns of nothing and leaves floating-point flags alone.
* Where the library would raise, or warn of anything but floating-point flags, the rule raises `NoRule` or emits a check that leaves the
  region.
* Writes are `store` nodes of values that no later store changes. Capture sees to it that nothing reads memory that an earlier store may
  alias, and removes what a rule emitted before it raised `NoRule` (`Builder.rollback`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from tierup.arrays.builder import Builder
from tierup.arrays.values import ArrayValue, Value

Rule = Callable[[Builder, tuple[Value, ...], dict[str, Value]], Value]
"""rule(builder, args, kwargs) -> result, or raises `NoRule`. For methods and attributes args[0] is the array."""


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What guards fix about an array."""

    dtype: str
    """A code of `graph.ir.DTYPES`."""
    ndim: int
    ccontig: bool
    writeable: bool


@runtime_checkable
class ArrayLibrary(Protocol):
    """What capture asks of an array library. No method may run user code; all but the last group must not raise."""

    name: str

    # -- recognition: concrete objects -----------------------------------------------------------------------
    def recognise(self, obj: object) -> bool:
        """Whether obj is an array that a descriptor can describe: exact type, native aligned elements of a known dtype, rank 1 to 8."""

    def array_facts(self, obj: Any) -> ArrayFacts:
        """The facts of a recognised array."""

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Whether the memory extents of two recognised arrays touch."""

    def is_numpy_scalar(self, obj: object) -> str | None:
        """The dtype code if obj's exact type is one of the library's scalar types."""

    # -- rules by what is called -------------------------------------------------------------------------------
    def rule_for(self, obj: object) -> Rule | None:
        """The rule of a callable of the library, found by identity."""

    def function_method_rule(self, obj: object, name: str) -> Rule | None:
        """The rule of a method of a callable of the library (`np.add.outer`)."""

    def method_rule(self, name: str) -> Rule | None:
        """The rule of an array's method."""

    def attribute_rule(self, name: str) -> Rule | None:
        """The rule of an array's attribute."""

    # -- operators: return the result or raise NoRule ----------------------------------------------------------
    def binary_op(self, b: Builder, symbol: str, left: Value, right: Value) -> Value:
        """left symbol right, one of them an array or scalar of the library. In-place symbols ('+=') store into left, the result."""

    def depends_on_output(self, value: ArrayValue) -> bool:
        """Whether a fresh result would have other bits if it were computed into the memory of an operand."""

    def unary_op(self, b: Builder, symbol: str, x: Value) -> Value:
        """'-', '+', '~', and 'abs' for the builtin."""

    def compare(self, b: Builder, symbol: str, left: Value, right: Value) -> Value:
        """'<', '<=', '==', '!=', '>', '>='."""

    def getitem(self, b: Builder, array: ArrayValue, index: Value) -> Value:
        """array[index]"""

    def setitem(self, b: Builder, array: ArrayValue, index: Value, value: Value) -> None:
        """array[index] = value"""

    def length(self, b: Builder, array: ArrayValue) -> Value:
        """len(array)"""


_FACTORIES: dict[str, str | ArrayLibrary] = {"numpy": "tierup.arrays.numpy_rules:LIBRARY"}


def register(module: str, library: str | ArrayLibrary) -> None:
    """Make `library` (an object, or 'package.module:attribute' to load on first use) serve once `module` is imported."""
    _FACTORIES[module] = library


def active() -> tuple[ArrayLibrary, ...]:
    """The libraries whose module is in the process."""
    return tuple(_load(module) for module in _FACTORIES if module in sys.modules)


def _load(module: str) -> ArrayLibrary:
    found = _FACTORIES[module]
    if isinstance(found, str):
        where, _, attribute = found.partition(":")
        loaded: ArrayLibrary = getattr(import_module(where), attribute)
        _FACTORIES[module] = found = loaded
    return found
