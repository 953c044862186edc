"""Arithmetic on numbers: sums, products, remainders, powers, bounds, signs and rounding to integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.broadcasting import legacy_broadcast, same_shape
from sardonyx.ops.precision import integer_limits, one_rounding
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["binary", "binary_1", "unary", "unary_1"]

Operator = Callable[..., Value]


def unary(kind: str) -> Operator:
    """The operator that is one core op of one operand."""

    def operator(b: Builder, x: Value) -> Value:
        return b.op(f"core.{kind}", x)

    return operator


def unary_1(kind: str) -> Operator:
    """The same as of opset 1, which could name inputs to overwrite; nothing depends on that."""

    def operator(b: Builder, x: Value, *, consumed_inputs: Any = None) -> Value:
        return b.op(f"core.{kind}", x)

    return operator


def binary(kind: str) -> Operator:
    """The operator that is one core op of two operands, with NumPy's broadcasting."""

    def operator(b: Builder, x: Value, y: Value) -> Value:
        return b.op(f"core.{kind}", *b.broadcast(x, y))

    return operator


def binary_1(kind: str) -> Operator:
    """The same with the broadcasting of opset 1 to 6."""

    def operator(b: Builder, x: Value, y: Value, *, axis: int | None = None, broadcast: int = 0) -> Value:
        return b.op(f"core.{kind}", *legacy_broadcast(b, x, y, axis, broadcast))

    return operator


def _arithmetic_1(kind: str) -> Operator:
    """The same as of opset 1, which could name inputs to overwrite as well."""

    def operator(
        b: Builder,
        x: Value,
        y: Value,
        *,
        axis: int | None = None,
        broadcast: int = 0,
        consumed_inputs: Any = None,
    ) -> Value:
        return b.op(f"core.{kind}", *legacy_broadcast(b, x, y, axis, broadcast))

    return operator


for _op_type, _kind in {"Abs": "abs", "Ceil": "ceil", "Floor": "floor", "Neg": "neg", "Sqrt": "sqrt"}.items():
    onnx_op(_op_type, until=5)(unary_1(_kind))
    onnx_op(_op_type, since=6)(unary(_kind))

onnx_op("Round", since=11)(unary("round_even"))
onnx_op("Sign", since=9)(unary("sign"))

for _op_type, _kind in {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}.items():
    onnx_op(_op_type, until=5)(_arithmetic_1(_kind))
    onnx_op(_op_type, since=6, until=6)(binary_1(_kind))
    onnx_op(_op_type, since=7)(binary(_kind))


@onnx_op("Reciprocal", since=6)
def reciprocal(b: Builder, x: Value) -> Value:
    return b.div(b.full(1, x), x)


@onnx_op("Reciprocal", until=5)
def reciprocal_1(b: Builder, x: Value, *, consumed_inputs: Any = None) -> Value:
    return reciprocal(b, x)


@onnx_op("Mod", since=28)
def mod(b: Builder, x: Value, y: Value, *, fmod: int = 0) -> Value:
    if fmod not in (0, 1):
        raise CompileError(
            f"fmod is {fmod}; it has to be 0 (sign of the divisor) or 1 (sign of the dividend)"
        )
    x, y = b.broadcast(x, y)
    return b.rem(x, y) if fmod else b.mod(x, y)


@onnx_op("Mod", since=10, until=27)
def mod_10(b: Builder, x: Value, y: Value, *, fmod: int = 0) -> Value:
    if x.type.dtype.is_float and not fmod:
        raise CompileError(
            "Mod of floating-point numbers needs fmod=1 before opset 28", hint="with fmod=1 it is C's fmod"
        )
    return mod(b, x, y, fmod=fmod)


@onnx_op("Pow", until=6)
def pow_1(b: Builder, x: Value, y: Value, *, axis: int | None = None, broadcast: int = 0) -> Value:
    return b.pow(*legacy_broadcast(b, x, y, axis, broadcast))


@onnx_op("Pow", since=7)
def pow(b: Builder, x: Value, y: Value) -> Value:
    dtype = _pow_dtype(x, y)
    x, y, result = b.convert(x, dtype), b.convert(y, dtype), x.type.dtype
    return b.convert(b.pow(*b.broadcast(x, y)), result)


