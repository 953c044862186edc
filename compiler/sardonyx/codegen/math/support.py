"""What the vector math functions share: format constants, exact sums, quotients, powers of two.

The functions are written once for f32 and f64; `Context` carries the emitter and the element type.
Where a result must be right to one unit in the last place, values travel as an unevaluated sum of
two floats (hi, lo), after T. J. Dekker, "A floating-point technique for extending the available
precision" (1971), with the products by FMA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.codegen.emitter import Emitter, LType, V


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE binary format by its numbers; `magic` is 1.5 * 2**mantissa, whose unit in the last
    place is 1.
    """

    bits: int
    mantissa: int
    bias: int
    magic: float
    magic_bits: int
    min_normal: float


FORMATS = {
    32: Format(32, 23, 127, 1.5 * 2.0**23, 0x4B400000, 2.0**-126),
    64: Format(64, 52, 1023, 1.5 * 2.0**52, 0x4338000000000000, 2.0**-1022),
}


class Context:
    """An emitter and the element type of one function being emitted."""

    __slots__ = ("bits", "em", "fma", "format", "int_type", "type")

    def __init__(self, em: Emitter, type: LType) -> None:
        self.em = em
        self.type = type
        self.bits = type.bits
        self.int_type = type.as_int
        self.format = FORMATS[type.bits]
        self.fma = em.fma

    def const(self, value: float) -> V:
        """A float constant in every lane."""
        return self.em.const(self.type, value)

    def iconst(self, value: int) -> V:
        """A constant of the integer type of the same size."""
        return self.em.const(self.int_type, value)

    def horner(self, x: V, coefficients: Sequence[float]) -> V:
        """coefficients[0] + x * (coefficients[1] + x * ...), each step one FMA."""
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.em.fma(value, x, self.const(c))
        return value

    def fnma(self, a: V, b: V, c: V) -> V:
        """c - a * b rounded once"""
        return self.em.fma(self.em.neg(a), b, c)

    def fast_two_sum(self, a: V, b: V) -> tuple[V, V]:
        """a + b as (rounded, exact rest), for |a| >= |b| or a = 0."""
        em = self.em
        s = em.add(a, b)
        return s, em.add(em.sub(a, s), b)

    def two_sum(self, a: V, b: V) -> tuple[V, V]:
        """a + b as (rounded, exact rest), in any order of size (D. E. Knuth, TAOCP 2, 4.2.2)."""
        em = self.em
        s = em.add(a, b)
        b_part = em.sub(s, a)
        a_part = em.sub(s, b_part)
        return s, em.add(em.sub(a, a_part), em.sub(b, b_part))

    def quotient(self, n: V, n_lo: V | None, d: V, d_lo: V | None) -> tuple[V, V]:
        """(n + n_lo) / (d + d_lo) as (hi, lo), to about twice the precision by one division."""
        em = self.em
        inverse = em.div(self.const(1.0), d)
        q = em.mul(n, inverse)
        rest = self.fnma(q, d, n)
        if n_lo is not None:
            rest = em.add(rest, n_lo)
        if d_lo is not None:
            rest = self.fnma(q, d_lo, rest)
        return q, em.mul(rest, inverse)

    def clamp(self, x: V, low: float, high: float) -> V:
        """x held within [low, high]; NaN stays NaN."""
        em = self.em
        lo, hi = self.const(low), self.const(high)
        x = em.select(em.fcmp("olt", x, lo), lo, x)
        return em.select(em.fcmp("ogt", x, hi), hi, x)

    def at_most(self, x: V, high: float) -> V:
        """min(x, high); NaN stays NaN."""
        hi = self.const(high)
        return self.em.select(self.em.fcmp("ogt", x, hi), hi, x)

    def round_scaled(self, x: V, factor: float) -> tuple[V, V]:
        """n = round(x * factor) as (float n, integer n), for |n| < 2**(mantissa - 1); no undefined
        value for NaN.

        Adding `magic` leaves n in the low bits of the sum.
        """
        em = self.em
        magic = self.const(self.format.magic)
        shifted = em.fma(x, self.const(factor), magic)
        n = em.isub(em.bitcast(shifted, self.int_type), self.iconst(self.format.magic_bits))
        return em.sub(shifted, magic), n

    def power_of_two(self, n: V) -> V:
        """2**n for an integer n within the normal range."""
        em, fmt = self.em, self.format
        biased = em.iadd(n, self.iconst(fmt.bias))
        return em.bitcast(em.shl(biased, self.iconst(fmt.mantissa)), self.type)

    def scale(self, x: V, n: V, n_float: V | None = None) -> V:
        """x * 2**n rounded once, for 0.5 <= |x| < 4 and |n| below twice the largest exponent.

        The first factor is exact, so a denormal result is rounded by the second product only.
        `n_float` is n as a float, where there is one.
        """
        em = self.em
        scalef = _SCALEF.get((self.bits, self.type.width))
        if scalef is not None and scalef.features <= em.module.features:
            return self._scalef(x, n_float or em.sitofp(n, self.bits), scalef)
        half = em.ashr(n, self.iconst(1))
        x = em.mul(x, self.power_of_two(half))
        return em.mul(x, self.power_of_two(em.isub(n, half)))

    def _scalef(self, x: V, n: V, instruction: _Scalef) -> V:
        """The same by AVX-512's instruction for it, which rounds once as well."""
        t, mask = self.type.text, instruction.mask
        rounding = ", i32" if instruction.rounding else ""
        self.em.module.declare(instruction.name, t, f"{t}, {t}, {t}, {mask}{rounding}")
        current = ", i32 4" if instruction.rounding else ""
        operands = f"{t} {x.ref}, {t} {n.ref}, {t} poison, {mask} -1{current}"
        return self.em.result(self.type, f"call {t} @{instruction.name}({operands})")


@dataclass(frozen=True, slots=True)
class _Scalef:
    """An intrinsic of VSCALEFPS or VSCALEFPD, and what it (with the conversion before it) needs of
    the host.
    """

    name: str
    mask: str
    rounding: bool
    features: frozenset[str]


_SCALEF = {
    (32, 16): _Scalef("llvm.x86.avx512.mask.scalef.ps.512", "i16", True, frozenset({"avx512f"})),
    (32, 8): _Scalef("llvm.x86.avx512.mask.scalef.ps.256", "i8", False, frozenset({"avx512f", "avx512vl"})),
    (64, 8): _Scalef("llvm.x86.avx512.mask.scalef.pd.512", "i8", True, frozenset({"avx512f", "avx512dq"})),
    (64, 4): _Scalef(
        "llvm.x86.avx512.mask.scalef.pd.256",
        "i8",
        False,
        frozenset({"avx512f", "avx512dq", "avx512vl"}),
    ),
}
