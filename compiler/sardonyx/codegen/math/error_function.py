"""The error function."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.codegen.math.coefficients import ERF_NEAR, EXP2, LOG2_ERFC
from sardonyx.codegen.math.support import Context

# Beyond these erf is 1 to all bits.
_LIMIT = {32: 3.94, 64: 5.94}


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
