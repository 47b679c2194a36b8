"""An object graph as a flat list of comparable lines.

Objects are numbered in the order in which they are met, so two graphs give equal lines exactly when they have the same
values, types, memory layouts and the same identity and aliasing structure.
"""

from __future__ import annotations

import hashlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Line = tuple[str, str]
Constants = frozenset[tuple[type, str]]
"""Numbers by type and repr, which tells -0.0 from 0.0."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice, np.dtype)
_SAMPLES: tuple[Any, ...] = ([], (), range(0), {}, set(), reversed([]), enumerate([]), zip())
_ITERATORS = tuple(type(iter(sample)) for sample in _SAMPLES)
_SKIPPED = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, type(len), property, staticmethod, classmethod)
_NUMBERS = (int, float, complex)
_SHOWN = 2048
_FLAGS = ("c_contiguous", "f_contiguous", "owndata", "writeable", "aligned", "writebackifcopy")


def bits(array: np.ndarray, exact_nans: bool) -> str:
    """The values of an array as hex digits in C order; NaNs are one value unless `exact_nans`."""
    if array.dtype.hasobject:
        return repr(array.tolist())
    data = np.array(array, dtype=array.dtype, order="C", copy=True, subok=False)
    if data.dtype.kind in "fc" and not exact_nans:
        parts = data.reshape(-1).view(data.real.dtype)
        parts[np.isnan(parts)] = np.nan
    raw = data.tobytes()
    return raw.hex() if len(raw) <= _SHOWN else f"blake2 {hashlib.blake2b(raw).hexdigest()} of {len(raw)} bytes"


def functions_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code that has a name among the constants of some code. Lambdas make arguments."""
    return (const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name != "<lambda>")


def constants_of(code: types.CodeType) -> Constants:
    """The numbers among the constants of some code and of the functions in it. A whole loop makes them anew (docs/loops.md)."""
    own = frozenset((type(const), repr(const)) for const in code.co_consts if type(const) in _NUMBERS)
    return own.union(*map(constants_of, functions_in(code)))


