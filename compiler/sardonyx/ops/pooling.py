"""Pooling: MaxPool, AveragePool and their global forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.convolution import Window, channels_first, channels_last, make_window
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.reduction import mean
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, ceildiv, maximum, minimum, product

__all__ = ["pool_window", "reduce_windows"]


def pool_window(
    x: Value,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dilations: tuple[int, ...] | None,
    pads: tuple[int, ...] | None,
    auto_pad: str,
    ceil_mode: int,
) -> tuple[Window, tuple[DimLike, ...]]:
    """The window, its high pads grown for ``ceil_mode``; and the pads before that."""
    if x.type.rank < 3:
        raise CompileError(f"pooling takes (n, c, spatial...), a rank of at least 3, not {x.type.describe()}")
    sizes = x.type.shape[2:]
    window = make_window(sizes, kernel, strides, dilations, pads, auto_pad)
    if not ceil_mode or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return window, window.pads
    return Window(window.kernel, window.strides, window.dilations, _ceil_pads(sizes, window)), window.pads


def _ceil_pads(sizes: Shape, window: Window) -> tuple[DimLike, ...]:
    """Pads whose highs let the output be rounded up; windows that start beyond the data are dropped."""
    spatial = len(sizes)
    highs: list[DimLike] = []
    for i, size in enumerate(sizes):
        low, high, stride = window.pads[i], window.pads[i + spatial], window.strides[i]
        span = (window.kernel[i] - 1) * window.dilations[i] + 1
        count = ceildiv(size + low + high - span, stride) + 1
        count = minimum(count, ceildiv(size + low, stride))  # the last window starts before the high pad
        highs.append(maximum((count - 1) * stride + span - size - low, 0))
    return (*window.pads[:spatial], *highs)


def reduce_windows(
    b: Builder, x: Value, kind: str, window: Window, pads: tuple[DimLike, ...] | None = None
) -> Value:
    return b.op(
        "core.window_reduce",
        x,
        kind=kind,
        window=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads if pads is None else pads,
    )


@onnx_op("MaxPool")
def max_pool(
    b: Builder,
    x: Value,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    storage_order: int = 0,
    strides: tuple[int, ...] | None = None,
) -> tuple[Value, Value]:
    window, _ = pool_window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    last = channels_last(b, x)
    largest = channels_first(b, reduce_windows(b, last, "max", window))
    places = channels_first(b, reduce_windows(b, last, "arg_max", window))
    return largest, _flat_indices(b, x, places, column_major=bool(storage_order))


def _flat_indices(b: Builder, x: Value, places: Value, *, column_major: bool) -> Value:
    """Places among the spatial elements as indices into x; ``column_major``: the first axis runs fastest."""
    shape, sizes = places.type.shape, x.type.shape[2:]

    def number(value: DimLike) -> Value:
        return b.broadcast_to(b.dims([value], scalar=True), shape)

    if column_major:
        rest, step = places, product(sizes)
        result: Value | None = None
        for axis in reversed(range(len(sizes))):
            step = product(sizes[:axis])
            coordinate = b.rem(rest, number(sizes[axis])) if axis else rest
            part = b.mul(coordinate, number(step))
            result = part if result is None else b.add(result, part)
            rest = b.div(rest, number(sizes[axis]))
        assert result is not None
        places = result
    image = b.mul(b.op("core.iota", shape=shape, axis=0, dtype=dtypes.i64), number(x.type.shape[1]))
    image = b.add(image, b.op("core.iota", shape=shape, axis=1, dtype=dtypes.i64))
    return b.add(places, b.mul(image, number(product(sizes))))


@onnx_op("AveragePool")
@one_rounding
def average_pool(
    b: Builder,
    x: Value,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    """Sums divided by counts; what ``ceil_mode`` adds beyond the pads never counts."""
    window, given = pool_window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    spatial = len(kernel_shape)
    last = channels_last(b, x)
    total = reduce_windows(b, last, "sum", window)
    if all(p == 0 for p in window.pads) or (count_include_pad and window.pads == given):
        count = b.full(float(product(kernel_shape)), total)  # type: ignore[arg-type]
    else:
        one = b.constant(1.0, x.type.dtype)
        sizes: list[DimLike] = list(last.type.shape[1:-1])
        around = window.pads
        if count_include_pad:
            counted = [minimum(p, g) for p, g in zip(window.pads, given, strict=True)]
            sizes = [d + counted[i] + counted[i + spatial] for i, d in enumerate(sizes)]
            around = tuple(p - c for p, c in zip(window.pads, counted, strict=True))
        ones = b.broadcast_to(one, (1, *sizes, 1))
        count = b.broadcast_to(_static_counts(b, ones, window, around), total.type.shape)
    return channels_first(b, b.div(total, count))


def _static_counts(b: Builder, ones: Value, window: Window, pads: tuple[DimLike, ...]) -> Value:
    """How many elements each window meets: a constant where all extents are known."""
    counts = reduce_windows(b, ones, "sum", window, pads)
    if any(isinstance(d, Dim) for d in (*ones.type.shape, *pads)):
        return counts
    result: Any = 1
    for i, size in enumerate(ones.type.shape[1:-1]):
        line = _counts_along(size, window, i, pads)
        result = result * line.reshape([-1 if a == i + 1 else 1 for a in range(ones.type.rank)])
    return b.constant(result.astype(ones.type.dtype.numpy), ones.type.dtype)


def _counts_along(size: int, window: Window, axis: int, pads: tuple[Any, ...]) -> Any:
    low, high = pads[axis], pads[axis + len(window.kernel)]
    k, stride, dilation = window.kernel[axis], window.strides[axis], window.dilations[axis]
    count = (size + low + high - (k - 1) * dilation - 1) // stride + 1
    places = np.arange(count)[:, None] * stride - low + np.arange(k) * dilation
    return ((places >= 0) & (places < size)).sum(1)


@onnx_op("GlobalAveragePool")
@one_rounding
def global_average_pool(b: Builder, x: Value) -> Value:
    return _global(b, x, lambda last, axes: mean(b, last, tuple(axes)))


@onnx_op("GlobalMaxPool")
def global_max_pool(b: Builder, x: Value) -> Value:
    return _global(b, x, lambda last, axes: b.reduce("max", last, axes, keepdims=True))


def _global(b: Builder, x: Value, over: Any) -> Value:
    if x.type.rank < 3:
        raise CompileError(f"pooling takes (n, c, spatial...), a rank of at least 3, not {x.type.describe()}")
    return channels_first(b, over(channels_last(b, x), range(1, x.type.rank - 1)))
