"""Numbers read from text, rounded once.

A state machine looks at the letters; the digits become an integer of as many words as it takes, which is
multiplied with, or divided by, the power of ten.  Its upper 64 bits and whether anything is below decide the
rounding, so the result is the nearest float of any type, ties to even.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sardonyx.core.text_numbers import WHITE
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Op, Value
from sardonyx.ir.types import VectorType
from sardonyx.kernels.faults import FaultKind
from sardonyx.kernels.float_bits import FloatFormat
from sardonyx.kernels.text_builder import Element, Text, TextBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes

__all__ = ["parse_element"]

_MOST_DIGITS = 780  # more decide nothing between two float64 but whether they are zeros
_WORDS = 256
_FAR = 400  # exponents of ten beyond which everything is infinite, or 0

# States: start, sign, whole digits, point behind digits, point before digits, fraction, e, its sign, its digits, wrong.
# Letters: digit, sign, point, e, another.
_NEXT = np.array(
    [
        [2, 1, 4, 9, 9],
        [2, 9, 4, 9, 9],
        [2, 9, 3, 6, 9],
        [5, 9, 9, 6, 9],
        [5, 9, 9, 9, 9],
        [5, 9, 9, 6, 9],
        [8, 7, 9, 9, 9],
        [8, 9, 9, 9, 9],
        [8, 9, 9, 9, 9],
        [9, 9, 9, 9, 9],
    ],
    np.uint8,
)
_WHOLE, _COMPLETE = 2, (2, 3, 5, 8)


@dataclass(frozen=True)
class _Scan:
    """What a text says: whether it is a number, minus, digits without a point, their number, power, more behind."""

    good: Value
    negative: Value
    is_whole: Value
    whole: Value  # modulo 2^64
    count: Value
    power: Value
    more: Value


def parse_element(t: TextBuilder, op: Op) -> Element:
    """The number that a text is; another text is a fault."""
    return _Parse(t, op).make


class _Parse:
    def __init__(self, t: TextBuilder, op: Op) -> None:
        self.t, self.op = t, op
        self.to = op.attributes["to"]
        self.form = FloatFormat(self.to if self.to.is_float else dtypes.f64)
        self.next = t.kernel.constant(Dense(_NEXT.reshape(-1)), "states")
        self.powers = t.kernel.constant(Dense(np.array([10**i for i in range(10)], np.uint64)), "powers")
        self.digits = t.b.local(dtypes.u8, _MOST_DIGITS)
        self.words = t.b.local(dtypes.u32, _WORDS)

    def make(self, values: list[Value], index: Index) -> Value:
        b, t = self.t.b, self.t
        text = self._stripped(t.text(values[0]))
        scan = self._scan(text)
        special, is_nan, minus = self._special(text)
        bad = t.no(t.either(scan.good, special))
        t.kernel.fault(t.location, bad, b.from_index(index, dtypes.i64), FaultKind.NO_NUMBER)
        form = self.form
        bits = self._bits(scan)
        word = t.select(is_nan, form.infinity | 1 << (form.mantissa - 1), form.infinity, dtypes.u64)
        bits = t.select(special, word, bits)
        sign = t.select(
            t.either(minus, t.both(scan.good, scan.negative)), 1 << (form.dtype.bits - 1), 0, dtypes.u64
        )
        stored = form.stored(b, t.op("or", bits, sign))
        if self.to.is_float:
            return stored
        number = t.select(scan.negative, t.op("sub", t.number(0), scan.whole), scan.whole)
        if self.to is dtypes.boolean:
            return t.select(scan.is_whole, t.test("ne", number, 0), b.convert(stored, self.to), self.to)
        return t.select(scan.is_whole, b.convert(number, self.to), b.convert(stored, self.to), self.to)

    # -- letters

    def _stripped(self, text: Text) -> Text:
        """The text without white space around it."""
        b, t = self.t.b, self.t

        def is_white(byte: Value) -> Value:
            return t.either(*(t.test("eq", byte, ord(c)) for c in WHITE))

        with b.loop(0, text.length, 1, [t.number(0), t.number(0), t.number(0)]) as loop:
            start, end, found = loop.carried
            black = t.no(is_white(t.byte(text.data, loop.index, text.length)))
            at = b.from_index(loop.index, dtypes.i64)
            first = t.both(black, t.test("eq", found, 0))
            after = t.op("add", at, 1)
            b.yield_(t.select(first, at, start), t.select(black, after, end), t.select(black, 1, found))
        start, end, _ = loop.results
        data = b.offset(text.data, b.to_index(start))
        return Text(text.address, b.to_index(t.op("sub", end, start)), data)

    def _scan(self, text: Text) -> _Scan:
        b, t = self.t.b, self.t
        zero, no = t.number(0), b.const(0, dtypes.boolean)
        carried = [zero, zero, zero, zero, zero, no, no, no]
        with b.loop(0, text.length, 1, carried) as loop:
            state, whole, count, power, exponent, negative, down, more = loop.carried
            letter = t.byte(text.data, loop.index, text.length)
            lower = t.op("or", letter, 0x20)
            digit = t.op("sub", letter, 48)
            is_digit = t.both(t.test("ge", digit, 0), t.test("le", digit, 9))
            minus = t.test("eq", letter, ord("-"))
            is_sign = t.either(minus, t.test("eq", letter, ord("+")))
            kind = t.select(is_sign, 1, t.select(t.test("eq", letter, ord(".")), 2, 4, dtypes.i64))
            kind = t.select(is_digit, 0, t.select(t.test("eq", lower, ord("e")), 3, kind))
            row = t.op("add", t.op("mul", state, 5), kind)
            following = b.convert(b.load(self.next, b.to_index(row)), dtypes.i64)
            in_whole = t.both(is_digit, t.test("eq", following, _WHOLE))
            in_fraction = t.both(is_digit, t.test("eq", following, 5))
            in_exponent = t.both(is_digit, t.test("eq", following, 8))
            counts = t.both(
                t.either(in_whole, in_fraction), t.either(t.test("ne", digit, 0), t.test("gt", count, 0))
            )
            kept = t.both(counts, t.test("lt", count, _MOST_DIGITS))
            place = t.select(kept, count, _MOST_DIGITS - 1)
            old = b.load(self.digits, b.to_index(place))
            b.store(t.select(kept, b.convert(digit, dtypes.u8), old), self.digits, b.to_index(place))
            dropped = t.both(counts, t.no(kept))
            power = t.select(t.both(dropped, in_whole), t.op("add", power, 1), power)
            power = t.select(t.both(in_fraction, t.no(dropped)), t.op("sub", power, 1), power)
            longer = t.op("add", t.op("mul", exponent, 10), digit)
            longer = t.select(t.test("gt", longer, 100_000), 100_000, longer)
            b.yield_(
                following,
                t.select(in_whole, t.op("add", t.op("mul", whole, 10), digit), whole),
                t.select(kept, t.op("add", count, 1), count),
                power,
                t.select(in_exponent, longer, exponent),
                t.either(negative, t.both(minus, t.test("eq", state, 0))),
                t.either(down, t.both(minus, t.test("eq", state, 6))),
                t.either(more, t.both(dropped, t.test("ne", digit, 0))),
            )
        state, whole, count, power, exponent, negative, down, more = loop.results
        good = t.either(*(t.test("eq", state, s) for s in _COMPLETE))
        power = t.op("add", power, t.select(down, t.op("sub", zero, exponent), exponent))
        return _Scan(good, negative, t.test("eq", state, _WHOLE), whole, count, power, more)

    def _special(self, text: Text) -> tuple[Value, Value, Value]:
        """(whether it is an infinity or a NaN, whether a NaN, whether there is a minus)."""
        b, t = self.t.b, self.t
        letters = [t.byte(text.data, i, text.length) for i in range(9)]
        minus = t.test("eq", letters[0], ord("-"))
        signed = t.either(minus, t.test("eq", letters[0], ord("+")))
        words = []
        for word in (b"inf", b"infinity", b"nan"):
            found = []
            for skip in (0, 1):
                same = [t.test("eq", t.op("or", letters[skip + i], 0x20), w) for i, w in enumerate(word)]
                ends = b.icmp("eq", text.length, skip + len(word))
                found.append(t.both(*same, ends, signed if skip else t.no(signed)))
            words.append(t.either(*found))
        return t.either(*words), words[2], t.both(minus, t.either(*words))

    # -- the number

    def _bits(self, scan: _Scan) -> Value:
        """The bits of the float, without its sign."""
        b, t = self.t.b, self.t
        top = t.op("add", scan.count, scan.power)  # digits before the point
        far = t.either(t.test("gt", top, _FAR), t.test("lt", top, -_FAR))
        nothing = t.either(t.test("eq", scan.count, 0), far)
        beyond = t.both(t.test("gt", top, _FAR), t.test("ne", scan.count, 0))
        limit = t.select(beyond, self.form.infinity, 0, dtypes.u64)
        (result,) = b.if_(nothing, lambda: [limit], lambda: [self._rounded(scan)])
        return result

    def _rounded(self, scan: _Scan) -> Value:
        b, t = self.t.b, self.t
        zero = t.number(0)
        with b.loop(0, b.to_index(scan.count), 1, [zero]) as loop:
            digit = b.convert(b.load(self.digits, loop.index), dtypes.u64)
            b.yield_(self._times(loop.carried[0], t.number(10, dtypes.u64), digit))
        size = loop.results[0]
        up = t.select(t.test("gt", scan.power, 0), scan.power, 0)
        with b.loop(0, b.to_index(up), 9, [size]) as loop:
            factor = self._power(t.op("sub", up, b.from_index(loop.index, dtypes.i64)))
            b.yield_(self._times(loop.carried[0], factor, t.number(0, dtypes.u64)))
        size = loop.results[0]
        down = t.select(t.test("lt", scan.power, 0), t.op("sub", zero, scan.power), 0)
        # The quotient is to have 64 bits and more: 2^3.3219... is 10.
        words = t.op("add", t.op("div", t.op("mul", down, 3322), 32_000), 3)
        words = t.select(t.test("gt", down, 0), words, 0)
        size = self._shifted(size, words)
        with b.loop(0, b.to_index(down), 9, [size, scan.more]) as loop:
            divisor = self._power(t.op("sub", down, b.from_index(loop.index, dtypes.i64)))
            b.yield_(*self._over(loop.carried[0], divisor, loop.carried[1]))
        return self._nearest(loop.results[0], words, loop.results[1])

    def _power(self, left: Value) -> Value:
        """10 to at most the ninth."""
        t = self.t
        return t.b.load(self.powers, t.b.to_index(t.select(t.test("gt", left, 9), 9, left)))

    def _times(self, size: Value, factor: Value, addend: Value) -> Value:
        """Multiply the number by a factor below 2^32 and add; its new size in words."""
        b, t = self.t.b, self.t
        with b.loop(0, b.to_index(size), 1, [addend]) as loop:
            word = b.convert(b.load(self.words, loop.index), dtypes.u64)
            product = t.op("add", t.op("mul", word, factor), loop.carried[0])
            b.store(b.convert(product, dtypes.u32), self.words, loop.index)
            b.yield_(t.op("shr", product, 32))
        carry = loop.results[0]
        b.store(b.convert(carry, dtypes.u32), self.words, b.to_index(size))
        return t.op("add", size, t.select(t.test("ne", carry, 0), 1, 0, dtypes.i64))

    def _shifted(self, size: Value, words: Value) -> Value:
        """Multiply by 2^(32 words)."""
        b, t = self.t.b, self.t
        count, shift = b.to_index(size), b.to_index(words)
        with b.loop(0, count) as loop:
            at = b.isub(b.isub(count, 1), loop.index)
            b.store(b.load(self.words, at), self.words, b.iadd(at, shift))
        with b.loop(0, shift) as loop:
            b.store(b.const(0, dtypes.u32), self.words, loop.index)
        return t.op("add", size, words)

    def _over(self, size: Value, divisor: Value, more: Value) -> tuple[Value, Value]:
        """Divide by a divisor below 2^32; the new size, and whether there was ever a rest."""
        b, t = self.t.b, self.t
        count = b.to_index(size)
        with b.loop(0, count, 1, [t.number(0, dtypes.u64)]) as loop:
            at = b.isub(b.isub(count, 1), loop.index)
            word = t.op("or", t.op("shl", loop.carried[0], 32), b.convert(b.load(self.words, at), dtypes.u64))
            b.store(b.convert(t.op("div", word, divisor), dtypes.u32), self.words, at)
            b.yield_(t.op("rem", word, divisor))
        rest = t.test("ne", loop.results[0], 0)
        highest = b.load(self.words, b.isub(count, 1))
        return t.op("sub", size, t.select(t.test("eq", highest, 0), 1, 0, dtypes.i64)), t.either(more, rest)

    def _word(self, index: Value) -> Value:
        """A word of the number; 0 below its lowest."""
        b, t = self.t.b, self.t
        there = t.test("ge", index, 0)
        word = b.load(self.words, b.to_index(t.select(there, index, 0)))
        return t.select(there, b.convert(word, dtypes.u64), 0)

    def _nearest(self, size: Value, words: Value, more: Value) -> Value:
        """The bits of the float nearest to the number divided by 2^(32 words), ``more`` being a fraction below it."""
        b, t, form = self.t.b, self.t, self.form
        high, middle, low = (self._word(t.op("sub", size, i)) for i in (1, 2, 3))
        as_float = b.convert(high, dtypes.f64)
        exponent = t.op("shr", b.value("bitcast", (as_float,), VectorType(dtypes.i64), to=dtypes.i64), 52)
        left = t.op("sub", t.number(31 + 1023), exponent)  # leading zeros of the upper word
        shift = b.convert(left, dtypes.u64)
        upper = t.op("or", t.op("shl", high, 32), middle)
        value = t.op("or", t.op("shl", upper, shift), t.op("shr", t.op("shl", low, shift), 32))
        below = t.test("ne", t.op("and", t.op("shl", low, shift), (1 << 32) - 1), 0)
        with b.loop(
            0, b.to_index(t.select(t.test("gt", size, 3), t.op("sub", size, 3), 0)), 1, [below]
        ) as loop:
            b.yield_(t.either(loop.carried[0], t.test("ne", b.load(self.words, loop.index), 0)))
        more = t.either(more, loop.results[0])
        # value * 2^scale with its highest bit set.
        scale = t.op("sub", t.op("mul", t.op("sub", t.op("sub", size, 2), words), 32), left)
        first = t.op("add", scale, 63 + form.bias)  # the biased exponent
        lost = t.select(t.test("lt", first, 1), t.op("sub", t.number(1), first), 0)
        drop = t.op("add", lost, 63 - form.mantissa)
        drop = b.convert(t.select(t.test("gt", drop, 65), 65, drop), dtypes.u64)
        kept = t.op("shr", value, drop)
        half = t.op("shl", t.number(1, dtypes.u64), t.op("sub", drop, 1))
        rest = t.op("sub", value, t.op("shl", kept, drop))
        odd = t.test("ne", t.op("and", kept, 1), 0)
        up = t.either(t.test("gt", rest, half), t.both(t.test("eq", rest, half), t.either(more, odd)))
        up = t.both(up, t.test("le", drop, 64))
        kept = t.op("add", kept, t.select(up, 1, 0, dtypes.u64))
        base = t.select(t.test("gt", lost, 0), 0, t.op("sub", first, 1))
        bits = t.op("add", t.op("shl", b.convert(base, dtypes.u64), form.mantissa), kept)
        over = t.either(
            t.test("ge", bits, form.infinity), t.test("ge", first, form.infinity >> form.mantissa)
        )
        return t.select(over, form.infinity, bits)