class Snapshot:
    """Collects the lines of a few roots that share one numbering."""

    def __init__(self, filename: str, exact_nans: bool = False, constants: Constants = frozenset()) -> None:
        """`filename`: functions, classes and frames of this file are walked into; others are only named. `constants`: numbers
        that are seen by their value, not as objects (constants_of)."""
        self.filename = filename
        self.exact_nans = exact_nans
        self.constants = constants
        self.lines: list[Line] = []
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []

    def add(self, path: str, text: str) -> None:
        self.lines.append((path, text))

    def walk(self, path: str, obj: Any) -> None:
        """Adds the lines of an object and of everything reachable from it."""
        if isinstance(obj, (bool, str, bytes)) or obj is None or (type(obj) is int and -5 <= obj <= 256):
            self.add(path, f"{type(obj).__qualname__} {obj!r}")
            return
        if type(obj) in _NUMBERS and (type(obj), repr(obj)) in self.constants:
            self.add(path, f"constant {obj!r}")
            return
        number = self._numbers.get(id(obj))
        if number is not None:
            self.add(path, f"is #{number}")
            return
        number = self._numbers[id(obj)] = len(self._numbers)
        self._keep.append(obj)
        kind = type(obj)
        describe = self._describer(obj)
        describe(path, f"#{number} {kind.__module__}.{kind.__qualname__}", obj)

    def release(self) -> list[Line]:
        """The lines; forgets every object, so that lifetimes can be measured afterwards."""
        self._keep.clear()
        self._numbers.clear()
        return self.lines

    def _describer(self, obj: Any) -> Callable[[str, str, Any], None]:
        table: tuple[tuple[Any, Callable[[str, str, Any], None]], ...] = (
            (np.ndarray, self._array),
            (np.generic, self._numpy_scalar),
            (float, self._float),
            (complex, self._complex),
            (_ATOMS, self._atom),
            ((list, tuple), self._sequence),
            (dict, self._mapping),
            ((set, frozenset), self._set),
            (types.FunctionType, self._function),
            (types.MethodType, self._method),
            (types.CellType, self._cell),
            (BaseException, self._exception),
            (type, self._class),
            (_ITERATORS, self._iterator),
            (types.GeneratorType, self._generator),
            (_SKIPPED, self._named),
        )
        for kinds, describe in table:
            if isinstance(obj, kinds):
                return describe
        return self._instance

    def _array(self, path: str, head: str, array: np.ndarray) -> None:
        flags = "".join(name[0].upper() if getattr(array.flags, name) else "-" for name in _FLAGS)
        root: Any = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0] if array.size else 0
        plain = array.view(np.ndarray) if type(array) is not np.ndarray else array
        self.add(path, f"{head} {array.dtype.str} {array.shape} strides {array.strides} {flags} +{offset}")
        self.add(path + ".values", bits(plain, self.exact_nans))
        self.walk(path + ".base", array.base)
        if isinstance(array, np.ma.MaskedArray):
            self.walk(path + ".mask", np.ma.getmaskarray(array))
        elif hasattr(array, "__dict__"):
            self.walk(path + ".__dict__", dict(array.__dict__))

    def _numpy_scalar(self, path: str, head: str, value: np.generic) -> None:
        self.add(path, f"{head} {value.dtype.str} {bits(np.asarray(value), self.exact_nans)}")

    def _float(self, path: str, head: str, value: float) -> None:
        self.add(path, f"{head} {bits(np.asarray(value, 'f8'), self.exact_nans)}")

    def _complex(self, path: str, head: str, value: complex) -> None:
        self.add(path, f"{head} {bits(np.asarray(value, 'c16'), self.exact_nans)}")

    def _atom(self, path: str, head: str, value: object) -> None:
        self.add(path, f"{head} {value!r}")

    def _named(self, path: str, head: str, value: Any) -> None:
        self.add(path, f"{head} {getattr(value, '__name__', '')}")

    def _sequence(self, path: str, head: str, items: Any) -> None:
        self.add(path, f"{head} len {len(items)}")
        for i, item in enumerate(items):
            self.walk(f"{path}[{i}]", item)

    def _mapping(self, path: str, head: str, mapping: dict[Any, Any]) -> None:
        self.add(path, f"{head} keys {[self._key(key) for key in mapping]}")
        for key, item in mapping.items():
            self.walk(f"{path}[{self._key(key)}]", item)

    def _key(self, key: object) -> str:
        return f"{type(key).__name__}:{_ADDRESS.sub('0x', repr(key))}"

    def _set(self, path: str, head: str, items: Any) -> None:
        self.add(path, f"{head} {sorted(self._key(item) for item in items)}")

    def _function(self, path: str, head: str, function: types.FunctionType) -> None:
        code = function.__code__
        self.add(path, f"{head} {function.__qualname__} {code.co_varnames} {code.co_firstlineno}")
        if code.co_filename != self.filename:
            return
        self.walk(path + ".__defaults__", function.__defaults__)
        self.walk(path + ".__kwdefaults__", function.__kwdefaults__)
        self.walk(path + ".__dict__", {key: item for key, item in function.__dict__.items() if not key.startswith("_")})
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.walk(f"{path}<{name}>", cell)

    def _method(self, path: str, head: str, method: types.MethodType) -> None:
        self.add(path, head)
        self.walk(path + ".__func__", method.__func__)
        self.walk(path + ".__self__", method.__self__)

    def _cell(self, path: str, head: str, cell: types.CellType) -> None:
        try:
            content = cell.cell_contents
        except ValueError:
            self.add(path, f"{head} empty")
            return
        self.add(path, head)
        self.walk(path + ".contents", content)

    def _exception(self, path: str, head: str, error: BaseException) -> None:
        self.add(path, f"{head} {_ADDRESS.sub('0x', str(error))} suppress={error.__suppress_context__}")
        self.walk(path + ".args", error.args)
        self.walk(path + ".__dict__", dict(error.__dict__))
        self._traceback(path, error.__traceback__, vague=isinstance(error, UnboundLocalError) and sys.version_info < (3, 13))
        self.walk(path + ".__cause__", error.__cause__)
        self.walk(path + ".__context__", error.__context__)

    def _traceback(self, path: str, link: types.TracebackType | None, vague: bool) -> None:
        """vague: leave the last position out. Once CPython 3.11 and 3.12 have fused a load with the store before it, an unbound local is
        reported at the store."""
        while link is not None:
            code = link.tb_frame.f_code
            if code.co_filename == self.filename:
                place = list(code.co_positions())[link.tb_lasti // 2]
                where = "" if vague and link.tb_next is None else f"line {link.tb_lineno} {place}"
                self.add(path + ".tb", f"{code.co_qualname} {where}")
                seen = {} if code.co_name == "<module>" else dict(link.tb_frame.f_locals)
                for name, value in sorted(seen.items()):
                    self.walk(f"{path}.tb.{code.co_name}.{name}", value)
            elif not code.co_filename.endswith("observe.py"):
                self.add(path + ".tb", f"{code.co_qualname} line {link.tb_lineno}")
            link = link.tb_next

    def _class(self, path: str, head: str, cls: type) -> None:
        self.add(path, f"{head} {cls.__module__}.{cls.__qualname__}")
        if cls.__module__ != "program":
            return
        for name, value in list(vars(cls).items()):
            if not name.startswith("__") and not isinstance(value, (types.MemberDescriptorType, *_SKIPPED)):
                self.walk(f"{path}.{name}", value)

    def _iterator(self, path: str, head: str, iterator: Any) -> None:
        self.add(path, head)
        self.walk(path + ".state", iterator.__reduce__()[1:])

    def _generator(self, path: str, head: str, generator: types.GeneratorType[Any, Any, Any]) -> None:
        frame = generator.gi_frame
        self.add(path, f"{head} {generator.__qualname__} line {frame.f_lineno if frame else None}")
        if frame is not None:
            for name, value in sorted(dict(frame.f_locals).items()):
                self.walk(f"{path}.{name}", value)

    def _instance(self, path: str, head: str, obj: Any) -> None:
        state = getattr(obj, "__dict__", None)
        slots = [name for cls in type(obj).__mro__ for name in vars(cls).get("__slots__", ()) if hasattr(obj, name)]
        if state is None and not slots:
            self.add(path, f"{head} {_ADDRESS.sub('0x', repr(obj))}")
            return
        self.add(path, head)
        for name in slots:
            self.walk(f"{path}.{name}", getattr(obj, name))
        if state is not None:
            self.walk(path + ".__dict__", dict(state))


def first_difference(left: list[Line], right: list[Line]) -> str | None:
    """The first line in which two snapshots differ, as text; None if they are equal."""
    for (path, want), (other, got) in zip(left, right, strict=False):
        if path != other:
            return f"structure differs at {path!r} against {other!r}: {want} / {got}"
        if want != got:
            return f"{path}:\n    plain: {want}\n    jit:   {got}"
    if len(left) != len(right):
        longer = left if len(left) > len(right) else right
        path, text = longer[min(len(left), len(right))]
        return f"only the {'plain' if longer is left else 'jit'} run has {path}: {text}"
    return None
