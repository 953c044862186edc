"""The host CPU as a target, and LLVM target machines."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from sardonyx.kernels.target import Target
from sardonyx.targets.llvm_targets import initialise
from sardonyx.targets.vector_units import vector_unit

__all__ = ["feature_text", "host_target", "llvm_version", "target_machine"]


@cache
def host_target() -> Target:
    """The machine this process runs on.

    LLVM's name for the CPU may be of an older chip than its features show, so the features decide.  The name
    stands for all features of the chip; what a virtual machine hides of them is taken away.
    """
    initialise()
    features = llvm.get_host_cpu_features()
    enabled = tuple(sorted(k for k, v in features.items() if v))
    vector_bytes, registers = vector_unit(llvm.get_process_triple(), enabled)
    return Target(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=enabled,
        without=tuple(sorted(k for k, v in features.items() if not v)),
        vector_bytes=vector_bytes,
        registers=registers,
    )


def feature_text(target: Target) -> str:
    """The target's features in LLVM's form."""
    return ",".join([*(f"+{f}" for f in target.features), *(f"-{f}" for f in target.without)])


@cache
def target_machine(target: Target) -> Any:
    """LLVM's target machine: no optimisation but instruction selection's own.

    The code is position-independent; in WebAssembly that would mean a module that is linked when it is loaded.
    """
    initialise()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(
        cpu=target.cpu,
        features=feature_text(target),
        opt=2,
        reloc="static" if target.machine == "wasm32" else "pic",
        codemodel="default",
    )


def llvm_version() -> tuple[int, ...]:
    return tuple(llvm.llvm_version_info)
