"""Sampling between the elements of an axis: which places go into a result, and with which weights.

Tables are one-dimensional, one entry per place of the result; they are made of core ops, and become
constants where the extents are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.precision import saturated
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = [
    "Sampling",
    "clamped",
    "compute_type",
    "cubic_weight",
    "filter_taps",
    "index_type",
    "nearest_taps",
    "number",
    "positions",
    "rounded",
    "taps_of",
    "weighted_sum",
]

_UNROLLED = 16  # taps up to which they are written one by one


@dataclass(frozen=True)
class Sampling:
    """The taps of an axis: index tables and, except for a single tap of weight 1, weight tables.

    Either one table (places,) per tap, or, with ``stacked``, one table (places, taps) for all.
    """

    indices: tuple[Value, ...]
    weights: tuple[Value, ...] = ()
    stacked: bool = False


def compute_type(dtype: DType) -> DType:
    """The type to interpolate in: float32 for what it holds exactly, else float64."""
    return dtypes.f32 if dtype.bits <= 16 or dtype is dtypes.f32 else dtypes.f64


def rounded(b: Builder, value: Value, dtype: DType) -> Value:
    """An interpolated value in the type of the data; integers are rounded half to even and saturate."""
    return saturated(b, b.round_even(value), dtype) if dtype.is_integer else b.convert(value, dtype)


def number(b: Builder, value: DimLike | float) -> Value:
    """A dim or number as a float64 scalar."""
    if isinstance(value, (int, float)):
        return b.constant(float(value), dtypes.f64)
    return b.convert(b.dims([value], scalar=True), dtypes.f64)


def positions(b: Builder, count: DimLike, dtype: DType = dtypes.f64) -> Value:
    """0, 1, 2 ... as a vector: a constant where the count is known, so that what is made of it folds."""
    if isinstance(count, int):
        return b.constant(np.arange(count).astype(dtype.numpy), dtype)
    return b.convert(b.op("core.iota", shape=(count,), axis=0, dtype=dtypes.i64), dtype)


def index_type(size: DimLike) -> DType:
    """The narrower integer for indices below a size, where it is known to be small enough."""
    return dtypes.i32 if isinstance(size, int) and size < 1 << 31 else dtypes.i64


def clamped(b: Builder, at: Value, extent: DimLike) -> Value:
    """Whole numbers as indices of an axis, those outside moved to its ends; a NaN becomes 0."""
    top = b.broadcast_to(b.convert(number(b, extent - 1), at.type.dtype), at.type.shape)
    place = b.convert(b.min(at, top), index_type(extent))
    return b.max(place, b.full(0, place))  # behind the conversion, which makes the lowest number of a NaN


def nearest_taps(b: Builder, at: Value, extent: DimLike, rounding: str) -> Sampling:
    """The nearest place; ``rounding`` is one of ONNX's nearest modes."""
    half = b.full(0.5, at)
    rounded = {
        "round_prefer_floor": lambda: b.ceil(b.sub(at, half)),
        "round_prefer_ceil": lambda: b.floor(b.add(at, half)),
        "floor": lambda: b.floor(at),
        "ceil": lambda: b.ceil(at),
    }[rounding]()
    return Sampling((clamped(b, rounded, extent),))


def cubic_weight(b: Builder, distance: Value, a: float) -> Value:
    """The cubic convolution kernel (R. Keys, 1981) at a distance that is not negative."""

    def full(v: float) -> Value:
        return b.full(v, distance)

    x = distance
    near = b.add(b.mul(b.mul(b.sub(b.mul(full(a + 2), x), full(a + 3)), x), x), full(1.0))
    far = b.sub(b.mul(b.add(b.mul(b.sub(b.mul(full(a), x), full(5 * a)), x), full(8 * a)), x), full(4 * a))
    return b.select(b.le(x, full(1.0)), near, b.select(b.lt(x, full(2.0)), far, full(0.0)))


def linear_weight(b: Builder, distance: Value) -> Value:
    """The hat function: 1 at no distance, 0 from 1 on."""
    return b.max(b.sub(b.full(1.0, distance), distance), b.full(0.0, distance))


