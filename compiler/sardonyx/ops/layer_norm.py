"""Normalisations over trailing axes: LayerNormalization and RMSNormalization."""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.reduction import mean
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []


def _inner_type(x: Value, stash_type: int) -> DType:
    """What the statistics are computed in: the stash type, never narrower than the input."""
    return (
        dtypes.f64
        if x.type.dtype is dtypes.f64
        else max(dtypes.by_onnx(stash_type), dtypes.f32, key=lambda t: t.bits)
    )


@onnx_op("LayerNormalization", since=17)
def layer_normalization(
    b: Builder,
    x: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int,
    epsilon: float,
    stash_type: int,
) -> tuple[Value, Value, Value]:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + bias, the variance from centred values."""
    axes = tuple(range(normal_axis(axis, x.type.rank), x.type.rank))
    inner, stash = _inner_type(x, stash_type), dtypes.by_onnx(stash_type)
    wide = b.convert(x, inner)
    centre = mean(b, wide, axes)
    centred = b.sub(*b.broadcast(wide, centre))
    variance = mean(b, b.mul(centred, centred), axes)
    inverse = b.div(b.full(1, variance), b.sqrt(b.add(variance, b.full(epsilon, variance))))
    normal = b.mul(*b.broadcast(centred, inverse))
    y = b.mul(*b.broadcast(normal, b.convert(scale, inner)))
    if bias is not None:
        y = b.add(*b.broadcast(y, b.convert(bias, inner)))
    return b.convert(y, x.type.dtype), b.convert(centre, stash), b.convert(inverse, stash)


@onnx_op("RMSNormalization", since=23)
def rms_normalization(
    b: Builder, x: Value, scale: Value, *, axis: int, epsilon: float, stash_type: int
) -> Value:
    """y = x / sqrt(mean(x * x) + epsilon) * scale."""
    axes = tuple(range(normal_axis(axis, x.type.rank), x.type.rank))
    inner = _inner_type(x, stash_type)
    wide = b.convert(x, inner)
    square = mean(b, b.mul(wide, wide), axes)
    inverse = b.div(b.full(1, square), b.sqrt(b.add(square, b.full(epsilon, square))))
    normal = b.convert(b.mul(*b.broadcast(wide, inverse)), scale.type.dtype)
    return b.mul(*b.broadcast(normal, scale))
