"""Conversions between element types by the table of docs/numerics.md, for any number of lanes.

Values travel in the representation of the emitter's types: f16, f32 and f64 as LLVM floats; bf16
and the floats of 8 bits and fewer as integers that hold their bits (16, 8); bool as i1; integers of
4 and 2 bits in 8, as ml_dtypes keeps them: their bits and zeros above, negative ones too.

Every conversion to a float rounds once, to nearest even, straight from the source. Where a hardware
step in between would round before, the step rounds to odd instead: an inexact value gets an odd
last bit, which keeps the second rounding right (S. Boldo and G. Melquiond, "Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd", 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.small_floats import decode, encode, f16_from_wide, f32_from_f16
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["CONVERSIONS", "convert", "round_to"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion needs to know besides the value: the types, and Cast's attributes."""

    source: DType
    to: DType
    saturate: bool = True
    infinity: str = "saturate"
    round_mode: str = "up"
    exact: bool = False


def convert(
    e: Emitter,
    x: V,
    source: DType,
    to: DType,
    *,
    saturate: bool = True,
    infinity: str = "saturate",
    round_mode: str = "up",
    exact: bool = False,
) -> V:
    """x of type `source` in type `to`.

    `saturate`, `infinity` (`saturate` or `nan`) and `round_mode` (`up`, `down`, `nearest`) count
    for small floats only, as in `core.convert`. `exact` promises that x is a value of
    `to` already: nothing is rounded or saturated. KeyError for types without numbers and complex
    ones.
    """
    if source is to:
        return x
    # An infinity that is a value of the type already is not out of range.
    rule = Conversion(source, to, bool(saturate) and not exact, infinity, round_mode, exact)
    return CONVERSIONS[_kind(source), _kind(to)](e, x, rule)


def round_to(e: Emitter, x: V, to: DType) -> V:
    """An f32 rounded to the values of f16 or bf16, and kept as f32."""
    if to is dtypes.f16:
        return _f16_to_f32(e, _f32_to_f16(e, x))
    bits = x.type.as_int
    kept = e.and_(_rounded_bf16_bits(e, x), e.const(bits, -0x10000))
    return e.bitcast(kept, x.type)


def _kind(dtype: DType) -> str:
    """The key of a type in `CONVERSIONS`."""
    if dtype.is_small_float:
        return "small"
    if dtype.is_integer:
        return "integer"
    return dtype.name if dtype.is_float else dtype.kind


# -- float to float --------------------------------------------------------------------------------


def _rounded_bf16_bits(e: Emitter, x: V) -> V:
    """The bits of an f32 whose upper half is x in bf16; a NaN stays one and becomes quiet."""
    bits_type = x.type.as_int
    bits = e.bitcast(x, bits_type)
    lowest = e.and_(e.lshr(bits, e.const(bits_type, 16)), e.const(bits_type, 1))
    rounded = e.iadd(e.iadd(bits, e.const(bits_type, 0x7FFF)), lowest)
    quiet = e.or_(bits, e.const(bits_type, 0x400000))
    return e.select(e.fcmp("uno", x, x), quiet, rounded)


def _f32_to_bf16(e: Emitter, x: V, rule: Conversion) -> V:
    bits = e.bitcast(x, x.type.as_int) if rule.exact else _rounded_bf16_bits(e, x)
    return e.trunc_int(e.lshr(bits, e.const(bits.type, 16)), 16)


def _bf16_to_f32(e: Emitter, x: V, rule: Conversion) -> V:
    wide = e.zext(x, 32)
    return e.bitcast(e.shl(wide, e.const(wide.type, 16)), wide.type.with_kind("f", 32))


def _f64_to_f32_odd(e: Emitter, x: V) -> V:
    """f64 to f32 rounded to odd; NaN, infinities and exact values as they are."""
    near = e.fptrunc(x, 32)
    back = e.fpext(near, 64)
    bits_type = near.type.as_int
    bits = e.bitcast(near, bits_type)
    # Step back to the neighbour towards zero (the largest float, where the rounding overflowed),
    # then make it odd.
    beyond = e.fcmp("ogt", e.abs(back), e.abs(x))
    toward_zero = e.isub(bits, e.zext(beyond, 32))
    odd = e.or_(toward_zero, e.const(bits_type, 1))
    return e.bitcast(e.select(e.fcmp("one", back, x), odd, bits), near.type)


def _f32_to_f16(e: Emitter, x: V, rule: Conversion | None = None) -> V:
    return e.fptrunc(x, 16) if e.module.has_f16_conversions else f16_from_wide(e, x)


def _f16_to_f32(e: Emitter, x: V, rule: Conversion | None = None) -> V:
    """The fence keeps LLVM from doing floor and the like on the half type, where they go lane by lane."""
    if not e.module.has_f16_conversions:
        return f32_from_f16(e, x)
    return e.intrinsic("arithmetic.fence", e.fpext(x, 32))


