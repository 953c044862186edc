"""Matrix products of quantised integers, and DynamicQuantizeLinear.

Sums are exact and wrap in int32.  A matrix product multiplies the bytes as they are, the left operand
unsigned and the right one signed, which is what the hosts' instructions take, and corrects the sums:

    sum (x - p)(y - q) = sum x y  -  q sum x  -  p sum y  +  K p q
"""

from __future__ import annotations

import numpy as np

from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.broadcasting import to_shape_of
from sardonyx.ops.cast import convert
from sardonyx.ops.matmul import matrix_product
from sardonyx.ops.precision import saturated
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, ceildiv
from sardonyx_runtime.dtypes import DType

__all__ = [
    "as_signed",
    "as_unsigned",
    "difference",
    "product_of_bytes",
    "requantised",
    "sums_of_bytes",
    "words_product",
]

_LARGEST_PRODUCT = 255 * 255


# -- matrix products


@onnx_op("MatMulInteger")
def matmul_integer(
    b: Builder, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None
) -> Value:
    return product_of_bytes(b, x, y, x_zero, y_zero)


def product_of_bytes(b: Builder, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None) -> Value:
    """(x - x_zero) @ (y - y_zero) in int32: zero points for all, per row of x and per column of y."""
    x, p = as_unsigned(b, x, _per_row(b, x, x_zero, "a_zero_point"))
    y, q = as_signed(b, y, _per_column(b, y, y_zero, "b_zero_point"))
    total = words_product(b, x, y)
    left, right = x.type.rank == 1, y.type.rank == 1
    if not left and not right:
        shape = total.type.shape
    else:  # with the axes of extent 1 that a vector lacks
        shape = (*total.type.shape, 1) if right else total.type.shape
        shape = (*shape[:-1], 1, shape[-1]) if left else shape
    result = b.reshape(total, shape)

    def subtract(a: Value, c: Value) -> None:
        nonlocal result
        result = b.sub(result, to_shape_of(b, result, b.mul(*b.broadcast(a, c))))

    if p is not None:
        subtract(p, b.reshape(sums_of_bytes(b, y, -1), (1, 1)) if right else sums_of_bytes(b, y, -2))
    if q is not None:
        subtract(b.reshape(sums_of_bytes(b, x, -1), (1, 1)) if left else sums_of_bytes(b, x, -1), q)
    if p is not None and q is not None:
        depth = b.convert(b.dims([x.type.shape[-1]], scalar=True), dtypes.i32)
        joint = b.mul(*b.broadcast(p, q))
        both = b.mul(b.broadcast_to(depth, joint.type.shape), joint)
        result = b.add(result, to_shape_of(b, result, both))
    return b.reshape(result, total.type.shape)


def words_product(b: Builder, x: Value, y: Value) -> Value:
    """The sums of the products of bytes: words of four at a time, the depth filled up with zeros."""
    vector = y.type.rank == 1
    matrix = b.reshape(y, (*y.type.shape, 1)) if vector else y
    depth = matrix.type.shape[-2]
    if x.type.shape[-1] != depth:
        return matrix_product(b, x, y, dtype=dtypes.i32)  # tells what is wrong, or checks it at run time
    words = ceildiv(depth, 4)
    missing = words * 4 - depth
    if missing != 0:
        at = x.type.rank - 1
        high = tuple(missing if i == at else 0 for i in range(x.type.rank))
        x = b.op("core.pad", x, b.constant(0, dtypes.u8), low=(0,) * x.type.rank, high=high)
    with b.folding():
        matrix = _words(b, matrix, words, missing)
    total = matrix_product(b, x, matrix, words=True)
    return b.reshape(total, total.type.shape[:-1]) if vector else total


def _words(b: Builder, y: Value, words: DimLike, missing: DimLike) -> Value:
    """Bytes (..., depth, n) as (..., words, n): four of a column, the first in the lowest place."""
    if missing != 0:
        high = (*(0,) * (y.type.rank - 2), missing, 0)
        y = b.op("core.pad", y, b.constant(0, dtypes.i8), low=(0,) * y.type.rank, high=high)
    *lead, _, n = y.type.shape
    fours = b.reshape(b.convert(b.bitcast(y, to=dtypes.u8), dtypes.u32), (*lead, words, 4, n))
    total: Value | None = None
    for i in range(4):
        starts = (*(0,) * (len(lead) + 1), i, 0)
        part = b.op("core.slice", fours, starts=starts, sizes=(*lead, words, 1, n), steps=(1,) * len(starts))
        part = b.reshape(part, (*lead, words, n))
        part = b.shl(part, b.full(8 * i, part)) if i else part
        total = part if total is None else b.or_(total, part)
    assert total is not None
    return b.bitcast(total, to=dtypes.i32)


def as_unsigned(b: Builder, x: Value, zero: Value | None) -> tuple[Value, Value | None]:
    """x as bytes without a sign, and the zero point in int32; None if it is 0."""
    zero = None if zero is None else b.convert(zero, dtypes.i32)
    if x.type.dtype is dtypes.u8:
        return x, _unless_zero(zero)
    return _flipped(b, x, dtypes.u8), _moved(b, zero, 128)


def as_signed(b: Builder, y: Value, zero: Value | None) -> tuple[Value, Value | None]:
    """y as bytes with a sign, and the zero point in int32; None if it is 0."""
    zero = None if zero is None else b.convert(zero, dtypes.i32)
    if y.type.dtype is dtypes.i8:
        return y, _unless_zero(zero)
    return _flipped(b, y, dtypes.i8), _moved(b, zero, -128)