def _pow_dtype(base: Value, exponent: Value) -> DType:
    """The type in which base ** exponent comes out right, once rounded or wrapped to the base's type."""
    x: DType = base.type.dtype
    y: DType = exponent.type.dtype
    if x is y:
        return x
    if x.is_integer and y.is_float:
        return dtypes.f64
    if x.is_integer:  # modulo a power of two the wider type gives the narrower's low bits
        fits = y.bits <= x.bits if y.kind == "signed" else y.bits < x.bits
        return x if fits else dtypes.u64 if y.kind == "unsigned" else dtypes.i64
    if y.is_float:
        return x if x.bits > y.bits else dtypes.f64 if y is dtypes.f64 else dtypes.f32
    exact = y.bits <= 16 or _below(exponent, 1 << 24)
    return dtypes.f32 if exact and x is not dtypes.f64 else dtypes.f64


def _below(value: Value, bound: int) -> bool:
    """Whether the elements are constants, each of a size below the bound."""
    array = constant_of(value)
    return array is not None and bool((np.abs(array.astype(np.float64)) < bound).all())


def _chain(kind: str, b: Builder, first: Value, *rest: Value) -> Value:
    for value in rest:
        first = b.op(f"core.{kind}", first, value)
    return first


def _extreme(kind: str) -> Operator:
    def operator(b: Builder, *values: Value) -> Value:
        return _chain(kind, b, *b.broadcast(*values))

    return operator


def _extreme_6(kind: str) -> Operator:
    """Up to opset 7 all shapes have to be equal."""

    def operator(b: Builder, *values: Value) -> Value:
        return _chain(kind, b, *same_shape(b, *values))

    return operator


def _extreme_1(kind: str) -> Operator:
    def operator(b: Builder, *values: Value, consumed_inputs: Any = None) -> Value:
        return _chain(kind, b, *same_shape(b, *values))

    return operator


for _op_type, _kind in {"Max": "max", "Min": "min"}.items():
    onnx_op(_op_type, until=5)(_extreme_1(_kind))
    onnx_op(_op_type, since=6, until=7)(_extreme_6(_kind))
    onnx_op(_op_type, since=8)(_extreme(_kind))


@onnx_op("Sum", since=8)
@one_rounding
def sum(b: Builder, *values: Value) -> Value:
    return _chain("add", b, *b.broadcast(*values))


@onnx_op("Sum", since=6, until=7)
def sum_6(b: Builder, *values: Value) -> Value:
    return sum(b, *same_shape(b, *values))


@onnx_op("Sum", until=5)
def sum_1(b: Builder, *values: Value, consumed_inputs: Any = None) -> Value:
    return sum_6(b, *values)


@onnx_op("Mean", since=8)
@one_rounding
def mean(b: Builder, *values: Value) -> Value:
    total = _chain("add", b, *b.broadcast(*values))
    return b.div(total, b.full(len(values), total))


@onnx_op("Mean", since=6, until=7)
def mean_6(b: Builder, *values: Value) -> Value:
    return mean(b, *same_shape(b, *values))


@onnx_op("Mean", until=5)
def mean_1(b: Builder, *values: Value, consumed_inputs: Any = None) -> Value:
    return mean_6(b, *values)


@onnx_op("Clip", since=11)
def clip(b: Builder, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    lowest, highest = _limits(x.type.dtype)
    least = b.full(lowest, x) if low is None else _bound(b, x, low, "min")
    most = b.full(highest, x) if high is None else _bound(b, x, high, "max")
    if x.type.dtype.is_integer:  # no value is beyond the limits of the type
        x = x if low is None else b.max(x, least)
        return x if high is None else b.min(x, most)
    return b.min(b.max(x, least), most)


def _bound(b: Builder, x: Value, bound: Value, name: str) -> Value:
    if bound.type.size != 1:
        raise CompileError(f"the input {name!r} of Clip is {bound.type.describe()}; it has to be a scalar")
    return b.broadcast_to(b.reshape(bound, ()), x.type.shape)


def _limits(dtype: DType) -> tuple[Any, Any]:
    if dtype.is_integer:
        return integer_limits(dtype)
    info = ml_dtypes.finfo(dtype.numpy)
    return info.min, info.max


@onnx_op("Clip", since=6, until=10)
def clip_6(b: Builder, x: Value, *, min: float | None = None, max: float | None = None) -> Value:
    """Clip with attributes; the limits of float, which are their defaults, mean the limits of the type."""
    low, high = _limits(dtypes.f32)
    least = None if min is None or min == low else b.constant(min, x.type.dtype)
    most = None if max is None or max == high else b.constant(max, x.type.dtype)
    return clip(b, x, least, most)


@onnx_op("Clip", until=5)
def clip_1(
    b: Builder, x: Value, *, min: float | None = None, max: float | None = None, consumed_inputs: Any = None
) -> Value:
    return clip_6(b, x, min=min, max=max)
