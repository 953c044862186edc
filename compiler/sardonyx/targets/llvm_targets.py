"""LLVM's targets: made ready once, and what each knows of CPUs and features."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

__all__ = ["Names", "implied_features", "initialise", "known_names"]


@cache
def initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # for inline assembly; there is none for other machines


@dataclass(frozen=True)
class Names:
    """The names of CPUs and features that LLVM knows for a target."""

    cpus: tuple[str, ...]
    features: tuple[str, ...]


@cache
def known_names(triple: str) -> Names:
    """What LLVM lists for a triple.  It prints the list, so a process of its own is asked."""
    code = (
        "import sys, llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets()\n"
        "llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu='help')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, triple], capture_output=True, text=True, check=True)
    cpus, _, features = done.stderr.partition("Available features")
    return Names(*(tuple(re.findall(r"^\s+(\S+)\s+- ", part, re.MULTILINE)) for part in (cpus, features)))


def implied_features(triple: str, cpu: str, features: str, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that a CPU, with the features of LLVM's text, has.

    LLVM does not say it, but it inlines a function into another only if the other's CPU has all features of
    the first.  So for each name a function that wants it besides is called from one that does not ask.
    """
    initialise()
    plain = f'"target-cpu"="{cpu}" "target-features"="{features}"'
    lines = [f'target triple = "{triple}"', f"attributes #0 = {{ {plain} }}"]
    for number, name in enumerate(names):
        more = f"{features},+{name}" if features else f"+{name}"
        lines += [
            f"define internal i32 @asks.{number}(i32 %x) #{number + 1} {{\n  %r = add i32 %x, 1\n  ret i32 %r\n}}",
            f"define i32 @has.{number}(i32 %x) #0 {{\n  %r = call i32 @asks.{number}(i32 %x)\n  ret i32 %r\n}}",
            f'attributes #{number + 1} = {{ "target-cpu"="{cpu}" "target-features"="{more}" }}',
        ]
    module = llvm.parse_assembly("\n".join(lines))
    machine = llvm.Target.from_triple(triple).create_target_machine(codemodel="default")
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    inlined = {f.name for f in module.functions if "call" not in str(f)}
    return tuple(name for number, name in enumerate(names) if f"has.{number}" in inlined)
