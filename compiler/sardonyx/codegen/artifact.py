"""The parts of a library that are not kernels, as LLVM IR: data symbols, contexts, and the look at the CPU.

See docs/abi.md for what the symbols mean.
"""

from __future__ import annotations

from sardonyx.codegen.support import STRINGS

__all__ = ["EXPORTS", "artifact_text", "cpu_text"]

EXPORTS = (
    *("sdx_model_run", "sdx_model_create", "sdx_model_destroy", "sdx_gate", "sdx_cpu"),
    *("sdx_model_abi", "sdx_model_info", "sdx_model_info_size", "sdx_model_weights"),
)

# A context is calloc'ed and set up; its chunks are freed with it.
_CONTEXTS = """
declare ptr @calloc(i64, i64)
declare void @free(ptr)

define ptr @sdx_model_create(i64 %threads) nounwind {{
  %context = call ptr @calloc(i64 {words}, i64 8)
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %fill
fill:
  store ptr @sdx_model_weights, ptr %context
  %threads.at = getelementptr i64, ptr %context, i64 1
  store i64 %threads, ptr %threads.at
  %chunks.at = getelementptr i64, ptr %context, i64 6
  store i64 {chunks}, ptr %chunks.at
  br label %done
done:
  ret ptr %context
}}

define void @sdx_model_destroy(ptr %context) nounwind {{
entry:
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %chunk ]
  %more = icmp slt i64 %i, {chunks}
  br i1 %more, label %chunk, label %last
chunk:
  %double = shl i64 %i, 1
  %place = add i64 %double, {first}
  %at = getelementptr i64, ptr %context, i64 %place
  %memory = load ptr, ptr %at
  call void @free(ptr %memory)
  %after = add i64 %i, 1
  br label %next
last:
  %blocks.at = getelementptr i64, ptr %context, i64 {blocks}
  %last.block = load ptr, ptr %blocks.at
  br label %each
each:
  %block = phi ptr [ %last.block, %last ], [ %before, %release ]
  %no.more = icmp eq ptr %block, null
  br i1 %no.more, label %end, label %release
release:
  %before = load ptr, ptr %block
  call void @free(ptr %block)
  br label %each
end:
  call void @free(ptr %context)
  br label %done
done:
  ret void
}}
"""


def artifact_text(triple: str, abi: int, info: bytes, weights: str, chunks: int, first: int) -> str:
    """The module with the data symbols and the functions for contexts.

    ``weights`` is the path of a file with the constants, which the assembler takes in as it is (bytes in
    LLVM's text would be slow); ``first`` the word of a context where its ``chunks`` arena chunks begin.
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
        + _CONTEXTS.format(words=first + 2 * chunks, chunks=chunks, first=first, blocks=STRINGS + 2)
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
