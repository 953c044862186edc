"""The error function and the distribution function of the normal law."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import (
    ERF_NEAR,
    EXP2,
    LOG2_ERFC,
    NORMAL_TAIL,
    NORMAL_TAIL_K,
    SQRT_2_HI,
    SQRT_2_LO,
)
from sardonyx.codegen.math.exponential import exp_parts
from sardonyx.codegen.math.support import Context

# Beyond these erf is 1 to all bits.
_LIMIT = {32: 3.94, 64: 5.94}
# Beyond these the tail of the normal law is 0 after rounding.
_TAIL_LIMIT = {32: 14.4, 64: 38.7}


def erf(em: Emitter, x: V) -> V:
    """x (1 + P(x**2)) up to 1; beyond it 1 - 2**Q(|x| - 1), Q a polynomial of log2(erfc).

    The second form needs no division, and its relative error counts by erfc(1) = 0.157 at the most.
    """
    c = Context(em, x.type)
    one = c.const(1.0)
    ax = em.abs(x)
    z = em.mul(ax, ax)
    near = c.fma(ax, c.horner(z, ERF_NEAR[c.bits]), ax)
    u = em.sub(c.at_most(ax, _LIMIT[c.bits]), one)
    q = c.horner(u, LOG2_ERFC[c.bits])
    n, n_int = c.round_scaled(q, 1.0)
    r = em.sub(q, n)
    p = c.fma(r, c.horner(r, EXP2[c.bits]), one)
    far = c.fnma(p, c.power_of_two(n_int), one)
    return em.copysign(em.select(em.fcmp("olt", ax, one), near, far), x)


def normal_cdf(em: Emitter, x: V) -> V:
    """(1 + erf(x / sqrt(2))) / 2, with full relative accuracy down to the denormals at negative x.

    The tail beyond a = |x| is e**(-a**2 / 2) P(t) / (2 + 2 sqrt(2) a), t = (a - K) / (a + K), after
    M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0
    <= x < infinity" (1981).
    """
    c = Context(em, x.type)
    one = c.const(1.0)
    a = c.at_most(em.abs(x), _TAIL_LIMIT[c.bits])
    square = em.mul(a, a)
    square_lo = c.fma(a, a, em.neg(square))
    minus_half = c.const(-0.5)
    n, p, p_lo = exp_parts(c, em.mul(square, minus_half), em.mul(square_lo, minus_half))
    k = c.const(NORMAL_TAIL_K[c.bits])
    value = c.horner(em.div(em.sub(a, k), em.add(a, k)), NORMAL_TAIL[c.bits])
    # The quotient (p + p_lo) value / (1 + sqrt(2) a), each part with its rounding error
    numerator = em.mul(p, value)
    numerator_lo = c.fma(p_lo, value, c.fma(p, value, em.neg(numerator)))
    root_two = c.const(SQRT_2_HI[c.bits])
    denominator = c.fma(a, root_two, one)
    denominator_lo = c.fma(a, root_two, em.sub(one, denominator))
    denominator_lo = c.fma(a, c.const(SQRT_2_LO[c.bits]), denominator_lo)
    q, q_lo = c.quotient(numerator, numerator_lo, denominator, denominator_lo)
    tail = c.scale(em.add(q, q_lo), em.isub(n, c.iconst(1)))
    far = em.select(em.fcmp("olt", x, c.const(0.0)), tail, em.sub(one, tail))
    # Near 0, where P is steep: 1/2 + erf(x / sqrt(2)) / 2
    z = em.mul(em.mul(x, x), c.const(0.5))
    slope = c.const(0.35355339059327376)
    near = c.fma(x, c.fma(c.horner(z, ERF_NEAR[c.bits]), slope, slope), c.const(0.5))
    return em.select(em.fcmp("olt", a, c.const(0.5)), near, far)
