"""Graph → plan program: scheduling, instruction selection, register allocation.

Order of a plan: everything cheap that may leave the region as early as its operands exist, kernels and allocations in program order,
the test of the floating-point flags, boxing, and at last the stores. Nothing that can fail stands behind the first store.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tierup import _core
from tierup.graph.ir import ArrayType, Graph, Node, ScalarType
from tierup.graph.spec import keep_alive, raises_flags
from tierup.native.fuse import Bound, Group, bind, fuse
from tierup.native.kernels import Target
from tierup.native.loops import reduction_identity
from tierup.native.program import FusedRequest, Instr, LoopRequest, Program, Reg, Request, allocate
from tierup.native.shapes import ELEMENTWISE, Dim, Shapes


class LowerError(Exception):
    """This graph cannot be compiled; the message says why."""


def lower(graph: Graph, exprs: Mapping[Any, int], target: Target) -> Program:
    """Raises LowerError where the graph asks for something the plan cannot do."""
    return _Lowering(graph, exprs, target).run()


_CHEAP, _HEAVY = 0, 1
_HEAVY_OPS: Final = frozenset(("empty", "zeros", "full", "empty_like", "zeros_like", "copy", "reduce"))
_BOXES: Final = frozenset(("box", "tuple", "list", "dict", "slice_object", "method", "shape"))


class _Lowering:
    def __init__(self, graph: Graph, exprs: Mapping[Any, int], target: Target) -> None:
        self.graph = graph
        self.exprs = exprs
        self.target = target
        self.shapes = Shapes(graph)
        self.program = Program()
        self.code: list[Instr] = []
        self.reg: dict[Node, Reg] = {}
        self._counts = {"o": 0, "s": 0, "a": 0}
        self._literals: dict[tuple[str, bytes], Reg] = {}
        self._dims: dict[Dim, Reg] = {}
        self._casts: dict[tuple[Reg, str], Reg] = {}
        self._image: dict[Reg, bytes] = {}
        self._flags = False
        self._constants: dict[int, int] = {}
        self.straight = _stored_straight(graph)

    def run(self) -> Program:
        self.needed = self._needed()
        groups = fuse(self.graph, self.shapes, self.needed, self._inputs)
        self.group_of = {n: g for g in groups for n in g.nodes}
        stores: list[Node] = []
        boxes: list[Node] = []
        for item in self._schedule(groups):
            if isinstance(item, Group):
                self._kernel(bind(item, self.target))
            elif item.op == "store":
                stores.append(item)
            elif item.op in _BOXES:
                boxes.append(item)
            else:
                self._node(item)
        stores.sort(key=lambda s: s.id)  # the schedule knows nothing of memory that two of them share
        targets = [self._storable(s) for s in stores]
        if self._flags:
            self.emit("FLAGS")
        for box in boxes:
            self._node(box)
        for target, value in targets:
            self.emit("STORE", target, value)
        self._exit()
        allocate(self.program, self.code, self._image, self._counts)
        return self.program

    # -- what is needed, and in which order --------------------------------------------------------------------------

    def _needed(self) -> set[Node]:
        """Nodes that the exit, an effect, a flag or a check needs. `dim`s of intermediates lead to where the number really comes from."""
        work = [*self.graph.exit_values(), *(n for n in self.graph.nodes if keep_alive(n) and n not in self.shapes.trivial)]
        needed: set[Node] = set()
        while work:
            node = work.pop()
            if node not in needed:
                needed.add(node)
                work += self._inputs(node)
        return needed

    def _inputs(self, node: Node) -> tuple[Node, ...]:
        if node.op == "shape" and node.args[0].op in ELEMENTWISE:
            # The shape of an intermediate does not need the intermediate.
            dims = self.shapes.of(node.args[0])
            return tuple(d[1] for d in dims if isinstance(d[1], Node))
        inputs = self.shapes.inputs(node)
        return (*inputs, self.straight[node]) if node in self.straight else inputs

    def _schedule(self, groups: list[Group]) -> list[Node | Group]:
        """Topological order of units; of those that are ready, cheap ones before kernels and allocations."""
        items: list[Node | Group] = [*groups, *(n for n in self.graph.nodes if n in self.needed and n not in self.group_of)]
        position = {self._key(i): (i.nodes[-1].id if isinstance(i, Group) else i.id) for i in items}
        waiting: dict[int, int] = {}
        users: dict[int, list[Node | Group]] = {}
        for item in items:
            sources = {self._key(self.group_of.get(a, a)) for a in self._item_inputs(item)} - {self._key(item)}
            waiting[self._key(item)] = len(sources)
            for s in sources:
                users.setdefault(s, []).append(item)
        heap = [(*self._rank(i, position), i) for i in items if not waiting[self._key(i)]]
        heapq.heapify(heap)
        order: list[Node | Group] = []
        while heap:
            item = heapq.heappop(heap)[-1]
            order.append(item)
            for user in users.get(self._key(item), ()):
                waiting[self._key(user)] -= 1
                if not waiting[self._key(user)]:
                    heapq.heappush(heap, (*self._rank(user, position), user))
        if len(order) != len(items):
            raise LowerError("the graph's operations depend on each other in a circle")
        return order

    @staticmethod
    def _key(item: Node | Group) -> int:
        return id(item)

    def _rank(self, item: Node | Group, position: dict[int, int]) -> tuple[int, int, int]:
        heavy = isinstance(item, Group) or item.op in _HEAVY_OPS
        return (_HEAVY if heavy else _CHEAP, position[self._key(item)], self._key(item))

    def _item_inputs(self, item: Node | Group) -> list[Node]:
        nodes = item.nodes if isinstance(item, Group) else [item]
        return [a for n in nodes for a in self._inputs(n)]

    # -- emission ------------------------------------------------------------------------------------------------------

    def emit(self, op: str, *operands: Reg | int) -> None:
        self.code.append(Instr(op, list(operands)))

    def new(self, kind: str) -> Reg:
        self._counts[kind] += 1
        return Reg(kind, self._counts[kind] - 1)

    def define(self, node: Node, kind: str) -> Reg:
        self.reg[node] = self.new(kind)
        return self.reg[node]

    def literal(self, value: object, dtype: str) -> Reg:
        """A slot that holds a number from the start."""
        raw = np.dtype(dtype).type(value).tobytes()
        key = (dtype, raw)
        if key not in self._literals:
            reg = self._literals[key] = self.new("s")
            self._image[reg] = raw
        return self._literals[key]

    def slot(self, node: Node) -> Reg:
        """The slot of a scalar node."""
        if node.op == "literal":
            assert isinstance(node.type, ScalarType)
            return self.literal(node.attrs["value"], node.type.dtype)
        if node in self.shapes.value and node not in self.reg:
            self.reg[node] = self.dim(self.shapes.value[node], node)
        return self.reg[node]

    def dim(self, d: Dim, node: Node | None = None) -> Reg:
        """The slot of a dimension."""
        kind, what, axis = d
        if kind == "number":
            return self.literal(what, "i8")
        assert isinstance(what, Node)
        if kind == "scalar" and what is not node:
            return self.slot(what)
        if d not in self._dims:
            self._dims[d] = self.new("s")
            if kind == "axis":
                self.emit("I_DIM", self._dims[d], self.reg[what], axis)
            else:
                self.emit("I_SIZE", self._dims[d], self.reg[what.args[0]])
        return self._dims[d]

    def scalar_as(self, node: Node, dtype: str) -> Reg:
        """The slot of a scalar converted to a loop's type."""
        assert isinstance(node.type, ScalarType)
        if node.type.dtype == dtype:
            return self.slot(node)
        if node.op == "literal" and _converts(node.attrs["value"], dtype):
            return self.literal(node.attrs["value"], dtype)
        source = self.slot(node)
        key = (source, dtype)
        if key not in self._casts:
            self._casts[key] = self.new("s")
            self.emit("S_CAST", self._casts[key], type_number(dtype), source, type_number(node.type.dtype))
            self._flags |= dtype in ("f4", "c8")
        return self._casts[key]

    def _node(self, node: Node) -> None:
        emitter = _EMITTERS.get(node.op)
        if emitter is None:
            raise LowerError(f"operation {node.op!r} has no plan instruction")
        # The core takes every reduction for one that may raise flags: it does not know the loops.
        self._flags |= raises_flags(node) or node.op == "reduce"
        emitter(self, node)

    # -- kernels ---------------------------------------------------------------------------------------------------------

    def _kernel(self, bound: Bound) -> None:
        self._flags |= any(op.raises for op in bound.spec.ops)
        scalars = [self.scalar_as(n, d) for n, d in bound.scalars]
        single = self._single_loop(bound)
        if single is not None:
            self._loop_kernel(bound, single)
            return
        if not bound.inputs:
            raise LowerError("a kernel without array inputs")
        operands = [self.reg[n] for n in bound.inputs] + scalars
        self._launch(FusedRequest(bound), operands, bound.outputs)

    @staticmethod
    def _single_loop(bound: Bound) -> tuple[str, str] | None:
        """(ufunc, loop) if the kernel is nothing but one of NumPy's loops: then nothing needs compiling, and it is as fast."""
        op = bound.spec.ops[0]
        return (op.name, op.loop) if len(bound.spec.ops) == 1 and op.loop else None

    def _loop_kernel(self, bound: Bound, single: tuple[str, str]) -> None:
        """NumPy's loop takes its operands in order: a scalar before an array becomes a zero-dimensional array."""
        op = bound.spec.ops[0]
        last_array = max(k for k, r in enumerate(op.operands) if r.kind == "a")
        arrays: list[Reg] = []
        scalars: list[Reg] = []
        for k, r in enumerate(op.operands):
            if r.kind == "a":
                arrays.append(self.reg[bound.inputs[r.index]])
                continue
            slot = self.scalar_as(*bound.scalars[r.index])
            if k > last_array:
                scalars.append(slot)
            else:
                arrays.append(self.new("a"))
                self.emit("A_SCALAR", arrays[-1], slot, type_number(op.ins[k]))
        split = last_array + 1
        request = LoopRequest(*single, op.ins[:split], op.ins[split:], op.out)
        self._launch(request, [*arrays, *scalars], bound.outputs)

    def _launch(self, request: Request, operands: list[Reg], outputs: Sequence[Node]) -> None:
        regs = [*operands, *(self.define(n, "a") for n in outputs)]
        self.emit("KERNEL", self.kernel(request), len(regs), *regs)

    def kernel(self, request: Request) -> int:
        """Index of a kernel; equal requests share one."""
        for k, known in enumerate(self.program.kernels):
            if known == request or _same_code(known, request):
                return k
        self.program.kernels.append(request)
        return len(self.program.kernels) - 1

    # -- the end ---------------------------------------------------------------------------------------------------------

    def _storable(self, node: Node) -> tuple[Reg, Reg]:
        target, value = node.args
        source = self.reg.get(value)
        if isinstance(value.type, ScalarType):
            source = self.new("a")
            self.emit("A_SCALAR", source, self.slot(value), type_number(value.type.dtype))
        assert source is not None
        self.emit("C_STORABLE", self.reg[target], source)
        return self.reg[target], source

    def _exit(self) -> None:
        kinds = {"local": _core.EXIT_LOCAL, "stack": _core.EXIT_STACK, "cell": _core.EXIT_CELL, "name": _core.EXIT_NAME}
        for slot in self.graph.exit:
            index = slot.index if isinstance(slot.index, int) else self.constant(slot.index)
            self.program.exit.append((kinds[slot.kind], index, -1 if slot.value is None else self.reg[slot.value].number))

    def constant(self, value: object) -> int:
        """Index of a constant, by identity."""
        if id(value) not in self._constants:
            self._constants[id(value)] = len(self.program.constants)
            self.program.constants.append(value)
        return self._constants[id(value)]


