"""Faults to plant in the translator. Each makes it wrong in one way; generated programs must show every one of them.

Most are planted at two narrow places: where a specialisation's guards go to the native tree, and where its graph goes to the compiler.
None of them may break memory safety, so facts on which that rests (dtypes, ranks, shapes) are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tierup.capture.region import Region
from tierup.engine import translate
from tierup.graph import spec as graph_spec
from tierup.graph.ir import ArrayType, ExitSlot, Graph, Node, ScalarType
from tierup.graph.passes import common, dead
from tierup.guards.checks import Check
from tierup.native import compile as native_compile
from tierup.native import kernels, lower

Plant = Callable[[pytest.MonkeyPatch], None]

FAULTS: dict[str, Plant] = {}
"""By name."""


def _fault(name: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        FAULTS[name] = plant
        return plant

    return register


# -- guards ------------------------------------------------------------------------------------------------------------


def _without(kind: str, only: Callable[[Check], bool] = lambda check: True) -> Plant:
    """Guards of a kind are not checked."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = vars(translate)["lower_checks"]

        def lowered(checks: Iterable[Check], table: Any) -> Any:
            return original([check for check in checks if check.kind != kind or not only(check)], table)

        patch.setattr(translate, "lower_checks", lowered)

    return plant


FAULTS["the guard on None, True and modules is dropped"] = _without("IS")
FAULTS["the guard on an int's value is dropped"] = _without("INT_EQ")
FAULTS["the guard on a string is dropped"] = _without("STR_EQ")
FAULTS["the guard on a list's length is dropped"] = _without("LIST_LEN")
FAULTS["the guard on a dict's keys is dropped"] = _without("DICT_KEYS")
FAULTS["the guard on a function's code is dropped"] = _without("FUNC_CODE")


# -- graphs ------------------------------------------------------------------------------------------------------------


def _edited(edit: Callable[[Graph], None]) -> Plant:
    """Graphs are edited before they are compiled."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        original = vars(translate)["compile_graph"]

        def compiled(graph: Graph, exprs: Any) -> Any:
            edit(graph)
            return original(graph, exprs)

        patch.setattr(translate, "compile_graph", compiled)

    return plant


def _nodes(op: str, change: Callable[[Node], None]) -> Plant:
    """All nodes of an operation are changed."""

    def edit(graph: Graph) -> None:
        for node in graph.nodes:
            if node.op == op:
                change(node)

    return _edited(edit)


def _swap_arguments(names: tuple[str, ...]) -> Callable[[Node], None]:
    def change(node: Node) -> None:
        if node.attrs["name"] in names and node.args[0].type == node.args[1].type:
            node.args = node.args[::-1]

    return change


def _rename(names: dict[str, str]) -> Callable[[Node], None]:
    def change(node: Node) -> None:
        node.attrs["name"] = names.get(str(node.attrs["name"]), node.attrs["name"])

    return change


def _harmless(node: Node) -> None:
    """Makes a check hold always."""
    node.args = (node.args[0], node.args[0])
    if node.op == "check":
        node.attrs["cond"] = "eq" if isinstance(node.args[0].type, ScalarType) and node.args[0].type.dtype == "i8" else "nlt"
    else:
        node.op = "check_is"


def _from_frame(node: Node) -> bool:
    """Whether a number comes from a variable, not from an array's shape."""
    return node.op in ("unbox", "literal") or (node.op[0] in "if" and all(map(_from_frame, node.args)))


@_edited
def _forget_branches(graph: Graph) -> None:
    for node in graph.nodes:
        if node.op == "check" and all(map(_from_frame, node.args)):
            _harmless(node)


@_edited
def _widen_branches(graph: Graph) -> None:
    for node in graph.nodes:
        if node.op == "check" and all(map(_from_frame, node.args)):
            node.attrs["cond"] = {"lt": "le", "le": "le", "nlt": "nlt", "nle": "nlt"}.get(str(node.attrs["cond"]), node.attrs["cond"])


@_edited
def _forget_identities(graph: Graph) -> None:
    for node in graph.nodes:
        if node.op in ("check_is", "check_isnot"):
            _harmless(node)


@_edited
def _swap_exits(graph: Graph) -> None:
    slots = [i for i, slot in enumerate(graph.exit) if slot.kind == "local" and slot.value is not None]
    if len(slots) > 1:
        first, second = slots[:2]
        one, two = graph.exit[first], graph.exit[second]
        graph.exit[first], graph.exit[second] = ExitSlot("local", one.index, two.value), ExitSlot("local", two.index, one.value)


@_edited
def _lose_exit(graph: Graph) -> None:
    kept = [slot for slot in graph.exit if slot.kind == "local"]
    if kept:
        graph.exit.remove(kept[-1])


@_edited
def _copies_of_one_object(graph: Graph) -> None:
    seen: set[Node] = set()

    def another(value: Node) -> Node:
        if value.op != "box" or value not in seen:
            seen.add(value)
            return value
        return graph.add("box", value.args, value.type, value.line)

    for i, slot in enumerate(graph.exit):
        if slot.value is not None:
            graph.exit[i] = ExitSlot(slot.kind, slot.index, another(slot.value))
    for node in [node for node in graph.nodes if node.op == "tuple"]:
        first, *rest = node.args or (None,)
        if first is not None and first in rest and first.op == "box":
            tail = graph.add("box", first.args, first.type, first.line)
            node.args = (first, *(tail if item is first else item for item in rest))
            graph.nodes.remove(tail)
            graph.nodes.insert(graph.nodes.index(node), tail)


