"""Jumps, branches and returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierup.arrays.values import ArrayValue, ConstValue, DictValue, ListValue, ObjectValue, ScalarValue, TupleValue, Value
from tierup.bytecode.canonical import Canon, Op
from tierup.capture import identity, scalars
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break
from tierup.capture.variables import IterValue

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope


def truth(ex: Executor, value: Value) -> bool:
    """bool(value), decided now and secured by a guard or check. Raises Break where it depends on array contents or user code."""
    value = ex.region.force(value)
    if isinstance(value, ConstValue):
        if type(value.value) in (bool, int, float, str, bytes, tuple, type(None)):
            return bool(value.value)
        raise Break(f"truth of {type(value.value).__name__}")
    if isinstance(value, ScalarValue) and value.is_python:
        return scalars.truth(ex.builder, value)
    if isinstance(value, TupleValue | ListValue | DictValue):
        return bool(value.items)
    if isinstance(value, ArrayValue | ScalarValue):
        raise Break("a branch on array contents")
    if isinstance(value, ObjectValue):
        raise Break(f"truth of {type(value.live).__name__}")
    raise Break(f"truth of {type(value).__name__}")


@handles(Op.TO_BOOL)
def to_bool(ex: Executor, scope: Scope, canon: Canon) -> None:
    result = truth(ex, scope.stack[-1])
    scope.pop()
    scope.push(ConstValue(result))


@handles(Op.UNARY_NOT)
def unary_not(ex: Executor, scope: Scope, canon: Canon) -> None:
    result = truth(ex, scope.stack[-1])
    scope.pop()
    scope.push(ConstValue(not result))


@handles(Op.POP_JUMP_IF)
def pop_jump_if(ex: Executor, scope: Scope, canon: Canon) -> None:
    kind, target = canon.arg
    value = scope.stack[-1]
    if kind in ("none", "not_none"):
        taken = identity.same_object(ex.region, value, ConstValue(None)) is (kind == "none")
    else:
        taken = truth(ex, value) is (kind == "true")
    _guard_backward(ex, scope, canon, target, taken)
    scope.pop()
    if taken:
        scope.jump(target)


@handles(Op.JUMP_IF_OR_POP)
def jump_if_or_pop(ex: Executor, scope: Scope, canon: Canon) -> None:
    kind, target = canon.arg
    if truth(ex, scope.stack[-1]) is (kind == "true"):
        scope.jump(target)
    else:
        scope.pop()


@handles(Op.JUMP)
def jump(ex: Executor, scope: Scope, canon: Canon) -> None:
    target, _ = canon.arg
    _guard_backward(ex, scope, canon, target, True)
    scope.jump(target)


def _guard_backward(ex: Executor, scope: Scope, canon: Canon, target: int, taken: bool) -> None:
    """In the site's own frame a region ends at a backward jump, unless the loop runs over items that are all known."""
    from tierup.capture.executor import Stop

    if not taken or target > canon.index or scope.inlined:
        return
    if canon.op is Op.JUMP and scope.stack and isinstance(scope.stack[-1], IterValue):
        return
    raise Stop("the end of a loop's body")


@handles(Op.RETURN_VALUE)
def return_value(ex: Executor, scope: Scope, canon: Canon) -> None:
    from tierup.capture.executor import Stop

    if not scope.inlined:
        raise Stop("return")
    scope.position = -1


@handles(Op.RETURN_CONST)
def return_const(ex: Executor, scope: Scope, canon: Canon) -> None:
    from tierup.capture.executor import Stop

    if not scope.inlined:
        raise Stop("return")
    scope.push(ConstValue(canon.arg))
    scope.position = -1
