"""The only module that touches llvmlite: LLVM text → object code for this machine.

For kernels no pass of LLVM's middle end runs: the text is already in the form that we want, vectors included, and every pass that does
not run is one that cannot change a floating-point flag. Loops are optimised in the ordinary way; they do not depend on flags. llvmlite is
imported when the first code has to be compiled, because importing it costs more than all else.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite
from llvmlite import binding


def version() -> str:
    return f"{llvmlite.__version__}/{'.'.join(map(str, binding.llvm_version_info))}"


@functools.cache
def _machine() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=host_cpu(), features=host_features(), opt=2, reloc="pic", codemodel="small", jit=False)


@functools.cache
def host_cpu() -> str:
    return str(binding.get_host_cpu_name())


@functools.cache
def host_features() -> str:
    return str(binding.get_host_cpu_features().flatten())


def _module(text: str) -> Any:
    module = binding.parse_assembly(text)
    module.triple = _machine().triple
    return module


def compile_object(text: str) -> bytes:
    """Object code of a module. Raises RuntimeError on malformed text."""
    return bytes(_machine().emit_object(_module(text)))


def compile_optimised(text: str) -> bytes:
    """Object code of a module after LLVM's ordinary optimisation (no flag allows it to change a rounding). Raises RuntimeError."""
    return bytes(_machine().emit_object(_optimised(text)))


def _optimised(text: str) -> binding.ModuleRef:
    module = _module(text)
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    # These double the time of compiling and gain little on loops over memory.
    options.slp_vectorization = options.loop_unrolling = options.loop_interleaving = False
    builder = binding.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return module


def assembly(text: str, optimised: bool = False) -> str:
    """The same as assembler text, for people."""
    return str(_machine().emit_assembly(_optimised(text) if optimised else _module(text)))
