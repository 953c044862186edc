"""Activation functions.

Formulas are written so that no digits cancel: `expm1` for exp(x) - 1, the lower tail of the normal
distribution for Gelu, sigmoid(2x) for 1 + tanh(x).  NaN comes out of each as NaN.
"""

from __future__ import annotations

import math
from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.arithmetic import unary, unary_1
from sardonyx.ops.broadcasting import same_shape, to_shape_of
from sardonyx.ops.precision import integer_limits, one_rounding
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes

__all__: list[str] = []

for _op_type in ("Sigmoid", "Tanh"):
    onnx_op(_op_type, until=5)(unary_1(_op_type.lower()))
    onnx_op(_op_type, since=6)(unary(_op_type.lower()))
onnx_op("Softplus")(unary("softplus"))


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    return x if factor == 1 else b.mul(x, b.full(factor, x))


def _clamped(b: Builder, x: Value, high: float) -> Value:
    return b.min(b.max(x, b.full(0, x)), b.full(high, x))


@onnx_op("Relu", since=6)
def relu(b: Builder, x: Value) -> Value:
    return b.max(x, b.full(0, x))


@onnx_op("Relu", until=5)
def relu_1(b: Builder, x: Value, *, consumed_inputs: Any = None) -> Value:
    return relu(b, x)


