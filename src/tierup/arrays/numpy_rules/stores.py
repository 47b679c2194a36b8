"""Writes into arrays: what may be stored, and the `store` node."""

from __future__ import annotations

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.dtypes import can_astype, same_kind
from tierup.arrays.values import ArrayValue
from tierup.graph.ir import NOTHING, Node
from tierup.graph.loops import follows_strides

_VIEWS = frozenset({"slice", "index", "newaxis", "transpose", "reshape", "broadcast", "real", "imag"})


def require_writeable(target: ArrayValue) -> None:
    """NoRule for a read-only target (NumPy raises ValueError)."""
    if not target.writeable:
        raise NoRule("a read-only array as the target")


def store_same_kind(b: Builder, target: ArrayValue, value: ArrayValue) -> None:
    """Store a ufunc's fresh result into its output operand, with the ufunc's casting rule."""
    require_writeable(target)
    if depends_on_output(value.node):
        raise NoRule("a product of complex numbers, whose bits depend on where it is put")
    if value.dtype != target.dtype:
        if not same_kind(value.dtype, target.dtype):
            raise NoRule("the output's dtype cannot take the result")
        value = astype(b, value, target.dtype)
    if value.ndim > target.ndim:
        raise NoRule("an output operand of lower rank than the result")
    secure_broadcast(b, target, value)
    b.node("store", (target.node, value.node), NOTHING)


def store(b: Builder, target: ArrayValue, value: Node) -> None:
    """Store an array of the same dtype, or a number, into all of a target."""
    b.node("store", (target.node, value), NOTHING).elements = target.size


def depends_on_output(node: Node) -> bool:
    """Whether an operation's bits depend on the memory that its result is written to: NumPy's products of complex numbers fuse a
    multiplication only for some strides, and not where an operand is the output."""
    return node.op == "ufunc" and node.attrs["name"] != "power" and follows_strides(str(node.attrs["name"]), str(node.attrs["loop"]))


def astype(b: Builder, value: ArrayValue, code: str) -> ArrayValue:
    """A fresh array of another dtype, in K order."""
    if not can_astype(value.dtype, code):
        raise NoRule(f"a cast from {value.dtype} to {code}")
    return b.array("astype", (value.node,), code, value.shape, ccontig=value.ordered, dtype=code)


def truth(b: Builder, array: ArrayValue) -> ArrayValue:
    """The array as bools."""
    return array if array.dtype == "b1" else astype(b, array, "b1")


def copy(b: Builder, value: ArrayValue, order: str = "K") -> ArrayValue:
    """A fresh copy."""
    return b.array("copy", (value.node,), value.dtype, value.shape, ccontig=order == "C" or value.ordered, order=order)


def secure_broadcast(b: Builder, target: ArrayValue, value: ArrayValue) -> None:
    """Check that value, of no higher rank, broadcasts to the target's shape."""
    for back in range(1, value.ndim + 1):
        have, want = b.dim(value, value.ndim - back), b.dim(target, target.ndim - back)
        if have.hint == want.hint:
            b.check("eq", have, want)
        elif have.hint == 1:
            b.check("eq", have, b.index(1))
        else:
            raise NoRule("a value that does not broadcast to the target")


def same_view(left: Node, right: Node) -> bool:
    """Whether two nodes describe the same elements in the same way."""
    if left is right:
        return True
    if left.op != right.op or left.op not in _VIEWS or left.attrs != right.attrs or len(left.args) != len(right.args):
        return False
    return all(same_view(x, y) for x, y in zip(left.args, right.args, strict=True))
