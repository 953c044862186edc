"""asin, acos, atan by argument reduction and an odd polynomial (Cody and Waite, 1980)."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import ASIN, ATAN, PI_2_PARTS
from sardonyx.codegen.math.support import Context


def _core(c: Context, ax: V) -> tuple[V, V, V]:
    """(upper, m, m_lo): asin(ax) = m + m_lo for ax <= 1/2, and acos(ax) = m + m_lo where `upper`
    (ax > 1/2).

    There acos(a) = 2 asin(sqrt((1 - a) / 2)).
    """
    em = c.em
    half = c.const(0.5)
    upper = em.fcmp("ogt", ax, half)
    z = em.select(upper, c.fnma(ax, half, half), em.mul(ax, ax))
    root = em.sqrt(z)
    # The error of the root, (z - root**2) / (2 root); z = 0 only where ax = 1.
    guard = c.const(c.format.min_normal)
    root_lo = em.div(c.fnma(root, root, z), em.add(em.add(root, root), guard))
    s = em.select(upper, root, ax)
    tail = em.mul(em.mul(s, z), c.horner(z, ASIN[c.bits]))
    upper_tail = em.add(tail, root_lo)
    m = em.select(upper, em.add(root, root), ax)
    return upper, m, em.select(upper, em.add(upper_tail, upper_tail), tail)


def asin(em: Emitter, x: V) -> V:
    """Inverse sine; NaN beyond 1"""
    c = Context(em, x.type)
    hi, lo, _ = PI_2_PARTS[c.bits]
    ax = em.abs(x)
    upper, m, m_lo = _core(c, ax)
    complement, rest = c.fast_two_sum(c.const(hi), em.neg(m))
    complement = em.add(complement, em.add(rest, em.sub(c.const(lo), m_lo)))
    return em.copysign(em.select(upper, complement, em.add(m, m_lo)), x)


def acos(em: Emitter, x: V) -> V:
    """Inverse cosine; NaN beyond 1"""
    c = Context(em, x.type)
    hi, lo, _ = PI_2_PARTS[c.bits]
    zero = c.const(0.0)
    upper, m, m_lo = _core(c, em.abs(x))
    negative = em.fcmp("olt", x, zero)
    # acos(x) = base +- (m + m_lo), base 0 or pi for |x| > 1/2 and pi/2 within
    base = em.select(upper, em.select(negative, c.const(2 * hi), zero), c.const(hi))
    base_lo = em.select(upper, em.select(negative, c.const(2 * lo), zero), c.const(lo))
    sign = em.copysign(c.const(1.0), em.select(upper, x, em.neg(x)))
    value, rest = c.fast_two_sum(base, em.mul(sign, m))
    return em.add(value, em.add(rest, c.fma(sign, m_lo, base_lo)))


def atan(em: Emitter, x: V) -> V:
    """Inverse tangent"""
    c = Context(em, x.type)
    hi, lo, _ = PI_2_PARTS[c.bits]
    zero, one = c.const(0.0), c.const(1.0)
    # Beyond 2**62 the result is pi/2 to all bits; the limit keeps infinity out of the quotient.
    a = c.at_most(em.abs(x), 2.0**62)
    middle = em.fcmp("ogt", a, c.const(0.41421356237309503))
    upper = em.fcmp("ogt", a, c.const(2.414213562373095))
    # atan(a) = pi/4 + atan((a - 1) / (a + 1)) = pi/2 + atan(-1 / a)
    difference, difference_lo = c.two_sum(a, c.const(-1.0))
    total, total_lo = c.two_sum(a, one)
    n = em.select(upper, c.const(-1.0), em.select(middle, difference, a))
    n_lo = em.select(upper, zero, em.select(middle, difference_lo, zero))
    d = em.select(upper, a, em.select(middle, total, one))
    d_lo = em.select(upper, zero, em.select(middle, total_lo, zero))
    t, t_lo = c.quotient(n, n_lo, d, d_lo)
    z = em.mul(t, t)
    tail = c.fma(em.mul(z, t), c.horner(z, ATAN[c.bits]), t_lo)
    base = em.select(upper, c.const(hi), em.select(middle, c.const(hi / 2), zero))
    base_lo = em.select(upper, c.const(lo), em.select(middle, c.const(lo / 2), zero))
    value, rest = c.fast_two_sum(base, t)
    return em.copysign(em.add(value, em.add(rest, em.add(tail, base_lo))), x)
