"""Where a library's constants are, as LLVM IR: inside of it, or in a file beside it that is mapped into memory.

``sdx.constants()`` gives their address, null if there is none to be had.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sardonyx_runtime.digest import LANES, MULTIPLIER

__all__ = ["PADDING", "Beside", "Inside", "escaped"]

PADDING = 64  # vector loads may run past the end of the constants
_MARK = 32


@dataclass(frozen=True)
class Inside:
    """The constants as data of the module.

    Bytes in LLVM's text are slow.  So a module that becomes an object holds a mark and zeros, and ``place``
    writes the constants over them in the object.  ``written_out`` is for modules that people get as text.
    """

    data: memoryview
    written_out: bool = False

    exports = ("weights",)  # behind the prefix
    unloaded = ""  # the function that is called when the library is unloaded

    def text(self, prefix: str) -> str:
        size = max(len(self.data), _MARK) + PADDING
        if self.written_out:
            value = f'[{size} x i8] c"{escaped(bytes(self.data).ljust(size, bytes(1)))}"'
            definition = f"@{prefix}_weights = constant {value}, align 64\n"
        else:
            mark, rest = f"[{_MARK} x i8]", f"[{size - _MARK} x i8]"
            definition = (
                f"@{prefix}_weights = constant <{{ {mark}, {rest} }}> "
                f'<{{ {mark} c"{escaped(self._mark())}", {rest} zeroinitializer }}>, align 64\n'
            )
        return f"{definition}\ndefine internal ptr @sdx.constants() nounwind {{\n  ret ptr @{prefix}_weights\n}}\n"

    def place(self, code: bytes) -> bytes:
        """The object file with the constants in it."""
        made = bytearray(code)
        mark = self._mark()
        start = made.find(mark)
        assert start >= 0 and made.find(mark, start + 1) < 0, "the constants' mark stands in the object once"
        made[start : start + _MARK] = bytes(_MARK)
        made[start : start + len(self.data)] = self.data
        return bytes(made)

    def _mark(self) -> bytes:
        return hashlib.blake2b(b"sardonyx" + len(self.data).to_bytes(8, "little"), digest_size=_MARK).digest()


def escaped(data: bytes) -> str:
    """Bytes as LLVM's text has them."""
    digits = data.hex().upper()
    return "".join(f"\\{digits[i : i + 2]}" for i in range(0, len(digits), 2))


@dataclass(frozen=True)
class Beside:
    """The constants in a file, which ``<prefix>_open`` maps once for all contexts.

    ``name`` is the file's path from the folder of the library on; ``size`` its bytes, a multiple of 64;
    ``digest`` what `sardonyx_runtime.digest` says of it.  ``close_on_exec`` is the system's flag for `open`.
    """

    name: str
    size: int
    digest: int
    close_on_exec: int

    exports = ("open",)
    unloaded = "sdx.unmap"

    def text(self, prefix: str) -> str:
        name = self.name.encode() + b"\0"
        lanes = range(LANES)
        return _BESIDE.format(
            prefix=prefix,
            name=escaped(name),
            length=len(name),
            room=_LONGEST + len(name),
            longest=_LONGEST,
            size=self.size,
            digest=_signed(self.digest),
            factor=_signed(MULTIPLIER),
            flags=self.close_on_exec,
            step=8 * LANES,
            sums="\n".join(f"  %h{i} = phi i64 [ 0, %entry ], [ %n{i}, %more ]" for i in lanes),
            adds="\n".join(
                f"  %p{i} = getelementptr i64, ptr %at, i64 {i}\n  %w{i} = load i64, ptr %p{i}\n"
                f"  %m{i} = mul i64 %h{i}, {_signed(MULTIPLIER)}\n  %n{i} = add i64 %m{i}, %w{i}"
                for i in lanes
            ),
            folds="\n".join(
                f"  %x{i} = mul i64 {f'%f{i - 1}' if i else '%bytes'}, {_signed(MULTIPLIER)}\n"
                f"  %f{i} = add i64 %x{i}, %h{i}"
                for i in lanes
            ),
            last=LANES - 1,
        )


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


_LONGEST = 4096  # bytes of a path