@_edited
def _reverse_stores(graph: Graph) -> None:
    stores = [node for node in graph.nodes if node.op == "store"]
    graph.nodes[:] = [*(node for node in graph.nodes if node.op != "store"), *reversed(stores)]
    for i, node in enumerate(graph.nodes):
        node.id = i


@_edited
def _lose_store(graph: Graph) -> None:
    stores = [node for node in graph.nodes if node.op == "store"]
    if stores:
        stores[-1].op, stores[-1].args, stores[-1].attrs = "check_is", (stores[-1].args[0],) * 2, {}
        graph.nodes.remove(stores[-1])


def _shift_slice(node: Node) -> None:
    """A slice with a start begins where the array does."""
    given = node.attrs["given"]
    assert isinstance(given, tuple)
    if given[0] and node.args[1].op == "literal" and node.args[1].attrs["value"] == 1:
        node.attrs["given"] = (False, *given[1:])
        node.args = (node.args[0], *node.args[2:])


def _forget_step(node: Node) -> None:
    """A negative step counts as none."""
    given = node.attrs["given"]
    assert isinstance(given, tuple)
    if given == (False, False, True) and node.args[-1].attrs.get("value") == -1:
        node.attrs["given"] = (False, False, False)
        node.args = node.args[:1]


def _other_box(node: Node) -> None:
    """A Python float leaves as a NumPy scalar."""
    value = node.args[0]
    if isinstance(value.type, ScalarType) and value.type == ScalarType("f8", "python") and value.op != "literal":
        value.type = ScalarType("f8", "numpy")


def _square_axes(node: Node) -> None:
    if node.attrs["axis"] in (0, 1) and getattr(node.args[0].type, "ndim", 0) == 2:
        node.attrs["axis"] = 1 - int(str(node.attrs["axis"]))


def _no_permutation(node: Node) -> None:
    assert isinstance(node.args[0].type, ArrayType)
    node.attrs["perm"] = tuple(range(node.args[0].type.ndim))


FAULTS["a branch on a number is not checked"] = _forget_branches
FAULTS["a branch is checked with <= for <"] = _widen_branches
FAULTS["an identity is not checked"] = _forget_identities
FAULTS["two locals are exchanged at the exit"] = _swap_exits
FAULTS["a local is not written at the exit"] = _lose_exit
FAULTS["one object leaves as two"] = _copies_of_one_object
FAULTS["stores in the wrong order"] = _reverse_stores
FAULTS["a store is lost"] = _lose_store
FAULTS["a slice begins one too early"] = _nodes("slice", _shift_slice)
FAULTS["a negative step is ignored"] = _nodes("slice", _forget_step)
FAULTS["operands of - and / exchanged"] = _nodes("ufunc", _swap_arguments(("subtract", "divide", "floor_divide", "remainder")))
FAULTS["> for >="] = _nodes("ufunc", _rename({"greater": "greater_equal", "less": "less_equal"}))
FAULTS["fmax for maximum"] = _nodes("ufunc", _rename({"maximum": "fmax", "minimum": "fmin"}))
FAULTS["where with its choices exchanged"] = _nodes("where", lambda node: setattr(node, "args", (node.args[0], *node.args[:0:-1])))
FAULTS["a reduction over the other axis"] = _nodes("reduce", _square_axes)
FAULTS["a Python float becomes a NumPy scalar"] = _nodes("box", _other_box)
FAULTS["integers are added for subtracted"] = _nodes("isub", lambda node: setattr(node, "op", "iadd"))
FAULTS["transposed arrays are not"] = _nodes("transpose", _no_permutation)
FAULTS["zeros are not set"] = _nodes("zeros_like", lambda node: setattr(node, "op", "empty_like"))


# -- elsewhere ---------------------------------------------------------------------------------------------------------


@_fault("operations whose results are unused are dropped with their warnings")
def _drop_flags(patch: pytest.MonkeyPatch) -> None:
    def keep(node: Node) -> bool:
        return graph_spec.effect(node) not in ("pure", "flags")

    patch.setattr(dead, "keep_alive", keep)
    patch.setattr(lower, "keep_alive", keep)


@_fault("floating-point flags are not tested")
def _no_flags(patch: pytest.MonkeyPatch) -> None:
    for module in (kernels, graph_spec, native_compile):
        patch.setattr(module, "loop_raises", lambda name, loop: False)


@_fault("in-place changes are not seen through other names")
def _stale_alias(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "set_version", lambda self, old, new: None)


@_fault("views do not hinder in-place changes of temporaries")
def _no_views(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "has_views", lambda self, array: False)


@_fault("memory is read before the stores that come first")
def _read_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "check_order", lambda self, first_new: None)


@_fault("operations that differ in their attributes are merged")
def _merge_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(common, "_key", lambda node, args: (node.op, args, node.type, tuple(sorted(set(node.attrs) - {"name", "value"}))))


@_fault("an attempt keeps the arguments alive")
def _leak(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "release", lambda self: None)
