"""BatchNormalization: a scale and a shift per channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.reduction import mean as mean_of
from sardonyx.ops.registry import onnx_op

__all__: list[str] = []


@onnx_op("BatchNormalization")
def batch_normalization(
    b: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int | None = None,
    training_mode: int = 0,
    consumed_inputs: Any = None,
) -> Value | tuple[Value, Value, Value]:
    """x * s + (bias - mean * s) with s = scale / sqrt(variance + epsilon), folded where they are constant.

    The statistics may be wider than x; the scale and shift are then computed in their type and rounded
    to the type of x.  ``spatial=0`` (before opset 9): one scale per element of a sample, not per channel.
    ``is_test`` (before opset 7) changes nothing: who asks for Y alone wants inference.
    """
    if x.type.rank < 2:
        raise CompileError(
            f"the input of BatchNormalization is {x.type.describe()}; a channel axis is needed"
        )
    channels = x.type.shape[1:2] if spatial else x.type.shape[1:]
    axes_behind = x.type.rank - 2 if spatial else 0
    wide = max((scale, bias, mean, variance), key=lambda v: v.type.dtype.bits).type.dtype
    numbers = [b.convert(_per_channel(b, v, channels), wide) for v in (scale, bias, mean, variance)]
    scale, bias, mean, variance = numbers
    running = (mean, variance)
    if training_mode:
        mean, variance = (b.convert(v, wide) for v in _statistics(b, x))
    factor = b.div(scale, b.sqrt(b.add(variance, _number(b, epsilon, variance))))
    shift = b.sub(bias, b.mul(mean, factor))

    def spread(value: Value) -> Value:
        placed = b.reshape(b.convert(value, x.type.dtype), (*value.type.shape, *(1,) * axes_behind))
        return b.broadcast_to(placed, x.type.shape)

    y = b.add(b.mul(x, spread(factor)), spread(shift))
    if not training_mode:
        return y
    return y, _mixed(b, running[0], mean, momentum), _mixed(b, running[1], variance, momentum)


def _statistics(b: Builder, x: Value) -> tuple[Value, Value]:
    """Mean and variance of each channel over the batch."""
    axes = (0, *range(2, x.type.rank))
    center = mean_of(b, x, axes)
    off = b.sub(*b.broadcast(x, center))
    spread = mean_of(b, b.mul(off, off), axes)
    return b.reshape(center, x.type.shape[1:2]), b.reshape(spread, x.type.shape[1:2])


def _mixed(b: Builder, old: Value, new: Value, momentum: float) -> Value:
    """The running statistic: momentum * old + (1 - momentum) * new."""
    return b.add(b.mul(old, _number(b, momentum, old)), b.mul(new, _number(b, 1 - momentum, new)))


def _number(b: Builder, value: float, like: Value) -> Value:
    """A number spread over a shape; a constant where it is known, so that constants fold."""
    if like.type.is_static:
        return b.constant(np.full(like.type.shape, value, like.type.dtype.numpy), like.type.dtype)
    return b.full(value, like)


def _per_channel(b: Builder, value: Value, channels: Any) -> Value:
    wanted = ", ".join(map(str, channels))
    message = f"{value.name or 'an input'} {value.type.describe()} has to have the shape [{wanted}]"
    return b.expect_shape(value, channels, message)
