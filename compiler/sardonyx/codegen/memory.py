"""The memory of contexts, as LLVM IR: one place that allocates and frees, by the context's allocator.

Words 12 to 14 of a context name an allocator: ``void *allocate(void *user, int64_t size, int64_t alignment)``,
``void release(void *user, void *memory)`` and ``user``.  Where word 12 is 0 it is that of the C library.
Only the thread that creates, runs or destroys a context calls it, never one of the pool.
"""

from __future__ import annotations

__all__ = ["ALLOCATOR", "memory_text"]

ALLOCATOR = 12  # the first of the words
_ALIGNMENT = 64
_PADDING = 128  # vector loads may run past the end by less than one register

# On POSIX systems what `posix_memalign` gives is freed by `free`; Windows has a pair of its own.
_POSIX = """
declare i32 @posix_memalign(ptr, {word}, {word})
declare void @free(ptr)

define internal ptr @sdx.allocate({word} %bytes) nounwind {{
  %at = alloca ptr
  %code = call i32 @posix_memalign(ptr %at, {word} {alignment}, {word} %bytes)
  %made = icmp eq i32 %code, 0
  %memory = load ptr, ptr %at
  %result = select i1 %made, ptr %memory, ptr null
  ret ptr %result
}}

define internal void @sdx.release(ptr %memory) nounwind {{
  call void @free(ptr %memory)
  ret void
}}
"""

_WINDOWS = """
declare ptr @_aligned_malloc({word}, {word})
declare void @_aligned_free(ptr)

define internal ptr @sdx.allocate({word} %bytes) nounwind {{
  %memory = call ptr @_aligned_malloc({word} %bytes, {word} {alignment})
  ret ptr %memory
}}

define internal void @sdx.release(ptr %memory) nounwind {{
  call void @_aligned_free(ptr %memory)
  ret void
}}
"""

_ALLOCATOR = """

; Memory of `size` bytes, aligned to 64, from the allocator of a context; null if there is none.
define ptr @sdx_take(ptr %context, i64 %size) nounwind {{
entry:
  %allocate.at = getelementptr i64, ptr %context, i64 {allocate}
  %allocate = load ptr, ptr %allocate.at
  %plain = icmp eq ptr %allocate, null
  br i1 %plain, label %library, label %given
given:
  %user.at = getelementptr i64, ptr %context, i64 {user}
  %user = load ptr, ptr %user.at
  %got = call ptr %allocate(ptr %user, i64 %size, i64 {alignment})
  ret ptr %got
library:
  {narrow}
  %memory = call ptr @sdx.allocate({word} %bytes)
  ret ptr %memory
}}

; Gives memory back; null is allowed.
define void @sdx_give(ptr %context, ptr %memory) nounwind {{
entry:
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %some
some:
  %allocate.at = getelementptr i64, ptr %context, i64 {allocate}
  %allocate = load ptr, ptr %allocate.at
  %plain = icmp eq ptr %allocate, null
  br i1 %plain, label %library, label %given
given:
  %release.at = getelementptr i64, ptr %context, i64 {release}
  %release = load ptr, ptr %release.at
  %user.at = getelementptr i64, ptr %context, i64 {user}
  %user = load ptr, ptr %user.at
  call void %release(ptr %user, ptr %memory)
  br label %done
library:
  call void @sdx.release(ptr %memory)
  br label %done
done:
  ret void
}}
"""

_CHUNKS = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Makes chunk `pair` (address, bytes) at least `size` bytes long; 0, or 1 if there is no memory.
define i32 @sdx_reserve(ptr %context, ptr %pair, i64 %size) nounwind {{
entry:
  %capacity.at = getelementptr i64, ptr %pair, i64 1
  %capacity = load i64, ptr %capacity.at
  %enough = icmp sge i64 %capacity, %size
  br i1 %enough, label %done, label %grow
grow:
  %old = load ptr, ptr %pair
  call void @sdx_give(ptr %context, ptr %old)
  store ptr null, ptr %pair
  store i64 0, ptr %capacity.at
  %padded = add i64 %size, {_PADDING}
  %fresh = call ptr @sdx_take(ptr %context, i64 %padded)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %none, label %made
none:
  ret i32 1
made:
  store ptr %fresh, ptr %pair
  store i64 %size, ptr %capacity.at
  br label %done
done:
  ret i32 0
}}

; Makes a chunk at least `size` bytes long and keeps what it holds; twice as long as before, so that
; growing element by element costs little.
define i32 @sdx_grow(ptr %context, ptr %pair, i64 %size) nounwind {{
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
  %padded = add i64 %wanted, {_PADDING}
  %fresh = call ptr @sdx_take(ptr %context, i64 %padded)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %none, label %made
none:
  ret i32 1
made:
  call void @llvm.memcpy.p0.p0.i64(ptr %fresh, ptr %old, i64 %capacity, i1 false)
  call void @sdx_give(ptr %context, ptr %old)
  store ptr %fresh, ptr %pair
  store i64 %wanted, ptr %capacity.at
  br label %done
done:
  ret i32 0
}}

; Memory for an output whose size was not known at entry, which becomes the caller's; 0, or 1 if there is none.
define i32 @sdx_allocate(ptr %context, ptr %slot, i64 %size) nounwind {{
  %padded = add i64 %size, {_PADDING}
  %memory = call ptr @sdx_take(ptr %context, i64 %padded)
  store ptr %memory, ptr %slot
  %none = icmp eq ptr %memory, null
  %code = zext i1 %none to i32
  ret i32 %code
}}
"""


def memory_text(triple: str, pointer_bits: int = 64) -> str:
    """The LLVM text of the allocator, of arena chunks, and of outputs that a run allocates."""
    wide = pointer_bits == 64
    library = _WINDOWS if "windows" in triple else _POSIX
    allocator = (library + _ALLOCATOR).format(
        word=f"i{pointer_bits}",
        narrow="%bytes = add i64 %size, 0" if wide else "%bytes = trunc i64 %size to i32",
        allocate=ALLOCATOR,
        release=ALLOCATOR + 1,
        user=ALLOCATOR + 2,
        alignment=_ALIGNMENT,
    )
    return allocator + _CHUNKS