def _stored_straight(graph: Graph) -> dict[Node, Node]:
    """A copy whose elements can be stored from where they are, with the target: it is for one store only, before which nothing else is
    stored."""
    first = next((n for n in graph.nodes if n.op == "store"), None)
    if first is None:
        return {}
    target, value = first.args
    straight = value.op == "copy" and value.attrs["order"] == "K" and graph.users()[value] == [first] and value not in graph.exit_values()
    return {value: target} if straight else {}


def _same_code(a: Request, b: Request) -> bool:
    return isinstance(a, FusedRequest) and isinstance(b, FusedRequest) and a.bound.spec == b.bound.spec


def _converts(value: object, dtype: str) -> bool:
    """Whether a number becomes one of `dtype` without overflow or a flag; else the conversion is left to the run, each time."""
    try:
        with np.errstate(all="raise"):
            np.dtype(dtype).type(value)
    except (OverflowError, FloatingPointError):
        return False
    return True


def type_number(dtype: str) -> int:
    return np.dtype(dtype).num


# -- one emitter per operation ---------------------------------------------------------------------------------------------

_Emit = Callable[[_Lowering, Node], None]


def _object(lo: _Lowering, n: Node) -> None:
    key = n.attrs["expr"]
    assert isinstance(key, Hashable)
    if key not in lo.exprs:
        raise LowerError(f"no guard expression for source {key}")
    lo.emit("O_EXPR", lo.define(n, "o"), lo.exprs[key])


