"""log, log1p, log2, softplus, and what the inverse hyperbolic functions and pow take from them.

x = 2**k (1 + f) with 1 + f near 1. f32 uses log(1 + f) = f - f**2 / 2 + f**3 P(f); f64 goes through
s = f / (2 + f), log(1 + f) = 2 atanh(s), as fdlibm does (K. C. Ng, 1993), with our own
coefficients.
"""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import (
    LN2_LONG_HI,
    LN2_LONG_LO,
    LOG2_E_HI,
    LOG2_E_LO,
    LOG_DOUBLE_DOUBLE,
    LOG_F32,
    LOG_F64,
    TWO_THIRDS_LO,
)
from sardonyx.codegen.math.exponential import EXP_LOW, exp_parts
from sardonyx.codegen.math.support import Context

# The bits of the least mantissa kept: 2/3 for f32, sqrt(1/2) for f64.
_LEAST_MANTISSA = {32: 0x3F2AAAAB, 64: 0x3FE6A09E667F3BCD}


def split(c: Context, x: V) -> tuple[V, V]:
    """(k, m) with positive normal x = 2**k m, k an integer, m in [least, 2 least)."""
    em, mantissa = c.em, c.iconst(c.format.mantissa)
    bits = em.bitcast(x, c.int_type)
    k = em.ashr(em.isub(bits, c.iconst(_LEAST_MANTISSA[c.bits])), mantissa)
    return k, em.bitcast(em.isub(bits, em.shl(k, mantissa)), c.type)


def _split_any(c: Context, x: V) -> tuple[V, V]:
    """(k, f) with positive x = 2**k (1 + f), denormals too; k as a float."""
    em = c.em
    shift = float(c.format.mantissa + 2)
    denormal = em.fcmp("olt", x, c.const(c.format.min_normal))
    x = em.select(denormal, em.mul(x, c.const(2.0**shift)), x)
    k, m = split(c, x)
    k_float = em.sitofp(k, c.bits)
    k_float = em.sub(k_float, em.select(denormal, c.const(shift), c.const(0.0)))
    return k_float, em.sub(m, c.const(1.0))


def _log1p_tail(c: Context, f: V) -> V:
    """log(1 + f) - f"""
    em = c.em
    if c.bits == 32:
        return em.mul(em.mul(f, f), c.fma(f, c.horner(f, LOG_F32), c.const(-0.5)))
    s = em.div(f, em.add(f, c.const(2.0)))
    z = em.mul(s, s)
    half_square = em.mul(em.mul(f, c.const(0.5)), f)
    return em.sub(em.mul(s, c.fma(z, c.horner(z, LOG_F64), half_square)), half_square)


def _join(c: Context, k: V, f: V, tail: V) -> tuple[V, V]:
    """k ln 2 + f + tail as (hi, lo); k LN2_LONG_HI is exact."""
    em = c.em
    hi, lo = c.fast_two_sum(em.mul(k, c.const(LN2_LONG_HI[c.bits])), f)
    return hi, em.add(lo, c.fma(k, c.const(LN2_LONG_LO[c.bits]), tail))


def _special(c: Context, x: V, value: V, pole: float) -> V:
    """`value`, or -inf at x = pole, NaN below it, x itself for +inf and NaN."""
    em, at = c.em, c.const(pole)
    value = em.select(em.fcmp("olt", x, c.const(float("inf"))), value, x)
    value = em.select(em.fcmp("oeq", x, at), c.const(float("-inf")), value)
    return em.select(em.fcmp("olt", x, at), c.const(float("nan")), value)


def log_parts(c: Context, x: V) -> tuple[V, V]:
    """log(x) as (hi, lo) to some 8 bits more than the type's, for finite x > 0."""
    k, f = _split_any(c, x)
    return _join(c, k, f, _log1p_tail(c, f))


def log(em: Emitter, x: V) -> V:
    """Natural logarithm"""
    c = Context(em, x.type)
    hi, lo = log_parts(c, x)
    return _special(c, x, em.add(hi, lo), 0.0)


def log2(em: Emitter, x: V) -> V:
    """Logarithm to base 2, exact for powers of two"""
    c = Context(em, x.type)
    k, f = _split_any(c, x)
    tail = _log1p_tail(c, f)
    factor = c.const(LOG2_E_HI[c.bits])
    product = em.mul(f, factor)
    rest = c.fma(f, factor, em.neg(product))
    rest = c.fma(f, c.const(LOG2_E_LO[c.bits]), rest)
    hi, lo = c.fast_two_sum(k, product)
    return _special(c, x, em.add(hi, em.add(lo, c.fma(tail, factor, rest))), 0.0)


