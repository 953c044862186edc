"""Pooling by a norm: LpPool and GlobalLpPool."""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.convolution import channels_first, channels_last
from sardonyx.ops.pooling import pool_window, reduce_windows
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.registry import onnx_op

__all__: list[str] = []


def _power(b: Builder, x: Value, p: float) -> Value:
    """|x| ** p"""
    if p == 2:
        return b.mul(x, x)
    return b.abs(x) if p == 1 else b.pow(b.abs(x), b.full(p, x))


def _root(b: Builder, x: Value, p: float) -> Value:
    if p == 2:
        return b.sqrt(x)
    return x if p == 1 else b.pow(x, b.full(1 / p, x))


@onnx_op("GlobalLpPool")
@one_rounding
def global_lp_pool(b: Builder, x: Value, *, p: float) -> Value:
    total = b.reduce("sum", _power(b, x, p), range(2, x.type.rank), keepdims=True)
    return _root(b, total, p)


@onnx_op("LpPool")
@one_rounding
def lp_pool(
    b: Builder,
    x: Value,
    *,
    kernel_shape: tuple[int, ...],
    p: float,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    window, _ = pool_window(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = reduce_windows(b, channels_last(b, _power(b, x, p)), "sum", window)
    return _root(b, channels_first(b, total), p)
