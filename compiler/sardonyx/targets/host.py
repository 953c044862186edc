"""The host CPU as a target, and LLVM target machines."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from sardonyx.kernels.target import Target

__all__ = ["feature_text", "host_target", "llvm_version", "target_machine"]


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # exported libraries hold a little assembly


@cache
def host_target() -> Target:
    """The machine this process runs on.

    LLVM's name for the CPU may be of an older chip than its features show, so the features decide.
    """
    _initialise()
    features = llvm.get_host_cpu_features()
    enabled = tuple(sorted(k for k, v in features.items() if v))
    return Target(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=enabled,
        **_vector_unit(llvm.get_process_triple(), enabled),
    )


def _vector_unit(triple: str, features: tuple[str, ...]) -> dict[str, int]:
    has = set(features)
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= has:
        return {"vector_bytes": 64, "registers": 32}
    if "avx2" in has:
        return {"vector_bytes": 32, "registers": 16}
    return {"vector_bytes": 16, "registers": 32 if triple.startswith("aarch64") else 16}


def feature_text(target: Target) -> str:
    """The target's features in LLVM's form.

    A CPU's name stands for all features of the chip; what a virtual machine hides of them is taken away.
    """
    features = [f"+{f}" for f in target.features]
    if target.cpu == llvm.get_host_cpu_name() and target.triple == llvm.get_process_triple():
        features += [f"-{name}" for name, there in llvm.get_host_cpu_features().items() if not there]
    return ",".join(features)


@cache
def target_machine(target: Target) -> Any:
    """LLVM's target machine: position-independent code, no optimisation but instruction selection's own."""
    _initialise()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(
        cpu=target.cpu, features=feature_text(target), opt=2, reloc="pic", codemodel="default"
    )


def llvm_version() -> tuple[int, ...]:
    return tuple(llvm.llvm_version_info)
