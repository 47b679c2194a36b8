"""Runs a program's calls and records everything observable of each."""

from __future__ import annotations

import contextlib
import gc
import io
import opcode
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import inputs
from .programs import SCRIPT_MARK, Program
from .snapshot import Constants, Line, Snapshot, constants_of, first_difference, functions_in

Jit = Callable[[Any], Any]

_HIDDEN = {"jit", "CALLS", "make", "alias", "overlapping"}

# How a call's surroundings treat warnings, floating-point errors and tracing.
ENVIRONMENTS = ("always", "default", "error", "ignore", "raise", "call", "trace", "profile")


@dataclass(frozen=True)
class Call:
    """One recorded call of a program."""

    environment: str
    lines: list[Line]
    failed: bool
    """The plain outcome was an exception."""


@dataclass
class Recorder:
    """Collects what reaches the outside while a call runs."""

    filename: str
    log: list[str] = field(default_factory=list)

    def floating(self, kind: str, flag: int) -> None:
        """np.seterrcall's receiver."""
        self.log.append(f"errcall {kind} {flag}")

    def trace(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """sys.settrace's receiver."""
        if frame.f_code.co_filename != self.filename:
            return None
        if event == "exception" and _ends_a_loop(frame, arg[0]):
            return self.trace
        self.log.append(f"{event} {frame.f_code.co_name} {frame.f_lineno}")
        return self.trace

    def profile(self, frame: types.FrameType, event: str, arg: object) -> None:
        """sys.setprofile's receiver; C calls are named by their function."""
        if frame.f_code.co_filename == self.filename:
            self.log.append(f"{event} {frame.f_code.co_name} {frame.f_lineno} {getattr(arg, '__name__', '') if 'c_' in event else ''}")


def _ends_a_loop(frame: types.FrameType, error: type[BaseException]) -> bool:
    """Whether an exception event only says that a generator's `for` has ended. CPython 3.13 and later send it from END_FOR where the loop
    is longer than a jump without EXTENDED_ARG reaches; else from FOR_ITER, and only if the generator returned something. So it tells of
    the length of the code, and generated code is longer."""
    if sys.version_info < (3, 13) or error is not StopIteration:
        return False
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]] in ("FOR_ITER", "END_FOR")


@contextlib.contextmanager
def _surroundings(environment: str, recorder: Recorder) -> Iterator[None]:
    filters = {"error": "error", "default": "default"}.get(environment, "always")
    errors: dict[str, dict[str, Any]] = {
        "ignore": {"all": "ignore"},
        "raise": {"all": "raise"},
        "call": {"all": "call", "call": recorder.floating},
    }
    handling = errors.get(environment, {"all": "warn", "under": "ignore"})
    with warnings.catch_warnings(record=True) as caught, np.errstate(**handling):
        warnings.simplefilter(filters)  # type: ignore[arg-type]
        yield
    for warning in caught:
        recorder.log.append(f"{warning.category.__name__}: {warning.message} at {Path(warning.filename).name}:{warning.lineno}")


def _called(target: Any, args: Any, kwargs: Any, environment: str, recorder: Recorder) -> tuple[bool, Any]:
    """Calls the target; (True, result) or (False, exception)."""
    # No local may hold the exception: its traceback holds this frame, and the cycle would keep the arguments alive.
    try:
        if environment == "trace":
            sys.settrace(recorder.trace)
        elif environment == "profile":
            sys.setprofile(recorder.profile)
        return True, target(*args, **kwargs)
    except Exception as error:
        return False, error
    finally:
        sys.settrace(None)
        sys.setprofile(None)


_EMPTY: tuple[()] = ()


def _tracked(roots: list[Any]) -> list[Any]:
    """The mutable objects reachable from some roots: those whose reference counts a program may look at. There is one empty tuple for
    everybody, also for the translator."""
    found: dict[int, Any] = {}
    todo = list(roots)
    while todo:
        obj = todo.pop()
        if id(obj) in found or obj is _EMPTY or isinstance(obj, (type, types.ModuleType, types.FunctionType)):
            continue
        if isinstance(obj, np.ndarray):
            todo.append(obj.base)
        elif isinstance(obj, (list, tuple, dict, set, types.CellType)) or type(obj).__module__ == "program":
            todo.extend(gc.get_referents(obj))  # unlike obj.__dict__ it does not make an instance's dict
        else:
            continue
        found[id(obj)] = obj
    return list(found.values())


def _watch(result: Any) -> list[weakref.ref[Any]]:
    arrays = [item for item in _tracked([result]) if isinstance(item, np.ndarray)]
    return [weakref.ref(array) for array in arrays]


