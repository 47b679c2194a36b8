"""Instructions inside loops, by what they do to the frame. Those that end a block are methods of the tracer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Final

from tierup.arrays.values import ConstValue
from tierup.bytecode.canonical import NULL_BELOW_CALLABLE, Canon, Op
from tierup.capture import attributes
from tierup.capture.scope import FunctionNames
from tierup.loops import calls, complexes, iterators, lists, memory, numbers, products, vectors
from tierup.loops.state import Frame
from tierup.loops.tracer import Handler, Tracer, is_none
from tierup.loops.values import NULL, UNBOUND, Refused, Value, boolean, const, floating, integer, tuple_of

_MAX_INLINED: Final = 6
_NOT_PLAIN: Final = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""Code flags of functions that are not followed into: *args, **kwargs, generators and coroutines."""

# ---- names and attributes ------------------------------------------------------------------------------------------


def _load_local(t: Tracer, frame: Frame, canon: Canon) -> None:
    value = frame.locals[canon.arg]
    if value.kind == "unbound":
        raise Refused("an unbound local")
    frame.push(value)


def _store_local(t: Tracer, frame: Frame, canon: Canon) -> bool:
    return _bind(t, frame, canon.arg, frame.pop())


def _bind(t: Tracer, frame: Frame, slot: int, value: Value) -> bool:
    if value.kind in ("vector", "gather"):
        raise Refused("a new array")
    if value.kind in iterators.KINDS:
        raise Refused("an iterator in a variable")
    before, frame.locals[slot] = frame.locals[slot], UNBOUND

    def bind(values: Sequence[Value]) -> None:
        (new,), top = values, t.state.top
        top.locals[slot] = numbers.number(new) if new.source is None else new
        if len(t.state.frames) == 1 and slot in t.changed:
            flag = top.locals[t.changed[slot]]
            top.locals[t.changed[slot]] = boolean(t.replaced(flag.one, before, new))

    return t.settled((value,), bind)


def _load_global(t: Tracer, frame: Frame, canon: Canon) -> None:
    _push_live(t, frame, frame.names.global_value(t.executor.region, canon.arg))


def _load_name(t: Tracer, frame: Frame, canon: Canon) -> None:
    slot = t.names.get(canon.arg)
    if slot is None:
        _push_live(t, frame, frame.names.local_name(t.executor.region, canon.arg))
    elif frame.locals[slot].kind == "unbound":
        raise Refused("a name that may not be bound")
    else:
        frame.push(frame.locals[slot])


def _store_name(t: Tracer, frame: Frame, canon: Canon) -> bool:
    return _bind(t, frame, t.names[canon.arg], frame.pop())


def _load_deref(t: Tracer, frame: Frame, canon: Canon) -> None:
    _push_live(t, frame, frame.names.cell_value(t.executor.region, canon.arg))


def _push_live(t: Tracer, frame: Frame, live: Any) -> None:
    frame.push(t.entry.value(live))


