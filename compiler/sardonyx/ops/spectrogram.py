"""STFT, and the filters of the mel scale."""

from __future__ import annotations

import math

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.fourier import along_last
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, floordiv

__all__: list[str] = []


@onnx_op("STFT")
def stft(
    b: Builder,
    signal: Value,
    step: Value,
    window: Value | None = None,
    frame_length: Value | None = None,
    *,
    onesided: int,
) -> Value:
    """Transforms of frames that overlap; the frames are read in place, without a copy of their own."""
    if signal.type.rank == 2:
        signal = b.reshape(signal, (*signal.type.shape, 1))
    (parts,) = b.static_dims(signal, [-1], "the last axis tells real from complex numbers")
    if signal.type.rank != 3 or parts not in (1, 2):
        raise CompileError(
            f"STFT takes a signal (batch, n, 1) or (batch, n, 2), not {signal.type.describe()}"
        )
    batch, length, parts = signal.type.shape
    (stride,) = static_ints(b, step, "frame_step")
    if stride < 1:
        raise CompileError(f"frame_step is {stride}; it has to be positive")
    if frame_length is not None:
        size: DimLike = b.dims_of(b.reshape(frame_length, (1,)))[0]
    else:
        size = window.type.shape[0] if window is not None else length
    if window is not None:
        misfit = f"the window {window.type.describe()} is not as long as a frame, {size}"
        window = b.expect_shape(window, (size,), misfit)
    if isinstance(size, int) and isinstance(length, int):
        if not 1 <= size <= length:
            raise CompileError(f"frames of {size} in a signal of {length} places")
    else:
        b.require("at_least", length, size, "the signal is shorter than a frame")
    frames = floordiv(length - size, stride) + 1
    dtype = signal.type.dtype
    wide = b.convert(signal, dtypes.f64 if dtype is dtypes.f32 else dtype)  # before it is repeated
    parts_of_frames = b.op("core.unfold", wide, axis=1, count=frames, size=size, step=stride, dilation=1)
    flat = b.reshape(parts_of_frames, (batch * frames, size, parts))
    if window is not None:
        spread = b.reshape(b.convert(window, wide.type.dtype), (1, size, 1))
        flat = b.mul(flat, b.broadcast_to(spread, flat.type.shape))
    short = dtype is dtypes.f64
    y = along_last(b, flat, count=size, inverse=False, onesided=bool(onesided), short=short)
    return b.reshape(b.convert(y, dtype), (batch, frames, *y.type.shape[1:]))


@onnx_op("MelWeightMatrix")
def mel_weight_matrix(
    b: Builder, bins: Value, length: Value, rate: Value, lower: Value, upper: Value, *, output_datatype: int
) -> Value:
    """Triangular filters, evenly spaced on the mel scale, over the bins of a spectrum."""
    count, size = (b.dims_of(b.reshape(v, (1,)))[0] for v in (bins, length))
    spectrum = floordiv(size, 2) + 1
    wide = dtypes.f64

    def scalar(v: Value) -> Value:
        return b.convert(b.reshape(v, ()), wide)

    def number(v: float) -> Value:
        return b.constant(v, wide)

    def mel(hertz: Value) -> Value:
        return b.div(b.mul(b.log1p(b.div(hertz, number(700))), number(2595)), number(math.log(10)))

    low, high = mel(scalar(lower)), mel(scalar(upper))
    edges = b.convert(b.dims([count + 2], scalar=True), wide)
    place = b.convert(b.op("core.iota", shape=(count + 2,), axis=0, dtype=dtypes.i64), wide)

    def spread(v: Value) -> Value:
        return b.broadcast_to(v, place.type.shape)

    mels = b.add(b.mul(place, spread(b.div(b.sub(high, low), edges))), spread(low))
    hertz = b.mul(
        b.expm1(b.mul(b.div(mels, spread(number(2595))), spread(number(math.log(10))))), spread(number(700))
    )
    points = b.convert(b.dims([size + 1], scalar=True), wide)
    bin_of = b.floor(b.div(b.mul(spread(points), hertz), spread(scalar(rate))))
    shape = (spectrum, count)
    left, centre, right = (
        b.broadcast_to(b.op("core.slice", bin_of, starts=(i,), sizes=(count,), steps=(1,)), shape)
        for i in range(3)
    )
    here = b.convert(b.op("core.iota", shape=shape, axis=0, dtype=dtypes.i64), wide)
    zero, one = b.full(0.0, here), b.full(1.0, here)
    width, fall = b.sub(centre, left), b.sub(right, centre)
    flat = b.eq(width, zero)
    rising = b.select(flat, one, b.div(b.sub(here, left), b.select(flat, one, width)))
    falling = b.div(b.sub(right, here), b.select(b.gt(fall, zero), fall, one))
    value = b.select(b.and_(b.ge(here, left), b.le(here, centre)), rising, zero)
    value = b.select(b.and_(b.ge(here, centre), b.lt(here, right)), falling, value)
    return b.convert(value, dtypes.by_onnx(output_datatype))
