"""Elementwise statements on slices inside loops (`c[i, :] += x * a[j, 1:]`), as loops of our own.

An expression is kept as a tree until it is stored, and computed into scratch memory first: it may read what the store overwrites, and
NumPy's warnings must be known before anything is stored. Sums, differences and products carry an infinity or NaN on to the result, so only
that and denominators are looked at. What does not fit into the scratch leaves the loop: it is worth a kernel of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tierup.loops import memory, numbers
from tierup.loops.values import ITEMSIZE, Refused, Value, llvm_type, memory_type

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

SCRATCH_BYTES: Final = 1 << 17
_LONG: Final = 1 << 13
"""Elements from which on a statement is better off as a kernel, which may use threads."""
_SCRATCH: Final = np.empty(SCRATCH_BYTES // 8 + 8)
"""Used between two bytecodes under the GIL: one for all."""
_MAX_RANK: Final = 3
_FLOAT: Final = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INTEGER: Final = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
Tree = Any
"""('leaf', number) or ('op', symbol, operand, …)."""


def scratch(t: Tracer) -> str:
    """Address of the scratch memory."""
    return t.entry.pointer(_SCRATCH.ctypes.data + (-_SCRATCH.ctypes.data % 64))


# ---- building ------------------------------------------------------------------------------------------------------


def is_vector(value: Value) -> bool:
    return value.kind in ("array", "vector")


def _parts(value: Value) -> tuple[Tree, tuple[Value, ...]]:
    """Tree and leaves."""
    if value.kind == "vector":
        assert isinstance(value.detail, tuple)
        return value.detail[1], value.items
    return ("leaf", 0), (value,)


def _shifted(tree: Tree, by: int) -> Tree:
    if tree[0] == "leaf":
        return ("leaf", tree[1] + by)
    return (*tree[:2], *(_shifted(operand, by) for operand in tree[2:]))


def _dtype(t: Tracer, value: Value) -> str:
    if value.kind == "vector":
        return str(value.detail[0])  # type: ignore[index]
    if value.kind == "array":
        return memory.geometry(t, value).dtype
    return value.dtype if value.kind == "numpy" else ""


def _sample(t: Tracer, value: Value) -> Any:
    dtype = _dtype(t, value)
    if is_vector(value):
        return np.ones(1, dtype)
    return np.dtype(dtype).type(1) if dtype else {"int": 1, "float": 1.0, "bool": True}[value.kind]


def binary(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right, not computed yet."""
    left, right = (v if is_vector(v) else numbers.number(v) for v in (left, right))
    for value in (left, right):
        if not is_vector(value) and value.kind not in ("int", "float", "bool", "numpy"):
            raise Refused(f"{symbol} on an array and a {value.kind}")
    try:
        found = numbers.OPERATORS[symbol](_sample(t, left), _sample(t, right)).dtype
    except (KeyError, TypeError) as error:
        raise Refused(f"{symbol} on arrays") from error
    dtype = f"{found.kind}{found.itemsize}"
    if dtype not in ITEMSIZE or symbol not in (_FLOAT if found.kind == "f" else _INTEGER):
        raise Refused(f"{symbol} on arrays of {found}")
    for value in (left, right):
        if is_vector(value) and _dtype(t, value) != dtype:
            raise Refused(f"{symbol} on arrays of different types")
    tree, leaves = _parts(left)
    other, more = _parts(right)
    return Value("vector", (dtype, ("op", symbol, tree, _shifted(other, len(leaves)))), (), (*leaves, *more))


def negative(t: Tracer, value: Value) -> Value:
    """-value, not computed yet."""
    dtype = _dtype(t, value)
    if dtype not in ("f8", "f4"):
        raise Refused(f"- on arrays of {dtype}")
    tree, leaves = _parts(value)
    return Value("vector", (dtype, ("op", "neg", tree)), (), leaves)


# ---- storing -------------------------------------------------------------------------------------------------------


