"""sinh, cosh, tanh and their inverses, from exp and log in two parts (hi, lo)."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import SINH, TANH_F32
from sardonyx.codegen.math.exponential import exp_parts, exp_tail, expm1_parts
from sardonyx.codegen.math.logarithm import log1p_parts
from sardonyx.codegen.math.support import Context

# Beyond these sinh and cosh are infinite: a little more than where exp is, their halves being
# smaller.
_HIGH = {32: 90.0, 64: 711.0}
# Beyond these log(2 x) is the inverse to all bits, and x**2 need not be formed.
_HUGE = {32: 2.0**30, 64: 2.0**60}


def _exp_and_inverse(c: Context, ax: V) -> tuple[V, V, V, V]:
    """(n - 1, p, p_lo, b): e**ax / 2 = 2**(n - 1) (p + p_lo) and e**-ax / 2 = 2**(n - 1) b."""
    em = c.em
    n, p, p_lo = exp_parts(c, c.at_most(ax, _HIGH[c.bits]))
    minus_2n = em.smax(em.isub(c.iconst(0), em.iadd(n, n)), c.iconst(-100))
    inverse = em.div(c.const(1.0), p)
    b = em.mul(inverse, c.power_of_two(minus_2n))
    return em.isub(n, c.iconst(1)), p, p_lo, c.fnma(em.mul(inverse, b), p_lo, b)


def sinh(em: Emitter, x: V) -> V:
    """Hyperbolic sine; infinite only where the result is"""
    c = Context(em, x.type)
    ax = em.abs(x)
    n, p, p_lo, b = _exp_and_inverse(c, ax)
    far = c.scale(em.sub(p, em.sub(b, p_lo)), n)
    z = em.mul(ax, ax)
    near = c.fma(em.mul(z, ax), c.horner(z, SINH[c.bits]), ax)
    return em.copysign(em.select(em.fcmp("olt", ax, c.const(1.0)), near, far), x)


def cosh(em: Emitter, x: V) -> V:
    """Hyperbolic cosine; infinite only where the result is"""
    c = Context(em, x.type)
    n, p, p_lo, b = _exp_and_inverse(c, em.abs(x))
    return c.scale(em.add(p, em.add(b, p_lo)), n)


def tanh(em: Emitter, x: V) -> V:
    """Hyperbolic tangent"""
    c = Context(em, x.type)
    if c.bits == 32:
        return _tanh_f32(c, x)
    # With m = expm1(-2 |x|): tanh |x| = -m / (2 + m)
    doubled = c.at_most(em.abs(x), 22.0)
    m, m_lo = c.fast_two_sum(*expm1_parts(c, em.mul(doubled, c.const(-2.0))))
    d, d_lo = c.fast_two_sum(c.const(2.0), m)
    q, q_lo = c.quotient(em.neg(m), em.neg(m_lo), d, em.add(d_lo, m_lo))
    return em.copysign(em.add(q, q_lo), x)


def _tanh_f32(c: Context, x: V) -> V:
    """x + x**3 P(x**2) up to 1, beyond it 1 - 2 / (e**2|x| + 1): the quotient's errors weigh less
    than a quarter.
    """
    em = c.em
    ax = em.abs(x)
    one = c.const(1.0)
    z = em.mul(ax, ax)
    near = c.fma(em.mul(z, ax), c.horner(z, TANH_F32), ax)
    _, n, tail = exp_tail(c, em.mul(c.at_most(ax, 10.0), c.const(2.0)))
    s = c.power_of_two(n)
    d = c.fma(tail, s, em.add(s, one))
    far = em.sub(one, em.div(c.const(2.0), d))
    return em.copysign(em.select(em.fcmp("olt", ax, one), near, far), x)


def asinh(em: Emitter, x: V) -> V:
    """Inverse hyperbolic sine: log1p(|x| + x**2 / (1 + sqrt(1 + x**2)))"""
    c = Context(em, x.type)
    zero, one = c.const(0.0), c.const(1.0)
    ax = em.abs(x)
    huge = em.fcmp("ogt", ax, c.const(_HUGE[c.bits]))
    square = em.mul(ax, ax)
    v = em.div(square, em.add(one, em.sqrt(em.add(one, square))))
    argument, argument_lo = c.two_sum(ax, em.select(huge, zero, v))
    hi, lo = log1p_parts(c, argument, argument_lo, em.select(huge, one, zero))
    value = em.select(em.fcmp("olt", ax, c.const(float("inf"))), em.add(hi, lo), ax)
    return em.copysign(value, x)


def acosh(em: Emitter, x: V) -> V:
    """Inverse hyperbolic cosine: log1p(t + sqrt(t (t + 2))) with t = x - 1; NaN below 1"""
    c = Context(em, x.type)
    zero, one = c.const(0.0), c.const(1.0)
    huge = em.fcmp("ogt", x, c.const(_HUGE[c.bits]))
    t = em.sub(x, one)
    double_t = em.select(huge, zero, em.add(t, t))
    t_or_zero = em.select(huge, zero, t)
    square = c.fma(t_or_zero, t_or_zero, double_t)
    square_lo = c.fma(t_or_zero, t_or_zero, em.sub(double_t, square))
    root = em.sqrt(square)
    # Near 1 the root is the result: its rounding and its argument's count.
    guard = c.const(c.format.min_normal)
    root_error = em.add(c.fnma(root, root, square), square_lo)
    root_lo = em.div(root_error, em.add(em.add(root, root), guard))
    argument, argument_lo = c.two_sum(t, root)
    argument_lo = em.add(argument_lo, root_lo)
    hi, lo = log1p_parts(c, argument, argument_lo, em.select(huge, one, zero))
    value = em.select(em.fcmp("olt", x, c.const(float("inf"))), em.add(hi, lo), x)
    return em.select(em.fcmp("olt", x, one), c.const(float("nan")), value)


def atanh(em: Emitter, x: V) -> V:
    """Inverse hyperbolic tangent: log1p(2 |x| / (1 - |x|)) / 2; infinite at 1, NaN beyond"""
    c = Context(em, x.type)
    one = c.const(1.0)
    ax = em.abs(x)
    d, d_lo = c.fast_two_sum(one, em.neg(ax))
    q, q_lo = c.quotient(em.add(ax, ax), None, d, d_lo)
    hi, lo = log1p_parts(c, q, q_lo)
    value = em.mul(em.add(hi, lo), c.const(0.5))
    value = em.select(em.fcmp("oeq", ax, one), c.const(float("inf")), value)
    value = em.select(em.fcmp("ogt", ax, one), c.const(float("nan")), value)
    return em.copysign(value, x)