def _flipped(b: Builder, x: Value, to: DType) -> Value:
    """The value with 128 added or taken away: the top bit flips."""
    with b.folding():
        bits = b.bitcast(x, to=dtypes.u8)
        return b.bitcast(b.xor(bits, b.full(128, bits)), to=to)


def _moved(b: Builder, zero: Value | None, by: int) -> Value | None:
    if zero is None:
        return b.constant(by, dtypes.i32)
    return _unless_zero(b.add(zero, b.full(by, zero)))


def _unless_zero(zero: Value | None) -> Value | None:
    known = None if zero is None else constant_of(zero)
    return None if known is not None and not known.any() else zero


def sums_of_bytes(b: Builder, x: Value, axis: int) -> Value:
    """Sums of bytes along an axis in int32, the axis kept."""
    axis %= x.type.rank
    known = constant_of(x)
    if known is not None:
        return b.constant(known.astype(np.int32).sum(axis, dtype=np.int32, keepdims=True), dtypes.i32)
    return b.reduce("sum", b.convert(x, dtypes.i32), (axis,), keepdims=True)


def _per_row(b: Builder, x: Value, values: Value | None, what: str) -> Value | None:
    """Values for all of a left operand, or one for each of its rows: of a shape that broadcasts to the result."""
    if values is None or values.type.rank == 0:
        return values
    if values.type.size == 1:
        return b.reshape(values, ())
    if values.type.rank == 1:
        if x.type.rank < 2:
            raise CompileError(f"{what} is {values.type.describe()}, but the operand is a vector")
        return b.reshape(values, (*values.type.shape, 1))
    return _same_rank(values, x, what)


def _per_column(b: Builder, y: Value, values: Value | None, what: str) -> Value | None:
    if values is None or values.type.rank == 0:
        return values
    if values.type.size == 1:
        return b.reshape(values, ())
    return values if values.type.rank == 1 else _same_rank(values, y, what)


def _same_rank(values: Value, operand: Value, what: str) -> Value:
    if values.type.rank != operand.type.rank:
        raise CompileError(f"{what} is {values.type.describe()}; it does not fit {operand.type.describe()}")
    return values


@onnx_op("QLinearMatMul")
def qlinear_matmul(
    b: Builder,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    scale: Value,
    zero: Value,
) -> Value:
    """saturate(round(product * (a_scale * b_scale / y_scale)) + y_zero_point)."""
    if x.type.dtype.is_integer:
        total = b.convert(product_of_bytes(b, x, y, x_zero, y_zero), dtypes.f32)
    else:
        p = _per_row(b, x, x_zero, "a_zero_point")
        q = _per_column(b, y, y_zero, "b_zero_point")
        total = matrix_product(b, difference(b, x, p), difference(b, y, q))
    a = _per_row(b, x, x_scale, "a_scale")
    c = _per_column(b, y, y_scale, "b_scale")
    d = _per_row(b, x, scale, "y_scale")
    assert a is not None and c is not None and d is not None
    a, c, d = (b.convert(v, dtypes.f32) for v in (a, c, d))
    factor = b.div(*b.broadcast(b.mul(*b.broadcast(a, c)), d))
    offset = _per_row(b, x, zero, "y_zero_point")
    assert offset is not None
    return requantised(b, total, factor, offset)


def difference(b: Builder, x: Value, zero: Value | None, dtype: DType = dtypes.f32) -> Value:
    wide = b.convert(x, dtype)
    if zero is None or _unless_zero(zero) is None:
        return wide
    return b.sub(wide, to_shape_of(b, wide, b.convert(zero, dtype)))


def requantised(
    b: Builder, total: Value, factor: Value, zero: Value | None, target: DType | None = None
) -> Value:
    """Float32 sums times a factor, rounded half to even, moved by the zero point, saturated."""
    dtype = target or (zero.type.dtype if zero is not None else dtypes.u8)
    scaled = b.mul(total, to_shape_of(b, total, factor))
    if dtype.is_integer:
        scaled = b.round_even(scaled)
    if zero is not None:
        scaled = b.add(scaled, to_shape_of(b, scaled, b.convert(zero, dtypes.f32)))
    if not dtype.is_integer:
        return convert(b, scaled, dtype, saturate=1)
    return saturated(b, scaled, dtype)


# -- quantisation whose parameters come from the data


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """uint8 over the range of the data and 0: the values, the scale, the zero point."""
    axes = tuple(range(x.type.rank))
    zero, one = b.constant(0.0, dtypes.f32), b.constant(1.0, dtypes.f32)
    top, bottom = b.constant(255.0, dtypes.f32), zero
    high = b.max(b.reduce("max", x, axes), zero)
    low = b.min(b.reduce("min", x, axes), zero)
    span = b.div(b.sub(high, low), top)
    scale = b.select(b.eq(high, low), one, span)  # the scale of nothing but zeros is anyone's choice
    offset = b.round_even(b.max(b.min(b.sub(zero, b.div(low, scale)), top), bottom))
    spread = b.broadcast_to(scale, x.type.shape)
    moved = b.add(b.round_even(b.div(x, spread)), b.broadcast_to(offset, x.type.shape))
    y = saturated(b, moved, dtypes.u8)
    return y, scale, b.convert(offset, dtypes.u8)
