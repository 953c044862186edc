"""Random tensors and Dropout: docs/numerics.md says which numbers come out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product
from sardonyx_runtime.dtypes import DType

__all__ = ["random_bits", "uniform"]

_SECOND = 1 << 63  # added to the index: where an element needs a second number


def random_key(b: Builder, seed: float | None) -> Value:
    """The key of a node: the bits of its seed as float32, or one that differs from run to run."""
    if seed is not None:
        return b.constant(int(np.float32(seed).view(np.uint32)), dtypes.u64)
    return b.op("core.entropy", number=b.next_number())


def random_bits(b: Builder, shape: Shape, key: Value, *, second: bool = False) -> Value:
    """64 random bits for each element of a shape."""
    index = b.reshape(b.op("core.iota", shape=(product(shape),), axis=0, dtype=dtypes.u64), shape)
    if second:
        index = b.add(index, b.full(_SECOND, index))
    return b.random(index, b.broadcast_to(key, shape))


def unit(b: Builder, bits: Value, dtype: DType) -> Value:
    """Bits as a number from 0 to below 1, a multiple of 2^-24 (float64: of 2^-53)."""
    digits = 53 if dtype is dtypes.f64 else 24
    whole = b.convert(b.shr(bits, b.full(64 - digits, bits)), dtype)
    return b.mul(whole, b.full(2.0**-digits, whole))


def uniform(b: Builder, shape: Shape, dtype: DType, key: Value) -> Value:
    """Numbers from 0 to below 1."""
    return unit(b, random_bits(b, shape, key), dtype)


def normal(b: Builder, shape: Shape, dtype: DType, key: Value) -> Value:
    """The standard normal distribution: G. E. P. Box and M. E. Muller, 1958, one number per pair."""
    bits = random_bits(b, shape, key)
    if dtype is dtypes.f64:
        angle = unit(b, random_bits(b, shape, key, second=True), dtype)
        whole = b.add(b.convert(b.shr(bits, b.full(11, bits)), dtype), b.full(1.0, angle))
        radius = b.mul(whole, b.full(2.0**-53, whole))
    else:  # the upper half of the bits is the radius, the lower the angle
        high = b.convert(b.shr(bits, b.full(32, bits)), dtype)
        radius = b.mul(b.add(high, b.full(1.0, high)), b.full(2.0**-32, high))
        angle = unit(b, b.shl(bits, b.full(32, bits)), dtype)
    length = b.sqrt(b.mul(b.full(-2.0, radius), b.log(radius)))
    return b.mul(length, b.cos(b.mul(b.full(2 * math.pi, angle), angle)))


def _dtype(number: int | None, like: Value | None = None) -> DType:
    dtype = (
        dtypes.by_onnx(number) if number is not None else like.type.dtype if like is not None else dtypes.f32
    )
    if dtype not in (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64):
        raise CompileError(f"random numbers of the type {dtype.onnx_name} are not defined")
    return dtype


def _wide(dtype: DType) -> DType:
    return dtypes.f64 if dtype is dtypes.f64 else dtypes.f32


def _uniform_between(
    b: Builder, shape: Shape, dtype: DType, low: float, high: float, seed: float | None
) -> Value:
    x = uniform(b, shape, _wide(dtype), random_key(b, seed))
    x = b.add(b.mul(x, b.full(high - low, x)), b.full(low, x))
    return b.convert(x, dtype)


def _normal_around(
    b: Builder, shape: Shape, dtype: DType, mean: float, scale: float, seed: float | None
) -> Value:
    x = normal(b, shape, _wide(dtype), random_key(b, seed))
    x = b.add(b.mul(x, b.full(scale, x)), b.full(mean, x))
    return b.convert(x, dtype)


@onnx_op("RandomUniform")
def random_uniform(
    b: Builder, *, shape: tuple[int, ...], dtype: int, low: float, high: float, seed: float | None = None
) -> Value:
    return _uniform_between(b, shape, _dtype(dtype), low, high, seed)


@onnx_op("RandomUniformLike")
def random_uniform_like(
    b: Builder, x: Value, *, low: float, high: float, dtype: int | None = None, seed: float | None = None
) -> Value:
    return _uniform_between(b, x.type.shape, _dtype(dtype, x), low, high, seed)


@onnx_op("RandomNormal")
def random_normal(
    b: Builder, *, shape: tuple[int, ...], dtype: int, mean: float, scale: float, seed: float | None = None
) -> Value:
    return _normal_around(b, shape, _dtype(dtype), mean, scale, seed)


@onnx_op("RandomNormalLike")
def random_normal_like(
    b: Builder, x: Value, *, mean: float, scale: float, dtype: int | None = None, seed: float | None = None
) -> Value:
    return _normal_around(b, x.type.shape, _dtype(dtype, x), mean, scale, seed)


@onnx_op("Bernoulli", since=15)
def bernoulli(b: Builder, x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """1 where a uniform number is below the probability x."""
    kind = _wide(x.type.dtype)
    hit = b.lt(uniform(b, x.type.shape, kind, random_key(b, seed)), b.convert(x, kind))
    return b.convert(hit, x.type.dtype if dtype is None else dtypes.by_onnx(dtype))


@onnx_op("Multinomial", since=7)
def multinomial(b: Builder, x: Value, *, sample_size: int, dtype: int, seed: float | None = None) -> Value:
    """Classes drawn by the unnormalised logarithms x of their probabilities: the inverse of the cumulative sum."""
    if x.type.rank != 2:
        raise CompileError(f"the input of Multinomial is {x.type.describe()}; [batch, classes] is needed")
    kind = _wide(x.type.dtype)
    x = b.convert(x, kind)
    batch, classes = x.type.shape
    weight = b.exp(b.sub(x, b.broadcast_to(b.reduce("max", x, (1,), keepdims=True), x.type.shape)))
    square = (classes, classes)
    before = b.le(*(b.op("core.iota", shape=square, axis=a, dtype=dtypes.i64) for a in (0, 1)))
    sums = b.contract(weight, b.convert(before, kind))
    last = b.op("core.slice", sums, starts=(0, classes - 1), sizes=(batch, 1), steps=(1, 1))
    target = uniform(b, (batch, sample_size), kind, random_key(b, seed))
    target = b.mul(target, b.broadcast_to(last, target.type.shape))
    full = (batch, sample_size, classes)
    passed = b.le(
        b.broadcast_to(b.reshape(sums, (batch, 1, classes)), full),
        b.broadcast_to(b.reshape(target, (batch, sample_size, 1)), full),
    )
    index = b.reduce("sum", b.convert(passed, dtypes.i64), (2,))
    most = b.broadcast_to(b.dims([classes - 1], scalar=True), index.type.shape)
    return b.convert(b.min(index, most), dtypes.by_onnx(dtype))


# -- Dropout


def _dropped(b: Builder, x: Value, ratio: Value, seed: int | None) -> tuple[Value, Value]:
    """x / (1 - ratio) where a uniform number is not below the ratio, else 0; and where that is."""
    shape, dtype = x.type.shape, x.type.dtype
    wide = _wide(dtype)
    ratio = b.convert(b.reshape(ratio, ()), wide)
    if seed is None:
        number = uniform(b, shape, wide, random_key(b, None))
    else:
        number = b.op("core.mersenne_twister", seed=seed % (1 << 32), shape=shape)
    kept = b.ge(number, b.broadcast_to(b.convert(ratio, number.type.dtype), shape))
    scale = b.div(b.constant(1.0, wide), b.sub(b.constant(1.0, wide), ratio))
    scaled = b.mul(b.convert(x, wide), b.broadcast_to(scale, shape))
    return b.convert(b.select(kept, scaled, b.full(0.0, scaled)), dtype), kept


@onnx_op("Dropout", since=12)
def dropout(
    b: Builder,
    x: Value,
    ratio: Value | None = None,
    training: Value | None = None,
    *,
    seed: int | None = None,
) -> tuple[Value, Value]:
    """With a seed the numbers are those of NumPy's RandomState, as the standard's own tests have them."""
    everything = b.broadcast_to(b.constant(True), x.type.shape)
    known = None if training is None else constant_of(training)
    if training is None or (known is not None and not known.any()):
        return x, everything
    ratio = ratio if ratio is not None else b.constant(0.5, dtypes.f32)
    y, kept = _dropped(b, x, ratio, seed)
    if known is not None:
        return y, kept
    spread = b.broadcast_to(b.reshape(training, ()), x.type.shape)
    return b.select(spread, y, x), b.select(spread, kept, everything)


@onnx_op("Dropout", since=10, until=11)
def dropout_10(b: Builder, x: Value, *, ratio: float) -> tuple[Value, Value]:
    """Versions 7 and 10 have no training mode."""
    return x, b.broadcast_to(b.constant(True), x.type.shape)


@onnx_op("Dropout", since=7, until=9)
def dropout_7(b: Builder, x: Value, *, ratio: float) -> tuple[Value, Value]:
    return x, b.full(1, x)


@onnx_op("Dropout", until=6)
def dropout_1(
    b: Builder, x: Value, *, ratio: float, is_test: int, consumed_inputs: Any = None
) -> tuple[Value, Value]:
    if is_test:
        return x, b.full(1, x)
    y, kept = _dropped(b, x, b.constant(ratio, dtypes.f32), None)
    return y, b.convert(kept, x.type.dtype)
