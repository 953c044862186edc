"""Convolution by the register tile: rows are output pixels, columns filters, the depth taps and channels.

The input lies channels last, so every tap of a pixel is a row of consecutive channels: a pixel needs no
copies but one pointer per tap.  The pointers of a block of pixels are computed in vectors and stand in a
small table; taps in the padding point to zeros (M. Dukhan, "The Indirect Convolution Algorithm", 2019).

Inputs of few channels (a picture's three) are first copied to rows padded on both sides; all taps of a
kernel row are then one run of ``extent * channels`` elements.

The range counts (image, group, block of pixels, panel of filters).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.contract import row_block
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.evaluator import Source
from sardonyx.kernels.geometry import Geometry, geometry_of, unravel
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.lane_index import LaneIndex, Place, uniform
from sardonyx.kernels.map import group_location
from sardonyx.kernels.microkernel import Panels, accumulate, compute_dtype, read_row, tile_for, widths
from sardonyx.kernels.padded_rows import padded_rows_kernel, zeros_kernel
from sardonyx.kernels.panels import pack_constant, pack_kernel, panel_elements
from sardonyx.kernels.rows_of_tiles import row_tiles
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = ["convolve_kernels"]

_TABLE = 4096  # pointers of a block of pixels: 32 KB of stack
_FEW_CHANNELS = 4  # up to here a kernel row is read as one run


def convolve_kernels(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> list[Kernel]:
    """The kernels of a group with one ``core.convolve``."""
    return _Convolve(region, operands, results, target).build()


class _Convolve:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        self.region, self.results, self.target = region, results, target
        self.outer = dict(zip(region.arguments, operands, strict=True))
        self.op = next(op for op in region.ops if op.name == "core.convolve")
        self.location = group_location(region)
        x, w = self.op.operands
        self.kernels: list[Kernel] = []
        self.geometry: Geometry = geometry_of(self.op, [int(k) for k in w.type.shape[2:]])
        self.images: DimLike = x.type.shape[0]
        self.groups: int = self.op.attributes["group"]
        self.filters: DimLike = w.type.shape[0] // self.groups
        self.depth: DimLike = w.type.shape[1]  # channels of one tap
        self.stored: DType = x.type.dtype
        self.dtype = compute_dtype(self.stored)
        self.tile = tile_for(target, self.dtype, self.filters)
        self.cut: Panels | None = widths(self.filters, self.tile) if isinstance(self.filters, int) else None
        self.input: Callable[[KernelBuilder], Value] = lambda kernel: kernel.buffer(self.outer[x], name="x")
        (self.form,) = [u for u in self.op.result.uses if u.name == "core.reshape"]
        pads, rank = self.op.attributes["pads"], self.geometry.rank
        # Whether a tap can fall outside of the input along an axis.
        self.leaves = [pads[i] != 0 or pads[i + rank] != 0 for i in range(rank)]
        self._merge_rows()

    def build(self) -> list[Kernel]:
        product_kernel = self._product(self._weights())
        return [*self.kernels, product_kernel]

    def _merge_rows(self) -> None:
        """With few channels: pad the rows into scratch memory, so that a kernel row is one run."""
        g, x = self.geometry, self.op.operands[0]
        few = isinstance(g.channels, int) and g.channels <= _FEW_CHANNELS
        if not few or g.kernel[-1] == 1 or g.dilations[-1] != 1 or self.groups != 1:
            return
        pads = self.op.attributes["pads"]
        width = g.sizes[-1] + pads[g.rank - 1] + pads[2 * g.rank - 1]
        rows = self.images * product(g.sizes[:-1])
        scratch = Scratch(self.stored, rows * width * g.channels)
        self.kernels.append(
            padded_rows_kernel(
                self.location,
                self.outer[x],
                x.type,
                scratch,
                pads[g.rank - 1],
                pads[2 * g.rank - 1],
                self.target,
            )
        )
        self.input = lambda kernel: kernel.scratch(scratch, "x")
        self.depth = g.kernel[-1] * g.channels
        self.leaves[-1] = False
        self.geometry = replace(
            g, sizes=(*g.sizes[:-1], width), kernel=(*g.kernel[:-1], 1), lows=(*g.lows[:-1], 0)
        )

    # -- the weights

    def _weights(self) -> Callable[[KernelBuilder], Value]:
        """Panels of every group: depth is (taps, channels)."""
        w = self.op.operands[1]
        outer = self.outer.get(w, w)
        taps = product(self.geometry.kernel)
        depth = taps * self.depth
        if outer.op is not None and outer.op.name == "core.constant" and isinstance(self.filters, int):
            array = outer.op.attributes["value"].array
            rank = self.geometry.rank
            ordered = array.reshape(self.groups, self.filters, *array.shape[1:])
            ordered = np.transpose(ordered, (0, *range(3, 3 + rank), 2, 1))
            dense = pack_constant(ordered.reshape(self.groups, -1, self.filters), self.tile, self.dtype)
            self.how = "packed when compiled"
            return lambda kernel: kernel.constant(dense, "panels")
        self.how = "packed by a kernel of its own"
        scratch = Scratch(self.dtype, panel_elements(self.groups, depth, self.filters, self.tile))
        spatial = tuple(int(k) for k in w.type.shape[2:])
        channels = w.type.shape[1]

        def place(kernel: KernelBuilder, indices: list[Index], step: Index, lane: LaneIndex) -> Place:
            b = kernel.b
            position = unravel(kernel, b.idiv(step, kernel.dim(channels)), spatial)
            first = b.imul(indices[0], kernel.parameter(self.filters, "filters"))
            filter_ = LaneIndex(b.iadd(first, lane.base), 1)
            return (filter_, uniform(b.imod(step, kernel.dim(channels))), *(uniform(p) for p in position))

        def sources(kernel: KernelBuilder) -> dict[Value, Source]:
            if w not in self.outer:
                return {}
            return {w: Source(kernel.buffer(outer, name="w"), w.type.shape)}

        self.kernels.append(
            pack_kernel(
                "pack",
                self.location,
                scratch,
                self.tile,
                (self.groups,),
                depth,
                self.filters,
                place,
                w,
                sources,
            )
        )
        return lambda kernel: kernel.scratch(scratch, "panels")

    # -- the product

    def _product(self, weights: Callable[[KernelBuilder], Value]) -> Kernel:
        kernel = KernelBuilder("convolve", self.location, baked=1)
        kernel.all_equal = False
        b, tile, g = kernel.b, self.tile, self.geometry
        self.kernel, self.b = kernel, b
        kernel.note(f"tiles of {tile}, rows being pixels")
        kernel.note(f"the weights are {self.how}")
        self.x = self.input(kernel)
        self.w = weights(kernel)
        self.zeros = self._zero_row(kernel)
        sources = {
            v: Source(kernel.buffer(o), v.type.shape)
            for v, o in self.outer.items()
            if any(user is not self.op for user in v.uses)
        }
        out = kernel.buffer(self.results[0], name="out")
        accumulators = tile.rows * tile.vectors
        self.epilogue = Epilogue(
            kernel, self.region, sources, self.form.result, out, tile.lanes, accumulators
        )
        self.taps = math.prod(g.kernel)
        self.lanes = 1 << (tile.rows - 1).bit_length()  # pointers of a tile in one vector
        self.pixels: DimLike = product(g.outputs)
        panels: DimLike = self.cut.count if self.cut else ceildiv(self.filters, tile.lanes * tile.vectors)
        block = row_block(self.pixels, panels, self.images * self.groups, tile)
        most = max(1, _TABLE // (self.taps * self.lanes)) * tile.rows
        block = min(block, most)
        tiles = block // tile.rows + 1  # one more: symbolic rests are a tile that reaches beyond the block
        self.table = b.local(dtypes.i64, (tiles * self.taps + 1) * self.lanes)
        blocks = ceildiv(self.pixels, block)
        per_image = blocks * panels
        n_panels, n_blocks = kernel.parameter(panels, "panels"), kernel.parameter(blocks, "blocks")
        size = kernel.parameter(block, "block")
        low = b.idiv(kernel.begin, n_panels)
        high = b.idiv(b.isub(b.iadd(kernel.end, n_panels), 1), n_panels)
        with b.loop(low, high) as number:
            rest, piece = b.idiv(number.index, n_blocks), b.imod(number.index, n_blocks)
            image, group = b.idiv(rest, self.groups), b.imod(rest, self.groups)
            first = b.imul(piece, size)
            count = b.imin(b.isub(kernel.parameter(self.pixels, "pixels"), first), size)
            self._fill_table(image, group, first, count)
            before = b.imul(number.index, n_panels)
            start = b.imax(b.isub(kernel.begin, before), 0)
            stop = b.imin(b.isub(kernel.end, before), n_panels)
            with b.loop(start, stop) as panel:
                self._panel(image, group, first, count, panel.index)
        units = self.images * self.groups * per_image
        cost = self.images * self.pixels * self.filters * self.groups * self.taps * self.depth
        return kernel.finish(units, cost)

    def _zero_row(self, kernel: KernelBuilder) -> Value:
        """Zeros for one tap: a constant, or memory that a kernel of its own clears for symbolic channels."""
        if isinstance(self.depth, int):
            return kernel.constant(Dense(np.zeros(self.depth, self.stored.numpy), self.stored), "zeros")
        scratch = Scratch(self.stored, self.depth)
        self.kernels.append(zeros_kernel(self.location, scratch))
        return kernel.scratch(scratch, "zeros")

    # -- the table of pointers

    def _fill_table(self, image: Index, group: Index, first: Index, count: Index) -> None:
        """Pointers of every tap of the block's pixels: [tile][tap][pixel of the tile]."""
        b, kernel, rows = self.b, self.kernel, self.tile.rows
        step = product(self.geometry.sizes) * self.geometry.channels
        base = b.iadd(
            b.imul(image, kernel.parameter(step, "image")),
            b.imul(group, kernel.parameter(self.depth, "depth")),
        )
        with b.loop(0, count, rows) as tile:
            slot = b.imul(b.idiv(tile.index, rows), self.taps * self.lanes)
            self._tile_pointers(base, b.iadd(first, tile.index), slot)

    def _tile_pointers(self, base: Index, pixel: Index, slot: Index) -> None:
        b, g, lanes, kernel = self.b, self.geometry, self.lanes, self.kernel
        whole, i64 = dtypes.f64, dtypes.i64

        def spread(index: Index) -> Value:
            return b.splat(b.from_index(index, i64), lanes)

        numbers = b.scalar_op("add", spread(pixel), b.lanes(lanes))
        final = spread(b.isub(kernel.parameter(self.pixels, "pixels"), 1))
        rest = b.scalar_op("min", numbers, final)
        places: list[Value] = []
        for axis in reversed(range(g.rank)):
            if axis == 0:
                places.insert(0, rest)
                break
            # Division by multiplication: exact, as (n + 1/2) / d is at least 1 / 2d away from any integer.
            extent = kernel.parameter(g.outputs[axis], ("output", axis))
            half = b.scalar_op("add", b.convert(rest, whole), b.const(0.5, whole, lanes))
            inverse = b.scalar_op("div", b.const(1.0, whole), b.from_index(extent, whole))
            quotient = b.convert(b.scalar_op("mul", half, b.splat(inverse, lanes)), i64)
            places.insert(0, b.scalar_op("sub", rest, b.scalar_op("mul", quotient, spread(extent))))
            rest = quotient
        starts = [
            b.scalar_op("sub", b.scalar_op("mul", p, spread(s)), spread(kernel.parameter(low, ("low", axis))))
            for axis, (p, s, low) in enumerate(zip(places, g.strides, g.lows, strict=True))
        ]
        size = self.stored.itemsize
        address = spread(0)
        for axis, (start, step) in enumerate(zip(starts, g.steps, strict=True)):
            address = b.scalar_op(
                "add",
                address,
                b.scalar_op("mul", start, spread(b.imul(kernel.parameter(step, ("step", axis)), size))),
            )
        address = b.scalar_op("add", address, b.splat(b.address(self.x, base), lanes))
        self._taps(starts, address, slot)

    def _taps(self, starts: list[Value], address: Value, slot: Index) -> None:
        """Nested loops over the kernel's axes; a tap outside of the input points to the zeros."""
        b, g, lanes, kernel = self.b, self.geometry, self.lanes, self.kernel
        i64, size = dtypes.i64, self.stored.itemsize
        nowhere = b.splat(b.address(self.zeros), lanes)

        def spread(index: Index) -> Value:
            return b.splat(b.from_index(index, i64), lanes)

        def along(axis: int, address: Value, inside: Value | None, slot: Index) -> None:
            if axis == g.rank:
                chosen = address if inside is None else b.scalar_op("select", inside, address, nowhere)
                b.store(chosen, self.table, slot)
                return
            inner = math.prod(g.kernel[axis + 1 :]) * lanes
            with b.loop(0, g.kernel[axis]) as k:
                moved = b.imul(k.index, g.dilations[axis])
                place = b.scalar_op("add", starts[axis], spread(moved))
                here = inside
                if self.leaves[axis]:
                    test = b.scalar_op("ge", place, spread(0), dtype=dtypes.boolean)
                    below = b.scalar_op(
                        "lt",
                        place,
                        spread(kernel.parameter(g.sizes[axis], ("size", axis))),
                        dtype=dtypes.boolean,
                    )
                    test = b.scalar_op("and", test, below)
                    here = test if here is None else b.scalar_op("and", here, test)
                step = b.imul(kernel.parameter(g.steps[axis], ("step", axis)), size)
                at = b.scalar_op("add", address, spread(b.imul(moved, step)))
                along(axis + 1, at, here, b.iadd(slot, b.imul(k.index, inner)))

        along(0, address, None, slot)

    # -- tiles

    def _panel(self, image: Index, group: Index, first: Index, count: Index, panel: Index) -> None:
        b, cut = self.b, self.cut
        if cut is None:
            width = self.tile.vectors
            self._down(image, group, first, count, b.imul(panel, width), width)
        elif not cut.wide:
            self._down(image, group, first, count, b.imul(panel, cut.vectors), cut.vectors)
        else:

            def wide() -> Sequence[Value]:
                self._down(image, group, first, count, b.imul(panel, cut.vectors + 1), cut.vectors + 1)
                return ()

            def narrow() -> Sequence[Value]:
                start = b.iadd(b.imul(panel, cut.vectors), cut.wide)
                self._down(image, group, first, count, start, cut.vectors)
                return ()

            b.if_(b.icmp("lt", panel, cut.wide), wide, narrow)

    def _down(
        self, image: Index, group: Index, first: Index, count: Index, vector: Index, vectors: int
    ) -> None:
        """One panel of filters down the pixels of the block."""
        b, kernel, lanes = self.b, self.kernel, self.tile.lanes
        column = b.imul(vector, lanes)
        depth = self.taps * self.depth
        one = panel_elements(1, depth, self.filters, self.tile)
        start = b.iadd(
            b.imul(group, kernel.parameter(one, "group")), b.imul(column, kernel.parameter(depth, "all"))
        )
        panel = b.offset(self.w, start)
        masks: list[Value | None] = [None] * vectors
        filters = self.filters
        for j in range(vectors):
            whole = isinstance(filters, int) and (filters % lanes == 0 or j < vectors - 1)
            if not whole:
                left = b.isub(kernel.dim(filters), b.iadd(column, j * lanes))
                masks[j] = b.mask(b.imax(left, 0), lanes)
        end = b.isub(b.iadd(first, count), 1)

        def emit(row: Index, rows: int, clamp: bool) -> None:
            self._tile(image, group, first, panel, column, masks, row, rows, end if clamp else None)

        row_tiles(b, self.pixels, self.tile, first, count, emit, single=False)

    def _tile(
        self,
        image: Index,
        group: Index,
        first: Index,
        panel: Value,
        column: Index,
        masks: list[Value | None],
        row: Index,
        rows: int,
        last: Index | None,
    ) -> None:
        b, lanes, vectors, kernel = self.b, self.tile.lanes, len(masks), self.kernel
        slot = b.imul(b.idiv(b.isub(row, first), self.tile.rows), self.taps * self.lanes)
        zero = b.const(0.0, self.dtype, lanes)
        with b.loop(0, self.taps, carried=[*[zero] * (rows * vectors), panel], at_least_once=True) as tap:
            place = b.iadd(slot, b.imul(tap.index, self.lanes))
            pointers = [b.pointer(b.load(self.table, b.iadd(place, r)), self.stored) for r in range(rows)]
            sums, behind = accumulate(
                b,
                dtype=self.dtype,
                depth=kernel.parameter(self.depth, "depth"),
                rows=pointers,
                step=1,
                weights=tap.carried[-1],
                weight_step=vectors * lanes,
                read=lambda at: read_row(b, at, vectors, lanes, [None] * vectors),
                sums=tap.carried[:-1],
                at_least_once=isinstance(self.depth, int),
            )
            b.yield_(*sums, behind)
        sums = tap.results[:-1]
        numbers = [b.iadd(row, r) for r in range(rows)]
        if last is not None:
            numbers = [numbers[0], *(b.imin(n, last) for n in numbers[1:])]
        filter_ = b.iadd(b.imul(group, kernel.parameter(self.filters, "filters")), column)
        end = b.iadd(filter_, b.isub(kernel.parameter(self.filters, "filters"), column))
        multiple = lanes if self.groups == 1 else 1
        self.epilogue.store_tile(sums, [image], numbers, last, filter_, end, masks, multiple=multiple)