def _f16_to_f64(e: Emitter, x: V, rule: Conversion) -> V:
    return e.fpext(_f16_to_f32(e, x), 64)


def _f64_to_f16(e: Emitter, x: V, rule: Conversion) -> V:
    if not e.module.has_f16_conversions:
        return f16_from_wide(e, x)
    return e.fptrunc(_f64_to_f32_odd(e, x), 16)


def _f64_to_bf16(e: Emitter, x: V, rule: Conversion) -> V:
    return _f32_to_bf16(e, _f64_to_f32_odd(e, x), rule)


def _f32_to_f64(e: Emitter, x: V, rule: Conversion) -> V:
    return e.fpext(x, 64)


def _f64_to_f32(e: Emitter, x: V, rule: Conversion) -> V:
    return e.fptrunc(x, 32)


def _f16_to_bf16(e: Emitter, x: V, rule: Conversion) -> V:
    return _f32_to_bf16(e, _f16_to_f32(e, x), rule)


def _bf16_to_f16(e: Emitter, x: V, rule: Conversion) -> V:
    return _f32_to_f16(e, _bf16_to_f32(e, x, rule))


def _bf16_to_f64(e: Emitter, x: V, rule: Conversion) -> V:
    return e.fpext(_bf16_to_f32(e, x, rule), 64)


# -- small floats ----------------------------------------------------------------------------------


def _wide(e: Emitter, x: V, source: DType) -> V:
    """A float of any type in f32, or in f64 where it is that (exact)."""
    return _WIDEN[_kind(source)](e, x, source)


_WIDEN: Mapping[str, Callable[[Emitter, V, DType], V]] = {
    "f16": lambda e, x, source: _f16_to_f32(e, x),
    "bf16": lambda e, x, source: _bf16_to_f32(e, x, Conversion(source, dtypes.f32)),
    "f32": lambda e, x, source: x,
    "f64": lambda e, x, source: x,
    "small": decode,
}


def _float_to_small(e: Emitter, x: V, rule: Conversion) -> V:
    wide = _wide(e, x, rule.source)
    return encode(e, wide, rule.to, rule.saturate, rule.infinity, rule.round_mode)


def _small_to_float(e: Emitter, x: V, rule: Conversion) -> V:
    wide = decode(e, x, rule.source)
    return convert(e, wide, dtypes.f32, rule.to, exact=rule.to is dtypes.bf16)


# -- to bool and to integers -----------------------------------------------------------------------


def _float_to_bool(e: Emitter, x: V, rule: Conversion) -> V:
    """NaN is true, -0 is false."""
    wide = _wide(e, x, rule.source)
    return e.fcmp("une", wide, e.const(wide.type, 0.0))


def _integer_to_bool(e: Emitter, x: V, rule: Conversion) -> V:
    return e.icmp("ne", _number(e, x, rule.source), e.const(x.type, 0))


def _low_bits(e: Emitter, x: V, to: DType) -> V:
    """The low bits of an integer at least as wide as `to`'s representation, zeros above them below
    8 bits.
    """
    low = e.trunc_int(x, max(8, to.bits))
    return e.and_(low, e.const(low.type, (1 << to.bits) - 1)) if to.bits < 8 else low


def _number(e: Emitter, x: V, source: DType) -> V:
    """An integer as a number: the sign spread, what lies above the bits cleared, where it has fewer
    than 8.
    """
    if source.bits >= 8 or not source.is_integer:
        return x
    left = e.const(x.type, 8 - source.bits)
    shifted = e.shl(x, left)
    return e.ashr(shifted, left) if source.kind == "signed" else e.lshr(shifted, left)


def _integer_to_integer(e: Emitter, x: V, rule: Conversion) -> V:
    x = _number(e, x, rule.source)
    if x.type.bits < rule.to.bits:
        extend = e.sext if rule.source.kind == "signed" else e.zext
        return extend(x, rule.to.bits)
    return _low_bits(e, x, rule.to)


def _bool_to_integer(e: Emitter, x: V, rule: Conversion) -> V:
    return _low_bits(e, e.zext(x, max(8, rule.to.bits)), rule.to)


def _to_signed(e: Emitter, x: V, bits: int) -> V:
    """A float truncated to a signed integer; NaN and what does not fit becomes the lowest value."""
    lowest = -(2.0 ** (bits - 1))
    # In f64 there are values between the lowest int32 and the one below, which truncate to the
    # lowest.
    above = e.fcmp("ogt", x, e.const(x.type, lowest - 1)) if bits == 32 and x.type.bits == 64 else None
    above = above or e.fcmp("oge", x, e.const(x.type, lowest))
    fits = e.and_(above, e.fcmp("olt", x, e.const(x.type, -lowest)))
    number = e.fptosi(e.select(fits, x, e.const(x.type, 0.0)), bits)
    return e.select(fits, number, e.const(number.type, 1 << (bits - 1)))


