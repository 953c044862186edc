"""QuantizeLinear and DequantizeLinear, with a scale per tensor, per index of an axis, or per block."""

from __future__ import annotations

from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.broadcasting import to_shape_of
from sardonyx.ops.cast import convert, target_type
from sardonyx.ops.precision import integer_limits
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, ceildiv
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []

_PRECISIONS = (dtypes.f32, dtypes.f16, dtypes.bf16, dtypes.f64)


@onnx_op("QuantizeLinear", since=23)
def quantize_linear(
    b: Builder,
    x: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    saturate: int = 1,
    output_dtype: int = 0,
    precision: int = 0,
) -> Value:
    """saturate(x / scale + zero_point); the quotient is float32, or of the precision asked for."""
    target = _target(b, zero_point, output_dtype)
    _check_zero_point(scale, zero_point)
    compute = _precision(scale, precision)
    quotient = b.div(
        b.convert(x, compute), _spread(b, x, b.convert(scale, compute), axis, block_size, "y_scale")
    )
    if compute is not dtypes.f64:
        quotient = b.convert(quotient, dtypes.f32)
    if target.is_integer:
        quotient = b.round_even(quotient)
    if zero_point is not None:
        zero = _spread(b, x, b.convert(zero_point, quotient.type.dtype), axis, block_size, "y_zero_point")
        quotient = b.add(quotient, zero)
    if not target.is_integer:
        return convert(b, quotient, target, saturate=saturate)
    low, high = integer_limits(target)
    return b.convert(b.min(b.max(quotient, b.full(low, quotient)), b.full(high, quotient)), target)


@onnx_op("QuantizeLinear", since=21, until=22)
def quantize_linear_21(
    b: Builder,
    x: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    saturate: int = 1,
    output_dtype: int = 0,
) -> Value:
    more: dict[str, Any] = {"block_size": block_size, "output_dtype": output_dtype}
    return quantize_linear(b, x, scale, zero_point, axis=axis, saturate=saturate, **more)


@onnx_op("QuantizeLinear", since=19, until=20)
def quantize_linear_19(
    b: Builder, x: Value, scale: Value, zero_point: Value | None = None, *, axis: int = 1, saturate: int = 1
) -> Value:
    return quantize_linear(b, x, scale, zero_point, axis=axis, saturate=saturate)


@onnx_op("QuantizeLinear", since=13, until=18)
def quantize_linear_13(
    b: Builder, x: Value, scale: Value, zero_point: Value | None = None, *, axis: int = 1
) -> Value:
    return quantize_linear(b, x, scale, zero_point, axis=axis)


@onnx_op("QuantizeLinear", since=10, until=12)
def quantize_linear_10(b: Builder, x: Value, scale: Value, zero_point: Value | None = None) -> Value:
    _check_scalar(scale)
    return quantize_linear(b, x, scale, zero_point)


