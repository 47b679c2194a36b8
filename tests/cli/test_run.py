"""`tierup run` against plain Python: stdout, stderr and exit code must be the same bytes."""

from __future__ import annotations

import py_compile
import signal
import subprocess
import sys
import time
import zipfile

import pytest

NAMESPACE = """
import re, sys
def shown(value):
    return re.sub(" at 0x[0-9a-f]*", "", repr(value))
print([(name, shown(value)) for name, value in list(globals().items())])
print(sys.argv, sys.path[:2], sys.modules["__main__"].__dict__ is globals(), __import__("__main__") is sys.modules["__main__"])
"""

PROGRAMS = {
    "namespace": NAMESPACE,
    "uncaught": "def f(x):\n    return 1 / x\n\ndef g():\n    f(0)\n\ng()\n",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "context": "def f():\n    try:\n        {}['a']\n    finally:\n        int('x')\nf()\n",
    "group": "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])\n",
    "notes": "e = ValueError('v')\ne.add_note('a note')\nraise e\n",
    "recursion": "def f(): return f()\nf()\n",
    "long_message": "raise ValueError('x' * 5000)\n",
    "exit_code": "import sys\nsys.exit(7)\n",
    "exit_text": "import sys\nprint('out')\nsys.exit('a message')\n",
    "exit_none": "raise SystemExit\n",
    "exit_object": "raise SystemExit({'a': 1})\n",
    "exit_large": "import sys\nsys.exit(256 + 3)\n",
    "exit_hard": "import os\nprint('lost or not', flush=True)\nos._exit(5)\n",
    "interrupt": "import os, signal, time\nprint('before')\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n",
    "interrupt_caught": "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    print('caught')\n",
    "interrupt_subclass": "class Stop(KeyboardInterrupt): pass\nraise Stop('now')\n",
    "terminated": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "handler": (
        "import os, signal\nsignal.signal(signal.SIGUSR1, lambda n, f: print(n, f.f_code.co_name))\nos.kill(os.getpid(), signal.SIGUSR1)\n"
    ),
    "generator_exit": "raise GeneratorExit('odd')\n",
    "base_exception": "class E(BaseException): pass\nraise E(1)\n",
    "hook": "import sys\nsys.excepthook = lambda k, v, t: print('hook', k, v, t.tb_frame.f_code.co_name, t.tb_next)\n1 / 0\n",
    "hook_gone": "import sys\ndel sys.excepthook\n1 / 0\n",
    "hook_last": "import atexit, sys, traceback\natexit.register(lambda: traceback.print_tb(sys.last_traceback))\n1 / 0\n",
    "hook_is_restored": "import atexit, sys\natexit.register(lambda: print(sys.excepthook is sys.__excepthook__))\n1 / 0\n",
    "atexit_file": "import atexit\natexit.register(lambda: print(sorted(n for n in globals() if n.startswith('__'))))\n",
    "atexit_after_error": "import atexit\natexit.register(lambda: print('__file__' in globals()))\nraise ValueError\n",
    "atexit_after_exit": "import atexit, sys\natexit.register(lambda: print('__file__' in globals()))\nsys.exit(3)\n",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('main ends')\n",
    "thread_error": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start(); t.join()\n",
    "destructor": "class C:\n    def __del__(self): print('gone')\nc = C()\nprint('end')\n",
    "warning": "import warnings\nwarnings.warn('careful')\n",
    "warning_level": "import warnings\ndef f():\n    warnings.warn('careful', stacklevel=2)\nf()\n",
    "logging": "import logging\nlogging.basicConfig(format='%(filename)s:%(lineno)d %(funcName)s %(message)s')\nlogging.error('x')\n",
    "input": "print(input('name? ') + '!')\nprint(input())\n",
    "stdin": "import sys\nprint(sorted(sys.stdin))\n",
    "stdin_ends": "input()\n",
    "unicode": "print('żółć', ascii('€'))\nnäme = 3\nprint(näme)\nraise ValueError('ü')\n",
    "future": "from __future__ import annotations\ndef f(x: undefined): ...\nprint(f.__annotations__)\n",
    "no_future": "try:\n    def f(x: undefined): ...\nexcept NameError as e:\n    print(e)\n",
    "docstring": '"""the doc"""\nprint(__doc__)\n',
    "annotations": "x: int = 3\nprint(__annotations__)\n",
    "pickle": (
        "import pickle\n"
        "class C:\n"
        "    def __init__(self, x): self.x = x\n"
        "print(type(pickle.loads(pickle.dumps(C(3)))) is C, pickle.dumps(C)[:40])\n"
    ),
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(3), P.__module__)\n",
    "source": "import inspect, sys\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getsourcefile(f))\n",
    "main_code": "import sys\nprint(sys._getframe().f_code.co_filename, sys._getframe().f_code.co_name, sys._getframe().f_lineno)\n",
    "syntax_error": "print('never')\ndef f(:\n    pass\n",
    "indentation_error": "if True:\nprint()\n",
    "null_byte": "x = 1\0\n",
    "return_outside": "print(1)\nreturn\n",
    "late_syntax_warning": "print(1 is 1)\n",
    "broken_pipe": "import os, sys\nos.close(1)\nprint('x')\n",
    "numpy": (
        "import numpy as np\n"
        "x = np.arange(12.0).reshape(3, 4)\n"
        "for i in range(50):\n"
        "    y = x * 2.0 + i\n"
        "print(y, y.sum(), y.T.flags.c_contiguous)\n"
    ),
    "numpy_warning": "import numpy as np\nfor i in range(50):\n    y = np.ones(3) / np.array([1.0, 0.0, i])\nprint(y)\n",
    "numpy_error": (
        "import numpy as np\n"
        "def f(a, b):\n"
        "    return a + b\n"
        "for n in range(3, 60):\n"
        "    f(np.ones(3), np.ones(3))\n"
        "f(np.ones(3), np.ones(4))\n"
    ),
    "exec_compile": "exec(compile('print(__name__)\\nraise ValueError', 'made.py', 'exec'))\n",
    "modules": "import sys\nprint('numpy' in sys.modules, 'llvmlite' in sys.modules, 'rich' in sys.modules, 'asyncio' in sys.modules)\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_script(runner, name):
    script = runner.write(f"{name}.py", PROGRAMS[name])
    runner.same(script, "--flag", "value", stdin=b"line one\nline two\n" if name != "stdin_ends" else b"")