def _constant(lo: _Lowering, n: Node) -> None:
    lo.emit("O_CONST", lo.define(n, "o"), lo.constant(n.attrs["value"]))


def _unbox(lo: _Lowering, n: Node) -> None:
    assert isinstance(n.type, ScalarType)
    source = lo.reg[n.args[0]]
    if n.type.box == "numpy":
        lo.emit("S_NUMPY", lo.define(n, "s"), source, type_number(n.type.dtype))
        return
    op = {"i8": "S_INT", "f8": "S_FLOAT", "b1": "S_BOOL", "c16": "S_COMPLEX"}.get(n.type.dtype)
    if op is None:
        raise LowerError(f"unbox to {n.type}")
    lo.emit(op, lo.define(n, "s"), source)


def _nothing(lo: _Lowering, n: Node) -> None:
    """Made on demand: literals, dims."""


def _cast(lo: _Lowering, n: Node) -> None:
    assert isinstance(n.type, ScalarType)
    lo.reg[n] = lo.scalar_as(n.args[0], n.type.dtype)


def _scalar_op(op: str) -> _Emit:
    def emit(lo: _Lowering, n: Node) -> None:
        args = [lo.slot(a) for a in n.args]
        lo.emit(op, lo.define(n, "s"), *args)

    return emit


