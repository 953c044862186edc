"""Floats of 8 bits and fewer: from f32 and f64 by the tables of ONNX's Cast, and back to f32.

Formats: "FP8 Formats for Deep Learning" (Micikevicius et al., 2022) for E4M3FN and E5M2; "8-bit
Numerical Formats for Deep Neural Networks" (Noune et al., 2022) for the FNUZ types; "OCP
Microscaling Formats (MX) Specification v1.0" for E8M0, E2M1, E2M3 and E3M2. Nothing here computes
with denormal floats, so a flushing mode changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.support import FORMATS
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType


@dataclass(frozen=True, slots=True)
class SmallFormat:
    """A format with sign, exponent and mantissa: its bias, and the codes (sign bit clear) of its
    largest value, of infinity and NaN where it has them. `unsigned_zero` formats use the code of -0
    for their NaN.
    """

    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    unsigned_zero: bool = False


SMALL_FORMATS: Mapping[DType, SmallFormat] = {
    dtypes.f8e4m3fn: SmallFormat(8, 3, 7, 0x7E, nan=0x7F),
    dtypes.f8e4m3fnuz: SmallFormat(8, 3, 8, 0x7F, unsigned_zero=True),
    dtypes.f8e5m2: SmallFormat(8, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    dtypes.f8e5m2fnuz: SmallFormat(8, 2, 16, 0x7F, unsigned_zero=True),
    dtypes.f4e2m1: SmallFormat(4, 1, 1, 0x7),
    dtypes.f6e2m3: SmallFormat(6, 3, 1, 0x1F),
    dtypes.f6e3m2: SmallFormat(6, 2, 3, 0x1F),
}

_F16 = SmallFormat(16, 10, 15, 0x7BFF, infinity=0x7C00, nan=0x7E00)


def encode(e: Emitter, x: V, to: DType, saturate: bool, infinity: str, round_mode: str) -> V:
    """x (f32 or f64) as the bits of `to` in i8; the options as in
    `sardonyx.codegen.convert.convert`.
    """
    if to is dtypes.f8e8m0:
        return _encode_exponent(e, x, saturate, round_mode)
    return _encode_fraction(e, x, SMALL_FORMATS[to], saturate, infinity)


def f16_from_wide(e: Emitter, x: V) -> V:
    """f32 or f64 to f16 in integer arithmetic, for targets without an instruction for it."""
    bits = _encode_fraction(e, x, _F16, saturate=False, infinity="saturate")
    return e.bitcast(bits, bits.type.with_kind("f", 16))


def f32_from_f16(e: Emitter, x: V) -> V:
    """f16 to f32 in integer arithmetic, for targets without an instruction for it."""
    code = e.zext(e.bitcast(x, x.type.as_int), 32)
    finite = e.bitcast(_decode_code(e, code, _F16), code.type)
    special = e.or_(e.shl(code, e.const(code.type, 13)), e.const(code.type, 0x7FC00000))
    size = e.and_(code, e.const(code.type, 0x7FFF))
    is_nan = e.icmp("ugt", size, e.const(code.type, 0x7C00))
    is_infinite = e.icmp("eq", size, e.const(code.type, 0x7C00))
    sign = e.shl(e.lshr(code, e.const(code.type, 15)), e.const(code.type, 31))
    special = e.or_(e.and_(special, e.const(code.type, 0x7FFFFFFF)), sign)
    infinite = e.or_(sign, e.const(code.type, 0x7F800000))
    bits = e.select(is_nan, special, e.select(is_infinite, infinite, finite))
    return e.bitcast(bits, code.type.with_kind("f", 32))


def _encode_fraction(e: Emitter, x: V, to: SmallFormat, saturate: bool, infinity: str) -> V:
    """Rounds the magnitude in the integers, to a code that simply goes on counting beyond the
    largest.
    """
    source = FORMATS[x.type.bits]
    bits_type = x.type.as_int

    def const(value: int) -> V:
        return e.const(bits_type, value)

    all_bits = e.bitcast(x, bits_type)
    size = e.and_(all_bits, const((1 << (source.bits - 1)) - 1))
    infinite = const(((1 << (source.bits - source.mantissa - 1)) - 1) << source.mantissa)
    # Normal results: nearest even by an addition below the last bit kept, then the other bias.
    drop = source.mantissa - to.mantissa
    last = e.and_(e.lshr(size, const(drop)), const(1))
    rounded = e.iadd(e.iadd(size, const((1 << (drop - 1)) - 1)), last)
    normal = e.isub(e.lshr(rounded, const(drop)), const((source.bias - to.bias) << to.mantissa))
    # Denormal results: the sum with a power of two whose last place is the least value, rounded by
    # the addition.
    least_exponent = 1 - to.bias - to.mantissa + source.mantissa
    magic = e.const(x.type, 2.0**least_exponent)
    total = e.add(e.abs(x), magic)
    denormal = e.isub(e.bitcast(total, bits_type), const((least_exponent + source.bias) << source.mantissa))
    is_denormal = e.icmp("ult", size, const((1 - to.bias + source.bias) << source.mantissa))
    code = e.select(is_denormal, denormal, normal)

    nan = 1 << (to.bits - 1) if to.nan is None else to.nan
    largest = const(to.largest)
    has_nan = to.unsigned_zero or to.nan is not None
    if saturate or not has_nan:
        code = e.smin(code, largest)
        if has_nan and infinity == "nan":
            code = e.select(e.icmp("eq", size, infinite), const(nan), code)
    else:
        beyond = nan if to.infinity is None else to.infinity
        code = e.select(e.icmp("sgt", code, largest), const(beyond), code)
    is_nan = e.icmp("ugt", size, infinite)
    sign_bit = const(1 << (to.bits - 1))
    sign = e.and_(e.lshr(all_bits, const(source.bits - to.bits)), sign_bit)
    if to.nan is not None:
        code = e.or_(e.select(is_nan, const(nan), code), sign)
    else:
        if to.unsigned_zero:
            sign = e.select(e.icmp("eq", code, const(0)), const(0), sign)
        code = e.select(is_nan, const(nan), e.or_(code, sign))
    return e.trunc_int(code, max(8, to.bits))


def _encode_exponent(e: Emitter, x: V, saturate: bool, round_mode: str) -> V:
    """E8M0: code c is 2**(c - 127), 255 is NaN. In f64, where every f32 is normal."""
    x = e.fpext(x, 64)
    bits_type = x.type.as_int

    def const(value: int) -> V:
        return e.const(bits_type, value)

    bits = e.bitcast(x, bits_type)
    size = e.and_(bits, const((1 << 63) - 1))
    # A carry out of the fraction rounds the exponent: any fraction, half or more, or none.
    carry = {"up": (1 << 52) - 1, "nearest": 1 << 51, "down": 0}[round_mode]
    code = e.isub(e.lshr(e.iadd(size, const(carry)), const(52)), const(1023 - 127))
    nan = const(255)
    if saturate:
        code = e.smax(e.smin(code, const(254)), const(0))
    else:
        code = e.select(e.icmp("ugt", code, const(254)), nan, code)
    no_power = e.fcmp("ult", x, e.const(x.type, 0.0))
    return e.trunc_int(e.select(no_power, nan, code), 8)


def decode(e: Emitter, x: V, source: DType) -> V:
    """The value, in f32, of a small float's bits in i8 (bits above its own are ignored)."""
    return _DECODERS.get(source, _decode_fraction)(e, x, source)


