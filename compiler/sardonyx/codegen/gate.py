"""The gate between Python and an entry point, as LLVM IR: it reads NumPy arrays where they lie in memory.

``int32 sdx_gate(frame)`` takes everything from a frame, an array of 64-bit words which the runtime fills
(``sardonyx_runtime/frame.py`` has the same table).  It is called with Python's global lock held.  If each
array of the inputs has the type, rank, layout and dims that the frame expects, it collects the data
pointers, releases the lock, calls the entry point, takes the lock back and returns the status; else it
returns -1 and has changed nothing, and the runtime finds out in Python what is different.

Where the fields of a Python object lie is measured when the runtime is imported (``layout.py``), so there
is no dependence on a version of Python or NumPy here.

A frame whose entry point is 0 is one of strings, see ``text_gate.py``.
"""

from __future__ import annotations

__all__ = ["gate_text"]

_WORDS = (
    *("entry", "context", "feeds", "results", "items", "list", "head", "array", "none"),
    *("save", "restore", "inputs", "outputs", "types", "pointers", "dims", "sizes"),
)


def gate_text() -> str:
    """The LLVM text of ``sdx_gate``."""
    loads = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %frame, i64 {i}\n  %{name}.word = load i64, ptr %{name}.at"
        for i, name in enumerate(_WORDS)
    )
    return f"{_CHOICE}define internal i32 @sdx_arrays(ptr %frame) alwaysinline nounwind {{\nentry:\n{loads}\n{_BODY}"


_CHOICE = """
define i32 @sdx_gate(ptr %frame) nounwind {
  %entry.word = load i64, ptr %frame
  %texts = icmp eq i64 %entry.word, 0
  br i1 %texts, label %strings, label %arrays, !prof !0
strings:
  %odd = call i32 @sdx_texts(ptr %frame)
  ret i32 %odd
arrays:
  %code = call i32 @sdx_arrays(ptr %frame)
  ret i32 %code
}
"""


# A PyArrayObject behind its head: data, rank (int), dims, strides, base, descriptor, flags (int).
# Flags: 1 is C-contiguous, 0x100 aligned.  The type of an object stands in the last word of its head.
_BODY = """
  %feeds = inttoptr i64 %feeds.word to ptr
  %results = inttoptr i64 %results.word to ptr
  %types = inttoptr i64 %types.word to ptr
  %pointers = inttoptr i64 %pointers.word to ptr
  %dims = inttoptr i64 %dims.word to ptr
  %type.place = sub i64 %head.word, 8
  %rank.place = add i64 %head.word, 8
  %dims.place = add i64 %head.word, 16
  %descr.place = add i64 %head.word, 40
  %flags.place = add i64 %head.word, 48
  br label %input
input:
  %i = phi i64 [ 0, %entry ], [ %i.next, %accept ]
  %dim = phi ptr [ %dims, %entry ], [ %dim.after, %accept ]
  %more = icmp slt i64 %i, %inputs.word
  br i1 %more, label %check, label %gather
check:
  %item.shift = shl i64 %i, 3
  %item.place = add i64 %item.shift, %items.word
  %item.at = getelementptr i8, ptr %feeds, i64 %item.place
  %x = load ptr, ptr %item.at
  %type.at = getelementptr i8, ptr %x, i64 %type.place
  %type = load i64, ptr %type.at
  %is.array = icmp eq i64 %type, %array.word
  br i1 %is.array, label %fields, label %differs
fields:
  %record = shl i64 %i, 1
  %descr.want.at = getelementptr i64, ptr %types, i64 %record
  %descr.want = load i64, ptr %descr.want.at
  %record.rank = or i64 %record, 1
  %rank.want.at = getelementptr i64, ptr %types, i64 %record.rank
  %rank.want = load i64, ptr %rank.want.at
  %descr.at = getelementptr i8, ptr %x, i64 %descr.place
  %descr = load i64, ptr %descr.at
  %rank.at = getelementptr i8, ptr %x, i64 %rank.place
  %rank.int = load i32, ptr %rank.at
  %rank = sext i32 %rank.int to i64
  %flags.at = getelementptr i8, ptr %x, i64 %flags.place
  %flags = load i32, ptr %flags.at
  %plain = and i32 %flags, 257
  %same.descr = icmp eq i64 %descr, %descr.want
  %same.rank = icmp eq i64 %rank, %rank.want
  %is.plain = icmp eq i32 %plain, 257
  %and = and i1 %same.descr, %same.rank
  %fits = and i1 %and, %is.plain
  br i1 %fits, label %shape, label %differs
shape:
  %shape.at = getelementptr i8, ptr %x, i64 %dims.place
  %shape.ptr = load ptr, ptr %shape.at
  %dim.after = getelementptr i64, ptr %dim, i64 %rank
  br label %axis
axis:
  %a = phi i64 [ 0, %shape ], [ %a.next, %extent ]
  %axes = icmp slt i64 %a, %rank
  br i1 %axes, label %extent, label %accept
extent:
  %have.at = getelementptr i64, ptr %shape.ptr, i64 %a
  %have = load i64, ptr %have.at
  %want.at = getelementptr i64, ptr %dim, i64 %a
  %want = load i64, ptr %want.at
  %a.next = add i64 %a, 1
  %same = icmp eq i64 %have, %want
  br i1 %same, label %axis, label %differs
accept:
  %data.at = getelementptr i8, ptr %x, i64 %head.word
  %data = load ptr, ptr %data.at
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer.at
  %i.next = add i64 %i, 1
  br label %input
gather:
  %cells.at = getelementptr i8, ptr %results, i64 %list.word
  %list = load ptr, ptr %cells.at
  %into = getelementptr ptr, ptr %pointers, i64 %inputs.word
  br label %output
output:
  %o = phi i64 [ 0, %gather ], [ %o.next, %put ]
  %o.more = icmp slt i64 %o, %outputs.word
  br i1 %o.more, label %take, label %call
take:
  %r.at = getelementptr ptr, ptr %list, i64 %o
  %r = load ptr, ptr %r.at
  %r.word = ptrtoint ptr %r to i64
  %is.none = icmp eq i64 %r.word, %none.word
  br i1 %is.none, label %put, label %given
given:
  %r.data.at = getelementptr i8, ptr %r, i64 %head.word
  %r.data = load ptr, ptr %r.data.at
  br label %put
put:
  %place = phi ptr [ null, %take ], [ %r.data, %given ]
  %slot = getelementptr ptr, ptr %into, i64 %o
  store ptr %place, ptr %slot
  %o.next = add i64 %o, 1
  br label %output
call:
  %save = inttoptr i64 %save.word to ptr
  %restore = inttoptr i64 %restore.word to ptr
  %function = inttoptr i64 %entry.word to ptr
  %context = inttoptr i64 %context.word to ptr
  %sizes = inttoptr i64 %sizes.word to ptr
  %state = call ptr %save()
  %code = call i32 %function(ptr %context, ptr %pointers, ptr %dims, ptr %into, ptr %sizes)
  call void %restore(ptr %state)
  ret i32 %code
differs:
  ret i32 -1
}
"""
