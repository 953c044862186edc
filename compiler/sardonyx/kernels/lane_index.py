"""Indices by lanes: where each lane of a vector reads along one axis.

An index is affine in the lane number (``base + step * lane``) as long as possible, for then loads are
consecutive or uniform; an arbitrary vector of places is the last resort.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike

__all__ = [
    "LaneIndex",
    "Place",
    "add",
    "all_within",
    "around",
    "as_vector",
    "compare",
    "divide",
    "known_multiple",
    "multiply",
    "uniform",
]


@dataclass(frozen=True)
class LaneIndex:
    """``base + step * lane``, or the i64 vector ``places`` where given; base is a multiple of ``multiple``.

    Where ``repeat`` is not 0 the places are ``run + lane // repeat``: consecutive ones, each several times.
    """

    base: Index
    step: int = 0
    places: Value | None = None
    multiple: int = 1
    run: Index = 0
    repeat: int = 0

    @property
    def is_uniform(self) -> bool:
        """The same place in every lane."""
        return self.step == 0 and self.places is None


Place = tuple[LaneIndex, ...]


def uniform(base: Index) -> LaneIndex:
    return LaneIndex(base, multiple=base if isinstance(base, int) else 1)


def as_vector(b: LoopBuilder, index: LaneIndex, lanes: int) -> Value:
    """The places as an i64 vector."""
    if index.places is not None:
        return index.places
    base = b.splat(b.from_index(index.base, dtypes.i64), lanes)
    if index.step == 0:
        return base
    offsets = b.lanes(lanes)
    if index.step != 1:
        offsets = b.scalar_op("mul", offsets, b.const(index.step, dtypes.i64, lanes))
    return b.scalar_op("add", base, offsets)


def _vector_op(b: LoopBuilder, kind: str, x: LaneIndex, y: Index, lanes: int) -> LaneIndex:
    right = b.splat(b.from_index(y, dtypes.i64), lanes)
    return LaneIndex(0, places=b.scalar_op(kind, as_vector(b, x, lanes), right))


def add(b: LoopBuilder, x: LaneIndex, y: LaneIndex, lanes: int) -> LaneIndex:
    if x.places is None and y.places is None:
        step = x.step + y.step
        multiple = min(_multiple(x), _multiple(y)) if step <= 1 else 1
        return LaneIndex(b.iadd(x.base, y.base), step, multiple=multiple)
    total = b.scalar_op("add", as_vector(b, x, lanes), as_vector(b, y, lanes))
    for one, other in ((x, y), (y, x)):
        if one.repeat and other.is_uniform:
            return LaneIndex(0, places=total, run=b.iadd(one.run, other.base), repeat=one.repeat)
    return LaneIndex(0, places=total)


def _multiple(x: LaneIndex) -> int:
    """A power of two the base is a multiple of."""
    if isinstance(x.base, int):
        return x.base & -x.base if x.base else 1 << 20
    return x.multiple


def known_multiple(dim: DimLike) -> int:
    """A power of two that divides the dim whatever its symbols are."""
    if isinstance(dim, int):
        return dim & -dim if dim else 1 << 20
    return min(c & -c for _, c in dim.terms)


def multiply(b: LoopBuilder, x: LaneIndex, factor: Index, lanes: int, known: int = 1) -> LaneIndex:
    """x times a factor (a multiple of ``known``); one known only at run time makes lanes that differ a vector."""
    if isinstance(factor, int) and factor == 1:
        return x
    if x.places is None and (x.step == 0 or isinstance(factor, int)):
        step = x.step * factor if isinstance(factor, int) else 0
        known = factor & -factor if isinstance(factor, int) and factor else known
        return LaneIndex(b.imul(x.base, factor), step, multiple=_multiple(x) * known)
    return _vector_op(b, "mul", x, factor, lanes)


def divide(
    b: LoopBuilder, x: LaneIndex, divisor: Index, lanes: int, known: int = 1
) -> tuple[LaneIndex, LaneIndex]:
    """Quotient and remainder.  Lanes stay consecutive where no vector can cross a multiple of the divisor.

    The divisor is a multiple of ``known``, for those that are known only at run time.
    """
    if isinstance(divisor, int) and divisor == 1:
        return x, uniform(0)
    if x.is_uniform:
        return LaneIndex(b.idiv(x.base, divisor)), LaneIndex(b.imod(x.base, divisor))
    if x.places is None and x.step == 1:
        known = divisor if isinstance(divisor, int) else known
        if _multiple(x) % lanes == 0 and known % lanes == 0:
            rest = LaneIndex(b.imod(x.base, divisor), 1, multiple=lanes)
            return LaneIndex(b.idiv(x.base, divisor)), rest
        if isinstance(divisor, int) and lanes % divisor == 0 and _multiple(x) % divisor == 0:
            quotient = _vector_op(b, "div", x, divisor, lanes)
            run = b.idiv(x.base, divisor)
            repeated = LaneIndex(0, places=quotient.places, run=run, repeat=divisor)
            return repeated, _vector_op(b, "rem", x, divisor, lanes)
    return _vector_op(b, "div", x, divisor, lanes), _vector_op(b, "rem", x, divisor, lanes)


def compare(b: LoopBuilder, kind: str, x: LaneIndex, bound: Index, lanes: int) -> Value:
    """A comparison with a bound: one i1, or one per lane."""
    if x.is_uniform:
        return b.icmp(kind, x.base, bound)
    right = b.splat(b.from_index(bound, dtypes.i64), lanes)
    return b.compare(kind, as_vector(b, x, lanes), right)


def all_within(b: LoopBuilder, x: LaneIndex, size: Index, lanes: int) -> list[Value]:
    """Scalar conditions under which all lanes are within 0 to size; none where only lane by lane can tell."""
    if x.places is not None:
        return []
    span = (lanes - 1) * x.step
    first, last = (x.base, b.iadd(x.base, span)) if span >= 0 else (b.iadd(x.base, span), x.base)
    return [b.icmp("ge", first, 0), b.icmp("lt", last, size)]


def around(
    b: LoopBuilder, mode: str, x: LaneIndex, size: Index, lanes: int, *, near: bool = False
) -> LaneIndex:
    """An index beyond the ends of an axis as one within: the nearest (edge), mirrored (reflect), modulo (wrap).

    ``near``: it is beyond by no more than the extent, which spares a division.
    """
    place = b.from_index(x.base, dtypes.i64) if x.is_uniform else as_vector(b, x, lanes)
    count = 1 if x.is_uniform else lanes
    extent = b.splat(b.from_index(size, dtypes.i64), count)
    zero, one = b.const(0, dtypes.i64, count), b.const(1, dtypes.i64, count)
    last = b.scalar_op("sub", extent, one)
    if mode == "wrap" and near:
        place = b.scalar_op("select", b.compare("lt", place, zero), b.scalar_op("add", place, extent), place)
        place = b.scalar_op("select", b.compare("lt", last, place), b.scalar_op("sub", place, extent), place)
    elif mode == "wrap":
        place = b.scalar_op("mod", place, extent)
    elif mode == "reflect":
        place = b.scalar_op("abs", place)
        place = b.scalar_op("min", place, b.scalar_op("sub", b.scalar_op("add", last, last), place))
    place = b.scalar_op("max", b.scalar_op("min", place, last), zero)
    return LaneIndex(b.to_index(place)) if count == 1 else LaneIndex(0, places=place)
