"""Resize and Upsample: the axes one after another, each a gather at indices from a one-dimensional table.

Where the sizes are known the tables of indices and weights are constants, otherwise they are computed
from the dims at run time.  Coordinates are computed in float64 from the scale as it was given.  An axis
that keeps its size and has the scale 1 is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.interpolation import (
    Sampling,
    compute_type,
    filter_taps,
    nearest_taps,
    number,
    positions,
    rounded,
    taps_of,
    weighted_sum,
)
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.resize_axes import POLICIES, Axis, by_scales, by_sizes, entry, of_count
from sardonyx.ops.shape import normal_axes
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, floordiv, maximum
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []

_MODES = ("nearest", "linear", "cubic")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@dataclass(frozen=True)
class _Options:
    """The attributes of Resize, and the region of interest (a start and an end per axis) where it counts."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0
    roi: tuple[dict[int, Value], dict[int, Value]] | None = None

    def check(self) -> None:
        """CompileError for a value no version knows."""
        for name, value, known in (
            ("mode", self.mode, _MODES),
            ("coordinate_transformation_mode", self.coordinates, _COORDINATES),
            ("nearest_mode", self.nearest, _NEAREST),
        ):
            if value not in known:
                raise CompileError(f"{name} {value!r} is none of {', '.join(known)}")
        if self.antialias and self.mode == "nearest":
            raise CompileError("antialias is defined for the modes linear and cubic, not for nearest")


@onnx_op("Upsample", until=6)
def upsample_1(b: Builder, x: Value, *, height_scale: float, width_scale: float, mode: str) -> Value:
    if x.type.rank != 4:
        raise CompileError(f"Upsample 1 takes (n, c, h, w), not {x.type.describe()}")
    scales = b.constant(np.array([1, 1, height_scale, width_scale], np.float32))
    return _upsample(b, x, scales, "linear" if mode == "bilinear" else mode)


@onnx_op("Upsample", since=7, until=8)
def upsample_7(b: Builder, x: Value, *, scales: tuple[float, ...], mode: str) -> Value:
    return _upsample(b, x, b.constant(np.array(scales, np.float32)), mode)


@onnx_op("Upsample", since=9)
def upsample_9(b: Builder, x: Value, scales: Value, *, mode: str) -> Value:
    return _upsample(b, x, scales, mode)


@onnx_op("Resize", since=10, until=10)
def resize_10(b: Builder, x: Value, scales: Value, *, mode: str) -> Value:
    return _upsample(b, x, scales, mode)


def _upsample(b: Builder, x: Value, scales: Value, mode: str) -> Value:
    options = _Options(mode, "asymmetric", "floor")
    return _resize(b, x, by_scales(b, x, scales, tuple(range(x.type.rank))), options)


@onnx_op("Resize", since=11, until=17)
def resize_11(
    b: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    **attributes: Any,
) -> Value:
    return resize(b, x, roi, scales, sizes, **attributes)


