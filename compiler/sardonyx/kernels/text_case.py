"""Upper and lower case by Unicode's table, which stands among the constants."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from sardonyx.core.text import change_case as meaning
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.text_builder import Element, Text, TextBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes

__all__ = ["change_case"]


@cache
def _table(kind: str) -> tuple[Any, Any]:
    """(code points that change, ascending and closed by a high one; where their UTF-8 begins and ends; these bytes)."""
    codes: list[int] = []
    places = [0]
    data = b""
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        changed = meaning(chr(code), kind)
        if changed != chr(code):
            codes.append(code)
            data += changed.encode()
            places.append(len(data))
    size = 1 << len(codes).bit_length()
    codes += [1 << 30] * (size - len(codes))
    places += [places[-1]] * (size + 1 - len(places))
    return np.array([codes, places[:-1], places[1:]], np.int32).reshape(-1), np.frombuffer(data, np.uint8)


def change_case(t: TextBuilder, op: Op) -> Element:
    """Two passes: the length of the result, then its bytes.  What is no UTF-8 stays as it is."""
    b, kernel = t.b, t.kernel
    numbers, data = _table(op.attributes["kind"])
    size = len(numbers) // 3
    table = kernel.constant(Dense(numbers), "case")
    changed = kernel.constant(Dense(data), "changed")

    def place_of(code: Value) -> Value:
        """The last entry of the table that is not above the code point."""
        at = t.number(0)
        step = size // 2
        while step:
            ahead = t.op("add", at, step)
            entry = b.convert(b.load(table, b.to_index(ahead)), dtypes.i64)
            at = t.select(t.test("le", entry, code), ahead, at)
            step //= 2
        return at

    def decoded(text: Text, index: Index) -> tuple[Value, Value]:
        """(code point, bytes) of the character that begins at an index; (-1, 1) for what is no UTF-8."""
        first, *others = (t.byte(text.data, b.iadd(index, i), text.length) for i in range(4))
        tail = [t.both(t.test("ge", o, 0x80), t.test("lt", o, 0xC0)) for o in others]
        code, length = t.select(t.test("lt", first, 0x80), first, -1), t.number(1)
        good: Value | None = None
        for count, (low, high, bits) in enumerate(
            ((0xC2, 0xE0, 0x1F), (0xE0, 0xF0, 0x0F), (0xF0, 0xF5, 0x07))
        ):
            good = tail[count] if good is None else t.both(good, tail[count])
            here = t.both(good, t.test("ge", first, low), t.test("lt", first, high))
            value = t.op("and", first, bits)
            for other in others[: count + 1]:
                value = t.op("or", t.op("shl", value, 6), t.op("and", other, 0x3F))
            code, length = t.select(here, value, code), t.select(here, count + 2, length)
        return code, length

    def walk(text: Text, made: Text | None) -> Value:
        """The length of the result; writes it where there is one."""
        with b.loop(0, text.length, 1, [t.number(0), t.number(0)]) as loop:
            at, skipped = loop.carried
            code, length = decoded(text, loop.index)
            place = b.to_index(place_of(code))
            entry = b.convert(b.load(table, place), dtypes.i64)
            start, end = (b.convert(b.load(table, b.iadd(place, i * size)), dtypes.i64) for i in (1, 2))
            inside = t.test("gt", skipped, 0)
            hit = t.both(t.test("eq", entry, code), t.no(inside))
            written = t.select(inside, 0, t.select(hit, t.op("sub", end, start), 1))
            if made is not None:
                to = b.to_index(at)
                t.copy(made, to, changed, b.to_index(start), b.imul(b.to_index(written), b.truth(hit)))
                plain = b.imul(b.to_index(written), b.truth(t.no(hit)))
                t.copy(made, to, text.data, loop.index, plain)
            left = t.select(inside, t.op("sub", skipped, 1), t.select(hit, t.op("sub", length, 1), 0))
            b.yield_(t.op("add", at, written), left)
        return loop.results[0]

    def make(values: list[Value], index: Index) -> Value:
        text = t.text(values[0])
        made = t.new(b.to_index(walk(text, None)))
        walk(text, made)
        return made.address

    return make
