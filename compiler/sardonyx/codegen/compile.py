"""Compiles LLVM text to objects, by way of the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from sardonyx.codegen.emitter import ModuleText
from sardonyx.codegen.floating_state import guarded_entry
from sardonyx.codegen.program import program_text
from sardonyx.codegen.support import support_text
from sardonyx.codegen.translate import translate_kernel
from sardonyx.ir.graph import Function
from sardonyx.kernels.target import Target
from sardonyx.passes.program import Program
from sardonyx.targets.host import target_machine

__all__ = ["compile_text", "kernel_text", "optimise", "whole_program_text"]

_METADATA = '\n!0 = !{!"branch_weights", i32 1, i32 1048576}\n!1 = !{i32 1}\n'


def kernel_text(function: Function, symbol: str, target: Target) -> str:
    """The LLVM module of one kernel."""
    module = ModuleText(target.features, target.function_attributes)
    text = translate_kernel(function, symbol, module)
    return _module(module, text, target)


def whole_program_text(program: Program, target: Target, symbol: str) -> str:
    """The LLVM module of the entry point."""
    module = ModuleText(target.features, target.function_attributes)
    text = program_text(program, module, f"{symbol}.body")
    text = text.replace(f"define i32 @{symbol}.body(", f"define internal i32 @{symbol}.body(", 1)
    text += guarded_entry(target.triple, symbol, f"{symbol}.body")
    return _module(module, text, target)


def _module(module: ModuleText, text: str, target: Target) -> str:
    return f'target triple = "{target.triple}"\n{module.render()}\n{text}{_METADATA}'


def optimise(text: str, target: Target) -> Any:
    """The parsed module after a slim pipeline: explicit vectors need little, so compile time stays low."""
    module = llvm.parse_assembly(text)
    machine = target_machine(target)
    options = llvm.PipelineTuningOptions(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.ModulePassManager()
    passes.add_always_inliner_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.run(module, builder)
    return module


def compile_text(text: str, target: Target, *, passes: bool = True) -> bytes:
    """An object file."""
    module = optimise(text, target) if passes else llvm.parse_assembly(text)
    return bytes(target_machine(target).emit_object(module))


def support_object(target: Target) -> bytes:
    return compile_text(
        f'target triple = "{target.triple}"\n{support_text(target.triple)}{_METADATA}', target
    )


def assembly(text: str, target: Target, *, passes: bool = True) -> str:
    """The assembly of a module, for dumps."""
    module = optimise(text, target) if passes else llvm.parse_assembly(text)
    return str(target_machine(target).emit_assembly(module))


Compile = Callable[[str, Target], bytes]
