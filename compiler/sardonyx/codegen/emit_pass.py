"""codegen as a pass over text: makes the LLVM IR of every kernel and lets LLVM check it."""

from __future__ import annotations

from dataclasses import dataclass, field

import llvmlite.binding as llvm

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.ir.graph import Module
from sardonyx.kernels.target import Target
from sardonyx.pass_manager import register_pass
from sardonyx.passes.program import Program

__all__ = ["EmitCode"]


@register_pass
@dataclass(frozen=True)
class EmitCode:
    """Requires: the loop level.  Changes nothing; fails if code generation does, or if LLVM refuses the code."""

    target: Target
    name: str = field(default="codegen", init=False)

    def run(self, module: Module) -> bool:
        program = Program.from_module(module)
        texts = [kernel_text(function, symbol, self.target) for symbol, function in program.kernels.items()]
        if program.planned:
            texts.append(whole_program_text(program, self.target, "sdx_model_run"))
        for text in texts:
            llvm.parse_assembly(text).verify()
        return False
