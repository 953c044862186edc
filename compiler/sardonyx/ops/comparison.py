"""Comparisons, logic, the classes of floats, and the choice between two tensors."""

from __future__ import annotations

import math

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.arithmetic import binary, binary_1
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes

__all__: list[str] = []

for _op_type, _kind in {"Greater": "gt", "Less": "lt", "And": "and", "Or": "or", "Xor": "xor"}.items():
    onnx_op(_op_type, until=6)(binary_1(_kind))
    onnx_op(_op_type, since=7)(binary(_kind))


@onnx_op("GreaterOrEqual", since=12)
def greater_or_equal(b: Builder, x: Value, y: Value) -> Value:
    return b.ge(*b.broadcast(x, y))


@onnx_op("LessOrEqual", since=12)
def less_or_equal(b: Builder, x: Value, y: Value) -> Value:
    return b.le(*b.broadcast(x, y))


onnx_op("Equal", until=6)(binary_1("eq"))


@onnx_op("Equal", since=7)
def equal(b: Builder, x: Value, y: Value) -> Value:
    equal = b.string_equal if x.type.dtype is dtypes.string else b.eq
    return equal(*b.broadcast(x, y))


@onnx_op("Not")
def not_(b: Builder, x: Value) -> Value:
    return b.not_(x)


@onnx_op("Where", since=9)
def where(b: Builder, condition: Value, x: Value, y: Value) -> Value:
    return b.select(*b.broadcast(condition, x, y))


@onnx_op("IsNaN", since=9)
def is_nan(b: Builder, x: Value) -> Value:
    return b.is_nan(_computable(b, x))


@onnx_op("IsInf", since=10)
def is_inf(b: Builder, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    x = _computable(b, x)
    if detect_negative and detect_positive:
        return b.is_inf(x)
    if detect_negative or detect_positive:
        return b.eq(x, b.full(-math.inf if detect_negative else math.inf, x))
    return b.broadcast_to(b.constant(False), x.type.shape)


def _computable(b: Builder, x: Value) -> Value:
    return b.convert(x, dtypes.f32) if x.type.dtype.is_small_float else x
