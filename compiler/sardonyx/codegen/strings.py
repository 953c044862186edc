"""The memory of the strings that a run makes, as LLVM IR: blocks that are filled from front to back.

A string is a record of its length (i64) and its bytes; an element of a string tensor is the address of one.
Kernels that make strings run in one piece, so nothing here is for several threads.  The next run of the
context takes the last block, the largest, again.
"""

from __future__ import annotations

__all__ = ["strings_text"]

_FIRST = 1 << 16  # bytes of the first block

_STRINGS = """
declare i64 @llvm.umax.i64(i64, i64)

; A record for `length` bytes, its length written; `heap` are the context's three words. 0 if there is no memory.
define i64 @sdx_new_string(ptr %heap, i64 %length) nounwind {{
entry:
  %padded = add i64 %length, 15
  %size = and i64 %padded, -8
  %limit.at = getelementptr i64, ptr %heap, i64 1
  %cursor = load i64, ptr %heap
  %limit = load i64, ptr %limit.at
  %end = add i64 %cursor, %size
  %fits = icmp ule i64 %end, %limit
  br i1 %fits, label %take, label %grow
grow:
  %blocks.at = getelementptr i64, ptr %heap, i64 2
  %last = load ptr, ptr %blocks.at
  %first = icmp eq ptr %last, null
  %start = ptrtoint ptr %last to i64
  %bytes.used = sub i64 %limit, %start
  %bytes = select i1 %first, i64 {first}, i64 %bytes.used
  %double = shl i64 %bytes, 1
  %least = add i64 %size, 16
  %block.bytes = call i64 @llvm.umax.i64(i64 %double, i64 %least)
  %context = getelementptr i64, ptr %heap, i64 -{heap}
  %block = call ptr @sdx_take(ptr %context, i64 %block.bytes)
  %none = icmp eq ptr %block, null
  br i1 %none, label %fail, label %made
made:
  store ptr %last, ptr %block
  store ptr %block, ptr %blocks.at
  %address = ptrtoint ptr %block to i64
  %new.cursor = add i64 %address, 16
  %new.limit = add i64 %address, %block.bytes
  store i64 %new.limit, ptr %limit.at
  br label %take
take:
  %place = phi i64 [ %cursor, %entry ], [ %new.cursor, %made ]
  %next = add i64 %place, %size
  store i64 %next, ptr %heap
  %record = inttoptr i64 %place to ptr
  store i64 %length, ptr %record
  ret i64 %place
fail:
  ret i64 0
}}

; Frees all blocks but the last, which is used again.
define void @sdx_forget_strings(ptr %heap) nounwind {{
entry:
  %blocks.at = getelementptr i64, ptr %heap, i64 2
  %last = load ptr, ptr %blocks.at
  %none = icmp eq ptr %last, null
  br i1 %none, label %done, label %keep
keep:
  %older = load ptr, ptr %last
  store ptr null, ptr %last
  %address = ptrtoint ptr %last to i64
  %cursor = add i64 %address, 16
  store i64 %cursor, ptr %heap
  %context = getelementptr i64, ptr %heap, i64 -{heap}
  br label %each
each:
  %block = phi ptr [ %older, %keep ], [ %before, %release ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %release
release:
  %before = load ptr, ptr %block
  call void @sdx_give(ptr %context, ptr %block)
  br label %each
done:
  ret void
}}
"""


def strings_text(heap: int) -> str:
    """The LLVM text of ``sdx_new_string`` and ``sdx_forget_strings``; ``heap`` is the first of the context's words."""
    return _STRINGS.format(first=_FIRST, heap=heap)
