"""pow with the special cases of C99, Annex F.9.4.4."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import POW_EXP2, POW_LOG2
from sardonyx.codegen.math.exponential import EXP_HIGH, EXP_LOW, exp_parts
from sardonyx.codegen.math.logarithm import log_double_double, split
from sardonyx.codegen.math.support import Context


def pow(em: Emitter, x: V, y: V) -> V:
    """x**y: e**(y log |x|), the logarithm in more bits than the result's, then the sign and the
    special cases.
    """
    c = Context(em, x.type)
    ax = em.abs(x)
    value = (_positive_f32 if c.bits == 32 else _positive_f64)(c, ax, y)
    return _special_cases(c, x, ax, y, value)


def _log_with_limits(c: Context, ax: V, value: V) -> V:
    """`value` but at the ends: -inf for 0, and infinity and NaN themselves."""
    em = c.em
    value = em.select(em.fcmp("oeq", ax, c.const(0.0)), c.const(float("-inf")), value)
    return em.select(em.fcmp("olt", ax, c.const(float("inf"))), value, ax)


def _positive_f32(c: Context, ax: V, y: V) -> V:
    """2**(y log2(ax)) in f64 with polynomials that suffice for f32; one rounding, of denormal
    results too.
    """
    em = c.em
    wide = em.fpext(ax, 64)
    d = Context(em, wide.type)
    one = d.const(1.0)
    k, m = split(d, wide)  # a denormal f32 is a normal f64
    f = em.sub(m, one)
    s = em.div(f, em.add(m, one))
    z = em.mul(s, s)
    logarithm = _log_with_limits(d, wide, d.fma(s, d.horner(z, POW_LOG2), em.sitofp(k, 64)))
    # Beyond 2**+-200 an f32 is 0 or infinite, and here everything is still normal.
    exponent = d.clamp(em.mul(em.fpext(y, 64), logarithm), -200.0, 200.0)
    n, n_int = d.round_scaled(exponent, 1.0)
    r = em.sub(exponent, n)
    power = em.mul(d.fma(r, d.horner(r, POW_EXP2), one), d.power_of_two(n_int))
    return em.fptrunc(power, 32)


def _positive_f64(c: Context, ax: V, y: V) -> V:
    """With the logarithm and its product with y in double-double."""
    em = c.em
    hi, lo = log_double_double(c, ax)
    hi = _log_with_limits(c, ax, hi)
    exponent = em.mul(y, hi)
    exponent_lo = c.fma(y, lo, c.fma(y, hi, em.neg(exponent)))
    # The rest of an infinite or huge product is NaN or nothing.
    finite = em.fcmp("olt", em.abs(exponent), c.const(1000.0))
    exponent_lo = em.select(finite, exponent_lo, c.const(0.0))
    n, p, p_lo = exp_parts(c, c.clamp(exponent, EXP_LOW[64], EXP_HIGH[64]), exponent_lo)
    return c.scale(em.add(p, p_lo), n)


def _special_cases(c: Context, x: V, ax: V, y: V, value: V) -> V:
    """Sign and domain of a negative base; 1 for x = 1, y = 0 and (-1)**(+-inf), NaN or not."""
    em = c.em
    one, zero, infinity = c.const(1.0), c.const(0.0), c.const(float("inf"))
    half = em.mul(y, c.const(0.5))
    integral = em.fcmp("oeq", em.floor(y), y)
    odd = em.and_(integral, em.fcmp("one", em.floor(half), half))
    sign = em.and_(em.bitcast(x, c.int_type), c.iconst(1 << (c.bits - 1)))
    sign = em.select(odd, sign, c.iconst(0))
    value = em.bitcast(em.xor(em.bitcast(value, c.int_type), sign), c.type)
    # A finite negative base has no real power to a fraction.
    finite_negative = em.and_(em.fcmp("olt", x, zero), em.fcmp("one", ax, infinity))
    no_value = em.and_(finite_negative, em.not_(integral))
    value = em.select(no_value, c.const(float("nan")), value)
    is_one = em.fcmp("oeq", x, one)
    is_one = em.or_(is_one, em.fcmp("oeq", y, zero))
    unit_base_infinite = em.and_(em.fcmp("oeq", ax, one), em.fcmp("oeq", em.abs(y), infinity))
    return em.select(em.or_(is_one, unit_base_infinite), one, value)