_COMPARISONS: Final = {"lt": 0, "le": 1, "eq": 2, "ne": 3, "gt": 4, "ge": 5}


def _comparison(op: str) -> _Emit:
    def emit(lo: _Lowering, n: Node) -> None:
        args = [lo.slot(a) for a in n.args]
        lo.emit(op, lo.define(n, "s"), *args, _COMPARISONS[str(n.attrs["cond"])])

    return emit


def _check(lo: _Lowering, n: Node) -> None:
    a, b = n.args
    assert isinstance(a.type, ScalarType)
    prefix = "C_D" if a.type.dtype == "f8" else "C_"
    cond = str(n.attrs["cond"]).upper()
    if f"{prefix}{cond}" not in _core.PLAN_OPS:
        raise LowerError(f"check {cond} on {a.type}")
    lo.emit(prefix + cond, lo.slot(a), lo.slot(b))


def _check_truth(op: str) -> _Emit:
    return lambda lo, n: lo.emit(op, lo.slot(n.args[0]))


def _check_regs(op: str) -> _Emit:
    return lambda lo, n: lo.emit(op, *(lo.reg[a] for a in n.args))


def _array(lo: _Lowering, n: Node) -> None:
    lo.emit("A_OBJ", lo.define(n, "a"), lo.reg[n.args[0]])


def _slice(lo: _Lowering, n: Node) -> None:
    given = n.attrs["given"]
    assert isinstance(given, tuple)
    values = iter(n.args[1:])
    absent = lo.literal(0, "i8")
    slots = [lo.slot(next(values)) if g else absent for g in given]
    bits = sum(1 << k for k, g in enumerate(given) if g)
    lo.emit("A_SLICE", lo.define(n, "a"), lo.reg[n.args[0]], _attr(n, "axis"), bits, *slots)


