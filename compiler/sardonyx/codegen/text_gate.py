"""Python's strings to records of native code and back, as LLVM IR: the gate's second task.

``int32 sdx_texts(frame)`` is called with Python's global lock held, by way of ``sdx_gate`` with a frame whose
first word is 0 (the runtime's ``strings.py`` has the same table):

=====  =====================================================================
word   meaning
=====  =====================================================================
0, 1   0; 0 for strings that come in, 1 for those that go out
2, 3   the cells of an object array, how many
4      the addresses of the records (int64 each): written, or read
5      memory for the records that come in; 0: only count what they need
6      ``PyUnicode_AsUTF8AndSize``, or ``PyUnicode_DecodeUTF8``
7, 8   ``PyErr_Clear``, ``Py_DecRef``
9      the text ``surrogateescape``
10     result: bytes of all records that come in
=====  =====================================================================

It returns 0, or 1 where an element is no string of UTF-8: Python then looks at it, and says what it is.
"""

from __future__ import annotations

__all__ = ["text_gate_text"]

_WORDS = ("zero", "out", "cells", "count", "addresses", "memory", "convert", "clear", "release", "escape")


def text_gate_text() -> str:
    """The LLVM text of ``sdx_texts``."""
    loads = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %frame, i64 {i}\n  %{name} = load i64, ptr %{name}.at"
        for i, name in enumerate(_WORDS)
    )
    return f"define internal i32 @sdx_texts(ptr %frame) nounwind noinline {{\nentry:\n{loads}\n{_BODY}"


# A record is the length in bytes (i64), then the bytes, at a multiple of 8.
_BODY = """
  %cells.p = inttoptr i64 %cells to ptr
  %addresses.p = inttoptr i64 %addresses to ptr
  %convert.p = inttoptr i64 %convert to ptr
  %clear.p = inttoptr i64 %clear to ptr
  %release.p = inttoptr i64 %release to ptr
  %escape.p = inttoptr i64 %escape to ptr
  %length.at = alloca i64
  %goes.out = icmp ne i64 %out, 0
  %writes = icmp ne i64 %memory, 0
  br i1 %goes.out, label %give, label %take
take:
  %i = phi i64 [ 0, %entry ], [ %i.next, %taken ]
  %size = phi i64 [ 0, %entry ], [ %size.next, %taken ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %read, label %measured
read:
  %cell.at = getelementptr ptr, ptr %cells.p, i64 %i
  %cell = load ptr, ptr %cell.at
  %empty = icmp eq ptr %cell, null
  br i1 %empty, label %odd, label %text
text:
  %bytes = call ptr %convert.p(ptr %cell, ptr %length.at)
  %fails = icmp eq ptr %bytes, null
  br i1 %fails, label %wrong, label %sized
sized:
  %length = load i64, ptr %length.at
  %padded = add i64 %length, 15
  %record.size = and i64 %padded, -8
  %size.next = add i64 %size, %record.size
  %i.next = add i64 %i, 1
  br i1 %writes, label %write, label %taken
write:
  %record = add i64 %memory, %size
  %record.p = inttoptr i64 %record to ptr
  store i64 %length, ptr %record.p
  %content = getelementptr i8, ptr %record.p, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %content, ptr %bytes, i64 %length, i1 false)
  %address.at = getelementptr i64, ptr %addresses.p, i64 %i
  store i64 %record, ptr %address.at
  br label %taken
taken:
  br label %take
measured:
  %result.at = getelementptr i64, ptr %frame, i64 10
  store i64 %size, ptr %result.at
  ret i32 0
give:
  %k = phi i64 [ 0, %entry ], [ %k.next, %given ]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %make, label %done
make:
  %from.at = getelementptr i64, ptr %addresses.p, i64 %k
  %from = load i64, ptr %from.at
  %from.p = inttoptr i64 %from to ptr
  %from.length = load i64, ptr %from.p
  %from.bytes = getelementptr i8, ptr %from.p, i64 8
  %made = call ptr %convert.p(ptr %from.bytes, i64 %from.length, ptr %escape.p)
  %no.object = icmp eq ptr %made, null
  br i1 %no.object, label %wrong, label %place
place:
  %to.at = getelementptr ptr, ptr %cells.p, i64 %k
  %before = load ptr, ptr %to.at
  store ptr %made, ptr %to.at
  call void %release.p(ptr %before)
  br label %given
given:
  %k.next = add i64 %k, 1
  br label %give
done:
  ret i32 0
wrong:
  call void %clear.p()
  br label %odd
odd:
  ret i32 1
}
"""
