"""Convolutions of quantised integers: ConvInteger and QLinearConv, with exact int32 sums.

One of a single group is a product of bytes (`integer_products`) with a row for each place of the
result.  One of several groups works on the differences from the zero points in float32 or float64,
whichever holds all its sums exactly.
"""

from __future__ import annotations

import math
from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.broadcasting import to_shape_of
from sardonyx.ops.convolution import (
    Window,
    channels_first,
    channels_last,
    make_window,
    with_channels,
    with_kernel,
)
from sardonyx.ops.integer_products import (
    as_signed,
    as_unsigned,
    difference,
    requantised,
    sums_of_bytes,
    words_product,
)
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, floordiv, product

__all__: list[str] = []

_LARGEST_PRODUCT = 255 * 255


@onnx_op("ConvInteger")
def conv_integer(
    b: Builder,
    x: Value,
    w: Value,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
    **attributes: Any,
) -> Value:
    total, shape = _convolution(b, x, w, x_zero, w_zero, **attributes)
    return channels_first(b, b.reshape(total, shape))


@onnx_op("QLinearConv")
def qlinear_conv(
    b: Builder,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    scale: Value,
    zero: Value,
    bias: Value | None = None,
    **attributes: Any,
) -> Value:
    """saturate(round((convolution + bias) * (x_scale * w_scale / y_scale)) + y_zero_point)."""
    total, shape = _convolution(b, x, w, x_zero, w_zero, **attributes)
    if bias is not None:
        total = b.add(total, to_shape_of(b, total, _one_or_each(b, bias, "the bias")))
    x_scale, scale = (b.reshape(v, ()) for v in (x_scale, scale))
    factor = b.mul(*b.broadcast(x_scale, _one_or_each(b, w_scale, "w_scale")))
    factor = b.div(*b.broadcast(factor, scale))
    y = requantised(b, b.convert(total, dtypes.f32), factor, b.reshape(zero, ()))
    return channels_first(b, b.reshape(y, shape))


def _one_or_each(b: Builder, values: Value, what: str) -> Value:
    """A scalar, or a vector with one number for each of the filters."""
    if values.type.size == 1:
        return b.reshape(values, ())
    if values.type.rank != 1:
        raise CompileError(
            f"{what} {values.type.describe()} has to be a scalar or one number for each of the filters"
        )
    return values


