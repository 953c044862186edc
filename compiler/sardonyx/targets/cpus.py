"""Targets by name: a system, a CPU or a level, and features.  Nothing of the host is mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from itertools import pairwise

import llvmlite.binding as llvm

from sardonyx.errors import CompileError
from sardonyx.kernels.target import Target
from sardonyx.targets.host import host_target
from sardonyx.targets.llvm_targets import implied_features, known_names
from sardonyx.targets.triples import Triple, host_triple, parse_triple
from sardonyx.targets.vector_units import vector_unit
from sardonyx_runtime.cpu import FEATURES

__all__ = ["NATIVE", "target_for", "targets_for"]

NATIVE = "native"  # the CPU of the host

# Where no CPU is named: the plainest that systems of the kind run on, and features that all of them have.
_USUAL = {
    ("x86_64", ""): ("x86-64", ()),
    ("x86_64", "macos"): ("x86-64-v2", ()),
    ("aarch64", ""): ("generic", ()),
    ("aarch64", "macos"): ("apple-m1", ()),
    ("riscv64", ""): ("generic-rv64", ("+m", "+a", "+f", "+d", "+c")),  # RV64GC
    ("wasm32", ""): ("generic", ("+simd128",)),
}

# What is asked of LLVM: the features that code generation looks at, or that loading checks.
_ASKED = {
    "x86_64": tuple(f for f in FEATURES if f not in ("cx16", "sahf")),  # LLVM does not tell these two
    "aarch64": ("neon", "fullfp16", "dotprod", "bf16", "i8mm", "sve", "sve2", "lse"),
    "riscv64": ("m", "a", "f", "d", "c", "v", "zfhmin", "zfh"),
    "wasm32": ("simd128", "relaxed-simd", "bulk-memory", "sign-ext", "nontrapping-fptoint"),
}


def targets_for(triple: str | None, cpu: str | None, features: Sequence[str]) -> list[Target]:
    """The targets of a library: one for each of the CPUs that ``cpu`` lists, the plainest first.

    ``triple`` None is the host's, whose CPU is taken where none is named.  CompileError for names that LLVM
    does not know, and for several CPUs that cannot be chosen from when the library is loaded.
    """
    system = host_triple() if triple is None else parse_triple(triple)
    names = [name.strip() for name in (cpu or "").split(",") if name.strip()]
    if not names:
        names = [NATIVE if triple is None else ""]
    targets = [target_for(system, name, features) for name in names]
    if len(targets) > 1 and system.machine != "x86_64":
        raise CompileError(
            f"several CPUs in one library are for x86-64, not for {system.machine}", hint="name one CPU"
        )
    ordered = sorted(targets, key=lambda t: (len(t.features), t.cpu))
    for lower, higher in pairwise(ordered):
        if not set(lower.features) < set(higher.features):
            raise CompileError(
                f"{higher.cpu} does not have all that {lower.cpu} has, or no more, so there is no best of the two",
                hint="name levels that contain each other, as x86-64-v2,x86-64-v3,x86-64-v4",
            )
    return ordered


@cache
def _target(system: Triple, cpu: str, features: tuple[str, ...]) -> Target:
    asked = _ASKED.get(system.machine, ())
    has = implied_features(system.llvm, cpu, ",".join(features), asked)
    given = tuple(f[1:] for f in features if f[0] == "+")
    enabled = tuple(dict.fromkeys((*has, *given)))
    return Target(
        system.llvm,
        cpu,
        enabled,
        *vector_unit(system.llvm, enabled),
        without=tuple(f[1:] for f in features if f[0] == "-"),
        layout=_layout(system),
    )


def target_for(system: Triple, cpu: str, features: Sequence[str]) -> Target:
    """The target of a system and a CPU (empty: the usual one) with features, each ``name``, ``+name`` or ``-name``."""
    signed = [f if f[0] in "+-" else f"+{f}" for f in features if f]
    _check(system, "" if cpu == NATIVE else cpu, signed)
    if cpu == NATIVE:
        host = host_target()
        if system.machine != host.machine:
            raise CompileError(f"{NATIVE!r} is the CPU of this machine, which is no {system.machine}")
        if not signed and system == host_triple():
            return host
        own = [*(f"+{f}" for f in host.features), *(f"-{f}" for f in host.without)]
        cpu, signed = host.cpu, [*own, *signed]
    else:
        usual = _USUAL.get((system.machine, system.system)) or _USUAL.get((system.machine, ""), ("", ()))
        if not cpu:
            cpu, signed = usual[0], [*usual[1], *signed]
        elif system.machine in ("riscv64", "wasm32") and cpu.startswith("generic"):
            signed = [*usual[1], *signed]
    last = {f[1:]: f for f in signed}  # of contradictory ones the last counts
    return _target(system, cpu, tuple(last.values()))


def _check(system: Triple, cpu: str, features: Sequence[str]) -> None:
    """CompileError for names that LLVM does not know; those that are built in need no look."""
    usual = {name for name, _ in _USUAL.values()} | {"x86-64-v3", "x86-64-v4", ""}
    asked = set(_ASKED.get(system.machine, ()))
    if (not cpu or cpu in usual) and {f[1:] for f in features} <= asked:
        return
    known = known_names(system.llvm)
    for kind, name, names in (
        ("CPU", cpu, known.cpus),
        *(("feature", f[1:], known.features) for f in features),
    ):
        if name and name not in names:
            close = get_close_matches(name, names, 5, 0.5)
            listed = (
                f"close ones are {', '.join(close)}" if close else f"it knows {', '.join(names[:30])} ..."
            )
            raise CompileError(f"LLVM knows no {kind} {name!r} of {system.short or system.llvm}", hint=listed)


def _layout(system: Triple) -> str:
    """LLVM's data layout of a system whose pointers have 32 bits; empty where they have 64, as LLVM supposes."""
    machine = llvm.Target.from_triple(system.llvm).create_target_machine(codemodel="default")
    layout = str(machine.target_data)
    if layout.startswith("E"):
        raise CompileError(
            f"{system.llvm} keeps the highest byte first, and constants are prepared for the lowest first"
        )
    return layout if "-p:32:32" in layout else ""