def assign(t: Tracer, target: Value, value: Value) -> None:
    """target[...] = value. Leaves before anything is stored if shapes differ, something is not finite or it is too much."""
    t.settle()
    g = memory.geometry(t, target)
    if not g.entry.writeable:
        raise Refused("a store into a read-only array")
    if math.prod(g.entry.seen[len(g.entry.seen) - g.ndim :]) > _LONG:
        raise Refused("a statement on long arrays, which gets a kernel of its own")
    t.entry.limit(g.entry, g.ndim, SCRATCH_BYTES // 8)
    if g.ndim > _MAX_RANK or g.dtype == "b1":
        raise Refused("a store into a part of an array with many axes, or of bools")
    if is_vector(value):
        if _dtype(t, value) != g.dtype:
            raise Refused("a store into an array of another type")
        tree, leaves = _parts(value)
        _Assignment(t, g, tree, leaves).run(same=value if value.kind == "array" else None)
    else:
        element = memory.converted(t, numbers.number(value), g.dtype)
        _Assignment(t, g, ("element",), ()).run(element=element)


class _Assignment:
    def __init__(self, t: Tracer, target: memory.Geometry, tree: Tree, leaves: Sequence[Value]) -> None:
        self.t = t
        self.target = target
        self.tree = tree
        self.arrays: dict[int, memory.Geometry] = {}
        self.scalars: dict[int, str] = {}
        self.bad: list[str] = []
        for k, leaf in enumerate(leaves):
            if leaf.kind == "array":
                self.arrays[k] = memory.geometry(t, leaf)
            elif leaf.kind == "numpy":
                self.scalars[k] = numbers.element_as(t, leaf, target.dtype) if _safe(leaf.dtype, target.dtype) else _refuse(leaf)
            else:
                self.scalars[k] = numbers.python_as(t, leaf, target.dtype)

    def run(self, same: Value | None = None, element: str = "") -> None:
        t, let = self.t, self.t.fn.let
        self._check_shapes()
        self._check_apart()
        count = "1"
        for length in self.target.shape:
            count = let(f"mul i64 {count}, {length}")
        if not element:
            t.require(let(f"icmp ule i64 {count}, {SCRATCH_BYTES // ITEMSIZE[self.target.dtype]}"))
        if element:
            self._loops(lambda at, k: memory.store(t, self.target.dtype, at(self.target), element))
        elif same is not None:
            self._copied()
        else:
            self._computed()
        t.effect()

    # -- conditions --------------------------------------------------------------------------------------------------

    def _check_shapes(self) -> None:
        for g in self.arrays.values():
            if g.ndim > self.target.ndim:
                raise Refused("an array with more axes than what it is stored into")
            for mine, theirs in zip(reversed(g.shape), reversed(self.target.shape), strict=False):
                if mine != theirs:
                    self.t.require(self.t.fn.let(f"icmp eq i64 {mine}, {theirs}"))

    def _check_apart(self) -> None:
        """No element of the target twice: the order of writes would matter."""
        let, g = self.t.fn.let, self.target
        reach = str(ITEMSIZE[g.dtype])
        for length, stride in zip(reversed(g.shape), reversed(g.strides), strict=True):
            size = self.t.fn.call("i64", "llvm.abs.i64", ("i64", stride), ("i1", "false"))
            apart = let(f"icmp uge i64 {size}, {reach}")
            self.t.require(let(f"or i1 {apart}, {let(f'icmp sle i64 {length}, 1')}"))
            reach = let(f"mul i64 {size}, {length}")

    # -- loops -------------------------------------------------------------------------------------------------------

    def _copied(self) -> None:
        """An array stored into itself (what `a[i] += x` ends with) needs nothing."""
        let, g = self.t.fn.let, self.arrays[0]
        equal = let(f"icmp eq ptr {g.address}, {self.target.address}")
        for a, b in zip(g.strides, self.target.strides[self.target.ndim - g.ndim :], strict=True):
            equal = let(f"and i1 {equal}, {let(f'icmp eq i64 {a}, {b}')}")
        if g.ndim < self.target.ndim:
            equal = "false"
        copy, after = self.t.fn.label("copy"), self.t.fn.label("copied")
        self.t.fn.line(f"br i1 {equal}, label %{after}, label %{copy}")
        self.t.fn.begin(copy)
        self._computed()
        self.t.fn.line(f"br label %{after}")
        self.t.fn.begin(after)

    def _computed(self) -> None:
        t, fn = self.t, self.t.fn
        room = scratch(t)
        flag = fn.local("bad", "i64", 8)
        fn.lower(flag)
        size, type_ = ITEMSIZE[self.target.dtype], memory_type(self.target.dtype)

        def compute(at: Callable[[memory.Geometry], str], k: str) -> None:
            self.bad = []
            result = self._value(self.tree, at)
            if self.target.dtype[0] == "f" and self.tree[0] == "op":
                self.bad.append(result)
            fn.line(f"store {type_} {result}, ptr {fn.let(f'getelementptr {type_}, ptr {room}, i64 {k}')}, align {size}")
            for name in self.bad:
                fn.raise_if(flag, fn.let(f"xor i1 {numbers.is_finite(t, name, type_)}, true"))

        self._loops(compute)
        if self.target.dtype[0] == "f" and self.tree[0] == "op":
            t.needs_underflow_ignored = True
            t.require(fn.is_lowered(flag))

        def copy(at: Callable[[memory.Geometry], str], k: str) -> None:
            place = fn.let(f"getelementptr {type_}, ptr {room}, i64 {k}")
            fn.line(f"store {type_} {fn.let(f'load {type_}, ptr {place}, align {size}')}, ptr {at(self.target)}, align {size}")

        self._loops(copy)

    def _value(self, tree: Tree, at: Callable[[memory.Geometry], str]) -> str:
        t, dtype = self.t, self.target.dtype
        if tree[0] == "leaf":
            if tree[1] in self.scalars:
                return self.scalars[tree[1]]
            return t.fn.let(f"load {memory_type(dtype)}, ptr {at(self.arrays[tree[1]])}, align {ITEMSIZE[dtype]}")
        symbol, operands = tree[1], [self._value(operand, at) for operand in tree[2:]]
        type_ = llvm_type(dtype)
        if symbol == "neg":
            return t.fn.let(f"fneg {type_} {operands[0]}")
        if symbol == "/" and tree[3][0] == "op":
            self.bad.append(operands[1])
        table = _FLOAT if dtype[0] == "f" else _INTEGER
        return t.fn.let(f"{table[symbol]} {type_} {operands[0]}, {operands[1]}")

    def _loops(self, body: Callable[[Callable[[memory.Geometry], str], str], None]) -> None:
        """The nest over the target's axes, twice: for elements that are neighbours along the last axis, and for all others."""
        fn = self.t.fn
        everything = [self.target, *self.arrays.values()]
        size = str(ITEMSIZE[self.target.dtype])
        known = all(g.strides[-1] == size for g in everything)
        if known:
            self._nest(body, size)
            return
        close = "true"
        for g in everything:
            close = fn.let(f"and i1 {close}, {fn.let(f'icmp eq i64 {g.strides[-1]}, {size}')}")
        labels = [fn.label(stem) for stem in ("close", "spread", "stored")]
        fn.line(f"br i1 {close}, label %{labels[0]}, label %{labels[1]}")
        for label, last in zip(labels, (size, ""), strict=False):
            fn.begin(label)
            self._nest(body, last)
            fn.line(f"br label %{labels[2]}")
        fn.begin(labels[2])

    def _nest(self, body: Callable[[Callable[[memory.Geometry], str], str], None], last: str, counters: tuple[str, ...] = ()) -> None:
        """The loops inside those of `counters`. last: the stride along the last axis if it is known to be that for all.

        Not a function inside a function: one that calls itself refers to itself, and would keep the tracer, and with it the
        frame's values, until the next garbage collection. A loop that is entered before sees those references, and leaves."""
        shape = self.target.shape
        if len(counters) < len(shape):
            length = shape[len(counters)]
            self.t.fn.counted(length, lambda counter: self._nest(body, last, (*counters, counter)), vectors=bool(last))
            return
        let = self.t.fn.let
        linear = counters[0]
        for counter, length in zip(counters[1:], shape[1:], strict=True):
            linear = let(f"add i64 {let(f'mul i64 {linear}, {length}')}, {counter}")
        body(lambda g: self._address(g, counters, last), linear)

    def _address(self, g: memory.Geometry, counters: tuple[str, ...], last: str) -> str:
        let, address = self.t.fn.let, g.address
        mine = counters[len(counters) - g.ndim :]
        for k, (counter, stride) in enumerate(zip(mine, g.strides, strict=True)):
            step = last if last and k == g.ndim - 1 else stride
            address = let(f"getelementptr i8, ptr {address}, i64 {let(f'mul i64 {counter}, {step}')}")
        return address


def _safe(have: str, want: str) -> bool:
    return have == want or have[0] in "iub" or (have == "f4" and want == "f8")


def _refuse(leaf: Value) -> str:
    raise Refused(f"a {leaf.dtype} scalar among others")
