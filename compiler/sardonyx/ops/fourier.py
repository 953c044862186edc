"""DFT: discrete Fourier transforms of any length, as matrix products.

Up to a certain length a transform is one product with a table of sines and cosines.  A longer one of
n1 * n2 places is n2 transforms of length n1, a multiplication by powers of the root of unity, and n1
transforms of length n2 (J. Cooley and J. Tukey, 1965), each of them a product.  A length with a large
prime factor becomes a convolution with a chirp, of a length that has none (L. Bluestein, 1970).
Within, real and imaginary parts are planes: (batch, 2, n).  Tables are computed in float64, at compile
time where the length is known; a symbolic length is one product with a table made at run time.

A product sums more terms one after the other than a butterfly does and so rounds more often: float32 is
computed in float64 (and is then as good as exact), float64 in shorter steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, floordiv, maximum, minimum, product
from sardonyx_runtime.dtypes import DType

__all__ = ["along_last", "transform"]

_DIRECT = {dtypes.f32: 64, dtypes.f64: 16}  # lengths up to which one product is used
_REAL_DIRECT = {dtypes.f32: 160, dtypes.f64: 16}  # the same for real data, half of whose spectrum is wanted
_LARGEST_PRIME = 256

Array = np.ndarray[Any, Any]


@onnx_op("DFT", since=17, until=19)
def dft_17(
    b: Builder, x: Value, length: Value | None = None, *, axis: int, inverse: int, onesided: int
) -> Value:
    return _dft(b, x, length, axis, inverse, onesided)


@onnx_op("DFT", since=20)
def dft(
    b: Builder,
    x: Value,
    length: Value | None = None,
    axis: Value | None = None,
    *,
    inverse: int,
    onesided: int,
) -> Value:
    chosen = -2 if axis is None else static_ints(b, axis, "axis")[0]
    return _dft(b, x, length, chosen, inverse, onesided)


def _dft(b: Builder, x: Value, length: Value | None, axis: int, inverse: int, onesided: int) -> Value:
    rank = x.type.rank
    (parts,) = b.static_dims(x, [-1], "the last axis tells real from complex numbers") if rank else (0,)
    if rank < 2 or parts not in (1, 2):
        raise CompileError(f"DFT takes (..., n, 1) or (..., n, 2), not {x.type.describe()}")
    position = normal_axis(axis, rank)
    if position == rank - 1:
        raise CompileError(f"axis {axis} of {x.type.describe()} holds the parts of the numbers")
    extent = x.type.shape[position]
    if length is not None:
        count = b.dims_of(b.reshape(length, (1,)))[0]
    else:
        count = 2 * (extent - 1) if inverse and onesided else extent
    if isinstance(count, int) and count < 1:
        raise CompileError(f"the length of the transform is {count}; it has to be at least 1")
    if isinstance(count, Dim):
        b.require("at_least", count, 1, "the length of the transform has to be at least 1")
    order = [a for a in range(rank - 1) if a != position]
    moved = b.transpose(x, (*order, position, rank - 1))
    lead = moved.type.shape[:-2]
    y = along_last(
        b,
        b.reshape(moved, (product(lead), extent, parts)),
        count=count,
        inverse=bool(inverse),
        onesided=bool(onesided),
    )
    y = b.reshape(y, (*lead, *y.type.shape[1:]))
    back = [(*order, position, rank - 1).index(a) for a in range(rank)]
    return b.transpose(y, back)


def along_last(
    b: Builder, x: Value, *, count: DimLike, inverse: bool, onesided: bool, short: bool | None = None
) -> Value:
    """(batch, n, parts) transformed to ``count`` places, to half of them, or (inverse, onesided) from half of them.

    ``short``: in short steps; by default for float64, which is no wider than its data.
    """
    dtype = x.type.dtype
    wide = dtypes.f32 if dtype.bits == 16 else dtypes.f64
    short = dtype is dtypes.f64 if short is None else short
    y = _computed(b, b.convert(x, wide), count=count, inverse=inverse, onesided=onesided, short=short)
    return b.convert(y, dtype)


def _computed(b: Builder, x: Value, *, count: DimLike, inverse: bool, onesided: bool, short: bool) -> Value:
    """The same in the type of x; ``short``: in short steps."""
    if inverse and onesided:
        return _to_real(b, _resized(b, x, floordiv(count, 2) + 1), count, short)
    wanted = floordiv(count, 2) + 1 if onesided else count
    x = _resized(b, x, count)
    dtype = x.type.dtype
    if not isinstance(count, int):
        return _symbolic(b, x, count, wanted, inverse)
    kind = dtypes.f64 if short else dtypes.f32
    direct = (_REAL_DIRECT if onesided and x.type.shape[-1] == 1 else _DIRECT)[kind]
    scale = 1.0 / count if inverse else 1.0
    if count <= direct:
        parts = int(x.type.shape[-1])
        assert isinstance(wanted, int)
        table = _table(count, wanted, inverse) * scale  # (2, n, 2, m)
        rows = table[:parts].transpose(1, 0, 3, 2).reshape(count * parts, wanted * 2)
        flat = b.reshape(x, (x.type.shape[0], count * parts))
        y = b.op("core.contract", flat, b.constant(rows.astype(dtype.numpy), dtype))
        return b.reshape(y, (x.type.shape[0], wanted, 2))
    planes = transform(b, b.transpose(x, (0, 2, 1)), inverse=inverse, direct=_DIRECT[kind])
    if wanted != count:
        planes = b.op(
            "core.slice", planes, starts=(0, 0, 0), sizes=(x.type.shape[0], 2, wanted), steps=(1, 1, 1)
        )
    if inverse:
        planes = b.mul(planes, b.full(scale, planes))
    return b.transpose(planes, (0, 2, 1))


def _resized(b: Builder, x: Value, count: DimLike) -> Value:
    """The first ``count`` places, zeros where x has fewer."""
    batch, have, parts = x.type.shape
    if have == count:
        return x
    kept = minimum(have, count)
    if kept != have:
        x = b.op("core.slice", x, starts=(0, 0, 0), sizes=(batch, kept, parts), steps=(1, 1, 1))
    missing = maximum(count - have, 0)
    if missing != 0:
        x = b.op("core.pad", x, b.constant(0, x.type.dtype), low=(0, 0, 0), high=(0, missing, 0))
    return b.assume_shape(x, (batch, count, parts))


def _angles(count: int, rows: int, columns: int) -> Array:
    """2 pi j k / count, the product reduced before it is rounded."""
    return np.outer(np.arange(rows), np.arange(columns)) % count * (2 * math.pi / count)


def _table(count: int, wanted: int, inverse: bool) -> Array:
    """The matrix of a transform on planes, (part of x, place of x, part of y, place of y)."""
    angle = _angles(count, count, wanted)
    cosine, sine = np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)
    return np.stack([np.stack([cosine, sine], 1), np.stack([-sine, cosine], 1)])


def transform(b: Builder, x: Value, *, inverse: bool, direct: int) -> Value:
    """(batch, 1 or 2, n) to (batch, 2, n), unscaled; n is known.  Products are of ``direct`` places at most."""
    batch, parts, n = x.type.shape
    assert isinstance(n, int) and isinstance(parts, int)
    first = _factor(n, direct)
    if first == n:
        if n > _LARGEST_PRIME:
            return _by_chirp(b, x, inverse, direct)
        table = _table(n, n, inverse)[:parts].reshape(parts * n, 2 * n)
        y = b.op("core.contract", b.reshape(x, (batch, parts * n)), _constant(b, table, x))
        return b.reshape(y, (batch, 2, n))
    second = n // first
    table = _table(first, first, inverse)[:parts].reshape(parts * first, 2 * first).T
    columns = b.reshape(x, (batch, parts * first, second))
    spread = b.broadcast_to(_constant(b, table, x), (batch, *table.shape))
    y = b.reshape(b.op("core.contract", spread, columns), (batch, 2, first, second))
    angle = _angles(n, first, second)
    turned = b.transpose(
        _times(b, y, np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)), (0, 2, 1, 3)
    )
    z = transform(b, b.reshape(turned, (batch * first, 2, second)), inverse=inverse, direct=direct)
    z = b.transpose(b.reshape(z, (batch, first, 2, second)), (0, 2, 3, 1))
    return b.reshape(z, (batch, 2, n))


def _factor(n: int, direct: int) -> int:
    """The length of the first of two steps: the divisor next to the root of n, or n itself for a single step."""
    if n <= direct:
        return n
    divisors = [d for d in range(2, math.isqrt(n) + 1) if n % d == 0]
    small = [d for d in divisors if d <= direct]
    if small:
        return max(small)
    return n if not divisors else min(divisors)


def _constant(b: Builder, table: Array, like: Value) -> Value:
    return b.constant(np.ascontiguousarray(table).astype(like.type.dtype.numpy), like.type.dtype)


def _times(b: Builder, x: Value, cosine: Array, sine: Array) -> Value:
    """x (batch, 1 or 2, places...) times cosine + i sine, as (batch, 2, places...)."""
    batch, parts, *places = x.type.shape
    shape = (batch, 2, *places)

    def spread(first: Array, second: Array) -> Value:
        return b.broadcast_to(_constant(b, np.stack([first, second]), x), shape)

    if parts == 1:
        return b.mul(b.broadcast_to(x, shape), spread(cosine, sine))
    starts, steps = (0, 1, *(0,) * len(places)), (1, -1, *(1,) * len(places))
    swapped = b.op("core.slice", x, starts=starts, sizes=shape, steps=steps)
    return b.add(b.mul(x, spread(cosine, cosine)), b.mul(swapped, spread(-sine, sine)))


def _by_chirp(b: Builder, x: Value, inverse: bool, direct: int) -> Value:
    """j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution between two multiplications."""
    batch, _, n = x.type.shape
    assert isinstance(n, int)
    size = _smooth(2 * n - 1)
    angle = np.arange(n) ** 2 % (2 * n) * (math.pi / n)
    cosine, sine = np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)
    chirp = np.zeros(size, np.complex128)
    chirp[:n] = cosine - 1j * sine
    chirp[size - n + 1 :] = chirp[1:n][::-1]
    spectrum = np.fft.fft(chirp) / size
    moved = _times(b, x, cosine, sine)
    zero = b.constant(0, x.type.dtype)
    padded = b.op("core.pad", moved, zero, low=(0, 0, 0), high=(0, 0, size - n))
    there = transform(b, padded, inverse=False, direct=direct)
    back = transform(b, _times(b, there, spectrum.real, spectrum.imag), inverse=True, direct=direct)
    kept = b.op("core.slice", back, starts=(0, 0, 0), sizes=(batch, 2, n), steps=(1, 1, 1))
    return _times(b, kept, cosine, sine)


def _smooth(least: int) -> int:
    """The next length that has only small factors."""
    return 1 << (least - 1).bit_length()


def _symbolic(b: Builder, x: Value, count: DimLike, wanted: DimLike, inverse: bool) -> Value:
    """One product with a table computed at run time; the angles are exact before they are rounded."""
    batch, _, parts = x.type.shape
    cosine, sine = _symbolic_table(b, count, count, wanted, x.type.dtype)
    if not inverse:
        sine = b.neg(sine)
    real, imaginary = (b.reshape(_plane(b, x, i), (batch, count)) for i in (0, int(parts == 2)))
    y = [b.op("core.contract", real, cosine), b.op("core.contract", real, sine)]
    if parts == 2:
        y[0] = b.sub(y[0], b.op("core.contract", imaginary, sine))
        y[1] = b.add(y[1], b.op("core.contract", imaginary, cosine))
    planes = [b.reshape(p, (batch, 1, wanted)) for p in y]
    joint = b.op("core.concat", *planes, axis=1)
    if inverse:
        scale = b.convert(b.dims([count], scalar=True), x.type.dtype)
        joint = b.div(joint, b.broadcast_to(scale, joint.type.shape))
    return b.transpose(joint, (0, 2, 1))


def _plane(b: Builder, x: Value, index: int) -> Value:
    batch, n, _ = x.type.shape
    return b.op("core.slice", x, starts=(0, 0, index), sizes=(batch, n, 1), steps=(1, 1, 1))


def _symbolic_table(
    b: Builder, count: DimLike, rows: DimLike, columns: DimLike, dtype: DType
) -> tuple[Value, Value]:
    shape = (rows, columns)
    row, column = (b.op("core.iota", shape=shape, axis=i, dtype=dtypes.i64) for i in (0, 1))
    size = b.broadcast_to(b.dims([count], scalar=True), shape)
    turn = b.convert(b.mod(b.mul(row, column), size), dtypes.f64)
    angle = b.div(b.mul(turn, b.full(2 * math.pi, turn)), b.convert(size, dtypes.f64))
    return b.convert(b.cos(angle), dtype), b.convert(b.sin(angle), dtype)


def _to_real(b: Builder, x: Value, count: DimLike, short: bool) -> Value:
    """The real signal (batch, count, 1) of half a spectrum (batch, count // 2 + 1, 2), scaled."""
    if x.type.shape[-1] == 1:
        x = b.op("core.pad", x, b.constant(0, x.type.dtype), low=(0, 0, 0), high=(0, 0, 1))
    batch, half, _ = x.type.shape
    if isinstance(count, int) and count <= _REAL_DIRECT[dtypes.f64 if short else dtypes.f32]:
        assert isinstance(half, int)
        angle = _angles(count, half, count)
        weight = np.full((half, 1), 2.0)
        weight[0] = 1
        if count % 2 == 0:
            weight[-1] = 1
        table = np.stack([weight * np.cos(angle), -weight * np.sin(angle)], 1) / count
        rows = _constant(b, table.reshape(half * 2, count), x)
        return b.reshape(b.op("core.contract", b.reshape(x, (batch, half * 2)), rows), (batch, count, 1))
    rest = count - half  # places whose numbers are the conjugates of earlier ones
    mirrored = b.op("core.slice", x, starts=(0, rest, 0), sizes=(batch, rest, 2), steps=(1, -1, 1))
    real, imaginary = _plane(b, mirrored, 0), b.neg(_plane(b, mirrored, 1))
    conjugate = b.op("core.concat", real, imaginary, axis=2)
    whole = b.assume_shape(b.op("core.concat", x, conjugate, axis=1), (batch, count, 2))
    y = _computed(b, whole, count=count, inverse=True, onesided=False, short=short)
    return _plane(b, y, 0)
