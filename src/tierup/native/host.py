"""This machine's CPU, as code generation and the object cache need it, without importing LLVM.

LLVM's own name and feature list are the truth, but asking costs the import. So they are stored beside the cached kernels, under the
kernel's description of the CPU (which tells two CPUs apart), and asked for only if that is new.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import platform
from pathlib import Path
from typing import Final

from tierup.native.kernels import Target
from tierup.native.loops import extrema_choose_second_zero

_CPUINFO: Final = Path("/proc/cpuinfo")


@functools.cache
def fingerprint() -> str:
    """Everything about CPU and compiler that machine code depends on."""
    return f"{platform.machine()} {platform.system()} {_cpu_text()} {_compiler_version()}"


def _compiler_version() -> str:
    """llvmlite's version file, which also pins its LLVM; found without importing llvmlite."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    return Path(spec.origin).with_name("_version.py").read_text()


@functools.cache
def _cpu_text() -> str:
    """Model and feature flags of the first processor, as Linux reports them; elsewhere LLVM's."""
    wanted = ("model name", "cpu family", "model", "stepping", "flags", "CPU implementer", "CPU part", "Features")
    try:
        text = _CPUINFO.read_text()
    except OSError:
        from tierup.native import llvm

        return f"{llvm.host_cpu()} {llvm.host_features()}"
    first = text.partition("\n\n")[0]
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in wanted]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@functools.cache
def flags() -> frozenset[str]:
    """The CPU's feature flags by Linux' names; empty where unknown."""
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@functools.cache
def target() -> Target:
    """What the generator may use."""
    on = flags()
    if not on:
        from tierup.native import llvm

        on = frozenset(f[1:].replace("sse4.1", "sse4_1") for f in llvm.host_features().split(",") if f.startswith("+"))
    arm = platform.machine() in ("aarch64", "arm64")
    return Target(32 if "avx2" in on else 16, arm or "sse4_1" in on, extrema_choose_second_zero())