def _index(lo: _Lowering, n: Node) -> None:
    lo.emit("A_INDEX", lo.define(n, "a"), lo.reg[n.args[0]], _attr(n, "axis"), lo.slot(n.args[1]))


def _newaxis(lo: _Lowering, n: Node) -> None:
    lo.emit("A_NEWAXIS", lo.define(n, "a"), lo.reg[n.args[0]], _attr(n, "axis"))


def _transpose(lo: _Lowering, n: Node) -> None:
    perm = n.attrs["perm"]
    assert isinstance(perm, tuple)
    lo.emit("A_TRANSPOSE", lo.define(n, "a"), lo.reg[n.args[0]], len(perm), *perm)


def _shaped_view(op: str) -> _Emit:
    def emit(lo: _Lowering, n: Node) -> None:
        sizes = [lo.slot(a) for a in n.args[1:]]
        lo.emit(op, lo.define(n, "a"), lo.reg[n.args[0]], len(sizes), *sizes)

    return emit


def _from_array(op: str, kind: str) -> _Emit:
    return lambda lo, n: lo.emit(op, lo.define(n, kind), lo.reg[n.args[0]])


def _creation(op: str) -> _Emit:
    def emit(lo: _Lowering, n: Node) -> None:
        sizes = [lo.slot(a) for a in n.args]
        lo.emit(op, lo.define(n, "a"), type_number(str(n.attrs["dtype"])), len(sizes), *sizes)

    return emit


def _full(lo: _Lowering, n: Node) -> None:
    dtype = str(n.attrs["dtype"])
    value = lo.scalar_as(n.args[0], dtype)
    sizes = [lo.slot(a) for a in n.args[1:]]
    lo.emit("A_FULL", lo.define(n, "a"), value, type_number(dtype), len(sizes), *sizes)


def _creation_like(op: str) -> _Emit:
    return lambda lo, n: lo.emit(op, lo.define(n, "a"), lo.reg[n.args[0]], type_number(str(n.attrs["dtype"])))


def _copy(lo: _Lowering, n: Node) -> None:
    if n in lo.straight:
        lo.emit("A_APART", lo.define(n, "a"), lo.reg[n.args[0]], lo.reg[lo.straight[n]])
        return
    lo.emit("A_COPY", lo.define(n, "a"), lo.reg[n.args[0]], {"C": 0, "K": 1}[str(n.attrs["order"])])


def _reduce(lo: _Lowering, n: Node) -> None:
    (source,) = n.args
    assert isinstance(source.type, ArrayType) and isinstance(n.type, ArrayType | ScalarType)
    out = n.type.dtype
    name, loop = str(n.attrs["ufunc"]), str(n.attrs["loop"])
    identity = reduction_identity(name, out)
    request = LoopRequest(name, loop, (out, source.type.dtype), (), out, identity)
    k, starts = lo.kernel(request), int(identity is not None)
    if isinstance(n.type, ScalarType):
        lo.emit("REDUCE", lo.define(n, "s"), lo.reg[source], k, starts, type_number(out))
        return
    if n.attrs["axis"] is None:
        total, one = lo.new("s"), lo.literal(1, "i8")
        lo.emit("REDUCE", total, lo.reg[source], k, starts, type_number(out))
        lo.emit("A_FULL", lo.define(n, "a"), total, type_number(out), n.type.ndim, *[one] * n.type.ndim)
        return
    lo.emit("REDUCE_AXIS", lo.define(n, "a"), lo.reg[source], k, _attr(n, "axis"), starts, int(bool(n.attrs["keepdims"])))


