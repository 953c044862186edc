"""The parts of a library that are not kernels, as LLVM IR: data symbols, contexts, and the look at the CPU.

See docs/abi.md for what the symbols mean.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sardonyx.codegen.contexts import FUNCTIONS, contexts_text
from sardonyx.codegen.fault_text import fault_text
from sardonyx.codegen.pool import unloading_text
from sardonyx_runtime.signature import Signature

__all__ = ["PREFIX", "Blob", "artifact_text", "cpu_text", "exports"]

PREFIX = "sdx_model"  # of the symbols of a model, where no other is asked for

_NAMES = ("run", *FUNCTIONS, "error", "abi", "info", "info_size", "weights")
_PADDING = 64  # vector loads may run past the end of the constants


def exports(prefix: str) -> tuple[str, ...]:
    """The symbols of a model that programs use."""
    return tuple(f"{prefix}_{name}" for name in _NAMES)


@dataclass(frozen=True)
class Blob:
    """The constants as a module holds them.

    Bytes in LLVM's text are slow.  So a module that becomes an object holds a mark and zeros, and ``place``
    writes the constants over them in the object.  ``written_out`` is for modules that people get as text.
    """

    data: bytes | memoryview
    written_out: bool = False

    def definition(self, symbol: str) -> str:
        size = max(len(self.data), _MARK) + _PADDING
        if self.written_out:
            value = f'[{size} x i8] c"{_escaped(bytes(self.data).ljust(size, bytes(1)))}"'
            return f"@{symbol} = constant {value}, align 64\n"
        mark, rest = f"[{_MARK} x i8]", f"[{size - _MARK} x i8]"
        return (
            f"@{symbol} = constant <{{ {mark}, {rest} }}> "
            f'<{{ {mark} c"{_escaped(self._mark())}", {rest} zeroinitializer }}>, align 64\n'
        )

    def place(self, code: bytes) -> bytearray:
        """The object file with the constants in it."""
        made = bytearray(code)
        mark = self._mark()
        start = made.find(mark)
        assert start >= 0 and made.find(mark, start + 1) < 0, "the constants' mark stands in the object once"
        made[start : start + _MARK] = bytes(_MARK)
        made[start : start + len(self.data)] = self.data
        return made

    def _mark(self) -> bytes:
        return hashlib.blake2b(b"sardonyx" + len(self.data).to_bytes(8, "little"), digest_size=_MARK).digest()


_MARK = 32


def _escaped(data: bytes) -> str:
    """Bytes as LLVM's text has them."""
    digits = data.hex().upper()
    return "".join(f"\\{digits[i : i + 2]}" for i in range(0, len(digits), 2))


def artifact_text(triple: str, prefix: str, abi: int, info: bytes, blob: Blob, signature: Signature) -> str:
    """The module with the data symbols, the functions for contexts, and the words of faults."""
    return (
        f'target triple = "{triple}"\n'
        + blob.definition(f"{prefix}_weights")
        + f"@{prefix}_abi = constant i32 {abi}, align 4\n"
        f'@{prefix}_info = constant [{len(info) + 1} x i8] c"{_escaped(info)}\\00", align 8\n'
        f"@{prefix}_info_size = constant i64 {len(info)}, align 8\n"
        + contexts_text(prefix, signature.chunks)
        + fault_text(prefix, signature)
        + unloading_text(triple)
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
