"""What a fault means, in words: a function of the library that writes the text, as LLVM IR.

``int64_t <prefix>_error(const int64_t *context, char *buffer, int64_t size)`` writes the text that
`sardonyx_runtime.faults` gives, cut to the buffer and ended by a zero, and returns the bytes of the whole
text.  It needs nothing of the C library.

Templates and names lie in one block of zero-ended texts and are found by 32-bit offsets, so that nothing has
to be relocated when the library is loaded.  In a template the bytes 1 to 8 stand for what is filled in.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter

from sardonyx.codegen.support import STATUS
from sardonyx_runtime.faults import FAULTS, NO_CONTEXT, UNKNOWN
from sardonyx_runtime.signature import Signature

__all__ = ["fault_text"]

_VALUE, _SECOND, _CODE = 1, 2, 3
# Texts by number: node, input, message, a message's node, a node's tensors.
_NODE, _INPUT, _MESSAGE, _BLAMED, _TENSORS = 4, 5, 6, 7, 8
_TABLES = (_NODE, _INPUT, _MESSAGE, _BLAMED, _TENSORS)


class _Texts:
    """Texts one behind the other, each ended by a zero; equal ones are there once.  At 0 is the empty one."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._places: dict[bytes, int] = {b"": 0}

    def place(self, text: bytes) -> int:
        text = text.replace(b"\0", b"\\0")
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = len(self.data)
            self.data += text + b"\0"
        return found


def _encode(text: str) -> bytes:
    """UTF-8 without the control characters that mean something in a template."""
    plain = "".join(c if c >= " " else f"\\x{ord(c):02x}" for c in text)
    return plain.encode("utf-8", "surrogateescape")


def _template(code: int, text: str) -> bytes:
    fields = {
        "value": _VALUE,
        "second": _SECOND,
        "code": _CODE,
        "node": _BLAMED if code == 2 else _NODE,
        "input": _INPUT,
        "message": _MESSAGE,
        "tensors": _TENSORS,
    }
    result = b""
    for literal, name, _, _ in Formatter().parse(text):
        result += _encode(literal) + (bytes([fields[name]]) if name else b"")
    return result


def _array(name: str, offsets: Iterable[int]) -> str:
    items = list(offsets) or [0]
    return f"@{name} = internal constant [{len(items)} x i32] [{', '.join(f'i32 {o}' for o in items)}]\n"


def fault_text(prefix: str, signature: Signature) -> str:
    """The LLVM text of ``<prefix>_error`` for a model."""
    texts = _Texts()
    known = {0: NO_CONTEXT, **FAULTS}  # code 0 is no fault, so its row is free for contexts that are none
    templates = [texts.place(_template(c, known.get(c, UNKNOWN))) for c in range(max(FAULTS) + 2)]
    tables = {
        _NODE: [texts.place(_encode(n)) for n in signature.nodes],
        _INPUT: [texts.place(_encode(repr(a.name))) for a in signature.inputs],
        _MESSAGE: [texts.place(_encode(text)) for _, text in signature.messages],
        _BLAMED: [texts.place(_encode(node)) for node, _ in signature.messages],
        _TENSORS: [texts.place(_encode(text)) for text in signature.tensors],
    }
    cells = "".join(f"\\{byte:02X}" for byte in texts.data)
    cases = "\n".join(f"    i8 {t}, label %table{t}" for t in _TABLES)
    looks = "\n".join(
        f"table{t}:\n  %o{t} = call i64 @sdx.offset(ptr @sdx.fault.table{t}, i64 {len(tables[t])}, i64 %number)\n"
        f"  br label %name"
        for t in _TABLES
    )
    offsets = ", ".join(f"[ %o{t}, %table{t} ]" for t in _TABLES)
    return (
        f'@sdx.fault.texts = internal constant [{len(texts.data)} x i8] c"{cells}"\n'
        + _array("sdx.fault.templates", templates)
        + "".join(_array(f"sdx.fault.table{t}", tables[t]) for t in _TABLES)
        + _WRITER
        + _ERROR.format(
            prefix=prefix,
            status=STATUS,
            words=STATUS + 4,
            last=len(templates) - 1,
            value=_VALUE,
            second=_SECOND,
            code=_CODE,
            cases=cases,
            looks=looks,
            offsets=offsets,
        )
    )