def _box(lo: _Lowering, n: Node) -> None:
    (value,) = n.args
    if isinstance(value.type, ArrayType):
        lo.emit("BOX_ARRAY", lo.define(n, "o"), lo.reg[value])
        return
    assert isinstance(value.type, ScalarType)
    slot = lo.slot(value)
    if value.type.box == "numpy":
        lo.emit("BOX_NUMPY", lo.define(n, "o"), slot, type_number(value.type.dtype))
        return
    op = {"i8": "BOX_INT", "f8": "BOX_FLOAT", "b1": "BOX_BOOL", "c16": "BOX_COMPLEX"}.get(value.type.dtype)
    if op is None:
        raise LowerError(f"box of {value.type}")
    lo.emit(op, lo.define(n, "o"), slot)


def _collection(op: str) -> _Emit:
    return lambda lo, n: lo.emit(op, lo.define(n, "o"), len(n.args), *(lo.reg[a] for a in n.args))


def _objects(op: str) -> _Emit:
    return lambda lo, n: lo.emit(op, lo.define(n, "o"), *(lo.reg[a] for a in n.args))


def _shape(lo: _Lowering, n: Node) -> None:
    source = n.args[0]
    if source.op not in ELEMENTWISE:
        lo.emit("BOX_SHAPE", lo.define(n, "o"), lo.reg[source])
        return
    boxes = []
    for d in lo.shapes.of(source):
        slot = lo.dim(d)
        boxes.append(lo.new("o"))
        lo.emit("BOX_INT", boxes[-1], slot)
    lo.emit("BOX_TUPLE", lo.define(n, "o"), len(boxes), *boxes)


def _attr(n: Node, name: str) -> int:
    value = n.attrs[name]
    if not isinstance(value, int):
        raise LowerError(f"{n.op}: attribute {name} is {value!r}")
    return value


_EMITTERS: Final[dict[str, _Emit]] = {
    "object": _object, "constant": _constant, "unbox": _unbox, "array": _array, "literal": _nothing, "dim": _nothing, "size": _nothing,
    "iadd": _scalar_op("I_ADD"), "isub": _scalar_op("I_SUB"), "imul": _scalar_op("I_MUL"), "ifloordiv": _scalar_op("I_FLOORDIV"),
    "imod": _scalar_op("I_MOD"), "ipow": _scalar_op("I_POW"), "imin": _scalar_op("I_MIN"), "imax": _scalar_op("I_MAX"),
    "ineg": _scalar_op("I_NEG"), "cast": _cast,
    "iabs": _scalar_op("I_ABS"), "itodouble": _scalar_op("I_TODOUBLE"), "icmp": _comparison("I_CMP"), "fcmp": _comparison("D_CMP"),
    "fadd": _scalar_op("D_ADD"), "fsub": _scalar_op("D_SUB"), "fmul": _scalar_op("D_MUL"), "fdiv": _scalar_op("D_DIV"),
    "fneg": _scalar_op("D_NEG"), "fabs": _scalar_op("D_ABS"), "fsqrt": _scalar_op("D_SQRT"), "fpow": _scalar_op("D_POW"),
    "check": _check, "check_true": _check_truth("C_TRUE"), "check_false": _check_truth("C_FALSE"),
    "check_is": _check_regs("C_IS"), "check_isnot": _check_regs("C_ISNOT"),
    "check_nooverlap": _check_regs("C_NOOVERLAP"), "check_contiguous": _check_regs("C_CCONTIG"),
    "slice": _slice, "index": _index, "newaxis": _newaxis, "transpose": _transpose, "reshape": _shaped_view("A_RESHAPE"),
    "broadcast": _shaped_view("A_BROADCAST"), "real": _from_array("A_REAL", "a"), "imag": _from_array("A_IMAG", "a"),
    "load": _from_array("S_LOAD", "s"),
    "empty": _creation("A_EMPTY"), "zeros": _creation("A_ZEROS"), "full": _full,
    "empty_like": _creation_like("A_EMPTY_LIKE"), "zeros_like": _creation_like("A_ZEROS_LIKE"), "copy": _copy, "reduce": _reduce,
    "box": _box, "tuple": _collection("BOX_TUPLE"), "list": _collection("BOX_LIST"), "dict": _collection("BOX_DICT"),
    "slice_object": _objects("BOX_SLICE"), "method": _objects("BOX_METHOD"), "shape": _shape,
}  # fmt: skip
