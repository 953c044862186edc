"""The floating-point state around a run: defaults inside, the caller's own again when it comes back.

A caller may have set flush-to-zero (several libraries do); results must not depend on it, and the kernels
that flush inside must not show outside.
"""

from __future__ import annotations

__all__ = ["PARAMETERS", "guarded_entry"]

PARAMETERS = "ptr %context, ptr %inputs, ptr %input_dims, ptr %outputs, ptr %output_dims"

# Bits 6 to 15 of MXCSR: denormals as they are, all exceptions masked, round to nearest, no flush to zero.
_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""
_X86_SAVE = """
  %state.at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %state.at)
  %state = load i32, ptr %state.at
  %control = and i32 %state, 65472
  %usual = icmp eq i32 %control, 8064
  br i1 %usual, label %run, label %set
set:
  %default.at = alloca i32
  store i32 8064, ptr %default.at
  call void @llvm.x86.sse.ldmxcsr(ptr %default.at)
  br label %run
run:
"""
_X86_RESTORE = "  call void @llvm.x86.sse.ldmxcsr(ptr %state.at)\n"

_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
"""
_ARM_SAVE = "  %state = call i64 @llvm.aarch64.get.fpcr()\n  call void @llvm.aarch64.set.fpcr(i64 0)\n"
_ARM_RESTORE = "  call void @llvm.aarch64.set.fpcr(i64 %state)\n"


def guarded_entry(triple: str, symbol: str, body: str) -> str:
    """The text of the entry point ``symbol``, which calls ``body`` with the default floating-point state.

    It also starts the count of what the run's launches cost (context word 7, see pool.py).
    """
    machine = triple.split("-")[0]
    declarations = save = restore = ""
    if machine == "x86_64":
        declarations, save, restore = _X86, _X86_SAVE, _X86_RESTORE
    elif machine == "aarch64":
        declarations, save, restore = _ARM, _ARM_SAVE, _ARM_RESTORE
    return (
        f"{declarations}\ndefine i32 @{symbol}({PARAMETERS}) nounwind {{\n"
        "  %spent.at = getelementptr i64, ptr %context, i64 7\n  store i64 0, ptr %spent.at\n"
        f"{save}  %code = call i32 @{body}({PARAMETERS})\n{restore}  ret i32 %code\n}}\n"
    )
