"""NumPy as an array library: the object that capture talks to, and the tables of its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy._core import umath

from tierup import _core
from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import creation, indexing, operators, reductions, scalars, selection, views
from tierup.arrays.numpy_rules.arguments import Bound, array_argument, require_absent, signature
from tierup.arrays.numpy_rules.dtypes import DTYPE, ITEMSIZE, KIND, SCALAR_CODE, code_of, require_code
from tierup.arrays.numpy_rules.loops import supported
from tierup.arrays.numpy_rules.operands import operand
from tierup.arrays.numpy_rules.stores import depends_on_output
from tierup.arrays.numpy_rules.ufuncs import apply, ufunc_rule
from tierup.arrays.protocol import ArrayFacts, Rule
from tierup.arrays.values import ArrayValue, ConstValue, TupleValue, Value


class NumpyLibrary:
    """Implements `protocol.ArrayLibrary` for NumPy."""

    name: Final = "numpy"

    def recognise(self, obj: object) -> bool:
        """An exact ndarray of a supported dtype, native, aligned, of rank 1 to 8."""
        if type(obj) is not np.ndarray or not 1 <= obj.ndim <= 8 or code_of(obj.dtype) is None:
            return False
        # The key, not `flags`: asking an array for `flags.writeable` may warn.
        key = _core.array_key(obj)
        return key & 255 != 255 and bool(key >> 18 & 1)

    def array_facts(self, obj: Any) -> ArrayFacts:
        """dtype, rank and the flags that guards fix."""
        key = _core.array_key(obj)
        return ArrayFacts(require_code(obj.dtype), obj.ndim, bool(key >> 16 & 1), bool(key >> 19 & 1))

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Whether the memory extents of two arrays touch."""
        return bool(np.may_share_memory(a, b))

    def depends_on_output(self, value: ArrayValue) -> bool:
        """Whether a fresh result would have other bits if it were computed into the memory of an operand."""
        return depends_on_output(value.node)

    def is_numpy_scalar(self, obj: object) -> str | None:
        """The dtype code of an exact NumPy scalar."""
        return SCALAR_CODE.get(type(obj))

    def rule_for(self, obj: object) -> Rule | None:
        """Ufuncs and functions of the numpy module, by identity."""
        if type(obj) is np.ufunc:
            return _UFUNCS.get(obj)
        found = _FUNCTIONS.get(id(obj))
        return found[1] if found is not None else None

    def function_method_rule(self, obj: object, name: str) -> Rule | None:
        """Methods of ufuncs, unless somebody put something else in their place."""
        if type(obj) is not np.ufunc or obj not in _UFUNCS or name in getattr(obj, "__dict__", ()):
            return None
        return selection.ufunc_outer(obj) if name == "outer" else None

    def method_rule(self, name: str) -> Rule | None:
        """Methods of ndarray."""
        return _METHODS.get(name)

    def attribute_rule(self, name: str) -> Rule | None:
        """Attributes of ndarray."""
        return _ATTRIBUTES.get(name)

    def binary_op(self, b: Builder, symbol: str, left: Value, right: Value) -> Value:
        """left symbol right; '+=' and the like store into an array on the left."""
        return operators.binary_op(b, symbol, left, right)

    def unary_op(self, b: Builder, symbol: str, x: Value) -> Value:
        """'-', '+', '~', 'abs'"""
        return operators.unary_op(b, symbol, x)

    def compare(self, b: Builder, symbol: str, left: Value, right: Value) -> Value:
        """An elementwise comparison."""
        return operators.compare(b, symbol, left, right)

    def getitem(self, b: Builder, array: ArrayValue, index: Value) -> Value:
        """array[index]"""
        return indexing.getitem(b, array, index)

    def setitem(self, b: Builder, array: ArrayValue, index: Value, value: Value) -> None:
        """array[index] = value"""
        indexing.setitem(b, array, index, value)

    def length(self, b: Builder, array: ArrayValue) -> Value:
        """len(array)"""
        return b.dim(array, 0)


LIBRARY: Final = NumpyLibrary()


# -- attributes -------------------------------------------------------------------------------------------------------


