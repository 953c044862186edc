"""Tensors made of their indices: Range, Trilu, EyeLike, OneHot."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.movement import crop
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime import dtypes

__all__: list[str] = []


_FEW = 64  # numbers of a Range that stay known: function bodies compute axes by it


@onnx_op("Range")
def range_(b: Builder, start: Value, limit: Value, delta: Value, **_: Any) -> Value:
    """``start + i * delta`` for every i with a value before the limit; the number of elements may be data."""
    dtype = start.type.dtype
    first, end, step = (b.reshape(v, ()) for v in (start, limit, delta))
    if dtype.is_float:
        wide = dtypes.f64 if dtype is dtypes.f64 else dtypes.f32
        first, end, step = (b.convert(v, wide) for v in (first, end, step))
        count = b.convert(b.ceil(b.div(b.sub(end, first), step)), dtypes.i64)
    else:
        first, end, step = (b.convert(v, dtypes.i64) for v in (first, end, step))
        span = b.sub(end, first)
        quotient = b.div(span, step)
        inexact = b.ne(b.mul(quotient, step), span)
        forward = b.eq(b.lt(span, b.full(0, span)), b.lt(step, b.full(0, step)))
        count = b.add(quotient, b.convert(b.and_(inexact, forward), dtypes.i64))
    (size,) = b.dims_of(b.max(count, b.full(0, count)))
    if isinstance(size, int) and size <= _FEW:
        numbers = b.constant(np.arange(size), dtypes.i64)
    else:
        numbers = b.op("core.iota", shape=(size,), axis=0, dtype=dtypes.i64)
    place = b.convert(numbers, first.type.dtype)
    values = b.add(b.broadcast_to(first, (size,)), b.mul(place, b.broadcast_to(step, (size,))))
    return b.convert(values, dtype)


@onnx_op("Trilu")
def trilu(b: Builder, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    if x.type.rank < 2:
        raise CompileError(f"{x.type.describe()} has no last two axes to take a triangle of")
    rank = x.type.rank
    row, column = (b.op("core.iota", shape=x.type.shape, axis=rank - i, dtype=dtypes.i64) for i in (2, 1))
    if k is not None:
        row = b.add(row, b.broadcast_to(b.reshape(k, ()), x.type.shape))
    keep = b.ge(column, row) if upper else b.le(column, row)
    return b.select(keep, x, b.full(0, x))


@onnx_op("EyeLike")
def eye_like(b: Builder, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    if x.type.rank != 2:
        raise CompileError(f"{x.type.describe()} is no matrix")
    to = x.type.dtype if dtype is None else dtypes.by_onnx(dtype)
    row, column = (b.op("core.iota", shape=x.type.shape, axis=i, dtype=dtypes.i64) for i in (0, 1))
    hit = b.eq(column, b.add(row, b.full(k, row)))
    one, zero = (b.broadcast_to(b.constant(v, to), x.type.shape) for v in (1, 0))
    return b.select(hit, one, zero)


@onnx_op("OneHot")
def one_hot(b: Builder, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """Indices count from the end where negative; those out of range give a row of the off value."""
    message = f"values is {values.type.describe()}; the off and the on value are needed"
    values = b.expect_shape(values, (2,), message)
    rank = indices.type.rank + 1
    position = normal_axis(axis, rank)
    (size,) = b.dims_of(b.convert(depth, dtypes.i64))
    shape = (*indices.type.shape[:position], size, *indices.type.shape[position:])
    place = b.convert(indices, dtypes.i64)
    extent = b.broadcast_to(b.dims([size], scalar=True), place.type.shape)
    place = b.select(b.lt(place, b.full(0, place)), b.add(place, extent), place)
    place = b.broadcast_to(b.reshape(place, (*shape[:position], 1, *shape[position + 1 :])), shape)
    hit = b.eq(place, b.op("core.iota", shape=shape, axis=position, dtype=dtypes.i64))
    off, on = (b.broadcast_to(b.reshape(crop(b, values, [i], [1]), ()), shape) for i in (0, 1))
    return b.select(hit, on, off)
