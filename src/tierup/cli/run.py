"""`tierup run`: runs a program as `python` would, with its own modules compiled.

What a program can see of the interpreter's start is made as CPython makes it (`pymain_run_python` and `_PyRun_SimpleFile` in its
sources): `__main__`, `sys.argv`, `sys.path[0]`, the traceback of an uncaught exception, the exit code.
"""

from __future__ import annotations

import builtins
import os
import sys

from tierup.cli.args import Arguments, UsageError, parse
from tierup.runtime import config, events, stats
from tierup.runtime.selection import Selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any, Final, NoReturn

    Instrument = Callable[[CodeType], CodeType]

HELP: Final = """\
usage: tierup run [options] script.py [args …]
       tierup run [options] -m module [args …]
       tierup run [options] -c code [args …]

Runs a Python program (a file, a folder or zip file with __main__.py, a module, or code) as python would, and compiles what it can.

  --include PATTERN     also compile modules that match: a module name with wildcards, or a path; may be repeated
  --fast                allow results that differ in the last bits
  --threads N           threads of large kernels
  --min-graph-size N    leave smaller graphs to the interpreter
  --log STAGES          print stages to stderr: all, or some of bytecode,capture,guards,graph,llvm,asm,runtime
  --stats               print the counters to stderr when the program ends
"""

_FROM_VARIABLE: Final = {"--threads": "TIERUP_NUM_THREADS", "--min-graph-size": "TIERUP_MIN_GRAPH_SIZE", "--log": "TIERUP_LOG"}
OPTIONS: Final = {
    "-m": True,
    "-c": True,
    "--include": True,
    "--fast": False,
    "--stats": False,
    "--help": False,
    "-h": False,
} | dict.fromkeys(_FROM_VARIABLE, True)
STOP_AT: Final = ("-m", "-c")


class Target:
    """The program to run. kind: script, module or code."""

    __slots__ = ("args", "kind", "what")

    def __init__(self, kind: str, what: str, args: Sequence[str]) -> None:
        self.kind = kind
        self.what = what
        self.args = list(args)


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result runs the program and returns the exit code of a normal end."""
    arguments = parse(words, OPTIONS, stop_at=STOP_AT)
    if arguments.flags & {"-h", "--help"}:
        return lambda: print_help(HELP)
    target = find_target(arguments)
    include = set_up(arguments)
    if "--stats" in arguments.flags:
        at_exit(lambda: os.write(2, f"{stats.snapshot()}\n".encode(errors="backslashreplace")))
    return lambda: run(target, include)


def find_target(arguments: Arguments) -> Target:
    """The program that the command line names. Raises UsageError if there is none."""
    module, code = arguments.value("-m"), arguments.value("-c")
    if module is not None:
        return Target("module", module, arguments.operands)
    if code is not None:
        return Target("code", code, arguments.operands)
    if not arguments.operands:
        raise UsageError("no program given; name a script, or a module with -m")
    script, *args = arguments.operands
    try:
        os.stat(script)
        if not os.path.isdir(script):
            os.close(os.open(script, os.O_RDONLY))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot open {script!r}: {getattr(error, 'strerror', None) or error}") from None
    return Target("script", script, args)


def set_up(arguments: Arguments) -> list[str]:
    """Puts the options of the command line in force and returns the include patterns. Raises ConfigError."""
    options = config.current()
    changes = dict(
        config.parse(variable, text, option) for option, variable in _FROM_VARIABLE.items() if (text := arguments.value(option)) is not None
    )
    if "--fast" in arguments.flags:
        changes["fast"] = True
    config.set_current(options.replace(**changes))
    return arguments.values.get("--include", [])


def run(target: Target, include: Sequence[str]) -> int:
    """Runs the program to its end. What it raises comes out, set up to be shown without our frames."""
    instrument = start_engine(include)
    if target.kind == "module":
        _run_module(target, instrument, Selection(include))
    elif target.kind == "code":
        _run_code_text(target, instrument)
    elif _is_container(target.what):
        _run_container(target, instrument)
    else:
        _run_script(target, instrument)
    return 0


def at_exit(function: Callable[[], object]) -> None:
    """Calls a function in this process, not in its forks, after the program's own exit handlers."""
    import atexit

    pid = os.getpid()
    atexit.register(lambda: function() if os.getpid() == pid else None)


def start_engine(include: Sequence[str]) -> Instrument:
    """Installs the import hook and returns what compiles a code object; the identity where tierup is off or does not work here."""
    if not config.current().enabled:
        return lambda code: code
    stats.start()
    try:
        from tierup.engine import loader

        loader.install(include=include)
    except Exception as error:
        # A broken installation must not stop the program; `tierup doctor` says what is wrong.
        events.record("error", "the engine did not start", detail=repr(error))
        return lambda code: code

    def instrument(code: CodeType) -> CodeType:
        try:
            instrumented: CodeType = loader.instrument(code, user=True)
            return instrumented
        except Exception as error:
            events.record("error", "instrumenting a module failed", code.co_filename, code.co_firstlineno, detail=repr(error))
            return code

    return instrument


def print_help(text: str) -> int:
    """Prints a command's help; its exit code."""
    print(text, end="")
    return 0


