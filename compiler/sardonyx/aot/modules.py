"""LLVM modules of a model made one: linked, everything but the interface local to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import llvmlite.binding as llvm

from sardonyx.codegen.objects import optimise
from sardonyx.kernels.target import Target
from sardonyx.targets.host import feature_text, target_machine

__all__ = ["Texts", "merge", "parse", "with_attributes"]

_DEFINITION = re.compile(r"^(define .*?)((?: prologue .*?)?(?: ![a-z]+ !\d+)*) \{$", re.MULTILINE)


class Texts:
    """Collects the kernels and entry points of a compilation, optimised one by one as for the JIT."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.modules: list[Any] = []

    def add(self, symbol: str, text: str) -> None:
        """Take the text of the module that defines a symbol."""
        self.modules.append(optimise(with_attributes(text, self._target), self._target))


def with_attributes(text: str, target: Target) -> str:
    """The text with CPU and features on every function: one module may hold functions for several CPUs."""
    attributes = f'"target-cpu"="{target.cpu or "generic"}"'
    if features := feature_text(target):
        attributes += f' "target-features"="{features}"'
    return _DEFINITION.sub(rf"\1 {attributes}\2 {{", text)


def parse(text: str, target: Target) -> Any:
    """The module of a text without a head, whose functions are for the target."""
    return llvm.parse_assembly(with_attributes(target.header + text, target))


def merge(modules: Iterable[Any], keep: Collection[str], target: Target) -> Any:
    """One module of several; all symbols but those to keep become local, what is not used goes."""
    first, *rest = modules
    for module in rest:
        first.link_in(module)
    for symbol in (*first.functions, *first.global_variables):
        ours = not symbol.is_declaration and not symbol.name.startswith("llvm.")
        if ours and symbol.name not in keep:
            symbol.linkage = "internal" if symbol.linkage.name != "private" else "private"
    passes = llvm.ModulePassManager()
    passes.add_constant_merge_pass()  # tables of coefficients that several kernels have
    passes.add_global_dead_code_eliminate_pass()
    passes.run(first, llvm.create_pass_builder(target_machine(target), llvm.PipelineTuningOptions(0)))
    return first