def _load_attr(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(_attribute(t, t.forced(frame.pop()), canon.arg))


def _attribute(t: Tracer, base: Value, name: str) -> Value:
    if base.kind == "array" and name in ("shape", "ndim", "size"):
        return _array_attribute(t, base, name)
    if base.kind == "complex" and name in ("real", "imag"):
        return floating(base.parts[name == "imag"])
    if base.kind == "complex" and name == "conjugate":
        return Value("method", name, (), (base,))
    if base.kind == "list" and name == "append":
        return Value("method", name, (), (base,))
    if base.kind == "const":
        found = attributes.attribute(t.executor, ConstValue(base.constant, base.source), name)
        return t.entry.value(found)
    raise Refused(f"attribute {name} of a {base.kind}")


def _array_attribute(t: Tracer, base: Value, name: str) -> Value:
    shape = calls.shape(t, base)
    if name == "shape":
        return shape
    if name == "ndim":
        return const(len(shape.items))
    size = integer("1")
    for length in shape.items:
        size = integer(t.fn.let(f"mul i64 {size.one}, {length.one}"))
    return size


def _load_method(t: Tracer, frame: Frame, canon: Canon) -> None:
    value = _attribute(t, t.forced(frame.pop()), canon.arg)
    frame.stack.extend((NULL, value) if NULL_BELOW_CALLABLE else (value, NULL))


def _call(t: Tracer, frame: Frame, canon: Canon) -> bool:
    argc, keywords = canon.arg
    if keywords:
        raise Refused("a call with keywords")
    args = [t.forced(v) for v in frame.stack[len(frame.stack) - argc :]]
    lower, upper = frame.stack[-argc - 2], frame.stack[-argc - 1]
    function = upper if lower.kind == "null" else lower
    if "null" not in (lower.kind, upper.kind):
        raise Refused("a call of a method")
    function = t.forced(function)
    del frame.stack[len(frame.stack) - argc - 2 :]
    if function.kind == "method":
        name, base = str(function.detail), function.items[0]
        return t.settled(args, lambda values: t.state.top.push(_call_method(t, name, base, values)))
    if function.kind != "const":
        raise Refused(f"a call of a {function.kind}")
    target = function.constant
    if isinstance(target, FunctionType):
        return t.settled(args, partial(_follow, t, function, target))
    frame.push(calls.call(t, target, args))
    return False


def _call_method(t: Tracer, name: str, base: Value, args: Sequence[Value]) -> Value:
    if name == "append" and len(args) == 1:
        return lists.append(t, base, args[0])
    if name == "conjugate" and not args:
        return complexes.conjugate(t, base)
    raise Refused(f"a call of {name}")


def _follow(t: Tracer, function: Value, target: FunctionType, args: Sequence[Value]) -> None:
    """Go on in the called function; its return comes back here."""
    listing = t.request.listing_of(target)
    if listing is None or len(t.state.frames) > _MAX_INLINED:
        raise Refused(f"call of {target.__qualname__}")
    program = listing.program
    plain = not program.flags & _NOT_PLAIN and not program.kwonlyargcount and not program.freevars
    if not plain or program.argcount != len(args) or any(program.is_cell_slot(i) for i in range(program.nlocalsplus)):
        raise Refused(f"call of {target.__qualname__}, which takes its arguments or variables in other ways")
    if function.source is None:
        raise Refused("a function that is made in the loop")
    if any(arg.kind in iterators.KINDS for arg in args):
        raise Refused("an iterator in a variable")
    names = FunctionNames(target, function.source, program.nlocalsplus, t.executor.scope)
    values = [*(numbers.number(a) for a in args), *(UNBOUND for _ in range(program.nlocalsplus - len(args)))]
    start = next(k for k, c in enumerate(listing.canons) if c.op is Op.RESUME)
    t.state.frames.append(Frame(listing, names, values, [], start))


# ---- the stack, numbers, arrays ------------------------------------------------------------------------------------


def _const(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(const(canon.arg))


def _null(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(NULL)


def _nothing(t: Tracer, frame: Frame, canon: Canon) -> None:
    pass


def _pop(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.pop()


def _copy(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(frame.stack[-canon.arg])


def _swap(t: Tracer, frame: Frame, canon: Canon) -> None:
    stack = frame.stack
    stack[-1], stack[-canon.arg] = stack[-canon.arg], stack[-1]


def _binary(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    if canon.arg == "@":
        frame.push(products.matmul(t, left, right))
    elif not (vectors.is_vector(left) or vectors.is_vector(right)):
        frame.push(numbers.binary(t, canon.arg, left, right))
    elif canon.arg.endswith("=") and left.kind == "array":
        vectors.assign(t, left, vectors.binary(t, canon.arg[:-1], left, right))
        frame.push(left)
    else:
        frame.push(vectors.binary(t, canon.arg.removesuffix("="), left, right))


def _compare(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    if "char" in (left.kind, right.kind):
        frame.push(lists.compare_chars(t, canon.arg[0], left, right))
        return
    value = numbers.compare(t, canon.arg[0], left, right)
    frame.push(Value("bool", None, value.parts) if canon.arg[1] else value)


def _unary(rule: Callable[[Tracer, Value], Value]) -> Callable[[Tracer, Frame, Canon], None]:
    def handler(t: Tracer, frame: Frame, canon: Canon) -> None:
        frame.push(rule(t, t.forced(frame.pop())))

    return handler


def _negative(t: Tracer, value: Value) -> Value:
    return vectors.negative(t, value) if vectors.is_vector(value) else numbers.negative(t, value)


def _not(t: Tracer, value: Value) -> Value:
    flag = numbers.truth(t, value)
    return const(not flag) if isinstance(flag, bool) else Value("bool", None, (t.fn.let(f"xor i1 {flag}, true"),))


def _to_bool(t: Tracer, value: Value) -> Value:
    flag = numbers.truth(t, value)
    return const(flag) if isinstance(flag, bool) else Value("bool", None, (flag,))


def _is(t: Tracer, frame: Frame, canon: Canon) -> None:
    right, left = t.forced(frame.pop()), t.forced(frame.pop())
    if right.is_const(type(None)):
        frame.push(const(is_none(left) is not canon.arg))
    elif left.is_const(type(None)):
        frame.push(const(is_none(right) is not canon.arg))
    else:
        raise Refused("identity of two objects")


def _subscript(t: Tracer, frame: Frame, canon: Canon) -> None:
    key, container = t.forced(frame.pop()), t.forced(frame.pop())
    if container.kind == key.kind == "array":
        frame.push(products.gather(t, container, key))
    elif container.kind == "array":
        frame.push(t.taken(container, key))
    elif container.kind in ("list", "text"):
        frame.push(lists.item(t, container, key))
    elif container.kind == "tuple" and key.is_const(int):
        frame.push(_tuple_item(container, key))
    elif container.is_const(tuple) and key.is_const(int) and -len(container.constant) <= key.constant < len(container.constant):  # type: ignore[arg-type, operator]
        frame.push(const(container.constant[key.constant]))  # type: ignore[index]
    else:
        raise Refused(f"a subscript of a {container.kind}")


def _tuple_item(container: Value, key: Value) -> Value:
    index, length = key.constant, len(container.items)
    assert isinstance(index, int)
    if not -length <= index < length:
        raise Refused("a tuple index out of range")
    return container.items[index]


def _build_slice(t: Tracer, frame: Frame, canon: Canon) -> None:
    step = t.forced(frame.pop()) if canon.arg == 3 else const(None)
    stop, start = t.forced(frame.pop()), t.forced(frame.pop())
    frame.push(memory.slice_of(start, stop, step))


def _binary_slice(t: Tracer, frame: Frame, canon: Canon) -> None:
    stop, start, container = t.forced(frame.pop()), t.forced(frame.pop()), t.forced(frame.pop())
    if container.kind != "array":
        raise Refused(f"a slice of a {container.kind}")
    frame.push(t.taken(container, memory.slice_of(start, stop, const(None))))


def _store_subscript(t: Tracer, frame: Frame, canon: Canon) -> None:
    key, container, value = t.forced(frame.pop()), t.forced(frame.pop()), t.forced(frame.pop())
    if container.kind == "list":
        lists.set_item(t, container, key, value)
    elif container.kind == "array":
        t.put(container, key, value)
    else:
        raise Refused(f"a store into a {container.kind}")


def _store_slice(t: Tracer, frame: Frame, canon: Canon) -> None:
    stop, start, container, value = (t.forced(frame.pop()) for _ in range(4))
    if container.kind != "array":
        raise Refused(f"a store into a {container.kind}")
    t.put(container, memory.slice_of(start, stop, const(None)), value)


def _build_tuple(t: Tracer, frame: Frame, canon: Canon) -> bool:
    count = canon.arg
    items = [t.forced(v) for v in frame.stack[len(frame.stack) - count :]]
    del frame.stack[len(frame.stack) - count :]
    return t.settled(items, lambda values: t.state.top.push(tuple_of([numbers.number(v) for v in values])))


def _unpack(t: Tracer, frame: Frame, canon: Canon) -> None:
    value = t.forced(frame.pop())
    if value.kind != "tuple" or len(value.items) != canon.arg:
        raise Refused(f"unpacking of a {value.kind}")
    frame.stack.extend(reversed(value.items))


def _get_iter(t: Tracer, frame: Frame, canon: Canon) -> None:
    frame.push(iterators.iterated(t, t.forced(frame.pop())))


HANDLERS: Final[dict[Op, Handler]] = {
    Op.LOAD_LOCAL: _load_local, Op.STORE_LOCAL: _store_local, Op.LOAD_CONST: _const, Op.PUSH_NULL: _null,
    Op.LOAD_GLOBAL: _load_global, Op.LOAD_NAME: _load_name, Op.STORE_NAME: _store_name,
    Op.LOAD_DEREF: _load_deref,
    Op.LOAD_ATTR: _load_attr, Op.LOAD_METHOD: _load_method, Op.CALL: _call,
    Op.RESUME: _nothing, Op.NOP: _nothing, Op.END_FOR: _nothing, Op.POP_TOP: _pop, Op.COPY: _copy, Op.SWAP: _swap,
    Op.BINARY_OP: _binary, Op.COMPARE: _compare, Op.IS_OP: _is,
    Op.UNARY_NEGATIVE: _unary(_negative), Op.UNARY_INVERT: _unary(numbers.inverted), Op.UNARY_NOT: _unary(_not),
    Op.TO_BOOL: _unary(_to_bool),
    Op.BINARY_SUBSCR: _subscript, Op.STORE_SUBSCR: _store_subscript, Op.STORE_SLICE: _store_slice,
    Op.BUILD_TUPLE: _build_tuple, Op.UNPACK_SEQUENCE: _unpack,
    Op.BUILD_SLICE: _build_slice, Op.BINARY_SLICE: _binary_slice, Op.GET_ITER: _get_iter,
    Op.FOR_ITER: Tracer.for_iter, Op.JUMP: Tracer.jump, Op.POP_JUMP_IF: Tracer.pop_jump_if,
    Op.JUMP_IF_OR_POP: Tracer.jump_if_or_pop, Op.RETURN_VALUE: Tracer.return_instruction, Op.RETURN_CONST: Tracer.return_instruction,
}  # fmt: skip