def _run_script(target: Target, instrument: Instrument) -> None:
    sys.argv = [target.what, *target.args]
    _set_path(os.path.dirname(os.path.realpath(target.what)))
    path = _absolute(target.what)
    loader = _loader_class(path)("__main__", path)
    code = _compile_file(path, target)
    main = _fresh_main(loader)
    main.__file__ = path
    main.__dict__["__cached__"] = None
    _execute(instrument(code), main.__dict__, ("__file__", "__cached__"))


def _run_code_text(target: Target, instrument: Instrument) -> None:
    sys.argv = ["-c", *target.args]
    _set_path("")
    try:
        code = compile(target.what, "<string>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        _hand_over(["-c", target.what, *target.args])
    register = getattr(sys.modules.get("linecache"), "_register_code", None)
    if register is not None:
        # CPython 3.13 shows the lines of -c in tracebacks and registers them in this way.
        register(code, target.what, "<string>")
    main = _fresh_main(sys.modules["_frozen_importlib"].BuiltinImporter)
    _execute(instrument(code), main.__dict__, ())


def _run_module(target: Target, instrument: Instrument, selection: Selection) -> None:
    sys.argv = ["-m", *target.args]
    _set_path(os.getcwd())

    def wanted(code: CodeType, spec: Any) -> bool:
        return selection.selects(spec.name, code.co_filename)

    _run_with_runpy(target.what, True, instrument, wanted)


def _run_container(target: Target, instrument: Instrument) -> None:
    sys.argv = [target.what, *target.args]
    path = _absolute(target.what)
    # CPython adds this entry whatever safe_path says: it is where the program is.
    if sys.flags.safe_path:
        sys.path.insert(0, path)
    else:
        _set_path(path)
    _run_with_runpy("__main__", False, instrument, lambda code, spec: True)


def _run_with_runpy(name: str, is_module: bool, instrument: Instrument, wanted: Callable[[CodeType, Any], bool]) -> None:
    """Runs a module as `python -m` does, by the same function of `runpy`, which finds the code object through a detour of ours."""
    import runpy as _runpy

    runpy: Any = _runpy
    finder = "_get_module_details" if is_module else "_get_main_module_details"
    original = getattr(runpy, finder)

    def details(*args: object) -> tuple[object, object, CodeType]:
        setattr(runpy, finder, original)
        found, spec, code = original(*args)
        return found, spec, instrument(code) if wanted(code, spec) else code

    setattr(runpy, finder, details)
    _fresh_main(sys.modules["_frozen_importlib"].BuiltinImporter)
    try:
        runpy._run_module_as_main(name, is_module)
    except BaseException as error:
        _hide_our_frames(error, lambda: None)
        raise
    finally:
        setattr(runpy, finder, original)


def _execute(code: CodeType, namespace: dict[str, Any], names_of_the_run: Sequence[str]) -> None:
    """Executes the program. CPython removes `__file__` and `__cached__` from `__main__` behind it, and so do we."""

    def clean_up() -> None:
        for name in names_of_the_run:
            namespace.pop(name, None)

    try:
        exec(code, namespace)
    except BaseException as error:
        _hide_our_frames(error, clean_up)
        raise
    clean_up()


def _hide_our_frames(error: BaseException, clean_up: Callable[[], None]) -> None:
    """Called where the program's exception arrives: it will be shown with the traceback it has below our frame."""
    program_hook = getattr(sys, "excepthook", None)
    if isinstance(error, SystemExit) or program_hook is None or error.__traceback__ is None:
        return
    trace = error.__traceback__.tb_next

    def hook(kind: type[BaseException], value: BaseException, _trace: object) -> None:
        sys.excepthook = program_hook
        value.__traceback__ = trace
        if hasattr(sys, "last_traceback"):
            sys.last_traceback = trace
        try:
            program_hook(kind, value, trace)
        finally:
            clean_up()

    sys.excepthook = hook


def _fresh_main(loader: object) -> ModuleType:
    """A new `__main__`, with the names in the order in which CPython sets them."""
    main = type(sys)("__main__")
    main.__loader__ = loader  # type: ignore[assignment]
    main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    return main


def _set_path(entry: str) -> None:
    """Replaces the first entry of `sys.path`, which is our own script's folder, by the program's."""
    if not sys.flags.safe_path:
        sys.path[0] = entry


def _absolute(path: str) -> str:
    """As CPython makes the script's name absolute (`_Py_abspath`): joined to the working directory, not normalised."""
    if path.startswith(os.sep):
        return path
    return f"{os.getcwd()}{os.sep}{path}"


def _is_container(path: str) -> bool:
    """Whether a path hook takes the path: a folder or a zip file."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _loader_class(path: str) -> Any:
    loaders = sys.modules["_frozen_importlib_external"]
    return loaders.SourcelessFileLoader if path.endswith(".pyc") else loaders.SourceFileLoader


def _compile_file(path: str, target: Target) -> CodeType:
    try:
        if path.endswith(".pyc"):
            code: CodeType = _loader_class(path)("__main__", path).get_code("__main__")
            return code
        with open(path, "rb") as file:
            source = file.read()
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, ImportError, EOFError):
        _hand_over([target.what, *target.args])


def _hand_over(words: Sequence[str]) -> NoReturn:
    """Replaces this process by plain Python: a program that does not compile gets CPython's own words for it."""
    import subprocess

    sys.stdout.flush()
    sys.stderr.flush()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    os.execv(sys.executable, [sys.executable, *flags, *words])
