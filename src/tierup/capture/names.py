"""Loads and stores of locals, cells, globals and module names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierup.arrays.values import Value
from tierup.bytecode.canonical import Canon, Op
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break
from tierup.capture.variables import NULL, NullValue

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope


@handles(Op.LOAD_LOCAL)
def load_local(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = scope.locals[canon.arg]
    if value is None:
        raise Break("an unbound local")
    scope.push(value)


@handles(Op.STORE_LOCAL)
def store_local(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = scope.pop()
    scope.locals[canon.arg] = None if isinstance(value, NullValue) else value


@handles(Op.LOAD_AND_CLEAR_LOCAL)
def load_and_clear_local(ex: Executor, scope: Scope, canon: Canon) -> None:
    """Saves a local that an inlined comprehension uses as its own variable."""
    scope.push(scope.locals[canon.arg] or NULL)
    scope.locals[canon.arg] = None


@handles(Op.DELETE_LOCAL)
def delete_local(ex: Executor, scope: Scope, canon: Canon) -> None:
    if scope.locals[canon.arg] is None:
        raise Break("an unbound local")
    scope.locals[canon.arg] = None


@handles(Op.LOAD_DEREF)
def load_deref(ex: Executor, scope: Scope, canon: Canon) -> None:
    slot = canon.arg
    scope.push(scope.cells[slot] if slot in scope.cells else scope.names.cell_value(ex.region, slot))


@handles(Op.STORE_DEREF)
def store_deref(ex: Executor, scope: Scope, canon: Canon) -> None:
    if scope.inlined:
        raise Break("a called function stores into a cell")
    scope.cells[canon.arg] = scope.pop()


@handles(Op.LOAD_GLOBAL)
def load_global(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(_global(ex, scope, canon.arg))


def _global(ex: Executor, scope: Scope, name: str) -> Value:
    if scope.module and name in scope.module:
        value = scope.module[name]
        if value is None:
            raise Break(f"name {name!r} was deleted")
        return value
    return scope.names.global_value(ex.region, name)


@handles(Op.LOAD_NAME)
def load_name(ex: Executor, scope: Scope, canon: Canon) -> None:
    if scope.module and canon.arg in scope.module:
        scope.push(_global(ex, scope, canon.arg))
    else:
        scope.push(scope.names.local_name(ex.region, canon.arg))


@handles(Op.STORE_NAME)
def store_name(ex: Executor, scope: Scope, canon: Canon) -> None:
    if scope.module is None:
        raise Break("a name stored outside a module body")
    scope.module[canon.arg] = scope.pop()
