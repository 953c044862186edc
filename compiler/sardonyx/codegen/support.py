"""Native support code, written as LLVM IR once: arena chunks, the thread pool, the gate from Python.

A context is an array of 64-bit words; its layout is part of the ABI (docs/abi.md):

====  ==================================================
word  meaning
====  ==================================================
0     address of the constant blob
1     threads a run may use
2     status: fault code
3     status: node or message number
4     status: a value that explains the fault
5     status: a second value
6     number of arena chunks
7     cost of this run's launches so far (private to the thread pool)
8     what random numbers without a seed start from; changes with each run that makes any
9     strings: where the next one of this run may begin
10    strings: the end of the block of memory it is in
11    strings: the last of the blocks, each of which begins with the address of the one before
12-15 reserved
16+2i address of chunk i
17+2i bytes of chunk i
====  ==================================================
"""

from __future__ import annotations

from sardonyx.codegen.gate import gate_text
from sardonyx.codegen.pool import pool_text
from sardonyx.codegen.strings import strings_text

__all__ = [
    "CHUNKS",
    "ENTROPY",
    "EXPORTS",
    "STATUS",
    "STRINGS",
    "THREADS",
    "WEIGHTS",
    "context_words",
    "support_text",
]

EXPORTS = (
    "sdx_reserve",
    "sdx_grow",
    "sdx_allocate",
    "sdx_launch",
    "sdx_gate",
    "sdx_new_string",
    "sdx_forget_strings",
)  # what the other modules use

WEIGHTS, THREADS, STATUS, ENTROPY, STRINGS, CHUNKS = 0, 1, 2, 8, 9, 16


def context_words(chunks: int) -> int:
    return CHUNKS + 2 * chunks


_CONTEXT = """
declare i32 @posix_memalign(ptr, i64, i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)

; Makes chunk `pair` (address, bytes) at least `size` bytes long; 0, or 1 if there is no memory.
define i32 @sdx_reserve(ptr %pair, i64 %size) nounwind {
entry:
  %capacity.at = getelementptr i64, ptr %pair, i64 1
  %capacity = load i64, ptr %capacity.at
  %enough = icmp sge i64 %capacity, %size
  br i1 %enough, label %done, label %grow
grow:
  %old = load ptr, ptr %pair
  call void @free(ptr %old)
  store ptr null, ptr %pair
  store i64 0, ptr %capacity.at
  ; Vector loads may run past the end by less than one register.
  %padded = add i64 %size, 128
  %code = call i32 @posix_memalign(ptr %pair, i64 64, i64 %padded)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %none, label %made
none:
  store ptr null, ptr %pair
  ret i32 1
made:
  store i64 %size, ptr %capacity.at
  br label %done
done:
  ret i32 0
}
"""

_CONTEXT += """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Makes a chunk at least `size` bytes long and keeps what it holds; twice as long as before, so that
; growing element by element costs little.
define i32 @sdx_grow(ptr %pair, i64 %size) nounwind {
entry:
  %capacity.at = getelementptr i64, ptr %pair, i64 1
  %capacity = load i64, ptr %capacity.at
  %enough = icmp sge i64 %capacity, %size
  br i1 %enough, label %done, label %grow
grow:
  %old = load ptr, ptr %pair
  %twice = shl i64 %capacity, 1
  %more = icmp sgt i64 %twice, %size
  %wanted = select i1 %more, i64 %twice, i64 %size
  %fresh.at = alloca ptr
  %padded = add i64 %wanted, 128
  %code = call i32 @posix_memalign(ptr %fresh.at, i64 64, i64 %padded)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %none, label %made
none:
  ret i32 1
made:
  %fresh = load ptr, ptr %fresh.at
  call void @llvm.memcpy.p0.p0.i64(ptr %fresh, ptr %old, i64 %capacity, i1 false)
  call void @free(ptr %old)
  store ptr %fresh, ptr %pair
  store i64 %wanted, ptr %capacity.at
  br label %done
done:
  ret i32 0
}
"""

_CONTEXT += """
; Memory for an output whose size was not known at entry; the caller frees it with free().
define i32 @sdx_allocate(ptr %slot, i64 %size) nounwind {
  %padded = add i64 %size, 128
  %code = call i32 @posix_memalign(ptr %slot, i64 64, i64 %padded)
  ret i32 %code
}
"""


def support_text(triple: str) -> str:
    """The LLVM text shared by all programs of a process."""
    return _CONTEXT + strings_text() + pool_text(triple) + gate_text()