def log1p_parts(c: Context, x: V, x_lo: V | None = None, extra_k: V | None = None) -> tuple[V, V]:
    """log(1 + x + x_lo) + extra_k ln 2 as (hi, lo), for -1 < x finite; x_lo is below the last place
    of x.
    """
    em = c.em
    one = c.const(1.0)
    # 2**-k must be a normal number: scale the huge, to which adding 1 changes nothing.
    limit, shift = {32: (2.0**100, 32.0), 64: (2.0**1000, 64.0)}[c.bits]
    huge = em.fcmp("ogt", x, c.const(limit))
    x = em.select(huge, em.mul(x, c.const(2.0**-shift)), x)
    k_int, _ = split(c, em.add(x, one))
    s = c.power_of_two(em.isub(c.iconst(0), k_int))
    base = em.sub(s, one)
    f = c.fma(x, s, base)
    f_lo = c.fma(x, s, em.sub(base, f))
    if x_lo is not None:
        f_lo = c.fma(x_lo, s, f_lo)
    k = em.add(em.sitofp(k_int, c.bits), em.select(huge, c.const(shift), c.const(0.0)))
    if extra_k is not None:
        k = em.add(k, extra_k)
    # d log(1 + f) / df = 1 - f + ..., enough for a correction below the last place
    tail = em.add(_log1p_tail(c, f), c.fnma(f, f_lo, f_lo))
    return _join(c, k, f, tail)


def log1p(em: Emitter, x: V) -> V:
    """log(1 + x), accurate near 0"""
    c = Context(em, x.type)
    hi, lo = log1p_parts(c, x)
    value = _special(c, x, em.add(hi, lo), -1.0)
    return em.select(em.fcmp("oeq", x, c.const(0.0)), x, value)


def softplus(em: Emitter, x: V) -> V:
    """log(1 + e**x), without overflow and with full relative accuracy at negative x"""
    c = Context(em, x.type)
    zero, half, minus_half = c.const(0.0), c.const(0.5), c.const(-0.5)
    # max(x, 0) + log1p(e), e = e**-|x|
    n, p, p_lo = exp_parts(c, em.neg(c.at_most(em.abs(x), -EXP_LOW[c.bits])))
    e = c.scale(p, n)
    least = c.iconst(1 - c.format.bias)
    e_lo = em.mul(p_lo, c.power_of_two(em.smax(n, least)))
    # A denormal e is rounded already: nothing is left to add.
    e_lo = em.select(em.icmp("sgt", n, least), e_lo, zero)
    # 1 + e = 2 (1 + f) above the range of the polynomial
    upper = em.fcmp("ogt", e, c.const({32: 1.0 / 3.0, 64: 0.41421356}[c.bits]))
    f_upper = c.fma(e, half, minus_half)
    f_upper_lo = c.fma(e, half, em.sub(minus_half, f_upper))
    f = em.select(upper, f_upper, e)
    f_lo = em.select(upper, c.fma(e_lo, half, f_upper_lo), e_lo)
    tail = em.add(_log1p_tail(c, f), c.fnma(f, f_lo, f_lo))
    hi, lo = _join(c, em.select(upper, c.const(1.0), zero), f, tail)
    total, error = c.two_sum(em.select(em.fcmp("ogt", x, zero), x, zero), hi)
    value = em.add(total, em.add(error, lo))
    return em.select(em.fcmp("ogt", x, c.const({32: 32.0, 64: 64.0}[c.bits])), x, value)


def log_double_double(c: Context, x: V) -> tuple[V, V]:
    """log(x) of f64 as (hi, lo) with a relative error near 2**-65, for finite x > 0."""
    em, fma = c.em, c.fma
    k, f = _split_any(c, x)
    two = c.const(2.0)
    d, d_lo = c.fast_two_sum(two, f)
    s, s_lo = c.quotient(f, None, d, d_lo)
    z = em.mul(s, s)
    z_lo = fma(em.add(s, s), s_lo, fma(s, s, em.neg(z)))
    # log(1 + f) = 2 s + s z (2/3 + z P(z)), products and the sum of 2/3 in double-double
    t, t_lo = c.fast_two_sum(c.const(2.0 / 3.0), em.mul(z, c.horner(z, LOG_DOUBLE_DOUBLE)))
    t_lo = em.add(t_lo, c.const(TWO_THIRDS_LO))
    w = em.mul(z, t)
    w_lo = fma(z_lo, t, fma(z, t_lo, fma(z, t, em.neg(w))))
    u = em.mul(s, w)
    u_lo = fma(s_lo, w, fma(s, w_lo, fma(s, w, em.neg(u))))
    hi, lo = c.fast_two_sum(em.add(s, s), u)
    lo = em.add(lo, fma(two, s_lo, u_lo))
    total, rest = c.fast_two_sum(em.mul(k, c.const(LN2_LONG_HI[64])), hi)
    rest = em.add(rest, fma(k, c.const(LN2_LONG_LO[64]), lo))
    return c.fast_two_sum(total, rest)