@onnx_op("Resize", since=18)
def resize(
    b: Builder,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Value:
    rank = x.type.rank
    chosen = tuple(range(rank)) if axes is None else normal_axes(axes, rank)
    scales = None if scales is not None and scales.type.size == 0 else scales
    sizes = None if sizes is not None and sizes.type.size == 0 else sizes
    if (scales is None) == (sizes is None):
        raise CompileError("Resize needs either scales or sizes, and not both")
    if keep_aspect_ratio_policy not in POLICIES:
        raise CompileError(
            f"keep_aspect_ratio_policy {keep_aspect_ratio_policy!r} is none of {', '.join(POLICIES)}"
        )
    if scales is not None:
        lines = by_scales(b, x, scales, chosen)
    else:
        assert sizes is not None
        lines = by_sizes(b, x, sizes, chosen, keep_aspect_ratio_policy)
    options = _Options(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
        _region(b, roi, chosen) if coordinate_transformation_mode == "tf_crop_and_resize" else None,
    )
    return _resize(b, x, lines, options)


def _region(
    b: Builder, roi: Value | None, axes: tuple[int, ...]
) -> tuple[dict[int, Value], dict[int, Value]]:
    if roi is None or roi.type.size == 0:
        raise CompileError("tf_crop_and_resize needs the input roi")
    roi = of_count(b, roi, 2 * len(axes), "roi")
    starts = {axis: entry(b, roi, i) for i, axis in enumerate(axes)}
    return starts, {axis: entry(b, roi, len(axes) + i) for i, axis in enumerate(axes)}


# -- the result


def _resize(b: Builder, x: Value, lines: Sequence[Axis], options: _Options) -> Value:
    options.check()
    dtype = x.type.dtype
    if options.mode != "nearest" and not (dtype.is_float or dtype.is_integer):
        raise CompileError(
            f"Resize interpolates numbers, not {dtype.onnx_name}; the mode nearest takes any type"
        )
    active = [line for line in lines if not _is_identity(line, options)]
    if not active:
        return x
    with b.folding():
        tables = [(line, _coordinates(b, line, options)) for line in active]
        taps = {line.axis: _taps(b, line, at, options, compute_type(dtype)) for line, at in tables}
        outside = {line.axis: _outside(b, line, at) for line, at in tables} if options.roi is not None else {}
    if options.mode == "nearest":
        value = x
        for line in active:
            count = _repeats(line, options)
            if count:
                value = b.op("core.repeat", value, axis=line.axis, count=count)
                continue
            (index,) = taps[line.axis].indices
            value = b.op("core.gather", value, index, axis=line.axis, trusted=True)
    else:
        value = x
        # The last axis first: what it reads at scattered places is then least.
        for axis in sorted(taps, reverse=True):
            value = weighted_sum(b, value, axis, taps[axis])
        value = rounded(b, value, dtype)
    for axis, mask in outside.items():
        shape = value.type.shape
        spread = b.broadcast_to(b.reshape(mask, _along(axis, mask, len(shape))), shape)
        value = b.select(spread, _fill(b, value, options.extrapolation), value)
    return value


def _along(axis: int, line: Value, rank: int) -> Shape:
    return tuple(line.type.shape[0] if i == axis else 1 for i in range(rank))


def _fill(b: Builder, value: Value, number: float) -> Value:
    scalar = b.convert(b.constant(np.float32(number)), value.type.dtype)
    return b.broadcast_to(scalar, value.type.shape)


def _is_identity(line: Axis, options: _Options) -> bool:
    if line.old != line.new or options.roi is not None:
        return False
    if line.scale is None:
        return True
    known = constant_of(line.scale)
    return known is not None and float(known) == 1


def _repeats(line: Axis, options: _Options) -> int:
    """How often a nearest mode repeats each element in a row; 0 where it does anything else."""
    if line.scale is None:
        ratio = floordiv(line.new, line.old) if line.old != 0 else 0
    else:
        known = constant_of(line.scale)
        ratio = int(known) if known is not None and float(known).is_integer() else 0
    if not isinstance(ratio, int) or ratio < 1 or line.new != line.old * ratio:
        return 0
    centred = options.coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
    to_nearest = centred and options.nearest.startswith("round") and line.new != 1
    down = options.coordinates == "asymmetric" and options.nearest == "floor"
    return ratio if to_nearest or down else 0


def _coordinates(b: Builder, line: Axis, options: _Options) -> Value:
    """Where each new place lies among the old ones, in float64."""
    at = positions(b, line.new)
    old, new = number(b, line.old), number(b, line.new)

    def spread(value: Value) -> Value:
        return b.broadcast_to(value, at.type.shape)

    def unscaled(value: Value) -> Value:
        """value / scale, exact where the quotient is a whole number."""
        if line.scale is None:
            return b.div(b.mul(value, spread(old)), spread(new))
        return b.div(value, spread(line.scale))

    # The new length before it was rounded down.
    length = new if line.scale is None else b.mul(old, line.scale)
    one, half = b.constant(1.0, dtypes.f64), b.constant(0.5, dtypes.f64)
    last = b.sub(old, one)
    mode = options.coordinates
    if mode == "asymmetric":
        return unscaled(at)
    if mode == "align_corners":
        # A length of 1 puts its only place at 0.
        divisor = b.select(b.eq(length, one), one, b.sub(length, one))
        return b.div(b.mul(at, spread(last)), spread(divisor))
    if mode == "tf_crop_and_resize":
        assert options.roi is not None
        start, end = options.roi[0][line.axis], options.roi[1][line.axis]
        single = b.eq(length, one)
        divisor = b.select(single, one, b.sub(length, one))
        line_ = b.div(b.mul(b.mul(at, spread(b.sub(end, start))), spread(last)), spread(divisor))
        middle = b.mul(b.mul(b.sub(end, start), last), half)
        return b.add(b.select(spread(single), spread(middle), line_), spread(b.mul(start, last)))
    if mode == "tf_half_pixel_for_nn":  # of opset 11 only
        return unscaled(b.add(at, spread(half)))
    moved = b.sub(unscaled(b.add(at, spread(half))), spread(half))
    if mode == "pytorch_half_pixel":
        return b.select(spread(b.gt(new, one)), moved, b.full(0.0, moved))
    if mode == "half_pixel_symmetric":
        share = b.div(new, b.select(b.eq(length, b.constant(0.0, dtypes.f64)), one, length))
        offset = b.mul(b.mul(old, half), b.sub(one, share))
        return b.add(moved, spread(offset))
    return moved


def _outside(b: Builder, line: Axis, at: Value) -> Value:
    """Where the coordinate is beyond the first or the last place."""
    last = b.broadcast_to(b.sub(number(b, line.old), b.constant(1.0, dtypes.f64)), at.type.shape)
    return b.or_(b.lt(at, b.full(0.0, at)), b.gt(at, last))


def _taps(b: Builder, line: Axis, at: Value, options: _Options, dtype: DType) -> Sampling:
    """The places that go into each new one, with their weights."""
    if options.mode == "nearest":
        return nearest_taps(b, at, line.old, options.nearest)
    width = 1 if options.mode == "linear" else 2
    if options.antialias:
        return filter_taps(
            b, at, line.old, _support(b, line, width), _inverse_stretch(b, line), options.mode, options.cubic,
            exclude_outside=options.exclude_outside, dtype=dtype,
        )  # fmt: skip
    return taps_of(
        b, at, line.old, options.mode, options.cubic, exclude_outside=options.exclude_outside, dtype=dtype
    )


def _inverse_stretch(b: Builder, line: Axis) -> Value:
    """The scale, at most 1: antialiasing stretches the filter by its inverse."""
    scale = line.scale if line.scale is not None else b.div(number(b, line.new), number(b, line.old))
    return b.min(scale, b.constant(1.0, dtypes.f64))


def _support(b: Builder, line: Axis, width: int) -> DimLike:
    """How many places on either side the stretched filter reaches."""
    if line.scale is None:
        if line.new == 0:
            return width
        return maximum(-floordiv(-line.old * width, line.new), width)
    known = constant_of(line.scale)
    if known is not None:
        return math.ceil(width / min(float(known), 1.0))
    reach = b.ceil(b.div(b.constant(float(width), dtypes.f64), _inverse_stretch(b, line)))
    return b.dims_of(b.reshape(b.convert(reach, dtypes.i64), (1,)))[0]
