"""The parts of a library that are not kernels, as LLVM IR: data symbols, contexts, and the look at the CPU.

See docs/abi.md for what the symbols mean.
"""

from __future__ import annotations

from sardonyx.codegen.constants import Beside, Inside, escaped
from sardonyx.codegen.contexts import FUNCTIONS, contexts_text
from sardonyx.codegen.fault_text import fault_text
from sardonyx.codegen.pool import unloading_text
from sardonyx_runtime.signature import Signature

__all__ = ["PREFIX", "artifact_text", "cpu_text", "exports"]

PREFIX = "sdx_model"  # of the symbols of a model, where no other is asked for


def exports(prefix: str, constants: type[Inside] | type[Beside] = Inside) -> tuple[str, ...]:
    """The symbols of a model that programs use."""
    names = ("run", *FUNCTIONS, "error", "abi", "info", "info_size", *constants.exports)
    return tuple(f"{prefix}_{name}" for name in names)


def artifact_text(
    triple: str,
    prefix: str,
    *,
    abi: int,
    info: bytes,
    constants: Inside | Beside,
    signature: Signature,
    threads: int,
) -> str:
    """The module with the data symbols, the functions for contexts, and the words of faults."""
    return (
        constants.text(prefix) + f"@{prefix}_abi = constant i32 {abi}, align 4\n"
        f'@{prefix}_info = constant [{len(info) + 1} x i8] c"{escaped(info)}\\00", align 8\n'
        f"@{prefix}_info_size = constant i64 {len(info)}, align 8\n"
        + contexts_text(prefix, signature.chunks, threads)
        + fault_text(prefix, signature)
        + unloading_text(triple, constants.unloaded)
    )


def cpu_text(triple: str) -> str:
    """``sdx_cpu(words)``: what the CPU says of itself, to be compiled for the plainest CPU of the target.

    On x86-64 it writes eax, ebx, ecx, edx of CPUID for the leaves of ``sardonyx_runtime/cpu.py``, then XCR0;
    elsewhere nothing.
    """
    if not triple.startswith("x86_64"):
        return "define void @sdx_cpu(ptr %words) nounwind {\n  ret void\n}\n"
    calls = "\n".join(
        f"  %at{number} = getelementptr i32, ptr %words, i32 {4 * number}\n"
        f"  call {_CONVENTION} void @sdx.cpuid(ptr %at{number}, i32 {leaf}, i32 {sub})"
        for number, (leaf, sub) in enumerate(_LEAVES)
    )
    return f"""
define internal {_CONVENTION} void @sdx.cpuid(ptr %to, i32 %leaf, i32 %sub) noinline nounwind {_bytes(_CPUID)} {{
  ret void
}}

define internal {_CONVENTION} i32 @sdx.xgetbv() noinline nounwind {_bytes(_XGETBV)} {{
  ret i32 0
}}

define void @sdx_cpu(ptr %words) nounwind {{
{calls}
  %ecx.at = getelementptr i32, ptr %words, i32 6
  %ecx = load i32, ptr %ecx.at
  %osxsave.bit = lshr i32 %ecx, 27
  %osxsave = trunc i32 %osxsave.bit to i1
  br i1 %osxsave, label %read, label %done
read:
  %low = call {_CONVENTION} i32 @sdx.xgetbv()
  %at = getelementptr i32, ptr %words, i32 {4 * len(_LEAVES)}
  store i32 %low, ptr %at
  br label %done
done:
  ret void
}}
"""


def _bytes(code: str) -> str:
    """Machine code that a function begins with."""
    data = bytes.fromhex(code)
    return f'prologue [{len(data)} x i8] c"{escaped(data)}"'


# LLVM has no intrinsic for CPUID, and its wheel no assembler for other machines than the host.  So the two
# instructions are functions in machine code: arguments in rdi, esi and edx on every system.
_CONVENTION = "x86_64_sysvcc"
_CPUID = (
    "53"  # push rbx
    "89f0 89d1 0fa2"  # mov eax, esi; mov ecx, edx; cpuid
    "8907 895f04 894f08 89570c"  # mov [rdi], eax; [rdi+4], ebx; [rdi+8], ecx; [rdi+12], edx
    "5b c3"  # pop rbx; ret
)
_XGETBV = "31c9 0f01d0 c3"  # xor ecx, ecx; xgetbv; ret

# CPUID leaves and subleaves.  (Those beyond the largest one of a CPU are looked at with care by the reader.)
_LEAVES = ((0, 0), (1, 0), (7, 0), (7, 1), (13, 1), (-2147483648, 0), (-2147483647, 0), (-2147483640, 0))
