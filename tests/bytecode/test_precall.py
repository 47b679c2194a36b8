"""The PRECALL that lost its CALL (CPython 3.11): reproduced, refused, and the right copy runs.

A graph too small to compile used to be copied back as a run of instructions; a run that ended in PRECALL, with the CALL generated
anew behind it, crashed once PRECALL specialised: the specialised forms do the whole call and skip a fixed distance over CALL.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tierup.bytecode.verify import VerificationError, verify_fields

from .rawcode import Instr, function

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="only 3.11 has PRECALL")

SOURCE = Path(__file__).resolve().parents[2] / "src"
TESTS = Path(__file__).resolve().parents[1]

_BUILTIN: list[Instr] = ["PUSH_NULL", ("LOAD_GLOBAL", 0), ("LOAD_FAST", 0)]
BAD = {
    "nop between": [*_BUILTIN, ("PRECALL", 1), "NOP", ("CALL", 1)],
    "a second call's arguments between": [*_BUILTIN, ("PRECALL", 1), ("LOAD_CONST", 0), "POP_TOP", ("CALL", 1)],
}
GOOD: list[Instr] = [*_BUILTIN, ("PRECALL", 1), ("CALL", 1)]

SCRIPT = """
import sys
from types import FunctionType
from bytecode.rawcode import function
from bytecode import test_precall
body = eval(sys.argv[1])
code = function(*body, "RETURN_VALUE", names=("len",), argcount=1).build()
f = FunctionType(code, {"len": len})
for call in range(int(sys.argv[2])):
    if f("abc") != 3:
        sys.exit(3)
    if call < 20:
        print(call + 1, flush=True)
"""


def run(body: list[Instr], calls: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler=0", "-c", SCRIPT, repr(body), str(calls)]
    path = f"{SOURCE}:{TESTS}"
    return subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name", list(BAD))
def test_bad_copy_crashes_and_is_refused(name: str) -> None:
    with pytest.raises(VerificationError, match="PRECALL is not followed by CALL"):
        verify_fields(function(*BAD[name], "RETURN_VALUE", names=("len",), argcount=1))
    done = run(BAD[name], 1000)
    assert done.returncode < 0, done.stderr
    # Right until the code is quickened, by the eighth call.
    assert 1 <= len(done.stdout.split()) < 20


def test_right_copy_runs_a_million_times() -> None:
    verify_fields(function(*GOOD, "RETURN_VALUE", names=("len",), argcount=1))
    done = run(GOOD, 1_000_000)
    assert done.returncode == 0, done.stderr