# The state of writing: buffer, its size, bytes so far (also of what did not fit).
_WRITER = """
define internal void @sdx.put(ptr %state, i8 %byte) nounwind {
  %size.at = getelementptr i64, ptr %state, i64 1
  %count.at = getelementptr i64, ptr %state, i64 2
  %size = load i64, ptr %size.at
  %count = load i64, ptr %count.at
  %after = add i64 %count, 1
  store i64 %after, ptr %count.at
  %fits = icmp slt i64 %after, %size
  br i1 %fits, label %write, label %done
write:
  %buffer = load ptr, ptr %state
  %at = getelementptr i8, ptr %buffer, i64 %count
  store i8 %byte, ptr %at
  br label %done
done:
  ret void
}

define internal void @sdx.put.text(ptr %state, i64 %offset) nounwind {
entry:
  br label %look
look:
  %place = phi i64 [ %offset, %entry ], [ %next, %more ]
  %at = getelementptr i8, ptr @sdx.fault.texts, i64 %place
  %byte = load i8, ptr %at
  %end = icmp eq i8 %byte, 0
  br i1 %end, label %done, label %more
more:
  call void @sdx.put(ptr %state, i8 %byte)
  %next = add i64 %place, 1
  br label %look
done:
  ret void
}

define internal void @sdx.put.number(ptr %state, i64 %number) nounwind {
entry:
  %digits = alloca [20 x i8]
  %negative = icmp slt i64 %number, 0
  br i1 %negative, label %sign, label %split
sign:
  call void @sdx.put(ptr %state, i8 45)
  br label %split
split:
  %opposite = sub i64 0, %number
  %size = select i1 %negative, i64 %opposite, i64 %number
  br label %digit
digit:
  %rest = phi i64 [ %size, %split ], [ %tenth, %digit ]
  %count = phi i64 [ 0, %split ], [ %more, %digit ]
  %tenth = udiv i64 %rest, 10
  %ones = urem i64 %rest, 10
  %narrow = trunc i64 %ones to i8
  %character = add i8 %narrow, 48
  %at = getelementptr i8, ptr %digits, i64 %count
  store i8 %character, ptr %at
  %more = add i64 %count, 1
  %whole = icmp eq i64 %tenth, 0
  br i1 %whole, label %write, label %digit
write:
  %left = phi i64 [ %more, %digit ], [ %fewer, %write ]
  %fewer = sub i64 %left, 1
  %from = getelementptr i8, ptr %digits, i64 %fewer
  %one = load i8, ptr %from
  call void @sdx.put(ptr %state, i8 %one)
  %last = icmp eq i64 %fewer, 0
  br i1 %last, label %done, label %write
done:
  ret void
}

; An entry of a table; 0, the empty text, beyond its end.
define internal i64 @sdx.offset(ptr %table, i64 %count, i64 %number) nounwind {
  %inside = icmp ult i64 %number, %count
  br i1 %inside, label %look, label %outside
look:
  %at = getelementptr i32, ptr %table, i64 %number
  %offset = load i32, ptr %at
  %wide = zext i32 %offset to i64
  ret i64 %wide
outside:
  ret i64 0
}
"""

_ERROR = """
@sdx.fault.absent = internal constant [{words} x i64] zeroinitializer

define i64 @{prefix}_error(ptr %given, ptr %buffer, i64 %size) nounwind {{
entry:
  %none = icmp eq ptr %given, null
  %context = select i1 %none, ptr @sdx.fault.absent, ptr %given
  %state = alloca [3 x i64], align 8
  %size.at = getelementptr i64, ptr %state, i64 1
  %count.at = getelementptr i64, ptr %state, i64 2
  store ptr %buffer, ptr %state
  store i64 %size, ptr %size.at
  store i64 0, ptr %count.at
  %code.at = getelementptr i64, ptr %context, i64 {status}
  %number.at = getelementptr i64, ptr %code.at, i64 1
  %value.at = getelementptr i64, ptr %code.at, i64 2
  %second.at = getelementptr i64, ptr %code.at, i64 3
  %code = load i64, ptr %code.at
  %number = load i64, ptr %number.at
  %zero = icmp eq i64 %code, 0
  %there = xor i1 %none, true
  %fine = and i1 %zero, %there
  br i1 %fine, label %close, label %find
find:
  %known = icmp ult i64 %code, {last}
  %row = select i1 %known, i64 %code, i64 {last}
  %template.at = getelementptr i32, ptr @sdx.fault.templates, i64 %row
  %template.narrow = load i32, ptr %template.at
  %template = zext i32 %template.narrow to i64
  br label %look
look:
  %place = phi i64 [ %template, %find ], [ %next, %literal ], [ %next, %number.value ],
                   [ %next, %number.second ], [ %next, %number.code ], [ %next, %name ]
  %at = getelementptr i8, ptr @sdx.fault.texts, i64 %place
  %byte = load i8, ptr %at
  %next = add i64 %place, 1
  switch i8 %byte, label %literal [
    i8 0, label %close
    i8 {value}, label %number.value
    i8 {second}, label %number.second
    i8 {code}, label %number.code
{cases}
  ]
literal:
  call void @sdx.put(ptr %state, i8 %byte)
  br label %look
number.value:
  %value = load i64, ptr %value.at
  call void @sdx.put.number(ptr %state, i64 %value)
  br label %look
number.second:
  %second = load i64, ptr %second.at
  call void @sdx.put.number(ptr %state, i64 %second)
  br label %look
number.code:
  call void @sdx.put.number(ptr %state, i64 %code)
  br label %look
{looks}
name:
  %offset = phi i64 {offsets}
  call void @sdx.put.text(ptr %state, i64 %offset)
  br label %look
close:
  %count = load i64, ptr %count.at
  %room = icmp sgt i64 %size, 0
  br i1 %room, label %end, label %done
end:
  %most = sub i64 %size, 1
  %short = icmp slt i64 %count, %most
  %last = select i1 %short, i64 %count, i64 %most
  %end.at = getelementptr i8, ptr %buffer, i64 %last
  store i8 0, ptr %end.at
  br label %done
done:
  ret i64 %count
}}
"""
