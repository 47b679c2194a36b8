"""`tierup doctor`: what works on this machine, found out by trying it."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from tierup.runtime import config, events
from tierup.runtime.args import UsageError, parse

HELP: Final = """\
usage: tierup doctor [--json]

Tries each part of tierup on this machine and says what works. Exit code 1 if something that is needed does not.
"""

Verdict = Literal["ok", "warning", "failed"]
Finding = tuple[Verdict, str]

SUPPORTED: Final = ((3, 11), (3, 12), (3, 13))


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result runs the checks."""
    arguments = parse(words, {"--json": False, "--help": False, "-h": False}, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return _help
    if arguments.operands:
        raise UsageError(f"unexpected argument {arguments.operands[0]!r}")
    return lambda: _examine("--json" in arguments.flags)


def _help() -> int:
    print(HELP, end="")
    return 0


def _examine(as_json: bool) -> int:
    results = []
    for name, (verdict, text) in findings():
        results.append({"check": name, "verdict": verdict, "finding": text})
        if not as_json:
            print(f"{verdict:8} {name:12} {text}", flush=True)
    failed = sum(result["verdict"] == "failed" for result in results)
    if as_json:
        print(json.dumps({"works": not failed, "checks": results}, indent=1))
    else:
        print("tierup works on this machine" if not failed else f"{failed} of {len(results)} checks failed")
    return 1 if failed else 0


def findings() -> Iterator[tuple[str, Finding]]:
    """Runs the checks one by one, cheapest first."""
    for check in (_interpreter, _environment, _core, _numpy, _llvm, _cache, _threads, _tools, _trial):
        try:
            yield check.__name__[1:], check()
        except Exception as error:
            # Whatever breaks is the finding: that is what this command is for.
            yield check.__name__[1:], ("failed", f"{type(error).__name__}: {error}")


def _interpreter() -> Finding:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in SUPPORTED:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
        return "failed", f"{version}; tierup needs CPython {known}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "failed", f"{version} without the GIL; tierup needs it"
    return "ok", f"{version} at {sys.executable}, {platform.machine()}"


def _environment() -> Finding:
    options = config.Options.from_env()
    found = [f"{name}={os.environ[name]}" for name in config.VARIABLES if name in os.environ]
    unknown = sorted(name for name in os.environ if name.startswith("TIERUP") and name not in config.VARIABLES)
    if unknown:
        return "warning", f"unknown variable {unknown[0]}; tierup reads {', '.join(config.VARIABLES)}"
    if not options.enabled:
        return "warning", "TIERUP=0: tierup is off"
    return "ok", " ".join(found) or "no TIERUP variables set"


def _core() -> Finding:
    core = importlib.import_module("tierup._core")
    return "ok", str(core.__file__)


def _numpy() -> Finding:
    numpy = importlib.import_module("numpy")
    importlib.import_module("tierup._core").init_numpy()
    return "ok", f"NumPy {numpy.__version__}"


def _llvm() -> Finding:
    llvmlite = importlib.import_module("llvmlite")
    binding = importlib.import_module("llvmlite.binding")
    _compile_something(binding)
    version = ".".join(map(str, binding.llvm_version_info))
    return "ok", f"llvmlite {llvmlite.__version__}, LLVM {version}, compiles for {binding.get_host_cpu_name()}"


def _compile_something(llvm: Any) -> None:
    """Compiles and runs one function, without any other part of tierup."""
    import ctypes

    for part in ("native_target", "native_asmprinter"):
        getattr(llvm, f"initialize_{part}")()
    module = llvm.parse_assembly("define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n")
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    twice = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("twice"))
    if twice(21) != 42:
        raise RuntimeError("a compiled function returned a wrong result")


def _cache() -> Finding:
    from tierup.native import cache
    from tierup.native.elf import Code

    folder = cache.folder()
    if folder is None:
        return "warning", "off (TIERUP_CACHE_DIR is empty): every process compiles anew"
    before = len(events.recent("cache"))
    probe = Code(b"probe", (0,))
    cache.write("probe", probe)
    works = cache.read("probe") == probe
    (folder / "probe").unlink(missing_ok=True)
    if not works:
        problems = [event.detail for event in events.recent("cache")[before:]] or [f"{folder} does not keep what is written to it"]
        return "warning", f"{problems[0]}: every process compiles anew"
    return "ok", f"{folder}, {len(list(folder.iterdir()))} entries"


def _threads() -> Finding:
    core = importlib.import_module("tierup._core")
    return "ok", f"{core.num_threads()} threads, {len(os.sched_getaffinity(0))} cores for this process"


def _tools() -> Finding:
    """Tools that see every line or call make compiled code step aside."""
    active = [name for name, hook in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())) if hook is not None]
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        active += [f"sys.monitoring tool {monitoring.get_tool(k)}" for k in range(6) if monitoring.get_tool(k) is not None]
    if active:
        return "warning", f"{', '.join(active)} active: where it looks, programs run uncompiled"
    return "ok", "no tracer, profiler or monitoring tool is active"


def _trial() -> Finding:
    """Compiles a small function and compares its results with Python's."""
    import numpy as np

    import tierup

    def formula(x: Any, y: Any) -> Any:
        return (x * 2.0 + y) * (x - y)

    x, y = np.linspace(0.0, 1.0, 1000), np.linspace(3.0, -7.0, 1000)
    expected = formula(x, y)
    compiled = tierup.jit(formula)
    before = tierup.stats()
    for _ in range(100):
        if not np.array_equal(compiled(x, y), expected):
            return "failed", "a compiled function returned a wrong result"
    made = tierup.stats().specialisations - before.specialisations
    if not config.current().enabled:
        return "warning", "not tried: tierup is off"
    return (
        ("ok", "a compiled function gives the right bits") if made else ("failed", "a simple function was not compiled; see tierup.stats()")
    )
