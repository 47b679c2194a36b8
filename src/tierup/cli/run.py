"""`tierup run`: runs a program as `python` would, with its own modules compiled.

What a program can see of the interpreter's start is made as CPython makes it (`pymain_run_python` and `_PyRun_SimpleFile` in its
sources): `__main__`, `sys.argv`, `sys.path[0]`, the traceback of an uncaught exception, the exit code.
"""

from __future__ import annotations

import builtins
import os
import stat
import sys

from tierup.runtime import config, events, stats
from tierup.runtime.args import Arguments, UsageError, parse
from tierup.runtime.selection import Selection, may_meet_arrays

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
        # A pipe must be opened once only, by who reads it.
        if stat.S_ISREG(os.stat(script).st_mode):
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
    """Runs the program to its end and returns its exit code; SystemExit comes out.

    Where tierup is off or its core does not load, plain Python takes over this process.
    """
    if not config.current().enabled:
        _hand_over(target)
    try:
        from tierup import _core
    except ImportError as error:
        print(f"tierup: the C core does not load, running without it: {error}", file=sys.stderr)
        _hand_over(target)
    if target.kind == "code":
        code = _run_code_text(_core, target, start_engine(_core, include))
    elif target.kind == "script" and not _is_container(target.what):
        code = _run_script(_core, target, start_engine(_core, include))
    else:
        code = _run_with_runpy(_core, target, include)
    if code == -1:
        _end_by_interrupt()
    return code


def at_exit(function: Callable[[], object]) -> None:
    """Calls a function in this process, not in its forks, after the program's own exit handlers."""
    import atexit

    pid = os.getpid()
    atexit.register(lambda: function() if os.getpid() == pid else None)


def start_engine(core: Any, include: Sequence[str], programs: tuple[str, ...] = ()) -> Instrument:
    """Installs the import hook and returns what compiles a code object.

    The engine itself is loaded for the first module that may work on arrays. programs: modules whose `exec` runs user code, too.
    """
    from tierup.cli import imports

    stats.start()
    threads = config.current().threads
    if threads is not None:
        core.set_num_threads(threads)

    def instrument(code: CodeType) -> CodeType:
        if not may_meet_arrays(code):
            return code
        try:
            from tierup.engine import loader

            return loader.instrument(code)
        except Exception as error:
            # Whatever is wrong in here, the program runs; `tierup doctor` and the statistics say what it is.
            events.record("error", "instrumenting a module failed", code.co_filename, code.co_firstlineno, detail=repr(error))
            return code

    imports.install(Selection(include), instrument, programs)
    return instrument


def print_help(text: str) -> int:
    """Prints a command's help; its exit code."""
    print(text, end="")
    return 0


def _run_script(core: Any, target: Target, instrument: Instrument) -> int:
    sys.argv = [target.what, *target.args]
    _set_path(os.path.dirname(os.path.realpath(target.what)))
    path = _absolute(target.what)
    code = _compile_file(path, target)
    main = _fresh_main(_loader_class(path)("__main__", path))
    main.__file__ = path
    main.__dict__["__cached__"] = None
    result: int = core.run_main(instrument(code), main.__dict__)
    # CPython removes these two behind a script, too.
    main.__dict__.pop("__file__", None)
    main.__dict__.pop("__cached__", None)
    return result


def _run_code_text(core: Any, target: Target, instrument: Instrument) -> int:
    sys.argv = ["-c", *target.args]
    _set_path("")
    try:
        code = compile(target.what, "<string>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        _hand_over(target)
    code = instrument(code)
    if sys.version_info >= (3, 13):
        import linecache

        # CPython 3.13 shows the lines of -c in tracebacks; it registers them like this.
        linecache._register_code("<string>", target.what, "<string>")  # type: ignore[attr-defined]
    main = _fresh_main(sys.modules["_frozen_importlib"].BuiltinImporter)
    result: int = core.run_main(code, main.__dict__)
    return result


def _run_with_runpy(core: Any, target: Target, include: Sequence[str]) -> int:
    """Runs a module, folder or zip file as `python` does, by the same function of `runpy`."""
    import runpy

    start_engine(core, include, ("runpy",))
    is_module = target.kind == "module"
    if is_module:
        sys.argv = ["-m", *target.args]
        _set_path(os.getcwd())
    else:
        sys.argv = [target.what, *target.args]
        # CPython adds this entry whatever safe_path says: it is where the program is.
        sys.path[: 0 if sys.flags.safe_path else 1] = [_absolute(target.what)]
    _fresh_main(sys.modules["_frozen_importlib"].BuiltinImporter)
    arguments = (target.what if is_module else "__main__", is_module)
    result: int = core.run_main(runpy._run_module_as_main, arguments)  # type: ignore[attr-defined]
    return result


def _end_by_interrupt() -> NoReturn:
    """Leaves as an uncaught KeyboardInterrupt does, which ends the process by SIGINT; it was shown already."""
    hook = sys.excepthook

    def silent(*_args: object) -> None:
        sys.excepthook = hook

    sys.excepthook = silent
    raise KeyboardInterrupt


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
        _hand_over(target)


def _hand_over(target: Target) -> NoReturn:
    """Replaces this process by plain Python. A program that does not compile gets CPython's own words for it in this way."""
    import subprocess

    sys.stdout.flush()
    sys.stderr.flush()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    how = {"script": [], "module": ["-m"], "code": ["-c"]}[target.kind]
    os.execv(sys.executable, [sys.executable, *flags, *how, target.what, *target.args])
