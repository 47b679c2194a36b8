"""Instructions that only move values on the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierup.arrays.values import ConstValue
from tierup.bytecode.canonical import Canon, Op
from tierup.capture.dispatch import handles
from tierup.capture.variables import NULL

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope


@handles(Op.NOP, Op.RESUME)
def nothing(ex: Executor, scope: Scope, canon: Canon) -> None:
    """Instructions without an effect on values."""


@handles(Op.LOAD_CONST)
def load_const(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(ConstValue(canon.arg))


@handles(Op.PUSH_NULL)
def push_null(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(NULL)


@handles(Op.POP_TOP)
def pop_top(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.pop()


@handles(Op.COPY)
def copy(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(scope.stack[-int(canon.arg)])


@handles(Op.SWAP)
def swap(ex: Executor, scope: Scope, canon: Canon) -> None:
    n = int(canon.arg)
    stack = scope.stack
    stack[-1], stack[-n] = stack[-n], stack[-1]
