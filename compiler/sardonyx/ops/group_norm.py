"""Normalisations over channels and spatial axes: LRN, InstanceNormalization, GroupNormalization, LpNormalization."""

from __future__ import annotations

from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.reduction import mean
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime.dims import product

__all__ = ["normalised"]


def normalised(b: Builder, x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over axes, the variance from centred values."""
    centred = b.sub(*b.broadcast(x, mean(b, x, axes)))
    variance = mean(b, b.mul(centred, centred), axes)
    inverse = b.div(b.full(1, variance), b.sqrt(b.add(variance, b.full(epsilon, variance))))
    return b.mul(*b.broadcast(centred, inverse))


def _per_channel(b: Builder, x: Value, values: Value) -> Value:
    """Values of the channels (axis 1) spread over x."""
    return b.broadcast_to(b.reshape(values, (x.type.shape[1], *(1,) * (x.type.rank - 2))), x.type.shape)


@onnx_op("InstanceNormalization", since=6)
@one_rounding
def instance_normalization(b: Builder, x: Value, scale: Value, bias: Value, *, epsilon: float) -> Value:
    if x.type.rank < 3:
        raise CompileError(f"InstanceNormalization takes (n, c, spatial...), not {x.type.describe()}")
    plain = normalised(b, x, tuple(range(2, x.type.rank)), epsilon)
    return b.add(b.mul(plain, _per_channel(b, x, scale)), _per_channel(b, x, bias))


@onnx_op("InstanceNormalization", until=5)
def instance_normalization_1(
    b: Builder, x: Value, scale: Value, bias: Value, *, epsilon: float, consumed_inputs: Any = None
) -> Value:
    return instance_normalization(b, x, scale, bias, epsilon=epsilon)


def _grouped(b: Builder, x: Value, groups: int, epsilon: float) -> Value:
    """x normalised within groups of channels."""
    (channels,) = b.static_dims(x, [1], "the channels are grouped, so their number has to be known")
    if channels % groups:
        raise CompileError(f"{channels} channels of {x.type.describe()} do not divide into {groups} groups")
    split = b.reshape(x, (x.type.shape[0], groups, channels // groups * product(x.type.shape[2:])))
    return b.reshape(normalised(b, split, (2,), epsilon), x.type.shape)


@onnx_op("GroupNormalization", since=21)
@one_rounding
def group_normalization(
    b: Builder, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float, stash_type: int
) -> Value:
    plain = _grouped(b, x, num_groups, epsilon)
    return b.add(b.mul(plain, _per_channel(b, x, scale)), _per_channel(b, x, bias))


@onnx_op("GroupNormalization", since=18, until=20)
@one_rounding
def group_normalization_18(
    b: Builder, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float
) -> Value:
    """Before opset 21 scale and bias belonged to groups."""
    plain = _grouped(b, x, num_groups, epsilon)
    channels = x.type.shape[1]
    assert isinstance(channels, int)

    def of_channels(values: Value) -> Value:
        spread = b.broadcast_to(b.reshape(values, (num_groups, 1)), (num_groups, channels // num_groups))
        return _per_channel(b, x, b.reshape(spread, (channels,)))

    return b.add(b.mul(plain, of_channels(scale)), of_channels(bias))


@onnx_op("LRN")
@one_rounding
def lrn(b: Builder, x: Value, *, alpha: float, beta: float, bias: float, size: int) -> Value:
    """y = x / (bias + alpha / size * sum of squares of the neighbouring channels) ** beta."""
    shape = x.type.shape
    # Channels are the window's axis and all spatial places the axis that stays.
    flat = b.reshape(b.mul(x, x), (shape[0], shape[1], product(shape[2:])))
    low = (size - 1) // 2
    total = b.op(
        "core.window_reduce",
        flat,
        kind="sum",
        window=(size,),
        strides=(1,),
        dilations=(1,),
        pads=(low, size - 1 - low),
    )
    scale = b.reshape(total, shape)
    base = b.add(b.mul(scale, b.full(alpha / size, scale)), b.full(bias, scale))
    if beta == 0.75:
        root = b.sqrt(base)
        return b.div(x, b.mul(root, b.sqrt(root)))
    return b.div(x, b.pow(base, b.full(beta, base)))


@onnx_op("LpNormalization")
@one_rounding
def lp_normalization(b: Builder, x: Value, *, axis: int, p: int) -> Value:
    """x divided by its norm along an axis; where the norm is 0 the result is 0."""
    axes = (normal_axis(axis, x.type.rank),)
    if p == 1:
        norm = b.reduce("sum", b.abs(x), axes, keepdims=True)
    elif p == 2:
        norm = b.sqrt(b.reduce("sum", b.mul(x, x), axes, keepdims=True))
    else:
        raise CompileError(f"LpNormalization knows p = 1 and p = 2, not {p}")
    zero = b.eq(norm, b.full(0, norm))
    safe = b.select(zero, b.full(1, norm), norm)
    return b.div(*b.broadcast(x, safe))