def _float_to_integer(e: Emitter, x: V, rule: Conversion) -> V:
    """Through int64 for 64 bits and uint32, through int32 for the rest; uint64 has its upper half
    besides.
    """
    to = rule.to
    x = _wide(e, x, rule.source)
    if to is not dtypes.u64:
        return _low_bits(e, _to_signed(e, x, 64 if to.bits == 64 or to is dtypes.u32 else 32), to)
    half = e.const(x.type, 2.0**63)
    high = e.and_(e.fcmp("oge", x, half), e.fcmp("olt", x, e.const(x.type, 2.0**64)))
    low = _to_signed(e, e.select(high, e.sub(x, half), x), 64)
    return e.select(high, e.xor(low, e.const(low.type, 1 << 63)), low)


# -- integers and bool to floats -------------------------------------------------------------------


def _number_to_float(e: Emitter, x: V, source: DType, bits: int) -> V:
    """An integer or bool in f32 or f64, rounded to nearest even."""
    x = _number(e, x, source)
    return e.sitofp(x, bits) if source.kind == "signed" else e.uitofp(x, bits)


def _integer_to_wide_float(e: Emitter, x: V, rule: Conversion) -> V:
    return _number_to_float(e, x, rule.source, rule.to.bits)


def _exact_float(e: Emitter, x: V, source: DType) -> tuple[V, DType]:
    """An integer or bool in f32 or f64 without a rounding that counts: exact, or rounded to odd
    beyond 2**53.
    """
    if x.type.bits <= 16:
        return _number_to_float(e, x, source, 32), dtypes.f32
    if x.type.bits == 64:
        # The floor to a multiple of 2**11 with a set last bit if that was inexact, in two's
        # complement as well.
        below, last = e.const(x.type, 0x7FF), e.const(x.type, 0x800)
        low = e.and_(x, below)
        sticky = e.and_(e.iadd(low, below), last)
        odd = e.or_(e.xor(x, low), sticky)
        bound = e.const(x.type, 1 << 53)
        if source.kind == "signed":
            small = e.icmp("ult", e.iadd(x, bound), e.const(x.type, 1 << 54))
        else:
            small = e.icmp("ult", x, bound)
        x = e.select(small, x, odd)
    return _number_to_float(e, x, source, 64), dtypes.f64


def _integer_to_narrow_float(e: Emitter, x: V, rule: Conversion) -> V:
    wide, middle = _exact_float(e, x, rule.source)
    return convert(e, wide, middle, rule.to)


def _integer_to_small(e: Emitter, x: V, rule: Conversion) -> V:
    wide, _ = _exact_float(e, x, rule.source)
    return encode(e, wide, rule.to, rule.saturate, rule.infinity, rule.round_mode)


Emit = Callable[[Emitter, V, Conversion], V]

# (kind of source, kind of target); a kind is a float type's name, `small` for floats of at most 8
# bits, `integer` or `bool`.
CONVERSIONS: Mapping[tuple[str, str], Emit] = {
    ("f16", "f32"): _f16_to_f32,
    ("f16", "f64"): _f16_to_f64,
    ("f32", "f64"): _f32_to_f64,
    ("f32", "f16"): _f32_to_f16,
    ("f64", "f32"): _f64_to_f32,
    ("f64", "f16"): _f64_to_f16,
    ("f64", "bf16"): _f64_to_bf16,
    ("f32", "bf16"): _f32_to_bf16,
    ("f16", "bf16"): _f16_to_bf16,
    ("bf16", "f16"): _bf16_to_f16,
    ("bf16", "f32"): _bf16_to_f32,
    ("bf16", "f64"): _bf16_to_f64,
    **{("small", name): _small_to_float for name in ("f16", "bf16", "f32", "f64")},
    **{(name, "small"): _float_to_small for name in ("f16", "bf16", "f32", "f64", "small")},
    **{(name, "integer"): _float_to_integer for name in ("f16", "bf16", "f32", "f64", "small")},
    **{(name, "bool"): _float_to_bool for name in ("f16", "bf16", "f32", "f64", "small")},
    **{(name, "f32"): _integer_to_wide_float for name in ("integer", "bool")},
    **{(name, "f64"): _integer_to_wide_float for name in ("integer", "bool")},
    **{(name, "f16"): _integer_to_narrow_float for name in ("integer", "bool")},
    **{(name, "bf16"): _integer_to_narrow_float for name in ("integer", "bool")},
    **{(name, "small"): _integer_to_small for name in ("integer", "bool")},
    ("integer", "integer"): _integer_to_integer,
    ("integer", "bool"): _integer_to_bool,
    ("bool", "integer"): _bool_to_integer,
}