def _user_state(namespace: dict[str, Any]) -> dict[str, Any]:
    hidden = (types.ModuleType, types.BuiltinFunctionType)
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("__") and name not in _HIDDEN and not isinstance(value, hidden) and value is not inputs
    }


def _observe(target: Any, namespace: dict[str, Any], args: Any, kwargs: Any, environment: str, snapshot: Snapshot) -> Call:
    recorder = Recorder(snapshot.filename)
    tracked = _tracked([args, kwargs, _user_state(namespace)])
    before = [sys.getrefcount(obj) for obj in tracked]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _surroundings(environment, recorder):
        ok, result = _called(target, args, kwargs, environment, recorder)
    held = [sys.getrefcount(obj) for obj in tracked]
    snapshot.walk("args", args)
    snapshot.walk("kwargs", kwargs)
    snapshot.walk("result" if ok else "raised", result)
    snapshot.walk("globals", _user_state(namespace))
    for entry in recorder.log:
        snapshot.add("event", entry)
    snapshot.add("output", output.getvalue())
    snapshot.add("errstate", str({key: value for key, value in np.geterr().items()}))
    counted = [f"{type(obj).__name__} {new - old:+}" for obj, new, old in zip(tracked, held, before, strict=True)]
    snapshot.add("references while the result lives", str(counted))
    lines = snapshot.release()
    watched = _watch(result) if ok else []
    del result
    after = [sys.getrefcount(obj) for obj in tracked]
    lines.append(("references after", str([new - old for new, old in zip(after, before, strict=True)])))
    lines.append(("results still alive", str([ref() is not None for ref in watched])))
    return Call(environment, lines, not ok)


def _unchanged(code: Any) -> Any:
    return code


def _nothing() -> None:
    """Nothing to do at the end."""


@dataclass(frozen=True)
class How:
    """A way to run programs. `jit` is the decorator that they use; `load` gets the code of the module and of the script."""

    jit: Jit = _unchanged
    load: Callable[[types.CodeType], types.CodeType] = _unchanged
    at_end: Callable[[], None] = _nothing
    """Called while the module and what was compiled for it are still alive."""
    snapshot: Callable[[str, bool, Constants], Snapshot] = Snapshot


def run(program: Program, path: Path, how: How) -> list[Call]:
    """Executes a program's module, then makes and records its calls in order. A script's body is executed for each."""
    namespace: dict[str, Any] = {
        "__name__": "program",
        "__file__": str(path),
        "jit": how.jit,
        "make": inputs.make,
        "alias": inputs.alias,
        "overlapping": inputs.overlapping,
    }
    module, mark, script = program.source.partition(SCRIPT_MARK)
    code = compile(module, str(path), "exec", dont_inherit=True)
    body = compile(module.count("\n") * "\n" + script, str(path), "exec", dont_inherit=True)
    exec(how.load(code), namespace)
    target = _script(how.load(body), namespace) if mark else namespace["f"]
    constants = constants_of(body).union(*map(constants_of, functions_in(code)))
    calls = []
    # The collector runs when it likes, which would show in the reference counts of cyclic garbage.
    collecting = gc.isenabled()
    gc.disable()
    try:
        for environment, arguments in namespace["CALLS"]:
            args, kwargs = arguments()
            calls.append(_observe(target, namespace, args, kwargs, environment, how.snapshot(str(path), program.exact_nans, constants)))
            del args, kwargs
        how.at_end()
    finally:
        if collecting:
            gc.enable()
    return calls


def _script(code: types.CodeType, namespace: dict[str, Any]) -> Callable[..., Any]:
    def execute(a: Any, b: Any, **options: Any) -> Any:
        namespace.update(options, a=a, b=b)
        del a, b, options
        exec(code, namespace)
        return namespace.pop("result")

    return execute


def difference(program: Program, path: Path, how: How) -> str | None:
    """Runs a program plain and in another way; the first observable difference, or None.

    A difference that two plain runs show as well is NumPy's own (values that depend on where a buffer lies) and is none.
    """
    path.write_text(program.source)
    as_is = How(snapshot=how.snapshot)
    plain = run(program, path, as_is)
    found = _compare(plain, run(program, path, how))
    if found is not None and any(_compare(plain, run(program, path, as_is)) for _ in range(3)):
        return None
    return found


def _compare(plain: list[Call], compiled: list[Call]) -> str | None:
    for i, (want, got) in enumerate(zip(plain, compiled, strict=True)):
        text = first_difference(want.lines, got.lines)
        if text is not None:
            return f"call {i} ({want.environment}): {text}"
    return None