@pytest.mark.parametrize("how", ["script", "./script", "sub/../script", "absolute", "link"])
def test_spelling_of_the_path(runner, how):
    runner.write("elsewhere/script.py", NAMESPACE)
    runner.write("script.py", NAMESPACE)
    (runner.folder / "sub").mkdir()
    (runner.folder / "link.py").symlink_to("elsewhere/script.py")
    path = {"absolute": str(runner.folder / "script.py")}.get(how, f"{how}.py")
    runner.same(path)


def test_imports_beside_the_script(runner):
    runner.write("work/helper.py", "import sys\nprint(__name__, __file__, __spec__.origin)\nVALUE = 3\n")
    runner.write("work/main.py", "import helper\nprint(helper.VALUE)\n")
    runner.same("work/main.py")


IMPORT_FAILURES = {
    "missing": "import not_there\n",
    "syntax": "import broken\n",
    "raises": "import raises\n",
    "nested": "import nested\n",
    "from": "from raises import x\n",
    "in a package": "from pkg import mod\n",
    "name missing": "from pkg import not_there\n",
    "by importlib": "import importlib\nimportlib.import_module('broken')\n",
    "circular": "import one\n",
}


@pytest.mark.parametrize("name", IMPORT_FAILURES)
def test_failing_import(runner, name):
    runner.write("broken.py", "x = 1\ndef f(:\n")
    runner.write("raises.py", "def f():\n    return 1 / 0\nf()\n")
    runner.write("nested.py", "import raises\n")
    runner.write("pkg/__init__.py", "")
    runner.write("pkg/mod.py", "import nested\n")
    runner.write("one.py", "from two import a\n")
    runner.write("two.py", "from one import b\n")
    runner.write("script.py", IMPORT_FAILURES[name])
    runner.same("script.py")


