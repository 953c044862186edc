"""The parts of a library that are not kernels, as LLVM IR: data symbols, contexts, and the look at the CPU.

See docs/abi.md for what the symbols mean.
"""

from __future__ import annotations

from sardonyx.codegen.contexts import FUNCTIONS, contexts_text
from sardonyx.codegen.fault_text import fault_text
from sardonyx_runtime.signature import Signature

__all__ = ["EXPORTS", "artifact_text", "cpu_text"]

EXPORTS = (
    *("sdx_model_run", *(f"sdx_model_{f}" for f in FUNCTIONS), "sdx_model_error", "sdx_gate", "sdx_cpu"),
    *("sdx_model_abi", "sdx_model_info", "sdx_model_info_size", "sdx_model_weights"),
)


def artifact_text(triple: str, abi: int, info: bytes, weights: str, signature: Signature) -> str:
    """The module with the data symbols, the functions for contexts, and the words of faults.

    ``weights`` is the path of a file with the constants, which the assembler takes in as it is (bytes in
    LLVM's text would be slow).
    """
    name = "".join(f"\\{byte:02X}" for byte in weights.encode())
    cells = "".join(f"\\{byte:02X}" for byte in info)
    assembly = (
        ".pushsection .rodata.sdx,\\22a\\22,@progbits",
        ".globl sdx_model_weights",
        ".type sdx_model_weights,@object",
        ".balign 64",
        "sdx_model_weights:",
        f".incbin \\22{name}\\22",
        ".balign 64",
        ".zero 64",  # vector loads may run past the end
        ".popsection",
    )
    return (
        f'target triple = "{triple}"\n'
        + "".join(f'module asm "{line}"\n' for line in assembly)
        + "@sdx_model_weights = external constant i8\n"
        f"@sdx_model_abi = constant i32 {abi}, align 4\n"
        f'@sdx_model_info = constant [{len(info) + 1} x i8] c"{cells}\\00", align 8\n'
        f"@sdx_model_info_size = constant i64 {len(info)}, align 8\n"
        + contexts_text("sdx_model", signature.chunks)
        + fault_text("sdx_model", signature)
    )


def cpu_text(triple: str) -> str:
    """``sdx_cpu(words)``: what the CPU says of itself, to be compiled for the plainest CPU of the target.

    On x86-64 it writes eax, ebx, ecx, edx of CPUID for the seven leaves of ``sardonyx_runtime/cpu.py``, then
    XCR0; elsewhere nothing.
    """
    if not triple.startswith("x86_64"):
        return f'target triple = "{triple}"\ndefine void @sdx_cpu(ptr %words) nounwind {{\n  ret void\n}}\n'
    lines = []
    for number, (leaf, sub) in enumerate(_LEAVES):
        registers = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
        lines.append(
            f'  %r{number} = call {{i32, i32, i32, i32}} asm sideeffect "cpuid", "{registers}"'
            f"(i32 {leaf}, i32 {sub})"
        )
        for part in range(4):
            lines += [
                f"  %v{number}.{part} = extractvalue {{i32, i32, i32, i32}} %r{number}, {part}",
                f"  %p{number}.{part} = getelementptr i32, ptr %words, i32 {4 * number + part}",
                f"  store i32 %v{number}.{part}, ptr %p{number}.{part}",
            ]
    text = "\n".join(lines)
    return f"""target triple = "{triple}"
define void @sdx_cpu(ptr %words) nounwind {{
{text}
  %osxsave.bit = lshr i32 %v1.2, 27
  %osxsave = trunc i32 %osxsave.bit to i1
  br i1 %osxsave, label %read, label %done
read:
  %state = call {{i32, i32}} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)
  %low = extractvalue {{i32, i32}} %state, 0
  %at = getelementptr i32, ptr %words, i32 {4 * len(_LEAVES)}
  store i32 %low, ptr %at
  br label %done
done:
  ret void
}}
"""


# CPUID leaves and subleaves.  (Those beyond the largest one of a CPU are looked at with care by the reader.)
_LEAVES = ((0, 0), (1, 0), (7, 0), (7, 1), (13, 1), (-2147483648, 0), (-2147483647, 0), (-2147483640, 0))
