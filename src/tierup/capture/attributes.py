"""Attribute loads, without ever running a property, `__getattr__` or descriptor of the user."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from tierup.arrays.values import ArrayValue, ConstValue, DictValue, ListValue, ObjectValue, ScalarValue, TupleValue, Value
from tierup.bytecode.canonical import Canon, Op
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break
from tierup.capture.variables import NULL, ArrayMethodValue, ContainerMethodValue, FunctionMethodValue, MethodValue
from tierup.guards.sources import Pinned

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope

_MRO: Any = vars(type)["__mro__"]
_TYPE_DICT: Any = vars(type)["__dict__"]
_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"]
_GENERIC_GETATTRIBUTE: Any = vars(object)["__getattribute__"]
_TYPE_GETATTRIBUTE: Any = vars(type)["__getattribute__"]
_LIST_METHODS = frozenset({"append"})
_DICT_METHODS = frozenset({"items", "keys", "values", "get"})


def _class_lookup(tp: type, name: str) -> Any:
    """What `_PyType_Lookup` finds, or None. Runs no user code."""
    for base in _MRO.__get__(tp):
        namespace = _TYPE_DICT.__get__(base)
        if name in namespace:
            return namespace[name]
    return None


def _is_descriptor(value: Any) -> bool:
    """Whether reading the class attribute through an object runs code."""
    return _class_lookup(type(value), "__get__") is not None


@handles(Op.LOAD_ATTR)
def load_attr(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = attribute(ex, scope.stack[-1], canon.arg)
    scope.pop()
    scope.push(value)


@handles(Op.LOAD_METHOD)
def load_method(ex: Executor, scope: Scope, canon: Canon) -> None:
    """The callable takes both call slots' meaning itself (a MethodValue), so the slots are (callable, NULL) in the version's order."""
    from tierup.bytecode.canonical import NULL_BELOW_CALLABLE

    base = ex.region.force(scope.stack[-1])
    value = attribute(ex, base, canon.arg)
    scope.pop()
    if isinstance(value, MethodValue):
        scope.stack.extend((value.function, value.self))
    elif NULL_BELOW_CALLABLE:
        scope.stack.extend((NULL, value))
    else:
        scope.stack.extend((value, NULL))


def attribute(ex: Executor, base: Value, name: str) -> Value:
    """base.name as a value. Raises Break where it cannot be had without running code."""
    base = ex.region.force(base)
    if isinstance(base, ArrayValue):
        return _array_attribute(ex, base, name)
    if isinstance(base, ScalarValue) and not base.is_python:
        raise Break(f"attribute {name} of a NumPy scalar")
    if isinstance(base, ConstValue):
        return _constant_attribute(ex, base, name)
    if isinstance(base, ListValue) and name in _LIST_METHODS:
        return ContainerMethodValue(name, base)
    if isinstance(base, DictValue) and name in _DICT_METHODS:
        return ContainerMethodValue(name, base)
    if isinstance(base, ObjectValue):
        return _instance_attribute(ex, base, name)
    if isinstance(base, TupleValue) and isinstance(base.origin, ObjectValue):
        raise Break(f"attribute {name} of a tuple")
    raise Break(f"attribute {name} of {type(base).__name__}")


def _array_attribute(ex: Executor, base: ArrayValue, name: str) -> Value:
    rule = ex.library.attribute_rule(name)
    if rule is not None:
        result: Value = rule(ex.builder, (base,), {})
        return result
    if ex.library.method_rule(name) is not None:
        return ArrayMethodValue(name, base)
    raise Break(f"ndarray.{name}")


def _constant_attribute(ex: Executor, base: ConstValue, name: str) -> Value:
    live = base.value
    source = ex.region.const_source(base)
    if type(live) is types.ModuleType:
        namespace = _MODULE_DICT.__get__(live)
        if name not in namespace:
            raise Break(f"module attribute {name} made on demand")
        if ex.scope.module and namespace is ex.request.live.globals:
            raise Break("an attribute of the module whose names the region has just changed")
        return ObjectValue(source.then("MODATTR", name), namespace[name])
    if issubclass(type(live), type) and _class_lookup(type(live), "__getattribute__") is _TYPE_GETATTRIBUTE:
        return _class_attribute(ex, base, name)
    rule = ex.library.function_method_rule(live, name)
    if rule is not None:
        return FunctionMethodValue(f"{live.__name__}.{name}", rule)
    raise Break(f"attribute {name} of {type(live).__name__}")


def _class_attribute(ex: Executor, base: ConstValue, name: str) -> Value:
    if _class_lookup(type(base.value), name) is not None:
        raise Break(f"class attribute {name} that the metaclass defines")
    found = _class_lookup(base.value, name)
    if found is None or (_is_descriptor(found) and type(found) is not types.FunctionType):
        raise Break(f"class attribute {name}")
    return ObjectValue(ex.region.const_source(base).then("CLASSATTR", name), found)


def _instance_attribute(ex: Executor, base: ObjectValue, name: str) -> Value:
    live, source = base.live, base.source
    tp = type(live)
    if issubclass(tp, type):
        raise Break(f"attribute {name} of a class")
    if _class_lookup(tp, "__getattribute__") is not _GENERIC_GETATTRIBUTE:
        raise Break(f"attribute {name} of {tp.__name__}, which has its own __getattribute__")
    found = _class_lookup(tp, name)
    if found is None:
        try:
            value = object.__getattribute__(live, name)
        except AttributeError:
            raise Break(f"attribute {name} is absent") from None
        ex.region.guard("TYPE_IS", source, Pinned(tp))
        return ObjectValue(source.then("ATTR", name), value)
    if type(found) is types.FunctionType:
        return _method(ex, base, name, found)
    if type(found) is types.MemberDescriptorType:
        return _plain(ex, base, name)
    if _is_descriptor(found):
        raise Break(f"descriptor {tp.__name__}.{name}")
    return _plain(ex, base, name)


def _plain(ex: Executor, base: ObjectValue, name: str) -> Value:
    try:
        value = object.__getattribute__(base.live, name)
    except AttributeError:
        raise Break(f"attribute {name} is absent") from None
    ex.region.guard("TYPE_IS", base.source, Pinned(type(base.live)))
    return ObjectValue(base.source.then("ATTR", name), value)


def _method(ex: Executor, base: ObjectValue, name: str, found: types.FunctionType) -> Value:
    bound = object.__getattribute__(base.live, name)
    if type(bound) is not types.MethodType or bound.__func__ is not found:
        return _plain(ex, base, name)
    ex.region.guard("TYPE_IS", base.source, Pinned(type(base.live)))
    return MethodValue(ObjectValue(base.source.then("METHOD", name), found), base)