def test_import_system_looks_untouched(runner):
    runner.write("helper.py", "")
    runner.write(
        "script.py",
        "import sys, helper\n"
        "print([getattr(finder, '__name__', type(finder)) for finder in sys.meta_path], len(sys.path_hooks))\n"
        "loader = type(helper.__loader__)\n"
        "print(loader, loader.get_code.__qualname__, loader.exec_module.__qualname__, helper.__loader__.get_code('helper').co_code)\n",
    )
    runner.same("script.py")


def test_module(runner):
    runner.write("pkg/__init__.py", "print('package', __name__)\n")
    runner.write("pkg/other.py", "VALUE = 4\n")
    runner.write("pkg/tool.py", NAMESPACE + "from .other import VALUE\nprint(VALUE, __package__)\n1 / 0\n")
    runner.same("-m", "pkg.tool", "a", "-b")


def test_interrupted_module(runner):
    runner.write("app/__main__.py", PROGRAMS["interrupt"])
    for words in (["-m", "app"], ["app"], ["-c", PROGRAMS["interrupt"]]):
        assert runner.same(*words).returncode == -signal.SIGINT


def test_package_as_module(runner):
    runner.write("pkg/__init__.py", "")
    runner.write("pkg/__main__.py", NAMESPACE)
    runner.same("-m", "pkg")


@pytest.mark.parametrize("name", ["missing", "missing.sub", "pkg", "broken", "pkg.mod.x", ""])
def test_module_that_cannot_run(runner, name):
    runner.write("pkg/__init__.py", "")
    runner.write("pkg/mod.py", "")
    runner.write("broken.py", "def f(:\n")
    runner.same("-m", name)


def test_standard_library_module(runner):
    runner.write("data.json", '{"a": [1, 2]}')
    runner.same("-m", "json.tool", "data.json")


def test_folder_and_zip_file(runner):
    runner.write("app/__main__.py", NAMESPACE + "import helper\n")
    runner.write("app/helper.py", "print(__name__, __file__)\nint('x')\n")
    with zipfile.ZipFile(runner.folder / "app.zip", "w") as archive:
        for name in ("__main__.py", "helper.py"):
            archive.write(runner.folder / "app" / name, name)
    runner.same("app", "1")
    runner.same("app.zip", "1")
    (runner.folder / "empty").mkdir()
    runner.same("empty")


def test_program_from_a_pipe(runner):
    program = b"import sys\nprint(sys.argv, __file__)\n"
    assert runner.same("/dev/stdin", "a", stdin=program).returncode == 0


def test_compiled_file(runner):
    path = runner.folder / runner.write("script.py", NAMESPACE)
    py_compile.compile(str(path), str(runner.folder / "script.pyc"), dfile="script.py")
    runner.same("script.pyc", "x")
    (runner.folder / "bad.pyc").write_bytes(b"not bytecode")
    runner.same("bad.pyc")


@pytest.mark.parametrize(
    "code", [NAMESPACE, "import sys; print(sys.argv, sys.path[0])", "1/0", "def f(:", "", "\nif 1:\n  raise ValueError"]
)
def test_code_from_the_command_line(runner, code):
    runner.same("-c", code, "a", "-m")


@pytest.mark.parametrize(
    "text",
    [
        b"# coding: latin-1\nprint('\xe9')\n",
        b"\xef\xbb\xbfprint('bom')\n",
        b"x = '\xe9'\n",
        b"print(1)\r\nprint(2)\r\n",
        b"print(1)",
        b"",
        b"# coding: no-such\n",
    ],
    ids=["latin-1", "bom", "undeclared", "crlf", "no-newline", "empty", "unknown-codec"],
)
def test_encoding_of_the_source(runner, text):
    (runner.folder / "script.py").write_bytes(text)
    runner.same("script.py")


