"""Depthwise convolution, one filter per channel: vectors of channels, a tile of neighbouring pixels each.

The input lies channels last.  Rows of the kernel that fall into the padding are left out; along the
last spatial axis a tile is either wholly inside, or taps in the padding read zeros.  The pixels of a tile
share the vectors they read; the last tile of a row is shifted back so that it is whole.

The range counts the rows of the result (all spatial axes but the last, and images).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.evaluator import Source
from sardonyx.kernels.geometry import clipped_range, geometry_of, unravel
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.map import group_location
from sardonyx.kernels.microkernel import compute_dtype
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = ["depthwise_kernel", "is_depthwise"]

_WIDEST = 11  # kernel extent along the last axis up to which its taps are unrolled


def is_depthwise(op: Op, weights: Value) -> bool:
    """Whether the kernel here computes a ``core.convolve`` with these weights."""
    x, w = op.operands
    constant = weights.op is not None and weights.op.name == "core.constant"
    one_each = w.type.shape[1] == 1 and op.attributes["group"] == x.type.shape[-1] == w.type.shape[0]
    return constant and one_each and w.type.shape[-1] <= _WIDEST


def depthwise_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one depthwise ``core.convolve`` by constant weights."""
    return _Depthwise(region, operands, results, target).build()


class _Depthwise:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        self.region, self.results = region, results
        self.outer = dict(zip(region.arguments, operands, strict=True))
        self.op = next(op for op in region.ops if op.name == "core.convolve")
        x, w = self.op.operands
        self.g = geometry_of(self.op, [int(k) for k in w.type.shape[2:]])
        self.stored: DType = x.type.dtype
        self.dtype = compute_dtype(self.stored)
        self.lanes = max(1, target.vector_bytes // self.dtype.itemsize)
        self.channels: int = w.type.shape[0]
        self.padded = -(-self.channels // self.lanes) * self.lanes
        self.width = self.g.outputs[-1]
        self.tile = self._tile_size(target)
        (self.form,) = [u for u in self.op.result.uses if u.name == "core.reshape"]

    def _tile_size(self, target: Target) -> int:
        """Pixels of a tile: within the registers, and so that rows of known width waste the least."""
        most = (8 if target.registers >= 32 else 6) if self.g.kernel[-1] <= 5 else 4
        if not isinstance(self.width, int):
            return most
        if self.width <= most:
            return max(1, self.width)
        width = self.width
        return min(range(most, most // 2, -1), key=lambda t: -(-width // t) * (t + 2))

    def _packed_weights(self) -> Dense:
        """Weights as (taps, channels), channels padded to whole vectors."""
        value = self.outer[self.op.operands[1]]
        assert value.op is not None
        array = value.op.attributes["value"].array
        flat = array.reshape(self.channels, -1).T.astype(self.dtype.numpy)
        padded = np.zeros((flat.shape[0], self.padded), self.dtype.numpy)
        padded[:, : self.channels] = flat
        return Dense(padded, self.dtype)

    def build(self) -> Kernel:
        kernel = self.kernel = KernelBuilder("depthwise", group_location(self.region), baked=1)
        kernel.all_equal = False
        b, g = kernel.b, self.g
        self.b = b
        kernel.note(f"tiles of {self.tile} pixels x {self.lanes} lanes of channels")
        self.x = kernel.buffer(self.outer[self.op.operands[0]], name="x")
        self.w = kernel.constant(self._packed_weights(), "w")
        self.zeros = b.address(
            kernel.constant(Dense(np.zeros(self.lanes, self.stored.numpy), self.stored), "zeros")
        )
        sources = {
            v: Source(kernel.buffer(o), v.type.shape)
            for v, o in self.outer.items()
            if any(user is not self.op for user in v.uses)
        }
        out = kernel.buffer(self.results[0], name="out")
        self.epilogue = Epilogue(kernel, self.region, sources, self.form.result, out, self.lanes, self.tile)
        rows = product(g.outputs[:-1])
        images = self.op.operands[0].type.shape[0]
        with b.loop(kernel.begin, kernel.end) as unit:
            n_rows = kernel.parameter(rows, "rows")
            image, row = (
                (unit.index, 0) if rows == 1 else (b.idiv(unit.index, n_rows), b.imod(unit.index, n_rows))
            )
            self._row(image, row)
        taps = math.prod(g.kernel)
        return kernel.finish(images * rows, images * product(g.outputs) * self.channels * taps)

    def _row(self, image: Index, row: Index) -> None:
        """One row of the result: its kernel rows that lie inside, then the vectors of channels."""
        b, g, kernel = self.b, self.g, self.kernel
        places = unravel(kernel, row, g.outputs[:-1])
        base = b.imul(image, kernel.parameter(product(g.sizes) * g.channels, "image"))
        ranges = []
        for axis, place in enumerate(places):
            start = b.isub(b.imul(place, g.strides[axis]), kernel.parameter(g.lows[axis], ("low", axis)))
            ranges.append(
                clipped_range(
                    b,
                    start,
                    kernel.parameter(g.sizes[axis], ("size", axis)),
                    g.kernel[axis],
                    g.dilations[axis],
                )
            )
            base = b.iadd(base, b.imul(start, kernel.parameter(g.steps[axis], ("step", axis))))
        first = b.imul(row, kernel.parameter(self.width, "width"))
        with b.loop(0, kernel.parameter(self.channels, "channels"), self.lanes) as block:
            mask = None
            if self.channels % self.lanes:
                mask = b.mask(b.isub(kernel.parameter(self.channels, "channels"), block.index), self.lanes)
            self._tiles(image, first, base, ranges, block.index, mask)

    def _tiles(
        self,
        image: Index,
        first: Index,
        base: Index,
        ranges: list[tuple[Index, Index]],
        channel: Index,
        mask: Value | None,
    ) -> None:
        """The tiles of a row: inside, where no tap can leave the input, or at an edge."""
        b, g, t, kernel = self.b, self.g, self.tile, self.kernel
        width = kernel.parameter(self.width, "width")
        low, stride = kernel.parameter(g.lows[-1], ("low", g.rank - 1)), g.strides[-1]
        span = (g.kernel[-1] - 1) * g.dilations[-1]
        size = kernel.parameter(g.sizes[-1], ("size", g.rank - 1))

        def tile(start: Index, pixels: int) -> None:
            column = b.isub(b.imul(start, stride), low)

            def emit(edge: bool) -> Sequence[Value]:
                self._tile(image, first, base, ranges, channel, mask, start, column, pixels, edge)
                return ()

            if pixels == 1:
                emit(True)
                return
            end = b.iadd(column, (pixels - 1) * stride + span)
            inside = b.scalar_op("and", b.icmp("ge", column, 0), b.icmp("lt", end, size))
            b.if_(inside, lambda: emit(False), lambda: emit(True))

        def whole() -> Sequence[Value]:
            with b.loop(0, kernel.parameter(ceildiv(self.width, t), "tiles")) as number:
                tile(b.imin(b.imul(number.index, t), b.isub(width, t)), t)
            return ()

        def single() -> Sequence[Value]:
            with b.loop(0, width) as pixel:
                tile(pixel.index, 1)
            return ()

        if isinstance(self.width, int):
            whole() if self.width >= t else single()
        else:
            b.if_(b.icmp("ge", width, t), whole, single)

    def _tile(
        self,
        image: Index,
        first: Index,
        base: Index,
        ranges: list[tuple[Index, Index]],
        channel: Index,
        mask: Value | None,
        start: Index,
        column: Index,
        pixels: int,
        edge: bool,
    ) -> None:
        b, g, kernel = self.b, self.g, self.kernel
        extent, stride, dilation = g.kernel[-1], g.strides[-1], g.dilations[-1]
        step = kernel.parameter(self.channels, "channels")
        offsets = sorted({t * stride + k * dilation for t in range(pixels) for k in range(extent)})
        valid: dict[int, Value] = {}
        if edge:
            size = kernel.parameter(g.sizes[-1], ("size", g.rank - 1))
            for offset in offsets:
                place = b.iadd(column, offset)
                valid[offset] = b.scalar_op("and", b.icmp("ge", place, 0), b.icmp("lt", place, size))
        origin = b.iadd(b.iadd(base, channel), b.imul(column, step))

        def along(axis: int, at: Index, tap: Index, sums: Sequence[Value]) -> list[Value]:
            if axis == g.rank - 1:
                return self._kernel_row(at, b.imul(tap, extent), channel, mask, offsets, valid, pixels, sums)
            low, high = ranges[axis]
            with b.loop(low, high, carried=sums) as k:
                moved = b.imul(
                    b.imul(k.index, g.dilations[axis]), kernel.parameter(g.steps[axis], ("step", axis))
                )
                inner = b.iadd(b.imul(tap, g.kernel[axis]), k.index)
                b.yield_(*along(axis + 1, b.iadd(at, moved), inner, k.carried))
            return k.results

        zero = b.const(0.0, self.dtype, self.lanes)
        sums = along(0, origin, 0, [zero] * pixels)
        pixel = b.iadd(first, start)
        numbers = [b.iadd(pixel, t) for t in range(pixels)]
        end = kernel.parameter(self.channels, "channels")
        self.epilogue.store_tile(sums, [image], numbers, None, channel, end, [mask], multiple=self.lanes)

    def _kernel_row(
        self,
        at: Index,
        tap: Index,
        channel: Index,
        mask: Value | None,
        offsets: list[int],
        valid: dict[int, Value],
        pixels: int,
        sums: Sequence[Value],
    ) -> list[Value]:
        """All taps along the last axis: every vector of the input is read once."""
        b, g, lanes, kernel = self.b, self.g, self.lanes, self.kernel
        extent, stride, dilation = g.kernel[-1], g.strides[-1], g.dilations[-1]
        step = kernel.parameter(self.channels, "channels")
        weights = [
            b.load(
                self.w,
                b.iadd(b.imul(b.iadd(tap, k), kernel.parameter(self.padded, "padded")), channel),
                lanes,
            )
            for k in range(extent)
        ]
        totals = list(sums)
        for offset in offsets:
            place = b.iadd(at, b.imul(step, offset))
            if valid:
                address = b.scalar_op(
                    "select", valid[offset], b.address(self.x, place), self.zeros, dtype=dtypes.i64
                )
                vector = b.load(b.pointer(address, self.stored), 0, lanes, mask)
            else:
                vector = b.load(self.x, place, lanes, mask)
            vector = b.convert(vector, self.dtype)
            for t in range(pixels):
                k, rest = divmod(offset - t * stride, dilation)
                if rest == 0 and 0 <= k < extent:
                    totals[t] = b.muladd(vector, weights[k], totals[t])
        return totals