def _convolution(
    b: Builder,
    x: Value,
    w: Value,
    x_zero: Value | None,
    w_zero: Value | None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> tuple[Value, Shape]:
    """The exact int32 sums (places, filters), and their shape (n, spatial..., filters); pads count as x_zero."""
    if x.type.rank < 3 or w.type.rank != x.type.rank:
        raise CompileError(
            f"a convolution takes x (n, c, spatial...) and weights of the same rank, "
            f"not {x.type.describe()} and {w.type.describe()}"
        )
    if x_zero is not None:
        if x_zero.type.size != 1:
            raise CompileError(f"x_zero_point is {x_zero.type.describe()}; it has to be a scalar")
        x_zero = b.reshape(x_zero, ())
    if w_zero is not None:
        w_zero = _one_or_each(b, w_zero, "w_zero_point")
    w = with_kernel(b, w, kernel_shape)
    x, w = with_channels(b, x, w, 1, group)
    kernel = tuple(int(k) for k in w.type.shape[2:])
    window = make_window(x.type.shape[2:], kernel, strides, dilations, pads, auto_pad)
    if group == 1 and isinstance(w.type.shape[1], int):
        return _by_words(b, x, w, x_zero, w_zero, window)
    y = _by_floats(b, x, w, x_zero, w_zero, window, group)
    return b.reshape(y, (product(y.type.shape[:-1]), y.type.shape[-1])), y.type.shape


def _by_floats(
    b: Builder, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, window: Window, group: int
) -> Value:
    """The convolution of the differences in floats that hold every sum exactly, channels last."""
    depth = w.type.shape[1]
    small = isinstance(depth, int) and depth * math.prod(window.kernel) * _LARGEST_PRODUCT < 1 << 24
    dtype = dtypes.f32 if small else dtypes.f64
    if w_zero is not None and w_zero.type.rank:
        w_zero = b.reshape(w_zero, (*w_zero.type.shape, *(1,) * (w.type.rank - 1)))
    with b.folding():
        weights = difference(b, w, w_zero, dtype)
    sums = b.op(
        "core.convolve",
        channels_last(b, difference(b, x, x_zero, dtype)),
        weights,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        group=group,
    )
    return b.convert(sums if small else b.convert(sums, dtypes.i64), dtypes.i32)


def _by_words(
    b: Builder, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, window: Window
) -> tuple[Value, Shape]:
    """The convolution as a product: a row of bytes for each place, all taps of all channels."""
    x, p = as_unsigned(b, x, x_zero)
    w, q = as_signed(b, w, w_zero)
    channels = w.type.shape[1]
    assert isinstance(channels, int)
    missing = -channels % 4
    with b.folding():
        zero = b.constant(0, dtypes.i8)
        high = tuple(missing if i == 1 else 0 for i in range(w.type.rank))
        weights = b.op("core.pad", w, zero, low=(0,) * w.type.rank, high=high) if missing else w
        taps = b.transpose(weights, (*range(2, w.type.rank), 1, 0))
        matrix = b.reshape(taps, (product(taps.type.shape[:-1]), taps.type.shape[-1]))
    around = p if p is not None else b.constant(0, dtypes.i32)
    rows, places = _rows_of_taps(b, channels_last(b, x), b.convert(around, dtypes.u8), missing, window)
    total = words_product(b, rows, matrix)
    depth = b.constant(channels * math.prod(window.kernel), dtypes.i32)
    if p is not None:
        with b.folding():
            sums = sums_of_bytes(b, matrix, 0)
            if q is not None:
                q_sums = b.mul(*b.broadcast(depth, q))
                sums = b.sub(sums, to_shape_of(b, sums, q_sums))
            offset = b.mul(*b.broadcast(p, sums))
        total = b.sub(total, to_shape_of(b, total, offset))
    if q is not None:
        product_ = b.mul(*b.broadcast(sums_of_bytes(b, rows, 1), q))
        total = b.sub(total, to_shape_of(b, total, product_))
    return total, (*places, w.type.shape[0])


def _rows_of_taps(
    b: Builder, x: Value, around: Value, missing: int, window: Window
) -> tuple[Value, tuple[DimLike, ...]]:
    """x (n, spatial..., c) as (places, taps * c), and the places' shape; ``missing`` channels of zeros are added."""
    rank = x.type.rank
    spatial = rank - 2
    if any(p != 0 for p in window.pads):
        low, high = (0, *window.pads[:spatial], 0), (0, *window.pads[spatial:], 0)
        x = b.op("core.pad", x, around, low=low, high=high)
    if missing:
        high = (*(0,) * (rank - 1), missing)
        x = b.op("core.pad", x, b.constant(0, dtypes.u8), low=(0,) * rank, high=high)
    n, *sizes, c = x.type.shape
    counts = [
        floordiv(d - (k - 1) * dl - 1, s) + 1
        for d, k, s, dl in zip(sizes, window.kernel, window.strides, window.dilations, strict=True)
    ]
    for size in counts:
        if isinstance(size, int) and size < 1:
            raise CompileError(
                f"the kernel {list(window.kernel)} is larger than the padded input {x.type.describe()}"
            )
    last = spatial - 1
    plain = all(k == 1 and s == 1 for k, s in zip(window.kernel, window.strides, strict=True))
    if plain:
        return b.reshape(x, (n * product(counts), c)), (n, *counts)
    joined = window.dilations[last] == 1  # then taps of the last axis lie next to each other
    if joined:
        x = b.reshape(x, (n, *sizes[:-1], sizes[-1] * c))
    for axis in range(spatial):
        unit = c if joined and axis == last else 1
        x = b.op(
            "core.unfold",
            x,
            axis=1 + 2 * axis,
            count=counts[axis],
            size=window.kernel[axis] * unit,
            step=window.strides[axis] * unit,
            dilation=window.dilations[axis],
        )
    outer, taps = [1 + 2 * i for i in range(spatial)], [2 + 2 * i for i in range(spatial)]
    behind = [] if joined else [1 + 2 * spatial]
    x = b.transpose(x, (0, *outer, *taps, *behind))
    return b.reshape(x, (n * product(counts), math.prod(window.kernel) * c)), (n, *counts)