@pytest.mark.parametrize("name", ["PYTHONSAFEPATH", "PYTHONOPTIMIZE", "PYTHONDEVMODE", "PYTHONUNBUFFERED"])
def test_interpreter_settings(runner, name):
    runner.write("script.py", NAMESPACE + "assert False, 'kept'\n")
    runner.same("script.py", **{name: "1"})


def test_pycache_is_written_as_plain_python_does(runner):
    runner.write("helper.py", "X = 1\n")
    runner.write("script.py", "import helper\nprint(helper.__cached__)\n")
    runner.same("script.py", PYTHONDONTWRITEBYTECODE="")
    names = [path.name for path in (runner.folder / "__pycache__").iterdir()]
    assert names == [f"helper.{sys.implementation.cache_tag}.pyc"]
    # and what tierup left there is plain: the interpreter alone runs it
    assert runner.python("script.py", PYTHONDONTWRITEBYTECODE="").returncode == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(runner, method):
    runner.write(
        "script.py",
        "import multiprocessing as mp\n"
        "def square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        f"    with mp.get_context({method!r}).Pool(2) as pool:\n"
        "        print(pool.map(square, range(5)))\n",
    )
    runner.same("script.py")


def test_multiprocessing_of_a_module(runner):
    runner.write("pkg/__init__.py", "")
    runner.write("pkg/data.py", "BASE = 10\n")
    runner.write(
        "pkg/tool.py",
        "import multiprocessing as mp\nfrom .data import BASE\n"
        "def add(x):\n    return x + BASE\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(add, range(3)))\n",
    )
    runner.same("-m", "pkg.tool")


def test_interrupt_from_outside_kills_by_signal(runner):
    script = runner.folder / runner.write("script.py", "import time\nprint('ready', flush=True)\ntime.sleep(30)\n")
    ends = []
    for command in ([sys.executable], [sys.executable, "-m", "tierup", "run"]):
        with subprocess.Popen([*command, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)
            ends.append((process.returncode, stderr))
    assert ends[0] == ends[1]
    assert ends[0][0] == -signal.SIGINT


def test_off_runs_without_the_engine(runner):
    runner.write("script.py", "import sys\nprint([m for m in sys.modules if m.startswith('tierup.engine')])\n")
    assert runner.tierup("run", "script.py", TIERUP="0").stdout == b"[]\n"
    runner.same("script.py", TIERUP="0")


def test_options_stop_at_the_program(runner):
    runner.write("script.py", "import sys\nprint(sys.argv[1:])\n")
    done = runner.tierup("run", "--threads", "2", "--include=foo.*", "--fast", "script.py", "--threads", "x", "-m")
    assert (done.stdout, done.stderr, done.returncode) == (b"['--threads', 'x', '-m']\n", b"", 0)


def test_stats_option_reports_on_stderr(runner):
    runner.write("script.py", "print('out')\nraise SystemExit(3)\n")
    done = runner.tierup("run", "--stats", "script.py")
    assert (done.stdout, done.returncode) == (b"out\n", 3)
    assert b"attempts" in done.stderr


def test_start_up_is_light(runner):
    runner.write(
        "script.py", "import sys\nprint(sorted({'numpy', 'llvmlite', 'rich', 'asyncio', 'argparse', 'json'} & set(sys.modules)))\n"
    )
    assert runner.tierup("run", "script.py").stdout == b"[]\n"


def test_numpy_and_llvm_load_only_when_the_program_needs_them(runner):
    runner.write("helper.py", "def work(n):\n    total = 0\n    for i in range(n):\n        total = total + i * 2\n    return total\n")
    runner.write(
        "script.py",
        "import sys, helper\n"
        "print([helper.work(100) for _ in range(50)][-1], sorted({'numpy', 'llvmlite'} & set(sys.modules)))\n"
        "import numpy as np\n"
        "print(sorted({'numpy', 'llvmlite'} & set(sys.modules)))\n"
        "x = np.ones(5)\nfor i in range(40):\n    x = x * 0.5 + i * 0.25\nprint(x)\n",
    )
    runner.same("script.py")