@onnx_op("DequantizeLinear", since=23)
def dequantize_linear(
    b: Builder,
    x: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """(x - zero_point) * scale in float32, rounded to the type of the result at the end."""
    _check_zero_point(scale, zero_point)
    target = target_type("DequantizeLinear", b.opset, output_dtype or scale.type.dtype.onnx)
    # Integers of 32 bits are subtracted before they are rounded to float32; narrower ones are exact in it.
    inner = x.type.dtype if x.type.dtype is dtypes.i32 else dtypes.f32
    difference = b.convert(x, inner)
    if zero_point is not None:
        zero = _spread(b, x, b.convert(zero_point, inner), axis, block_size, "x_zero_point")
        difference = b.sub(difference, zero)
    factor = _spread(b, x, b.convert(scale, dtypes.f32), axis, block_size, "x_scale")
    return b.convert(b.mul(b.convert(difference, dtypes.f32), factor), target)


@onnx_op("DequantizeLinear", since=21, until=22)
def dequantize_linear_21(
    b: Builder, x: Value, scale: Value, zero_point: Value | None = None, *, axis: int = 1, block_size: int = 0
) -> Value:
    return dequantize_linear(b, x, scale, zero_point, axis=axis, block_size=block_size)


@onnx_op("DequantizeLinear", since=13, until=20)
def dequantize_linear_13(
    b: Builder, x: Value, scale: Value, zero_point: Value | None = None, *, axis: int = 1
) -> Value:
    return dequantize_linear(b, x, scale, zero_point, axis=axis)


@onnx_op("DequantizeLinear", since=10, until=12)
def dequantize_linear_10(b: Builder, x: Value, scale: Value, zero_point: Value | None = None) -> Value:
    _check_scalar(scale)
    return dequantize_linear(b, x, scale, zero_point)


def _target(b: Builder, zero_point: Value | None, output_dtype: int) -> DType:
    """The quantised type: the zero point's, the attribute's, uint8 if there is neither."""
    given = target_type("QuantizeLinear", b.opset, output_dtype) if output_dtype else None
    if zero_point is None:
        return given or dtypes.u8
    held: DType = zero_point.type.dtype
    if given is not None and given is not held:
        raise CompileError(f"output_dtype is {given.onnx_name}, but y_zero_point is {held.onnx_name}")
    return held


def _precision(scale: Value, precision: int) -> DType:
    """The type of the division; float64 for a scale of int32, which float32 cannot hold."""
    if not precision:
        return dtypes.f64 if scale.type.dtype is dtypes.i32 else dtypes.f32
    for dtype in _PRECISIONS:
        if dtype.onnx == precision:
            return dtype
    raise CompileError(f"precision is {precision}; it has to be the number of a floating-point type")


def _check_scalar(scale: Value) -> None:
    if scale.type.size != 1:
        raise CompileError(f"the scale is {scale.type.describe()}; before opset 13 it has to be a scalar")


def _check_zero_point(scale: Value, zero_point: Value | None) -> None:
    if zero_point is None or zero_point.type.size == scale.type.size == 1:
        return
    pairs = [(a, z) for a, z in zip(scale.type.shape, zero_point.type.shape, strict=False) if a != z]
    unlike = any(not isinstance(a, Dim) and not isinstance(z, Dim) for a, z in pairs)
    if unlike or scale.type.rank != zero_point.type.rank:
        raise CompileError(
            f"the scale is {scale.type.describe()} and the zero point {zero_point.type.describe()}; "
            "their shapes have to be equal"
        )


def _spread(b: Builder, x: Value, values: Value, axis: int, block_size: int, what: str) -> Value:
    """Scales or zero points, one for each element of x."""
    if values.type.size == 1:
        return b.broadcast_to(b.reshape(values, ()), x.type.shape)
    if block_size < 0:
        raise CompileError(f"block_size is {block_size}; it has to be positive")
    if block_size:
        return _spread_blocks(b, x, values, normal_axis(axis, x.type.rank), block_size, what)
    if values.type.rank != 1:
        raise CompileError(
            f"{what} is {values.type.describe()}; without block_size it has to be a scalar or of rank 1"
        )
    position = normal_axis(axis, x.type.rank) if x.type.rank > 1 else 0
    return to_shape_of(b, x, b.reshape(values, (*values.type.shape, *(1,) * (x.type.rank - position - 1))))


def _spread_blocks(b: Builder, x: Value, values: Value, axis: int, block_size: int, what: str) -> Value:
    shape = x.type.shape
    blocks = (*shape[:axis], ceildiv(shape[axis], block_size), *shape[axis + 1 :])
    message = (
        f"{what} {values.type.describe()} does not fit blocks of {block_size} "
        f"along axis {axis} of {x.type.describe()}"
    )
    if values.type.rank != len(shape):
        raise CompileError(message)
    for have, want in zip(values.type.shape, blocks, strict=True):
        if have != want:
            if not isinstance(have, Dim) and not isinstance(want, Dim):
                raise CompileError(message)
            b.require("equal", have, want, message)
    values = b.assume_shape(values, blocks)
    inner = b.reshape(values, (*blocks[: axis + 1], 1, *blocks[axis + 1 :]))
    repeated = b.broadcast_to(inner, (*blocks[: axis + 1], block_size, *blocks[axis + 1 :]))
    whole = b.reshape(repeated, (*blocks[:axis], blocks[axis] * block_size, *blocks[axis + 1 :]))
    if whole.type.shape == shape:
        return whole
    return b.op("core.slice", whole, starts=(0,) * len(shape), sizes=shape, steps=(1,) * len(shape))
