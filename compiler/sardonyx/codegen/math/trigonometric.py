"""sin, cos, tan over the whole range of arguments.

|x| = q pi/2 + r + r_lo, |r| <= pi/4, then polynomials of sin and cos chosen by q. Up to
`FAST_LIMIT` the reduction is Cody and Waite's in three parts with FMA. If any lane is beyond, one
branch leads to an exact reduction in the manner of M. H. Payne and R. N. Hanek, "Radian reduction
for trigonometric functions" (1983); see `payne_hanek`.
"""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import COS, PI_2_PARTS, SIN, TWO_OVER_PI
from sardonyx.codegen.math.payne_hanek import reduce_huge
from sardonyx.codegen.math.support import Context

FAST_LIMIT = {32: 2.0**17, 64: 2.0**30}


def reduce_quadrant(c: Context, ax: V) -> tuple[V, V, V]:
    """(q, r, r_lo) with ax = q pi/2 + r + r_lo for ax >= 0; q modulo 4 counts. NaN for NaN and
    infinity.
    """
    em = c.em
    p1, p2, p3 = PI_2_PARTS[c.bits]
    n, q = c.round_scaled(ax, TWO_OVER_PI)
    rest = c.fma(n, c.const(-p1), ax)
    part = em.mul(n, c.const(p2))
    r = em.sub(rest, part)
    r_lo = em.sub(em.sub(rest, r), part)
    # what rounding `part` lost, and the third part
    r_lo = c.fma(n, c.const(-p3), em.sub(r_lo, c.fma(n, c.const(p2), em.neg(part))))

    huge = em.fcmp("ogt", ax, c.const(FAST_LIMIT[c.bits]))
    fast_block = em.block
    slow, join = em.new_label("huge"), em.new_label("reduced")
    em.cond_br(em.any(huge), slow, join)
    em.label(slow)
    slow_q, slow_r, slow_r_lo = reduce_huge(c, ax)
    slow_q = em.select(huge, slow_q, q)
    slow_r = em.select(huge, slow_r, r)
    slow_r_lo = em.select(huge, slow_r_lo, r_lo)
    slow_block = em.block
    em.br(join)
    em.label(join)
    return (
        em.phi(q.type, (q, fast_block), (slow_q, slow_block)),
        em.phi(r.type, (r, fast_block), (slow_r, slow_block)),
        em.phi(r.type, (r_lo, fast_block), (slow_r_lo, slow_block)),
    )


def _sin_tail(c: Context, r: V, r_lo: V, z: V) -> V:
    """sin(r + r_lo) - r, z = r**2"""
    return c.fma(c.em.mul(z, r), c.horner(z, SIN[c.bits]), r_lo)


def _cos_parts(c: Context, r: V, r_lo: V, z: V) -> tuple[V, V]:
    """cos(r + r_lo) as (hi, lo)"""
    em = c.em
    half = em.mul(z, c.const(0.5))
    hi, lo = c.fast_two_sum(c.const(1.0), em.neg(half))
    square = c.fma(r, r, em.neg(z))
    # lo also takes the error of z, and -r r_lo, the change of cos with r_lo
    lo = c.fma(square, c.const(-0.5), c.fnma(r, r_lo, lo))
    return hi, c.fma(em.mul(z, z), c.horner(z, COS[c.bits]), lo)


def _sine_by_quadrant(c: Context, q: V, r: V, r_lo: V, sign: V | None) -> V:
    """sin(q pi/2 + r + r_lo), its sign flipped by the sign bit in `sign`."""
    em = c.em
    z = em.mul(r, r)
    sine = em.add(r, _sin_tail(c, r, r_lo, z))
    hi, lo = _cos_parts(c, r, r_lo, z)
    odd = em.icmp("ne", em.and_(q, c.iconst(1)), c.iconst(0))
    value = em.bitcast(em.select(odd, em.add(hi, lo), sine), c.int_type)
    flip = em.shl(em.lshr(q, c.iconst(1)), c.iconst(c.bits - 1))
    value = em.xor(value, flip)
    return em.bitcast(value if sign is None else em.xor(value, sign), c.type)


def sin(em: Emitter, x: V) -> V:
    """Sine of radians"""
    c = Context(em, x.type)
    bits = em.bitcast(x, c.int_type)
    sign = em.and_(bits, c.iconst(1 << (c.bits - 1)))
    q, r, r_lo = reduce_quadrant(c, em.abs(x))
    return _sine_by_quadrant(c, q, r, r_lo, sign)


def cos(em: Emitter, x: V) -> V:
    """Cosine of radians"""
    c = Context(em, x.type)
    q, r, r_lo = reduce_quadrant(c, em.abs(x))
    return _sine_by_quadrant(c, em.iadd(q, c.iconst(1)), r, r_lo, None)


def tan(em: Emitter, x: V) -> V:
    """Tangent of radians"""
    c = Context(em, x.type)
    q, r, r_lo = reduce_quadrant(c, em.abs(x))
    odd = em.icmp("ne", em.and_(q, c.iconst(1)), c.iconst(0))
    quotient = (_tan_f32 if c.bits == 32 else _tan_f64)(c, odd, r, r_lo)
    sign = em.and_(em.bitcast(x, c.int_type), c.iconst(1 << (c.bits - 1)))
    return em.bitcast(em.xor(em.bitcast(quotient, c.int_type), sign), c.type)


def _tan_f32(c: Context, odd: V, r: V, r_lo: V) -> V:
    """tan(r + r_lo), or -1 / tan where `odd`; in f64, where the errors of sine, cosine and quotient
    do not count.
    """
    em = c.em
    r = em.add(em.fpext(r, 64), em.fpext(r_lo, 64))
    d = Context(em, r.type)
    z = em.mul(r, r)
    sine = d.fma(em.mul(z, r), d.horner(z, SIN[64]), r)
    cosine = d.fma(em.mul(z, z), d.horner(z, COS[64]), d.fma(z, d.const(-0.5), d.const(1.0)))
    return em.fptrunc(em.div(em.select(odd, em.neg(cosine), sine), em.select(odd, sine, cosine)), 32)


def _tan_f64(c: Context, odd: V, r: V, r_lo: V) -> V:
    """The same with sine and cosine in two parts."""
    em = c.em
    z = em.mul(r, r)
    sin_hi, sin_lo = c.fast_two_sum(r, _sin_tail(c, r, r_lo, z))
    cos_hi, cos_lo = _cos_parts(c, r, r_lo, z)
    cos_hi, cos_lo = c.fast_two_sum(cos_hi, cos_lo)
    n = em.select(odd, em.neg(cos_hi), sin_hi)
    n_lo = em.select(odd, em.neg(cos_lo), sin_lo)
    d = em.select(odd, sin_hi, cos_hi)
    d_lo = em.select(odd, sin_lo, cos_lo)
    hi, lo = c.quotient(n, n_lo, d, d_lo)
    return em.add(hi, lo)
