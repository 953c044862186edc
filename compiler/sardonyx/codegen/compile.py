"""The LLVM text of kernels and of the entry point."""

from __future__ import annotations

from sardonyx.codegen.debug_info import DebugInfo, DebugSource
from sardonyx.codegen.emitter import ModuleText
from sardonyx.codegen.floating_state import PARAMETERS, guarded_entry
from sardonyx.codegen.objects import METADATA, assembly, compile_text, optimise, support_object
from sardonyx.codegen.program import program_text
from sardonyx.codegen.timing import TimingPlan, clock_of, timed_entry
from sardonyx.codegen.translate import translate_kernel
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Function
from sardonyx.kernels.target import Target
from sardonyx.passes.program import Program

__all__ = [
    "assembly",
    "compile_text",
    "kernel_text",
    "optimise",
    "support_object",
    "timed_program_text",
    "whole_program_text",
]


def kernel_text(function: Function, symbol: str, target: Target, source: DebugSource | None = None) -> str:
    """The LLVM module of one kernel; with debug information if it is given the text that this refers to."""
    module = _empty(target)
    debug = None if source is None else DebugInfo(function, symbol, source)
    text = translate_kernel(function, symbol, module, debug)
    return _module(module, text, target, debug)


def whole_program_text(
    program: Program, target: Target, symbol: str, source: DebugSource | None = None
) -> str:
    """The LLVM module of the entry point; ``source`` as for a kernel."""
    module = _empty(target)
    debug = None if source is None else DebugInfo(program.main, f"{symbol}.body", source, "run ")
    text = program_text(program, module, f"{symbol}.body", debug)
    if source is None:  # debuggers and profilers are to find it
        text = text.replace(f"define i32 @{symbol}.body(", f"define internal i32 @{symbol}.body(", 1)
    text += guarded_entry(target.triple, symbol, f"{symbol}.body")
    return _module(module, text, target, debug)


def _empty(target: Target) -> ModuleText:
    return ModuleText(
        target.features,
        target.function_attributes,
        has_f16_conversions=target.has_f16_conversions,
        has_fma=target.has_fma,
    )


def timed_program_text(program: Program, target: Target, symbol: str) -> str:
    """The LLVM module of the entry point with the instrumentation of timing.py.

    CompileError where there is no clock for it.
    """
    clock = clock_of(target.triple)
    if clock is None:
        raise CompileError(f"there is no clock to profile by on {target.triple}", hint="profile on Linux")
    module = _empty(target)
    text = program_text(program, module, f"{symbol}.body", timed=True)
    plan = TimingPlan.of(program)
    text += timed_entry(plan, f"{symbol}.timed", f"{symbol}.body", PARAMETERS, clock)
    text += guarded_entry(target.triple, symbol, f"{symbol}.timed")
    return _module(module, text, target, None)


def _module(module: ModuleText, text: str, target: Target, debug: DebugInfo | None) -> str:
    metadata = METADATA if debug is None else METADATA + debug.metadata()
    return f"{target.header}{module.render()}\n{text}{metadata}"
