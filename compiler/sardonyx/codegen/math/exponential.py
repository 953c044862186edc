"""exp, exp2, expm1, sigmoid.

x = n ln 2 + r with |r| <= ln 2 / 2 (W. J. Cody and W. Waite, "Software Manual for the Elementary
Functions", 1980; with FMA the two-part reduction is exact but for its last rounding), then a
minimax polynomial of e**r.
"""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import EXP, EXP2, EXPM1, LN2_HI, LN2_LO, LOG2_E
from sardonyx.codegen.math.support import Context

# Beyond these exp is 0 (after rounding) and infinity.
EXP_LOW = {32: -104.0, 64: -746.0}
EXP_HIGH = {32: 89.0, 64: 710.0}


def exp_tail(c: Context, x: V) -> tuple[V, V, V]:
    """(n, n, t), first n a float, then an integer: exp(x) = 2**n (1 + t), |t| < 0.42.

    The error of t is little over half its last place.
    """
    em = c.em
    n, n_int = c.round_scaled(x, LOG2_E)
    minus_lo = c.const(-LN2_LO[c.bits])
    rest = c.fma(n, c.const(-LN2_HI[c.bits]), x)
    r = c.fma(n, minus_lo, rest)
    # `rest` is exact; r, rounded, enters only the powers from the second on.
    powers = em.mul(em.mul(r, r), c.horner(r, EXP[c.bits]))
    return n, n_int, em.add(rest, c.fma(n, minus_lo, powers))


def _reduce_exactly(c: Context, x: V) -> tuple[V, V, V]:
    """(n, r, r_lo): the same with the rounding error of r."""
    n, n_int = c.round_scaled(x, LOG2_E)
    minus_lo = c.const(-LN2_LO[c.bits])
    rest = c.fma(n, c.const(-LN2_HI[c.bits]), x)
    r = c.fma(n, minus_lo, rest)
    return n_int, r, c.fma(n, minus_lo, c.em.sub(rest, r))


def exp_parts(c: Context, x: V, x_lo: V | None = None) -> tuple[V, V, V]:
    """(n, p, p_lo) with exp(x + x_lo) = 2**n (p + p_lo), 0.7 < p < 1.42, good to about 8 bits more
    than p alone.
    """
    em = c.em
    n, r, r_lo = _reduce_exactly(c, x)
    if x_lo is not None:
        r_lo = em.add(r_lo, x_lo)
    # e**(r + r_lo) = (1 + r + r**2 q(r)) (1 + r_lo)
    a, a_lo = c.fast_two_sum(c.const(1.0), r)
    p, p_lo = c.fast_two_sum(a, em.mul(em.mul(r, r), c.horner(r, EXPM1[c.bits])))
    return n, p, c.fma(r_lo, p, em.add(p_lo, a_lo))


def exp(em: Emitter, x: V) -> V:
    """e**x"""
    c = Context(em, x.type)
    x = c.clamp(x, EXP_LOW[c.bits], EXP_HIGH[c.bits])
    n, n_int, tail = exp_tail(c, x)
    return c.scale(em.add(tail, c.const(1.0)), n_int, n)


def exp2(em: Emitter, x: V) -> V:
    """2**x"""
    c = Context(em, x.type)
    bias = c.format.bias
    x = c.clamp(x, -(bias + c.format.mantissa + 1.0), bias + 1.0)
    n, n_int = c.round_scaled(x, 1.0)
    r = em.sub(x, n)
    return c.scale(c.fma(r, c.horner(r, EXP2[c.bits]), c.const(1.0)), n_int, n)


def expm1_parts(c: Context, x: V, offset: int = 0) -> tuple[V, V]:
    """expm1(x) * 2**offset as (hi, rest) not yet added: 2**n (r + tail) + (2**n - 1) with the error
    of each step.

    x within [-60, EXP_HIGH]; offset -1 keeps the sum finite up to the largest result.
    """
    em = c.em
    n, r, r_lo = _reduce_exactly(c, x)
    if offset:
        n = em.iadd(n, c.iconst(offset))
    tail = c.fma(em.mul(r, r), c.horner(r, EXPM1[c.bits]), r_lo)
    s = c.power_of_two(n)
    base, base_lo = c.two_sum(s, c.const(-(2.0**offset)))
    hi = c.fma(r, s, base)
    error = em.add(c.fma(r, s, em.sub(base, hi)), base_lo)
    return hi, c.fma(tail, s, error)


def expm1(em: Emitter, x: V) -> V:
    """e**x - 1, accurate near 0"""
    c = Context(em, x.type)
    clamped = c.clamp(x, {32: -20.0, 64: -40.0}[c.bits], EXP_HIGH[c.bits])
    hi, rest = expm1_parts(c, clamped, -1)
    half = em.add(hi, rest)
    # x itself for the tiny: it keeps -0 and the denormals, which halving would round.
    tiny = em.fcmp("olt", em.abs(x), c.const({32: 2.0**-30, 64: 2.0**-60}[c.bits]))
    return em.select(tiny, x, em.add(half, half))


def sigmoid(em: Emitter, x: V) -> V:
    """1 / (1 + e**-x), with full relative accuracy down to the denormals at negative x"""
    c = Context(em, x.type)
    one, zero = c.const(1.0), c.const(0.0)
    negative = em.fcmp("olt", x, zero)
    _, n, tail = exp_tail(c, em.neg(c.at_most(em.abs(x), -EXP_LOW[c.bits])))
    p, p_lo = c.fast_two_sum(one, tail)
    # With e = e**-|x| = 2**n p, the result is 1 / (1 + e), or e / (1 + e) for x < 0.
    s = c.power_of_two(em.smax(n, c.iconst(-64)))
    d, d_lo = c.fast_two_sum(one, em.mul(p, s))
    d_lo = c.fma(p_lo, s, d_lo)
    inverse = em.div(one, d)
    inverse_lo = em.mul(inverse, c.fnma(inverse, d_lo, c.fnma(inverse, d, one)))
    numerator = em.select(negative, p, one)
    numerator_lo = em.select(negative, p_lo, zero)
    q = c.fma(numerator, inverse, c.fma(numerator, inverse_lo, em.mul(numerator_lo, inverse)))
    return c.scale(q, em.select(negative, n, c.iconst(0)))
