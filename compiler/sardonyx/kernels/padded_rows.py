"""Copies pictures of few channels to rows with room for the padding on both sides."""

from __future__ import annotations

from sardonyx.ir.graph import Location, Value
from sardonyx.ir.types import TensorType
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, product

__all__ = ["padded_rows_kernel", "zeros_kernel"]


def padded_rows_kernel(
    location: Location,
    x: Value,
    kind: TensorType,
    scratch: Scratch,
    low: DimLike,
    high: DimLike,
    target: Target,
) -> Kernel:
    """x (n, spatial..., c) with ``low`` and ``high`` zero places around each row of its last spatial axis."""
    kernel = KernelBuilder("pad_rows", location)
    b = kernel.b
    source, out = kernel.buffer(x, name="x"), kernel.scratch(scratch, "rows")
    channels = kernel.dim(kind.shape[-1])
    length = kernel.dim(kind.shape[-2] * kind.shape[-1])
    before, after = b.imul(kernel.dim(low), channels), b.imul(kernel.dim(high), channels)
    whole = kernel.dim((kind.shape[-2] + low + high) * kind.shape[-1])
    lanes = max(1, target.vector_bytes // kind.dtype.itemsize)
    wide = kind.dtype if kind.dtype.bits >= 32 else dtypes.f32
    zero = b.convert(b.const(0.0, wide), kind.dtype)
    with b.loop(kernel.begin, kernel.end) as row:
        to = b.imul(row.index, whole)
        read = b.imul(row.index, length)
        for start, count in ((to, before), (b.iadd(to, b.iadd(before, length)), after)):
            with b.loop(0, count) as i:
                b.store(zero, out, b.iadd(start, i.index))
        into = b.iadd(to, before)

        def body(index: Index, mask: Value | None, into: Index = into, read: Index = read) -> None:
            b.store(b.load(source, b.iadd(read, index), lanes, mask), out, b.iadd(into, index), mask)

        vector_loop(b, 0, length, lanes, 1, 1, body)
    rows = product(kind.shape[:-2])
    return kernel.finish(rows, rows * kind.shape[-2] * kind.shape[-1] * 8)


def zeros_kernel(location: Location, scratch: Scratch) -> Kernel:
    """Clears scratch memory."""
    kernel = KernelBuilder("zeros", location)
    b = kernel.b
    out = kernel.scratch(scratch, "zeros")
    wide = scratch.dtype if scratch.dtype.bits >= 32 else dtypes.f32
    zero = b.convert(b.const(0.0, wide), scratch.dtype)
    with b.loop(kernel.begin, kernel.end) as place:
        b.store(zero, out, place.index)
    return kernel.finish(scratch.size, scratch.size)
