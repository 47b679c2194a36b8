"""Calls: array rules, builtins on numbers and containers, and Python functions captured through."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from tierup.arrays.builder import NoRule
from tierup.arrays.values import ConstValue, DictValue, ObjectValue, TupleValue, Value
from tierup.bytecode.canonical import NULL_BELOW_CALLABLE, Canon, Op
from tierup.bytecode.concrete import Program
from tierup.bytecode.listing import Listing
from tierup.capture import builtins_table, containers
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break
from tierup.capture.scope import FunctionNames, Scope
from tierup.capture.variables import ArrayMethodValue, ContainerMethodValue, FunctionMethodValue, MethodValue, NullValue

if TYPE_CHECKING:
    from tierup.capture.executor import Executor

_MAX_DEPTH = 12
_VARARGS, _VARKEYWORDS = 0x04, 0x08
_NOT_PLAIN = 0x20 | 0x80 | 0x100 | 0x200  # generator, coroutine, iterable coroutine, async generator


@handles(Op.CALL)
def call_instruction(ex: Executor, scope: Scope, canon: Canon) -> None:
    argc, kwnames = canon.arg
    stack = scope.stack
    args = stack[len(stack) - argc :]
    lower, upper = stack[-argc - 2], stack[-argc - 1]
    if NULL_BELOW_CALLABLE and isinstance(lower, NullValue):
        function: Value = upper
    else:
        function = lower
        if not isinstance(upper, NullValue):
            args = [upper, *args]
    count = len(args) - len(kwnames)
    result = call(ex, function, args[:count], dict(zip(kwnames, args[count:], strict=True)))
    del stack[len(stack) - argc - 2 :]
    scope.push(result)


@handles(Op.CALL_FUNCTION_EX)
def call_function_ex(ex: Executor, scope: Scope, canon: Canon) -> None:
    """[callable and NULL in the version's order] args [kwargs]."""
    has_kwargs = bool(int(canon.arg) & 1)
    used = 2 if has_kwargs else 1
    keywords: dict[str, Value] = {}
    if has_kwargs:
        mapping = ex.region.force(scope.stack[-1])
        if not isinstance(mapping, DictValue) or any(type(k) is not str for k in mapping.items):
            raise Break("** of this mapping")
        keywords = dict(mapping.items)
    args = containers.known_items(ex, scope.stack[-used])
    function = scope.stack[-used - 1] if NULL_BELOW_CALLABLE else scope.stack[-used - 2]
    result = call(ex, function, args, keywords)
    scope.popn(used + 2)
    scope.push(result)


def call(ex: Executor, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The result of function(*args, **kwargs). Raises Break for what is not captured."""
    function = ex.region.force(function)
    if isinstance(function, MethodValue):
        return call(ex, function.function, [function.self, *args], kwargs)
    if isinstance(function, ArrayMethodValue):
        rule = ex.library.method_rule(function.name)
        return _apply(ex, rule, f"ndarray.{function.name}", [function.array, *args], kwargs)
    if isinstance(function, FunctionMethodValue):
        return _apply(ex, function.rule, function.name, args, kwargs)
    if isinstance(function, ContainerMethodValue):
        return builtins_table.container_method(ex, function, args, kwargs)
    if not isinstance(function, ConstValue):
        live = function.live if isinstance(function, ObjectValue) else function
        raise Break(f"call of {type(live).__name__}")
    target = function.value
    handler = builtins_table.lookup(target)
    if handler is not None:
        return handler(ex, args, kwargs)
    rule = ex.library.rule_for(target)
    if rule is not None:
        return _apply(ex, rule, _name(target), args, kwargs)
    if type(target) is types.FunctionType:
        return inline(ex, function, args, kwargs)
    raise Break(f"call of {_name(target)}")


def _name(target: Any) -> str:
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or type(target).__qualname__
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else str(name)


def _apply(ex: Executor, rule: Any, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if rule is None:
        raise Break(f"call of {name}")
    forced = tuple(containers.deep_force(ex, a) for a in args)
    forced_kwargs = {k: containers.deep_force(ex, v) for k, v in kwargs.items()}
    try:
        result: Value = rule(ex.builder, forced, forced_kwargs)
    except NoRule as reason:
        raise Break(f"{name}: {reason}") from None
    return result


# -- Python functions -------------------------------------------------------------------------------------------------


def inline(ex: Executor, function: ConstValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Capture a call through to its return. A break inside is a break of the call."""
    target: types.FunctionType = function.value
    if function.source is None:
        raise Break("call of a function that only the region knows")
    listing = ex.request.listing_of(target)
    if listing is None:
        raise Break(f"call of {target.__qualname__}, which is not captured through")
    program = listing.program
    if program.flags & _NOT_PLAIN or program.cellvars:
        raise Break(f"call of {target.__qualname__}, a generator, coroutine or function with cells")
    depth = ex.depth = ex.depth + 1
    try:
        if depth > _MAX_DEPTH:
            raise Break(f"calls nested more than {_MAX_DEPTH} deep")
        scope = _enter(ex, function, listing, args, kwargs)
        return _run(ex, scope, target)
    finally:
        ex.depth = depth - 1


def _enter(ex: Executor, function: ConstValue, listing: Listing, args: list[Value], kwargs: dict[str, Value]) -> Scope:
    program = listing.program
    slots: list[Value | None] = [None] * program.nlocalsplus
    _bind(ex, function, program, args, kwargs, slots)
    names = FunctionNames(function.value, function.source, len(program.varnames), ex.scope)
    return Scope(listing, names, slots, position=0, inlined=True, label=program.qualname)


def _bind(
    ex: Executor, function: ConstValue, code: Program, args: list[Value], kwargs: dict[str, Value], slots: list[Value | None]
) -> None:
    """CPython's argument binding (ceval.c, initialize_locals); what would raise TypeError there is a Break."""
    positional = code.argcount
    total = positional + code.kwonlyargcount
    names = code.varnames
    for i, value in enumerate(args[:positional]):
        slots[i] = value
    extra = args[positional:]
    if code.flags & _VARARGS:
        slots[total] = TupleValue(tuple(extra))
    elif extra:
        raise Break("too many positional arguments")
    rest: dict[str, Value] = {}
    for key, value in kwargs.items():
        if key in names[code.posonlyargcount : total]:
            i = names.index(key)
            if slots[i] is not None:
                raise Break(f"multiple values for argument {key!r}")
            slots[i] = value
        else:
            rest[key] = value
    if code.flags & _VARKEYWORDS:
        slots[total + bool(code.flags & _VARARGS)] = DictValue(rest)
    elif rest:
        raise Break("an unexpected keyword argument")
    _fill_defaults(ex, function, code, slots)


def _fill_defaults(ex: Executor, function: ConstValue, code: Program, slots: list[Value | None]) -> None:
    target = function.value
    defaults = target.__defaults__ or ()
    kwdefaults = target.__kwdefaults__ or {}
    names = code.varnames
    used = False
    for i in range(code.argcount + code.kwonlyargcount):
        if slots[i] is not None:
            continue
        used = True
        if i < code.argcount:
            k = i - (code.argcount - len(defaults))
            if k < 0:
                raise Break(f"missing argument {names[i]!r}")
            slots[i] = ObjectValue(function.source.then("FUNC_DEFAULT", k), defaults[k])
        else:
            if names[i] not in kwdefaults:
                raise Break(f"missing argument {names[i]!r}")
            slots[i] = ObjectValue(function.source.then("FUNC_KWDEFAULT", names[i]), kwdefaults[names[i]])
    if used:
        ex.region.guard("FUNC_DEFAULTS", function.source, (len(defaults), tuple(kwdefaults)))


def _run(ex: Executor, scope: Scope, target: types.FunctionType) -> Value:
    from tierup.capture.executor import Stop

    while scope.position >= 0:
        canon = scope.listing.canons[scope.position]
        try:
            ex.step(scope)
        except (Break, NoRule, Stop) as reason:
            ex.note_inlined(f"{target.__qualname__} ({scope.listing.program.filename}:{canon.line})")
            raise Break(str(reason)) from None
    return scope.pop()
