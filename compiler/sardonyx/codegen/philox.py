"""Philox4x32-10 on vectors: the meaning is `sardonyx.core.randomness.philox`."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V
from sardonyx.core.randomness import MULTIPLIERS, ROUNDS, WEYL

__all__ = ["philox"]

_LOW = 0xFFFFFFFF


def philox(e: Emitter, index: V, key: V) -> V:
    """64 random bits per lane.  Words of 32 bits stand in lanes of 64, whose products the machine has."""
    kind = index.type
    low, half = e.const(kind, _LOW), e.const(kind, 32)
    c0, c1 = e.and_(index, low), e.lshr(index, half)
    c2 = c3 = e.const(kind, 0)
    k0, k1 = e.and_(key, low), e.lshr(key, half)
    for _ in range(ROUNDS):
        first = e.imul(c0, e.const(kind, MULTIPLIERS[0]))
        second = e.imul(c2, e.const(kind, MULTIPLIERS[1]))
        c0, c1, c2, c3 = (
            e.xor(e.xor(e.lshr(second, half), c1), k0),
            e.and_(second, low),
            e.xor(e.xor(e.lshr(first, half), c3), k1),
            e.and_(first, low),
        )
        k0 = e.and_(e.iadd(k0, e.const(kind, WEYL[0])), low)
        k1 = e.and_(e.iadd(k1, e.const(kind, WEYL[1])), low)
    return e.or_(c0, e.shl(c1, half))
