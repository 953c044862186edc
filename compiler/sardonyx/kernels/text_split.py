"""Strings split at a delimiter or at white space."""

from __future__ import annotations

from typing import NamedTuple

from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.text_builder import Element, Text, TextBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes

__all__ = ["count_parts", "string_part"]

_ASCII = (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x20)
# White space beyond ASCII, as Python's str.split has it: lead bytes, then the range of the last.
_WIDE = (
    ((0xC2,), 0x85, 0x85),
    ((0xC2,), 0xA0, 0xA0),
    ((0xE1, 0x9A), 0x80, 0x80),
    ((0xE2, 0x80), 0x80, 0x8A),
    ((0xE2, 0x80), 0xA8, 0xA9),
    ((0xE2, 0x80), 0xAF, 0xAF),
    ((0xE2, 0x81), 0x9F, 0x9F),
    ((0xE3, 0x80), 0x80, 0x80),
)


class _Split(NamedTuple):
    """Of one string: the number of its parts, and begin and end of the part asked for (0, 0 if there is none)."""

    parts: Value
    begin: Value
    end: Value


def count_parts(t: TextBuilder, op: Op) -> Element:
    delimiter, most = op.attributes["delimiter"].encode("utf-8", "surrogateescape"), op.attributes["most"]
    return lambda values, index: _split(t, t.text(values[0]), delimiter, most, t.number(-1)).parts


def string_part(t: TextBuilder, op: Op) -> Element:
    delimiter, most = op.attributes["delimiter"].encode("utf-8", "surrogateescape"), op.attributes["most"]

    def make(values: list[Value], index: Index) -> Value:
        b = t.b
        text = t.text(values[0])
        found = _split(t, text, delimiter, most, b.convert(values[1], dtypes.i64))
        begin, end = b.to_index(found.begin), b.to_index(found.end)
        made = t.new(b.isub(end, begin))
        t.copy(made, 0, text.data, begin, b.isub(end, begin))
        return made.address

    return make


def _split(t: TextBuilder, text: Text, delimiter: bytes, most: int, wanted: Value) -> _Split:
    limit = most if most >= 0 else (1 << 62)
    return (_at_delimiter if delimiter else _at_white)(t, text, delimiter, limit, wanted)


def _matches(t: TextBuilder, text: Text, index: Index, pattern: bytes) -> Value:
    """Whether a pattern stands at an index."""
    return t.both(
        *(t.test("eq", t.byte(text.data, t.b.iadd(index, i), text.length), p) for i, p in enumerate(pattern))
    )


def _at_delimiter(t: TextBuilder, text: Text, delimiter: bytes, limit: int, wanted: Value) -> _Split:
    """Every delimiter ends a part; an empty string has one part, which is empty."""
    b = t.b
    zero = t.number(0)
    # Carried: parts that have ended, where the open one began, bytes of a delimiter still to pass, the part wanted.
    with b.loop(0, text.length, 1, [zero] * 5) as loop:
        ended, start, passing, begin, end = loop.carried
        here = t.both(
            t.test("le", passing, 0), t.test("lt", ended, limit), _matches(t, text, loop.index, delimiter)
        )
        at = b.from_index(loop.index, dtypes.i64)
        chosen = t.both(here, t.test("eq", ended, wanted))
        b.yield_(
            t.select(here, t.op("add", ended, 1), ended),
            t.select(here, t.op("add", at, len(delimiter)), start),
            t.select(here, len(delimiter) - 1, t.op("sub", passing, 1)),
            t.select(chosen, start, begin),
            t.select(chosen, at, end),
        )
    ended, start, _, begin, end = loop.results
    last = t.test("eq", ended, wanted)
    length = b.from_index(text.length, dtypes.i64)
    return _Split(t.op("add", ended, 1), t.select(last, start, begin), t.select(last, length, end))


def _white(t: TextBuilder, text: Text, index: Index) -> Value:
    """The bytes of the white space at an index; 0 if there is none."""
    b = t.b
    first = t.byte(text.data, index, text.length)
    bits = sum(1 << c for c in _ASCII)
    small = t.both(t.test("ge", first, 0), t.test("le", first, 0x20))
    found = t.op("and", t.op("shr", t.number(bits), t.select(small, first, 63)), 1)

    def wide() -> list[Value]:
        second, third = (t.byte(text.data, b.iadd(index, i), text.length) for i in (1, 2))
        result = t.number(0)
        for lead, low, high in _WIDE:
            last = (second, third)[len(lead) - 1]
            tests = [t.test("eq", byte, value) for byte, value in zip((first, second), lead, strict=False)]
            here = t.both(*tests, t.test("ge", last, low), t.test("le", last, high))
            result = t.select(here, len(lead) + 1, result)
        return [result]

    return b.if_(t.test("ge", first, 0xC2), wide, lambda: [found])[0]


def _at_white(t: TextBuilder, text: Text, delimiter: bytes, limit: int, wanted: Value) -> _Split:
    """Parts are words; once ``limit`` have ended, the next one goes on to the end of the string."""
    b = t.b
    zero = t.number(0)
    # Carried: words that have begun, whether in one, bytes of white space still to pass, the word wanted.
    with b.loop(0, text.length, 1, [zero] * 5) as loop:
        begun, inside, passing, begin, end = loop.carried
        at = b.from_index(loop.index, dtypes.i64)
        width = _white(t, text, loop.index)
        rest = t.test("gt", begun, limit)  # in the last word, white space is part of it
        space = t.both(t.no(rest), t.either(t.test("gt", passing, 0), t.test("gt", width, 0)))
        enters = t.both(t.no(space), t.test("eq", inside, 0), t.no(rest))
        leaves = t.both(space, t.test("eq", inside, 1))
        number = t.select(enters, t.op("add", begun, 1), begun)
        mine = t.test("eq", t.op("sub", number, 1), wanted)
        b.yield_(
            number,
            t.select(space, 0, 1, dtypes.i64),
            t.select(
                t.test("gt", passing, 0), t.op("sub", passing, 1), t.op("sub", t.select(space, width, 1), 1)
            ),
            t.select(t.both(enters, mine), at, begin),
            t.select(t.both(leaves, mine), at, end),
        )
    begun, inside, _, begin, end = loop.results
    open_ = t.both(t.test("eq", inside, 1), t.test("eq", t.op("sub", begun, 1), wanted))
    return _Split(begun, begin, t.select(open_, b.from_index(text.length, dtypes.i64), end))