def _attribute(rule: Callable[[Builder, ArrayValue], Value]) -> Rule:
    def call(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        return rule(b, array_argument(args[0]))

    return call


def _shape(b: Builder, array: ArrayValue) -> Value:
    return TupleValue(tuple(b.dim(array, axis) for axis in range(array.ndim)))


def _nbytes(b: Builder, array: ArrayValue) -> Value:
    return b.arith("imul", b.size(array), b.index(ITEMSIZE[array.dtype]))


_ATTRIBUTES: Final[dict[str, Rule]] = {
    "T": views.transpose_attribute,
    "mT": views.matrix_transpose_attribute,
    "real": views.real_attribute,
    "imag": views.imag_attribute,
    "shape": _attribute(_shape),
    "size": _attribute(lambda b, array: b.size(array)),
    "nbytes": _attribute(_nbytes),
    "ndim": _attribute(lambda b, array: ConstValue(array.ndim)),
    "itemsize": _attribute(lambda b, array: ConstValue(ITEMSIZE[array.dtype])),
    "dtype": _attribute(lambda b, array: ConstValue(DTYPE[array.dtype])),
}


# -- functions and methods --------------------------------------------------------------------------------------------


@signature("a")
def _shape_function(b: Builder, bound: Bound) -> Value:
    return _shape(b, array_argument(bound["a"]))


@signature("a")
def _ndim_function(b: Builder, bound: Bound) -> Value:
    return ConstValue(array_argument(bound["a"]).ndim)


@signature("a, /")
def _at_least_1d(b: Builder, bound: Bound) -> Value:
    return array_argument(bound["a"])


@signature("a, out=")
def _conjugate_method(b: Builder, bound: Bound) -> Value:
    """a.conj(): the array itself if it is real (calculation.c, PyArray_Conjugate)."""
    require_absent(bound, "out")
    array = array_argument(bound["a"])
    if KIND[array.dtype] == "b":
        raise NoRule("the conjugate of bools")
    return apply(b, np.conjugate, (operand(array),)) if KIND[array.dtype] == "c" else array


@signature("a, axis=")
def _size_function(b: Builder, bound: Bound) -> Value:
    array, axis = array_argument(bound["a"]), bound["axis"]
    if axis is None:
        return b.size(array)
    where = b.concrete(axis)
    if not -array.ndim <= where < array.ndim:
        raise NoRule("an axis out of bounds")
    return b.dim(array, where % array.ndim)


_METHODS: Final[dict[str, Rule]] = {
    "all": reductions.all_rule,
    "any": reductions.any_rule,
    "astype": creation.astype,
    "clip": selection.clip_method,
    "conj": _conjugate_method,
    "conjugate": _conjugate_method,
    "copy": creation.copy_method,
    "fill": creation.fill_method,
    "flatten": views.flatten,
    "max": reductions.max_rule,
    "mean": reductions.mean_rule,
    "min": reductions.min_rule,
    "prod": reductions.prod_rule,
    "ravel": views.ravel,
    "reshape": views.reshape_method,
    "round": selection.round_rule,
    "squeeze": views.squeeze,
    "std": reductions.std_rule,
    "sum": reductions.sum_rule,
    "swapaxes": views.swapaxes,
    "transpose": views.transpose_method,
    "var": reductions.var_rule,
}

_BY_NAME: Final[dict[str, Rule]] = {
    "all": reductions.all_rule,
    "amax": reductions.max_rule,
    "amin": reductions.min_rule,
    "any": reductions.any_rule,
    "around": selection.round_rule,
    "array": creation.array_function,
    "asanyarray": creation.asarray,
    "asarray": creation.asarray,
    "ascontiguousarray": creation.ascontiguousarray,
    "atleast_1d": _at_least_1d,
    "astype": creation.astype_function,
    "broadcast_to": views.broadcast_to,
    "clip": selection.clip_function,
    "copy": creation.copy_function,
    "copyto": creation.copyto,
    "diff": selection.diff,
    "empty": creation.empty,
    "empty_like": creation.empty_like,
    "expand_dims": views.expand_dims,
    "flip": views.flip,
    "fliplr": views.fliplr,
    "flipud": views.flipud,
    "full": creation.full,
    "full_like": creation.full_like,
    "imag": views.imag_function,
    "max": reductions.max_rule,
    "mean": reductions.mean_rule,
    "min": reductions.min_rule,
    "moveaxis": views.moveaxis,
    "ndarray": creation.ndarray_type,
    "ndim": _ndim_function,
    "ones": creation.ones,
    "ones_like": creation.ones_like,
    "outer": selection.outer,
    "permute_dims": views.transpose_function,
    "prod": reductions.prod_rule,
    "ptp": reductions.ptp,
    "putmask": creation.putmask,
    "ravel": views.ravel,
    "real": views.real_function,
    "reshape": views.reshape_function,
    "rollaxis": views.rollaxis,
    "round": selection.round_rule,
    "shape": _shape_function,
    "size": _size_function,
    "squeeze": views.squeeze,
    "std": reductions.std_rule,
    "sum": reductions.sum_rule,
    "swapaxes": views.swapaxes,
    "transpose": views.transpose_function,
    "var": reductions.var_rule,
    "where": selection.where,
    "zeros": creation.zeros,
    "zeros_like": creation.zeros_like,
}


def _constructor(code: str) -> Rule:
    """np.float64(x) and the like."""

    @signature("x, /")
    def rule(b: Builder, bound: Bound) -> Value:
        value = bound["x"]
        assert value is not None
        op = operand(value)
        if op.array is not None:
            raise NoRule("a scalar type called with an array")
        return scalars.converted(b, op, code)

    return rule


def _function_table() -> dict[int, tuple[Any, Rule]]:
    """By identity. The functions are held, so no other object can get one's id; what a user puts in place of one is not found."""
    table = {id(function): (function, rule) for name, rule in _BY_NAME.items() if (function := getattr(np, name, None)) is not None}
    return table | {id(kind): (kind, _constructor(code)) for kind, code in SCALAR_CODE.items()}


def _ufunc_table() -> dict[np.ufunc, Rule]:
    found = {obj for module in (np, umath) for obj in vars(module).values() if type(obj) is np.ufunc}
    return {ufunc: ufunc_rule(ufunc) for ufunc in found if supported(ufunc)}


_FUNCTIONS: Final = _function_table()
_UFUNCS: Final = _ufunc_table()
