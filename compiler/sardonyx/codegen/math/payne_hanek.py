"""Exact reduction of huge arguments by pi/2, from as many bits of 2/pi as the exponent asks for.

Out of line and marked cold: a kernel runs it only where some lane is beyond the fast reduction's
limit.
"""

from __future__ import annotations

from functools import cache

from sardonyx.codegen.emitter import I64, PTR, Emitter, LType, V, ltype
from sardonyx.codegen.math.coefficients import PI_2_HI, PI_2_LO, TWO_OVER_PI_WORDS
from sardonyx.codegen.math.support import Context

_F64 = ltype("f", 64)
_I128 = ltype("i", 128)

# The biased exponent of 2**17, the least argument reduced here, and the number of exponents up to
# the largest float.
_LEAST_F32 = 127 + 17
_COUNT_F32 = 255 - _LEAST_F32


def reduce_huge(c: Context, ax: V) -> tuple[V, V, V]:
    """(q, r, r_lo) as `trigonometric.reduce_quadrant`, right for finite lanes beyond its fast
    limit; inf gives NaN.
    """
    em = c.em
    width = c.type.width
    name = f"sardonyx.reduce_huge.f{c.bits}.w{width}"
    if not em.module.has_function(name):
        em.module.add_function(name, _function(em, name, c.type))
    struct = _struct(c.type)
    result = em.result(c.type, f"call {struct} @{name}({c.type.text} {ax.ref})")
    return (
        em.result(c.int_type, f"extractvalue {struct} {result.ref}, 0"),
        em.result(c.type, f"extractvalue {struct} {result.ref}, 1"),
        em.result(c.type, f"extractvalue {struct} {result.ref}, 2"),
    )


def _struct(type: LType) -> str:
    return f"{{ {type.as_int.text}, {type.text}, {type.text} }}"


def _function(outer: Emitter, name: str, type: LType) -> str:
    em = Emitter(outer.module)
    c = Context(em, type)
    ax = V(type, "%ax")
    q, r, r_lo = _BODIES[type.bits](c, ax)
    # inf - inf is NaN, and 0 for the finite.
    r = em.add(r, em.sub(ax, ax))
    struct, aggregate = _struct(type), "poison"
    for i, value in enumerate((q, r, r_lo)):
        insert = f"insertvalue {struct} {aggregate}, {value.type.text} {value.ref}, {i}"
        aggregate = em.result(type, insert).ref
    em.raw(f"  ret {struct} {aggregate}")
    attributes = f"noinline cold nounwind {outer.module.attributes}"
    return f"define internal {struct} @{name}({type.text} %ax) {attributes} {{\n{em.text()}\n}}"


def _two_over_pi() -> int:
    """2/pi as an integer: its first 64 * 19 fraction bits."""
    value = 0
    for word in TWO_OVER_PI_WORDS[1:]:
        value = value << 64 | word
    return value


@cache
def _table_f32() -> tuple[list[float], list[float]]:
    """For each exponent e from `_LEAST_F32`: 2**(e - 150) 2/pi mod 4, first to 29 bits, then the
    next 53.
    """
    fraction = 64 * (len(TWO_OVER_PI_WORDS) - 1)
    highs, lows = [], []
    for e in range(_LEAST_F32, 255):
        scaled = (_two_over_pi() << (e - 127)) >> 23
        scaled &= (1 << (fraction + 2)) - 1
        high = scaled >> (fraction - 27)
        low = scaled - (high << (fraction - 27))
        highs.append(high * 2.0**-27)
        lows.append((low >> (fraction - 100)) * 2.0**-100)
    return highs, lows


def _reduce_f32(c: Context, ax: V) -> tuple[V, V, V]:
    """By a table of 2**e 2/pi mod 4: ax = m 2**e with an integer m of 24 bits, m times 29 bits is
    exact in f64.
    """
    em = c.em
    highs, lows = _table_f32()
    bits = em.bitcast(ax, c.int_type)
    index = em.isub(em.lshr(bits, c.iconst(23)), c.iconst(_LEAST_F32))
    index = em.smin(em.smax(index, c.iconst(0)), c.iconst(_COUNT_F32 - 1))
    wide = ltype("f", 64, c.type.width)
    high = em.gather(wide, em.module.table("sardonyx.two_over_pi.f32.high", _F64, highs), index)
    low = em.gather(wide, em.module.table("sardonyx.two_over_pi.f32.low", _F64, lows), index)
    m = em.sitofp(em.or_(em.and_(bits, c.iconst(0x7FFFFF)), c.iconst(0x800000)), 64)
    d = Context(em, wide)
    product = em.mul(m, high)
    n, q = d.round_scaled(product, 1.0)
    turn = d.fma(m, low, em.sub(product, n))
    # The low part moves a value near 1/2 into the next quadrant.
    n, carry = d.round_scaled(turn, 1.0)
    q = em.iadd(q, carry)
    angle = em.mul(em.sub(turn, n), d.const(PI_2_HI))
    r = em.fptrunc(angle, 32)
    return em.trunc_int(q, 32), r, em.fptrunc(em.sub(angle, em.fpext(r, 64)), 32)