def _decode_fraction(e: Emitter, x: V, source: DType) -> V:
    return _decode_code(e, e.zext(x, 32), SMALL_FORMATS[source])


def _decode_code(e: Emitter, code: V, fmt: SmallFormat) -> V:
    """The f32 of a code in i32, infinities and the NaNs of E5M2 and f16 aside."""
    bits_type = code.type
    f32 = bits_type.with_kind("f", 32)

    def const(value: int) -> V:
        return e.const(bits_type, value)

    size = e.and_(code, const((1 << (fmt.bits - 1)) - 1))
    sign = e.shl(e.lshr(code, const(fmt.bits - 1)), const(31))
    normal = e.iadd(e.shl(size, const(23 - fmt.mantissa)), const((127 - fmt.bias) << 23))
    least = e.const(f32, 2.0 ** (1 - fmt.bias - fmt.mantissa))
    denormal = e.bitcast(e.mul(e.sitofp(size, 32), least), bits_type)
    value = e.select(e.icmp("ult", size, const(1 << fmt.mantissa)), denormal, normal)
    if fmt.nan is not None:
        value = e.select(e.icmp("eq", size, const(fmt.nan)), const(0x7FC00000), value)
    value = e.or_(value, sign)
    if fmt.unsigned_zero:
        value = e.select(e.icmp("eq", code, const(0x80)), const(0xFFC00000), value)
    return e.bitcast(value, f32)


def _decode_e5m2(e: Emitter, x: V, source: DType) -> V:
    """E5M2 is the upper half of f16."""
    bits = e.shl(e.zext(x, 16), e.const(x.type.with_kind("i", 16), 8))
    half = e.bitcast(bits, bits.type.with_kind("f", 16))
    return e.fpext(half, 32) if e.module.has_f16_conversions else f32_from_f16(e, half)


def _decode_exponent(e: Emitter, x: V, source: DType) -> V:
    code = e.zext(x, 32)
    bits_type = code.type
    bits = e.shl(code, e.const(bits_type, 23))
    # 2**-127 is a denormal f32.
    bits = e.select(e.icmp("eq", code, e.const(bits_type, 0)), e.const(bits_type, 1 << 22), bits)
    bits = e.select(e.icmp("eq", code, e.const(bits_type, 255)), e.const(bits_type, 0x7FC00000), bits)
    return e.bitcast(bits, bits_type.with_kind("f", 32))


_DECODERS: Mapping[DType, Callable[[Emitter, V, DType], V]] = {
    dtypes.f8e5m2: _decode_e5m2,
    dtypes.f8e8m0: _decode_exponent,
}
