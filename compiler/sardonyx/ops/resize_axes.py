"""The axes that Resize changes: their new extents and their scales, from either of its inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, floordiv

__all__ = ["POLICIES", "Axis", "by_scales", "by_sizes", "entry", "of_count"]

POLICIES = ("stretch", "not_larger", "not_smaller")
_WHOLE = 256  # the numerator of a scale up to which size * scale is exact in float32


@dataclass(frozen=True)
class Axis:
    """One axis to resize: its extents, and the scale as a float64 scalar, None if it is their ratio."""

    axis: int
    old: DimLike
    new: DimLike
    scale: Value | None


def entry(b: Builder, values: Value, position: int) -> Value:
    """One element of a vector as a float64 scalar."""
    one = b.op("core.slice", values, starts=(position,), sizes=(1,), steps=(1,))
    return b.convert(b.reshape(one, ()), dtypes.f64)


def of_count(b: Builder, values: Value, count: int, what: str) -> Value:
    """The values, which have to be so many; CompileError, or a check by the run where that is symbolic."""
    message = f"the input {what!r} of Resize is {values.type.describe()}; {count} elements are needed"
    return b.expect_shape(values, (count,), message)


def by_scales(b: Builder, x: Value, scales: Value, axes: tuple[int, ...]) -> list[Axis]:
    """Each new extent is the old one times the scale in float32, rounded down."""
    scales = of_count(b, scales, len(axes), "scales")
    known = constant_of(scales)
    if known is not None and not (np.isfinite(known) & (known > 0)).all():
        raise CompileError(f"the scales {known.tolist()} have to be above 0")
    old = [x.type.shape[a] for a in axes]
    new = [_scaled(d, None if known is None else float(known[i])) for i, d in enumerate(old)]
    if any(n is None for n in new):
        sizes = b.convert(b.dims(old), dtypes.f32)
        bound = b.dims_of(b.convert(b.floor(b.mul(sizes, scales)), dtypes.i64))
        new = [late if n is None else n for n, late in zip(new, bound, strict=True)]
    return [
        Axis(axis, d, n, entry(b, scales, i))  # type: ignore[arg-type]
        for i, (axis, d, n) in enumerate(zip(axes, old, new, strict=True))
    ]


def _scaled(size: DimLike, scale: float | None) -> DimLike | None:
    """floor(size * scale) where that is known, or can be told exactly as a dim; else None."""
    if scale is None:
        return None
    if isinstance(size, int):
        return int(np.floor(np.float32(size) * np.float32(scale)))
    ratio = Fraction(scale)
    odd = ratio.numerator // (ratio.numerator & -ratio.numerator)
    return floordiv(size * ratio.numerator, ratio.denominator) if odd <= _WHOLE else None


def by_sizes(b: Builder, x: Value, sizes: Value, axes: tuple[int, ...], policy: str) -> list[Axis]:
    sizes = of_count(b, sizes, len(axes), "sizes")
    new: Sequence[DimLike] = b.dims_of(sizes)
    old = [x.type.shape[a] for a in axes]
    if policy == "stretch":
        for axis, have, want in zip(axes, old, new, strict=True):
            _not_from_nothing(b, x, axis, have, want)
        return [Axis(a, o, n, None) for a, o, n in zip(axes, old, new, strict=True)]
    if all(isinstance(d, int) for d in (*old, *new)):
        ratios = [Fraction(n, o) for n, o in zip(new, old, strict=True) if o]  # type: ignore[arg-type]
        if not ratios:
            return []
        best = min(ratios) if policy == "not_larger" else max(ratios)
        new = [math.floor(best * o + Fraction(1, 2)) for o in old]
        scale = b.constant(np.float64(best))
    else:
        ratio = b.div(b.convert(b.dims(new), dtypes.f64), b.convert(b.dims(old), dtypes.f64))
        scale = b.reduce("min" if policy == "not_larger" else "max", ratio, (0,))
        spread = b.broadcast_to(scale, (len(axes),))
        exact = b.add(b.mul(b.convert(b.dims(old), dtypes.f64), spread), b.full(0.5, spread))
        new = b.dims_of(b.convert(b.floor(exact), dtypes.i64))
    return [Axis(a, o, n, scale) for a, o, n in zip(axes, old, new, strict=True)]


def _not_from_nothing(b: Builder, x: Value, axis: int, have: DimLike, want: DimLike) -> None:
    """An axis of no elements has none to repeat."""
    message = f"axis {axis} of {x.name or 'the input'} is empty and cannot be resized to {want}"
    if isinstance(have, int) and isinstance(want, int):
        if have == 0 and want:
            raise CompileError(message)
    elif have != want:
        b.require("at_least", have * want, want, message)  # have is at least 1, or want is 0