def taps_of(
    b: Builder, at: Value, extent: DimLike, mode: str, cubic: float, *, exclude_outside: bool, dtype: DType
) -> Sampling:
    """Linear or cubic interpolation: two or four neighbours; outside the edge is repeated, or counts for nothing."""
    low = b.floor(at)
    share = b.sub(at, low)
    one = b.full(1.0, at)
    if mode == "linear":
        places = [low, b.add(low, one)]
        weights = [b.sub(one, share), share]
    else:
        places = [b.add(low, b.full(float(i), at)) for i in (-1, 0, 1, 2)]
        distances = [b.add(share, one), share, b.sub(one, share), b.sub(b.full(2.0, at), share)]
        weights = [cubic_weight(b, d, cubic) for d in distances]
    if exclude_outside:
        weights = _renormalised(
            b, [_inside_only(b, p, w, extent) for p, w in zip(places, weights, strict=True)]
        )
    return Sampling(tuple(clamped(b, p, extent) for p in places), tuple(b.convert(w, dtype) for w in weights))


def _inside_only(b: Builder, place: Value, weight: Value, extent: DimLike) -> Value:
    top = b.broadcast_to(number(b, extent - 1), place.type.shape)
    zero = b.full(0.0, place)
    return b.select(b.and_(b.ge(place, zero), b.le(place, top)), weight, zero)


def _renormalised(b: Builder, weights: list[Value]) -> list[Value]:
    total = weights[0]
    for weight in weights[1:]:
        total = b.add(total, weight)
    return [b.div(w, _or_one(b, total)) for w in weights]


def _or_one(b: Builder, total: Value) -> Value:
    return b.select(b.eq(total, b.full(0.0, total)), b.full(1.0, total), total)


def filter_taps(
    b: Builder,
    at: Value,
    extent: DimLike,
    reach: DimLike,
    scale: Value,
    mode: str,
    cubic: float,
    *,
    exclude_outside: bool,
    dtype: DType,
) -> Sampling:
    """The filter stretched by 1 / scale for antialiasing: ``2 * reach`` places, weights normalised to sum 1."""
    low = b.floor(at)
    share = b.sub(at, low)
    if isinstance(reach, int) and 2 * reach <= _UNROLLED:
        places, weights = [], []
        for step in range(1 - reach, reach + 1):
            offset = b.full(float(step), at)
            distance = b.mul(b.abs(b.sub(offset, share)), b.broadcast_to(scale, at.type.shape))
            places.append(b.add(low, offset))
            weights.append(_weight(b, distance, mode, cubic))
        if exclude_outside:
            weights = [_inside_only(b, p, w, extent) for p, w in zip(places, weights, strict=True)]
        weights = _renormalised(b, weights)
        return Sampling(
            tuple(clamped(b, p, extent) for p in places), tuple(b.convert(w, dtype) for w in weights)
        )
    shape = (at.type.shape[0], 2 * reach)
    steps = b.sub(positions(b, 2 * reach), b.broadcast_to(number(b, reach - 1), (2 * reach,)))
    offsets = b.broadcast_to(steps, shape)

    def column(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (shape[0], 1)), shape)

    distance = b.mul(b.abs(b.sub(offsets, column(share))), b.broadcast_to(scale, shape))
    place = b.add(column(low), offsets)
    weight = _weight(b, distance, mode, cubic)
    if exclude_outside:
        weight = _inside_only(b, place, weight, extent)
    total = b.reduce("sum", weight, (1,), keepdims=True)
    weight = b.div(weight, b.broadcast_to(_or_one(b, total), shape))
    return Sampling((clamped(b, place, extent),), (b.convert(weight, dtype),), stacked=True)


def _weight(b: Builder, distance: Value, mode: str, cubic: float) -> Value:
    return linear_weight(b, distance) if mode == "linear" else cubic_weight(b, distance, cubic)


def weighted_sum(b: Builder, x: Value, axis: int, taps: Sampling) -> Value:
    """x sampled along one axis: the sum of its gathered slices, each times its weight, in the weights' type."""
    rank = x.type.rank
    if taps.stacked:
        (weight,) = taps.weights
        found = b.convert(b.op("core.gather", x, taps.indices[0], axis=axis, trusted=True), weight.type.dtype)
        shape = [1] * axis + list(weight.type.shape) + [1] * (rank - axis - 1)
        spread = b.broadcast_to(b.reshape(weight, shape), found.type.shape)
        return b.reduce("sum", b.mul(found, spread), (axis + 1,))
    total: Value | None = None
    for index, weight in zip(taps.indices, taps.weights, strict=True):
        found = b.convert(b.op("core.gather", x, index, axis=axis, trusted=True), weight.type.dtype)
        shape = [1] * axis + list(weight.type.shape) + [1] * (rank - axis - 1)
        part = b.mul(found, b.broadcast_to(b.reshape(weight, shape), found.type.shape))
        total = part if total is None else b.add(total, part)
    assert total is not None
    return total
