"""The functions of a library that make and free contexts, as LLVM IR (docs/abi.md)."""

from __future__ import annotations

from sardonyx.codegen.memory import ALLOCATOR
from sardonyx.codegen.support import CHUNKS, STRINGS, context_words

__all__ = ["FUNCTIONS", "contexts_text"]

FUNCTIONS = ("create", "create_with", "destroy", "free")  # behind the prefix

# The allocator stands in words of a context; one on the stack serves until there is a real one.
_CONTEXTS = """
declare ptr @sdx_take(ptr, i64)
declare void @sdx_give(ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define ptr @{prefix}_create(i64 %threads) nounwind {{
  %context = call ptr @{prefix}_create_with(i64 %threads, ptr null, ptr null, ptr null)
  ret ptr %context
}}

define ptr @{prefix}_create_with(i64 %threads, ptr %allocate, ptr %release, ptr %user) nounwind {{
entry:
  %constants = call ptr @sdx.constants()
  %bare = icmp eq ptr %constants, null
  br i1 %bare, label %done, label %begin
begin:
  %first = alloca [{chunks_at} x i64], align 16
  %f.allocate.at = getelementptr i64, ptr %first, i64 {allocate}
  %f.user.at = getelementptr i64, ptr %first, i64 {user_at}
  store ptr %allocate, ptr %f.allocate.at
  store ptr %user, ptr %f.user.at
  %context = call ptr @sdx_take(ptr %first, i64 {bytes})
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 {bytes}, i1 false)
  store ptr %constants, ptr %context
  %open = icmp slt i64 %threads, 1
  %many = select i1 %open, i64 {threads}, i64 %threads
  %threads.at = getelementptr i64, ptr %context, i64 1
  store i64 %many, ptr %threads.at
  %chunks.at = getelementptr i64, ptr %context, i64 6
  store i64 {chunks}, ptr %chunks.at
  %allocate.at = getelementptr i64, ptr %context, i64 {allocate}
  store ptr %allocate, ptr %allocate.at
  %release.at = getelementptr i64, ptr %context, i64 {release}
  store ptr %release, ptr %release.at
  %user.at = getelementptr i64, ptr %context, i64 {user_at}
  store ptr %user, ptr %user.at
  br label %done
done:
  %made = phi ptr [ null, %entry ], [ null, %begin ], [ %context, %fill ]
  ret ptr %made
}}

define void @{prefix}_destroy(ptr %context) nounwind {{
entry:
  %none = icmp eq ptr %context, null
  br i1 %none, label %done, label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %chunk ]
  %more = icmp slt i64 %i, {chunks}
  br i1 %more, label %chunk, label %last
chunk:
  %double = shl i64 %i, 1
  %place = add i64 %double, {chunks_at}
  %at = getelementptr i64, ptr %context, i64 %place
  %memory = load ptr, ptr %at
  call void @sdx_give(ptr %context, ptr %memory)
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
  call void @sdx_give(ptr %context, ptr %block)
  br label %each
end:
  call void @sdx_give(ptr %context, ptr %context)
  br label %done
done:
  ret void
}}

; An output that a run allocated; it has to be freed before its context.
define void @{prefix}_free(ptr %context, ptr %memory) nounwind {{
  call void @sdx_give(ptr %context, ptr %memory)
  ret void
}}
"""


def contexts_text(prefix: str, chunks: int, threads: int) -> str:
    """The functions for a model whose symbols begin with ``prefix`` and whose contexts have ``chunks`` chunks.

    ``threads`` is how many threads a run may use where who makes the context does not say.  The module they go
    into defines ``sdx.constants`` (constants.py).
    """
    return _CONTEXTS.format(
        prefix=prefix,
        chunks=chunks,
        threads=threads,
        chunks_at=CHUNKS,
        bytes=8 * context_words(chunks),
        blocks=STRINGS + 2,
        allocate=ALLOCATOR,
        release=ALLOCATOR + 1,
        user_at=ALLOCATOR + 2,
    )