def _reduce_f64(c: Context, ax: V) -> tuple[V, V, V]:
    """Lane by lane, in 128-bit integers."""
    em = c.em
    _add_scalar_function(em)
    q, r, r_lo = em.poison(c.int_type), em.poison(c.type), em.poison(c.type)
    struct = _struct(_F64)
    for lane in range(c.type.width):
        x = em.extract(ax, lane)
        one = em.result(_F64, f"call {struct} @{_SCALAR}(double {x.ref})")
        q = em.insert(q, em.result(I64, f"extractvalue {struct} {one.ref}, 0"), lane)
        r = em.insert(r, em.result(_F64, f"extractvalue {struct} {one.ref}, 1"), lane)
        r_lo = em.insert(r_lo, em.result(_F64, f"extractvalue {struct} {one.ref}, 2"), lane)
    return q, r, r_lo


_SCALAR = "sardonyx.reduce_huge.f64"


def _add_scalar_function(outer: Emitter) -> None:
    """Adds the scalar reduction, for any finite |x| >= 2**-10 (others give a value nobody uses)."""
    if outer.module.has_function(_SCALAR):
        return
    em = Emitter(outer.module)
    c = Context(em, _F64)
    i64 = c.iconst

    def i128(value: int) -> V:
        return em.const(_I128, value)

    bits = em.bitcast(V(_F64, "%ax"), I64)
    significand = em.or_(em.and_(bits, i64((1 << 52) - 1)), i64(1 << 52))
    # x = significand 2**(e - 1075). Bits of 2/pi of a weight of 4 or more after that scaling drop
    # out modulo 4, so the 192 bits that count start e - 1077 bits after the point; the table has
    # one word of zeros in front.
    exponent = em.and_(em.lshr(bits, i64(52)), i64(0x7FF))
    start = em.smin(em.smax(em.isub(exponent, i64(1077 - 64)), i64(0)), i64(971 - 2 + 64))
    table = outer.module.table("sardonyx.two_over_pi.words", I64, [_as_signed(w) for w in TWO_OVER_PI_WORDS])
    word = em.lshr(start, i64(6))
    shift = em.and_(start, i64(63))
    words = [em.load(I64, em.gep(I64, table, em.iadd(word, i64(i)))) for i in range(4)]
    high, middle, low = (em.zext(em.intrinsic("fshl", words[i], words[i + 1], shift), 128) for i in range(3))
    # The product modulo 2**192, without its low 64 bits: x 2/pi / 4 modulo 1 in units of 2**-128.
    wide = em.zext(significand, 128)
    total = em.shl(em.imul(wide, high), i128(64))
    total = em.iadd(total, em.imul(wide, middle))
    total = em.iadd(total, em.lshr(em.imul(wide, low), i128(64)))
    quarter = em.iadd(total, i128(1 << 125))
    q = em.trunc_int(em.lshr(quarter, i128(126)), 64)
    rest = em.isub(total, em.shl(em.zext(q, 128), i128(126)))
    negative = em.icmp("slt", rest, i128(0))
    magnitude = em.select(negative, em.isub(i128(0), rest), rest)
    # Two doubles of 53 bits each from the leading one on: magnitude = (hi 2**-53 + lo 2**-106)
    # 2**(128 - zeros).
    zeros = em.smin(em.count_leading_zeros(magnitude), i128(100))
    leading = em.shl(magnitude, zeros)
    hi = em.sitofp(em.trunc_int(em.lshr(leading, i128(75)), 64), 64)
    lo = em.sitofp(em.and_(em.trunc_int(em.lshr(leading, i128(22)), 64), i64((1 << 53) - 1)), 64)
    unit = em.isub(i64(128 - 126 - 53), em.trunc_int(zeros, 64))
    hi = em.mul(hi, c.power_of_two(unit))
    lo = em.mul(lo, c.power_of_two(em.isub(unit, i64(53))))
    sign = em.select(negative, c.const(-1.0), c.const(1.0))
    pi_2 = em.mul(sign, c.const(PI_2_HI))
    r = em.mul(hi, pi_2)
    r_lo = c.fma(hi, pi_2, em.neg(r))
    r_lo = c.fma(lo, pi_2, r_lo)
    r_lo = c.fma(hi, em.mul(sign, c.const(PI_2_LO)), r_lo)
    struct, aggregate = _struct(_F64), "poison"
    for i, value in enumerate((q, r, r_lo)):
        insert = f"insertvalue {struct} {aggregate}, {value.type.text} {value.ref}, {i}"
        aggregate = em.result(PTR, insert).ref
    em.raw(f"  ret {struct} {aggregate}")
    attributes = f"noinline cold nounwind {outer.module.attributes}"
    head = f"define internal {struct} @{_SCALAR}(double %ax) {attributes}"
    outer.module.add_function(_SCALAR, f"{head} {{\n{em.text()}\n}}")


def _as_signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


_BODIES = {32: _reduce_f32, 64: _reduce_f64}
