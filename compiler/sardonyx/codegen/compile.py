"""The LLVM text of kernels and of the entry point."""

from __future__ import annotations

from sardonyx.codegen.emitter import ModuleText
from sardonyx.codegen.floating_state import guarded_entry
from sardonyx.codegen.objects import METADATA, assembly, compile_text, optimise, support_object
from sardonyx.codegen.program import program_text
from sardonyx.codegen.translate import translate_kernel
from sardonyx.ir.graph import Function
from sardonyx.kernels.target import Target
from sardonyx.passes.program import Program

__all__ = ["assembly", "compile_text", "kernel_text", "optimise", "support_object", "whole_program_text"]


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
    return f'target triple = "{target.triple}"\n{module.render()}\n{text}{METADATA}'