@onnx_op("LeakyRelu", since=6)
@one_rounding
def leaky_relu(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.select(b.lt(x, b.full(0, x)), _scaled(b, x, alpha), x)


@onnx_op("LeakyRelu", until=5)
def leaky_relu_1(b: Builder, x: Value, *, alpha: float, consumed_inputs: Any = None) -> Value:
    return leaky_relu(b, x, alpha=alpha)


@onnx_op("PRelu", since=7)
def prelu(b: Builder, x: Value, slope: Value) -> Value:
    return b.select(b.lt(x, b.full(0, x)), b.mul(x, to_shape_of(b, x, slope)), x)


@onnx_op("PRelu", since=6, until=6)
def prelu_6(b: Builder, x: Value, slope: Value) -> Value:
    """A slope for all elements, or one for each channel (axis 1)."""
    if slope.type.size == 1:
        slope = b.reshape(slope, ())
    elif slope.type.rank == 1 and x.type.rank > 1:
        slope = b.reshape(slope, (*slope.type.shape, *(1,) * (x.type.rank - 2)))
    return prelu(b, x, slope)


@onnx_op("PRelu", until=5)
def prelu_1(b: Builder, x: Value, slope: Value, *, consumed_inputs: Any = None) -> Value:
    return prelu_6(b, x, slope)


@onnx_op("ThresholdedRelu", since=10)
@one_rounding
def thresholded_relu(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.select(b.le(x, b.full(alpha, x)), b.full(0, x), x)


@onnx_op("Elu", since=6)
@one_rounding
def elu(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.select(b.ge(x, b.full(0, x)), x, _scaled(b, b.expm1(x), alpha))


@onnx_op("Elu", until=5)
def elu_1(b: Builder, x: Value, *, alpha: float, consumed_inputs: Any = None) -> Value:
    return elu(b, x, alpha=alpha)


@onnx_op("Celu", since=12)
@one_rounding
def celu(b: Builder, x: Value, *, alpha: float) -> Value:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), of which one term is always 0."""
    below = _scaled(b, b.expm1(b.div(x, b.full(alpha, x))), alpha)
    return b.select(b.ge(x, b.full(0, x)), x, below)


@onnx_op("Selu", since=6)
@one_rounding
def selu(b: Builder, x: Value, *, alpha: float, gamma: float) -> Value:
    below = _scaled(b, b.expm1(x), gamma * alpha)
    return b.select(b.gt(x, b.full(0, x)), _scaled(b, x, gamma), below)


@onnx_op("Selu", until=5)
def selu_1(b: Builder, x: Value, *, alpha: float, gamma: float, consumed_inputs: Any = None) -> Value:
    return selu(b, x, alpha=alpha, gamma=gamma)


@onnx_op("HardSigmoid", since=6)
@one_rounding
def hard_sigmoid(b: Builder, x: Value, *, alpha: float, beta: float) -> Value:
    return _clamped(b, b.add(_scaled(b, x, alpha), b.full(beta, x)), 1)


@onnx_op("HardSigmoid", until=5)
def hard_sigmoid_1(b: Builder, x: Value, *, alpha: float, beta: float, consumed_inputs: Any = None) -> Value:
    return hard_sigmoid(b, x, alpha=alpha, beta=beta)


@onnx_op("HardSwish", since=14)
@one_rounding
def hard_swish(b: Builder, x: Value) -> Value:
    """x * max(0, min(1, x / 6 + 1/2)), with the sum taken before the division: near -3 it is exact."""
    return b.mul(x, b.div(_clamped(b, b.add(x, b.full(3, x)), 6), b.full(6, x)))


@onnx_op("Softsign")
@one_rounding
def softsign(b: Builder, x: Value) -> Value:
    return b.div(x, b.add(b.abs(x), b.full(1, x)))


@onnx_op("Mish", since=18)
@one_rounding
def mish(b: Builder, x: Value) -> Value:
    return b.mul(x, b.tanh(b.softplus(x)))


@onnx_op("Swish", since=24)
@one_rounding
def swish(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.mul(x, b.sigmoid(_scaled(b, x, alpha)))


@onnx_op("SwiGLU", since=28)
@one_rounding
def swiglu(b: Builder, gate: Value, x: Value, *, alpha: float) -> Value:
    gate, x = same_shape(b, gate, x)
    return b.mul(swish(b, gate, alpha=alpha), x)


@onnx_op("Gelu", since=20)
@one_rounding
def gelu(b: Builder, x: Value, *, approximate: str) -> Value:
    if approximate == "none":
        return b.mul(x, b.normal_cdf(x))
    if approximate != "tanh":
        raise CompileError(f"approximate is {approximate!r}; it has to be 'none' or 'tanh'")
    slope = b.add(_scaled(b, b.mul(x, x), 0.044715), b.full(1, x))
    argument = b.mul(_scaled(b, x, 2 * math.sqrt(2 / math.pi)), slope)
    return b.mul(x, b.sigmoid(argument))


@onnx_op("Shrink", since=9)
def shrink(b: Builder, x: Value, *, bias: float, lambd: float) -> Value:
    if x.type.dtype.is_integer:
        return _shrink_integer(b, x, bias, lambd)
    return _shrink_float(b, x, bias=bias, lambd=lambd)


@one_rounding
def _shrink_float(b: Builder, x: Value, *, bias: float, lambd: float) -> Value:
    low, high = b.lt(x, b.full(-lambd, x)), b.gt(x, b.full(lambd, x))
    middle = b.select(b.is_nan(x), x, b.full(0, x))
    shifted = b.select(high, b.sub(x, b.full(bias, x)), middle)
    return b.select(low, b.add(x, b.full(bias, x)), shifted)


def _shrink_integer(b: Builder, x: Value, bias: float, lambd: float) -> Value:
    """The same in exact arithmetic; the result is truncated and wraps."""
    low = _compare(b, "lt", x, math.ceil(-lambd))
    high = _compare(b, "gt", x, math.floor(lambd))
    shifted = b.select(high, _add_real(b, x, -bias), b.full(0, x))
    return b.select(low, _add_real(b, x, bias), shifted)


def _compare(b: Builder, kind: str, x: Value, bound: int) -> Value:
    """x compared with an integer that may be beyond the limits of its type."""
    low, high = integer_limits(x.type.dtype)
    if low <= bound <= high:
        return b.op(f"core.{kind}", x, b.full(bound, x))
    return b.broadcast_to(b.constant((bound > high) == (kind == "lt")), x.type.shape)


def _add_real(b: Builder, x: Value, addend: float) -> Value:
    """Integers plus a real number, truncated toward zero, by way of int64."""
    wide = b.convert(x, dtypes.i64)
    whole = math.floor(addend)
    low, high = integer_limits(dtypes.i64)
    moved = b.add(wide, b.full((whole - low) % (high - low + 1) + low, wide))
    if addend != whole:  # the fraction takes a negative sum up to the next integer
        moved = b.add(moved, b.convert(b.lt(moved, b.full(0, moved)), dtypes.i64))
    return b.convert(moved, x.type.dtype)
