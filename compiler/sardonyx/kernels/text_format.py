"""Numbers as text.

Floats: R. Giulietti, "The Schubfach way to render doubles", 2021.  One product of the significand with a
power of ten, to 126 bits and more, tells the few decimal numbers in question; the same code serves the
narrower types, whose neighbours are farther away.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.float_bits import FloatFormat
from sardonyx.kernels.text_builder import Element, TextBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes

__all__ = ["format_element"]

_LOW, _HIGH = -292, 324  # powers of ten that float64 needs
_ROOM = 64  # bytes of the longest number
_DIGITS = 20


def format_element(t: TextBuilder, op: Op) -> Element:
    """The text of a number, as `sardonyx.core.text_numbers.format_number` has it."""
    dtype = op.operands[0].type.dtype
    if dtype is dtypes.boolean:
        return _bool(t)
    return _Float(t, FloatFormat(dtype)).make if dtype.is_float else _integer(t)


def _bool(t: TextBuilder) -> Element:
    words = t.kernel.constant(Dense(np.frombuffer(b"FalseTrue", np.uint8)), "words")

    def make(values: list[Value], index: Index) -> Value:
        start, count = t.choose(values[0], 5, 0), t.choose(values[0], 4, 5)
        return t.made_of(t.b.offset(words, start), count)

    return make


def _decimal(t: TextBuilder, buffer: Value, number: Value) -> Index:
    """Write a u64 in decimal to the end of a buffer of 20 bytes; how many digits there are."""
    b = t.b
    with b.loop(0, _DIGITS, 1, [number, t.number(1)]) as loop:
        rest, count = loop.carried
        digit = b.convert(t.op("add", t.op("rem", rest, 10), 48), dtypes.u8)
        b.store(digit, buffer, b.isub(_DIGITS - 1, loop.index))
        further = t.op("div", rest, 10)
        more = t.test("ne", further, 0)
        b.yield_(further, t.select(more, b.from_index(b.iadd(loop.index, 2), dtypes.i64), count))
    return b.to_index(loop.results[1])


def _integer(t: TextBuilder) -> Element:
    b = t.b
    digits, text = b.local(dtypes.u8, _DIGITS), b.local(dtypes.u8, _ROOM)

    def make(values: list[Value], index: Index) -> Value:
        x = values[0]
        signed = x.type.dtype.kind == "signed"
        wide = b.convert(b.convert(x, dtypes.i64 if signed else dtypes.u64), dtypes.u64)
        negative = t.test("lt", b.convert(x, dtypes.i64), 0) if signed else b.const(0, dtypes.boolean)
        magnitude = t.select(negative, t.op("sub", t.number(0, dtypes.u64), wide), wide)
        count = _decimal(t, digits, magnitude)
        sign = b.truth(negative)
        b.store(b.const(ord("-"), dtypes.u8), text, 0)
        with b.loop(0, count) as loop:
            at = b.iadd(b.isub(_DIGITS, count), loop.index)
            b.store(b.load(digits, at), text, b.iadd(sign, loop.index))
        return t.made_of(text, b.iadd(sign, count))

    return make


@cache
def _powers() -> Any:
    """10^k to 128 bits, rounded up: upper words, then lower words."""
    upper, lower = [], []
    for k in range(_LOW, _HIGH + 1):
        number = ceil(Fraction(10) ** k * Fraction(2) ** (127 - ((k * 1741647) >> 19)))
        upper.append(number >> 64)
        lower.append(number & (1 << 64) - 1)
    return np.array([*upper, *lower], np.uint64)


class _Float:
    def __init__(self, t: TextBuilder, form: FloatFormat) -> None:
        self.t, self.form = t, form
        self.powers = t.kernel.constant(Dense(_powers()), "powers")
        self.digits, self.text = t.b.local(dtypes.u8, _DIGITS), t.b.local(dtypes.u8, _ROOM)

    def make(self, values: list[Value], index: Index) -> Value:
        """The number, or one of the words for what is none."""
        b, t, form = self.t.b, self.t, self.form
        bits = form.bits(b, values[0])
        sign = t.op("shr", bits, form.dtype.bits - 1)
        magnitude = t.op("and", bits, (1 << (form.dtype.bits - 1)) - 1)
        negative = b.to_index(b.convert(sign, dtypes.i64))
        b.store(b.const(ord("-"), dtypes.u8), self.text, 0)
        special = t.test("ge", magnitude, form.infinity)
        (length,) = b.if_(
            special, lambda: [self._word(magnitude, negative)], lambda: [self._number(magnitude, negative)]
        )
        return t.made_of(self.text, b.to_index(length))

    def _word(self, magnitude: Value, negative: Index) -> Value:
        """``inf`` or ``nan``, which has no sign; the length of the text."""
        b, t = self.t.b, self.t
        is_nan = t.test("gt", magnitude, self.form.infinity)
        start = b.imul(negative, b.truth(t.no(is_nan)))
        for i in range(3):
            letter = t.select(is_nan, b"nan"[i], b"inf"[i], dtypes.u8)
            b.store(letter, self.text, b.iadd(start, i))
        return b.from_index(b.iadd(start, 3), dtypes.i64)

    def _number(self, magnitude: Value, negative: Index) -> Value:
        t = self.t
        digits, power = self._shortest(magnitude)
        zero = t.test("eq", magnitude, 0)
        digits, power = t.select(zero, 0, digits), t.select(zero, 0, power)
        return self._layout(digits, power, negative)

    # -- the decimal number

    def _high_product(self, x: Value, y: Value) -> Value:
        """The upper word of the product of two u64."""
        t = self.t
        low = (1 << 32) - 1
        x0, x1, y0, y1 = t.op("and", x, low), t.op("shr", x, 32), t.op("and", y, low), t.op("shr", y, 32)
        middle = t.op("add", t.op("mul", x1, y0), t.op("shr", t.op("mul", x0, y0), 32))
        other = t.op("add", t.op("mul", x0, y1), t.op("and", middle, low))
        return t.op("add", t.op("add", t.op("mul", x1, y1), t.op("shr", middle, 32)), t.op("shr", other, 32))

    def _scaled(self, upper: Value, lower: Value, x: Value) -> Value:
        """The integer part of a power times x, its last bit set if there is a fraction."""
        t = self.t
        low = t.op("mul", upper, x)
        total = t.op("add", low, self._high_product(lower, x))
        carry = t.select(t.test("lt", total, low), 1, 0, dtypes.u64)
        high = t.op("add", self._high_product(upper, x), carry)
        return t.op("or", high, t.select(t.test("gt", total, 1), 1, 0, dtypes.u64))

    def _shortest(self, magnitude: Value) -> tuple[Value, Value]:
        """(digits, power of ten) of the shortest number that reads back, the nearest of these."""
        b, t, form = self.t.b, self.t, self.form
        fraction = t.op("and", magnitude, (1 << form.mantissa) - 1)
        exponent = b.convert(t.op("shr", magnitude, form.mantissa), dtypes.i64)
        normal = t.test("gt", exponent, 0)
        c = t.op("or", fraction, t.select(normal, 1 << form.mantissa, 0, dtypes.u64))
        q = t.op("sub", t.select(normal, exponent, 1), form.bias + form.mantissa)
        closer = t.both(t.test("eq", fraction, 0), t.test("gt", exponent, 1))
        odd = t.op("and", c, 1)
        four = t.op("shl", c, 2)
        below = t.op("sub", four, t.select(closer, 1, 2, dtypes.u64))
        k = t.op("shr", t.op("sub", t.op("mul", q, 1262611), t.select(closer, 524031, 0, dtypes.i64)), 22)
        minus = t.op("sub", t.number(0), k)
        h = b.convert(
            t.op("add", t.op("add", q, t.op("shr", t.op("mul", minus, 1741647), 19)), 1), dtypes.u64
        )
        place = b.to_index(t.op("sub", minus, _LOW))
        upper = b.load(self.powers, place)
        lower = b.load(self.powers, b.iadd(place, _HIGH - _LOW + 1))
        left = t.op("add", self._scaled(upper, lower, t.op("shl", below, h)), odd)
        value = self._scaled(upper, lower, t.op("shl", four, h))
        right = t.op("sub", self._scaled(upper, lower, t.op("shl", t.op("add", four, 2), h)), odd)
        s = t.op("shr", value, 2)
        # One digit less, if just one of the two neighbours lies within.
        tenth = t.op("div", s, 10)
        forty = t.op("mul", tenth, 40)
        down, up = t.test("le", left, forty), t.test("le", t.op("add", forty, 40), right)
        short = t.both(t.test("ge", s, 10), t.test("ne", down, up))
        floor = t.op("mul", s, 4)
        below_in, above_in = t.test("le", left, floor), t.test("le", t.op("add", floor, 4), right)
        middle = t.op("add", floor, 2)
        tie = t.both(t.test("eq", value, middle), t.test("ne", t.op("and", s, 1), 0))
        nearer = t.either(t.test("gt", value, middle), tie)
        one = t.select(t.test("ne", below_in, above_in), above_in, nearer, dtypes.boolean)
        digits = t.op("add", s, t.select(one, 1, 0, dtypes.u64))
        shorter = t.op("add", tenth, t.select(up, 1, 0, dtypes.u64))
        return t.select(short, shorter, digits), t.select(short, t.op("add", k, 1), k)

    # -- its text

    def _layout(self, digits: Value, power: Value, negative: Index) -> Value:
        """Plain with a first digit from 1e-4 to 1e15, else with an exponent of two digits or more; the length."""
        b, t = self.t.b, self.t
        with b.loop(0, 17, 1, [digits, power]) as loop:
            number, exponent = loop.carried
            ends = t.both(t.test("eq", t.op("rem", number, 10), 0), t.test("ne", number, 0))
            b.yield_(
                t.select(ends, t.op("div", number, 10), number),
                t.select(ends, t.op("add", exponent, 1), exponent),
            )
        digits, power = loop.results
        count = _decimal(t, self.digits, digits)
        first = t.op(
            "add", power, b.from_index(b.isub(count, 1), dtypes.i64)
        )  # the exponent of the first digit
        scientific = t.either(t.test("lt", first, -4), t.test("ge", first, 16))
        shown = t.select(scientific, 0, first)
        whole = t.select(t.test("gt", shown, 0), t.op("add", shown, 1), 1)  # digits before the point
        behind = t.op("sub", b.from_index(count, dtypes.i64), t.op("add", shown, 1))
        least = t.select(scientific, 0, 1, dtypes.i64)
        fraction = t.select(t.test("gt", behind, least), behind, least)
        start = b.to_index(t.op("sub", t.op("add", shown, 1), whole))

        def run(at: Index, source: Index, length: Index) -> Index:
            """Digits from a number on; zeros where there are none."""
            with b.loop(0, length) as loop:
                place = b.iadd(source, loop.index)
                digit = t.byte(b.offset(self.digits, b.isub(_DIGITS, count)), place, count)
                letter = t.select(t.test("lt", digit, 0), ord("0"), digit)
                b.store(b.convert(letter, dtypes.u8), self.text, b.iadd(at, loop.index))
            return b.iadd(at, length)

        end = run(negative, start, b.to_index(whole))
        has_point = t.test("gt", fraction, 0)
        b.store(b.const(ord("."), dtypes.u8), self.text, end)
        end = b.iadd(end, b.truth(has_point))
        end = run(end, b.to_index(t.op("add", shown, 1)), b.to_index(fraction))
        return b.from_index(self._exponent(end, first, scientific), dtypes.i64)

    def _exponent(self, at: Index, first: Value, scientific: Value) -> Index:
        b, t = self.t.b, self.t
        minus = t.test("lt", first, 0)
        size = t.select(minus, t.op("sub", t.number(0), first), first)
        three = t.test("ge", size, 100)
        b.store(b.const(ord("e"), dtypes.u8), self.text, at)
        b.store(t.select(minus, ord("-"), ord("+"), dtypes.u8), self.text, b.iadd(at, 1))
        place = b.iadd(at, 2)
        hundreds = t.op("add", t.op("div", size, 100), 48)
        b.store(b.convert(hundreds, dtypes.u8), self.text, place)
        place = b.iadd(place, b.truth(three))
        tens = t.op("add", t.op("rem", t.op("div", size, 10), 10), 48)
        b.store(b.convert(tens, dtypes.u8), self.text, place)
        b.store(b.convert(t.op("add", t.op("rem", size, 10), 48), dtypes.u8), self.text, b.iadd(place, 1))
        return t.choose(scientific, b.iadd(place, 2), at)
