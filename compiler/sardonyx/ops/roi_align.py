"""RoiAlign: bins of regions of an image, each the mean or the largest of its samples.

Along each axis a small table tells where the samples of each bin lie between two places; channels are
last, so that each place is a run of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.convolution import channels_first, channels_last
from sardonyx.ops.interpolation import clamped, compute_type, number
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.sampling import component, has_elements, number_like
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike

__all__: list[str] = []


@onnx_op("RoiAlign", until=15)
def roi_align_10(
    b: Builder,
    x: Value,
    rois: Value,
    batch: Value,
    *,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Value:
    return roi_align(
        b, x, rois, batch, coordinate_transformation_mode="output_half_pixel", mode=mode, output_height=output_height,
        output_width=output_width, sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
    )  # fmt: skip


@onnx_op("RoiAlign", since=16)
def roi_align(
    b: Builder,
    x: Value,
    rois: Value,
    batch: Value,
    *,
    coordinate_transformation_mode: str,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Value:
    """The mean (or the largest) of the samples of each bin; ``max`` compares the weighted neighbours themselves."""
    half_pixel = coordinate_transformation_mode.lower() == "half_pixel"
    if coordinate_transformation_mode.lower() not in ("half_pixel", "output_half_pixel"):
        raise CompileError(
            f"coordinate_transformation_mode {coordinate_transformation_mode!r} is neither half_pixel nor output_half_pixel"
        )
    if mode.lower() not in ("avg", "max"):
        raise CompileError(f"mode {mode!r} is neither avg nor max")
    message = (
        "RoiAlign takes x (n, c, h, w), rois (count, 4) and batch indices (count), "
        f"not {x.type.describe()}, {rois.type.describe()} and {batch.type.describe()}"
    )
    if x.type.rank != 4 or rois.type.rank != 2 or batch.type.rank != 1:
        raise CompileError(message)
    rois = b.expect_shape(rois, (rois.type.shape[0], 4), message)
    if output_height < 1 or output_width < 1 or sampling_ratio < 0:
        raise CompileError("output_height and output_width have to be positive, sampling_ratio not negative")
    has_elements(b, x)
    misfit = f"{rois.type.describe()} and {batch.type.describe()} have to be of as many regions"
    batch = b.expect_shape(batch, (rois.type.shape[0],), misfit)
    dtype = x.type.dtype
    wide = compute_type(dtype)
    regions = b.convert(rois, wide)
    scale = b.full(spatial_scale, component(b, regions, 0))
    edges = [b.mul(component(b, regions, i), scale) for i in range(4)]
    if half_pixel:
        edges = [b.sub(e, b.full(0.5, e)) for e in edges]
    rows = _bins(b, edges[1], edges[3], x.type.shape[2], output_height, sampling_ratio, half_pixel)
    columns = _bins(b, edges[0], edges[2], x.type.shape[3], output_width, sampling_ratio, half_pixel)
    image = b.op("core.iota", shape=(x.type.shape[0],), axis=0, dtype=dtypes.i64)
    image = b.op("core.gather", image, batch, axis=0)  # checks the batch indices
    pooled = _pooled(b, x, image, rows, columns, wide, mode.lower())
    return b.convert(channels_first(b, pooled), dtype)


@dataclass(frozen=True)
class _Bins:
    """Tables (regions, bins, samples) along one axis: two neighbours; which samples exist and are inside; counts."""

    low: Value
    high: Value
    low_weight: Value
    high_weight: Value
    exists: Value | None
    inside: Value
    count: Value  # (regions,)


def _bins(
    b: Builder, start: Value, end: Value, size: DimLike, bins: int, ratio: int, half_pixel: bool
) -> _Bins:
    extent = b.sub(end, start)
    if not half_pixel:
        extent = b.max(extent, b.full(1.0, extent))  # a malformed region is of one element
    bin_size = b.div(extent, b.full(float(bins), extent))
    if ratio:
        count, samples, exists = b.full(float(ratio), bin_size), ratio, None
    else:  # as many as elements of the image, which the data decides
        count = b.max(b.ceil(bin_size), b.full(0.0, bin_size))
        count = b.select(b.is_nan(count), b.full(0.0, count), count)
        most = b.max(b.reduce("max", count, (0,)), b.constant(0.0, count.type.dtype))
        samples = b.dims_of(b.reshape(b.convert(most, dtypes.i64), (1,)))[0]  # type: ignore[assignment]
    shape = (start.type.shape[0], bins, samples)

    def column(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (shape[0], 1, 1)), shape)

    which = b.convert(b.op("core.iota", shape=shape, axis=1, dtype=dtypes.i64), start.type.dtype)
    sample = b.convert(b.op("core.iota", shape=shape, axis=2, dtype=dtypes.i64), start.type.dtype)
    if not ratio:
        exists = b.lt(sample, column(count))
    step = b.div(b.mul(b.add(sample, b.full(0.5, sample)), column(bin_size)), column(count))
    at = b.add(b.add(column(start), b.mul(which, column(bin_size))), step)
    length = b.broadcast_to(b.convert(number(b, size), at.type.dtype), shape)
    inside = b.and_(b.ge(at, b.full(-1.0, at)), b.le(at, length))
    at = b.max(at, b.full(0.0, at))
    low = b.floor(at)
    one = b.full(1.0, at)
    last = b.sub(length, one)
    at_end = b.ge(low, last)
    share = b.select(at_end, b.full(0.0, at), b.sub(at, low))
    return _Bins(
        clamped(b, low, size),
        clamped(b, b.add(low, one), size),
        b.sub(one, share),
        share,
        exists,
        inside,
        count,
    )


def _pooled(
    b: Builder, x: Value, image: Value, rows: _Bins, columns: _Bins, dtype: dtypes.DType, mode: str
) -> Value:
    n, c, h, w = x.type.shape
    data = b.reshape(channels_last(b, x), (n * h * w, c))
    count, bins_y, samples_y = rows.low.type.shape
    _, bins_x, samples_x = columns.low.type.shape
    shape = (count, bins_y, samples_y, bins_x, samples_x)
    full = (*shape, c)

    def down(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (count, bins_y, samples_y, 1, 1)), shape)

    def across(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (count, 1, 1, bins_x, samples_x)), shape)

    def each(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (*shape, 1)), full)

    first = b.broadcast_to(b.reshape(image, (count, 1, 1, 1, 1)), shape)
    inside = b.and_(down(rows.inside), across(columns.inside))
    exists = None
    if rows.exists is not None and columns.exists is not None:
        exists = b.and_(down(rows.exists), across(columns.exists))
        inside = b.and_(inside, exists)
    total: Value | None = None
    for y, weight_y in ((rows.low, rows.low_weight), (rows.high, rows.high_weight)):
        for z, weight_x in ((columns.low, columns.low_weight), (columns.high, columns.high_weight)):
            line = b.add(b.mul(first, number_like(b, h, first)), down(b.convert(y, dtypes.i64)))
            place = b.add(b.mul(line, number_like(b, w, first)), across(b.convert(z, dtypes.i64)))
            found = b.convert(b.op("core.gather", data, place, axis=0, trusted=True), dtype)
            part = b.mul(found, each(b.mul(down(weight_y), across(weight_x))))
            total = part if total is None else b.add(total, part) if mode == "avg" else b.max(total, part)
    assert total is not None
    zero = b.full(0.0, total)
    total = b.select(each(inside), total, zero)
    samples = b.mul(rows.count, columns.count)

    def per_bin(v: Value) -> Value:
        return b.broadcast_to(b.reshape(v, (count, 1, 1, 1)), (count, bins_y, bins_x, c))

    if mode == "avg":
        mean = b.reduce("sum", total, (2, 4))
        return b.div(mean, per_bin(b.max(samples, b.full(1.0, samples))))
    if exists is not None:
        total = b.select(each(exists), total, b.full(float("-inf"), total))
    best = b.reduce("max", total, (2, 4))
    return b.select(per_bin(b.gt(samples, b.full(0.0, samples))), best, b.full(0.0, best))