# What the functions and constants of the C library mean is the same on Linux and macOS, but for one flag.
_BESIDE = """
@sdx.mapped = internal global ptr null, align 8
@sdx.file = internal constant [{length} x i8] c"{name}"

declare i32 @open(ptr, i32, ...)
declare i32 @close(i32)
declare i64 @lseek(i32, i64, i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @dladdr(ptr, ptr)
declare i64 @strlen(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal ptr @sdx.constants() nounwind {{
entry:
  %first = load atomic ptr, ptr @sdx.mapped acquire, align 8
  %none = icmp eq ptr %first, null
  br i1 %none, label %look, label %done
look:
  %code = call i32 @{prefix}_open(ptr null)
  %second = load atomic ptr, ptr @sdx.mapped acquire, align 8
  br label %done
done:
  %there = phi ptr [ %first, %entry ], [ %second, %look ]
  ret ptr %there
}}

define internal void @sdx.unmap() nounwind {{
  %memory = load atomic ptr, ptr @sdx.mapped acquire, align 8
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %some
some:
  store atomic ptr null, ptr @sdx.mapped release, align 8
  %code = call i32 @munmap(ptr %memory, i64 {size})
  br label %done
done:
  ret void
}}

; See sardonyx_runtime/digest.py.
define internal i64 @sdx.digest(ptr %memory, i64 %bytes) nounwind {{
entry:
  br label %look
look:
  %place = phi i64 [ 0, %entry ], [ %next, %more ]
{sums}
  %inside = icmp ult i64 %place, %bytes
  br i1 %inside, label %more, label %fold
more:
  %at = getelementptr i8, ptr %memory, i64 %place
{adds}
  %next = add i64 %place, {step}
  br label %look
fold:
{folds}
  ret i64 %f{last}
}}

; 0; 1 if the file cannot be opened or mapped, 2 if it has another size, 3 if it holds something else.
define i32 @{prefix}_open(ptr %path) nounwind {{
entry:
  %buffer = alloca [{room} x i8]
  %where = alloca [4 x ptr]
  %have = load atomic ptr, ptr @sdx.mapped acquire, align 8
  %already = icmp ne ptr %have, null
  br i1 %already, label %fine, label %ask
ask:
  %given = icmp ne ptr %path, null
  br i1 %given, label %open, label %find
find:
  %found = call i32 @dladdr(ptr @{prefix}_open, ptr %where)
  %lost = icmp eq i32 %found, 0
  br i1 %lost, label %missing, label %named
named:
  %library = load ptr, ptr %where
  %length = call i64 @strlen(ptr %library)
  %long = icmp ugt i64 %length, {longest}
  br i1 %long, label %missing, label %back
back:
  %end = phi i64 [ %length, %named ], [ %before, %step ]
  %start = icmp eq i64 %end, 0
  br i1 %start, label %join, label %step
step:
  %before = sub i64 %end, 1
  %letter.at = getelementptr i8, ptr %library, i64 %before
  %letter = load i8, ptr %letter.at
  %slash = icmp eq i8 %letter, 47
  br i1 %slash, label %join, label %back
join:
  call void @llvm.memcpy.p0.p0.i64(ptr %buffer, ptr %library, i64 %end, i1 false)
  %tail = getelementptr i8, ptr %buffer, i64 %end
  call void @llvm.memcpy.p0.p0.i64(ptr %tail, ptr @sdx.file, i64 {length}, i1 false)
  br label %open
open:
  %name = phi ptr [ %path, %ask ], [ %buffer, %join ]
  %file = call i32 (ptr, i32, ...) @open(ptr %name, i32 {flags})
  %shut = icmp slt i32 %file, 0
  br i1 %shut, label %missing, label %measure
measure:
  %size = call i64 @lseek(i32 %file, i64 0, i32 2)
  %right = icmp eq i64 %size, {size}
  br i1 %right, label %map, label %other
other:
  %c1 = call i32 @close(i32 %file)
  ret i32 2
map:
  %memory = call ptr @mmap(ptr null, i64 {size}, i32 1, i32 1, i32 %file, i64 0)
  %c2 = call i32 @close(i32 %file)
  %word = ptrtoint ptr %memory to i64
  %failed = icmp eq i64 %word, -1
  br i1 %failed, label %missing, label %check
check:
  %digest = call i64 @sdx.digest(ptr %memory, i64 {size})
  %same = icmp eq i64 %digest, {digest}
  br i1 %same, label %keep, label %foreign
foreign:
  %u1 = call i32 @munmap(ptr %memory, i64 {size})
  ret i32 3
keep:
  %swap = cmpxchg ptr @sdx.mapped, ptr null, ptr %memory acq_rel acquire
  %won = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %won, label %fine, label %late
late:
  %u2 = call i32 @munmap(ptr %memory, i64 {size})
  br label %fine
fine:
  ret i32 0
missing:
  ret i32 1
}}
"""
