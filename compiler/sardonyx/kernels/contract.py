"""The matrix product's kernel: ``core.contract`` with its epilogue, for types the register tile computes.

Both operands are affine views of memory.  A is read element by element at any strides.  B is read in
panels: a constant is packed at compile time, a matrix whose columns lie next to each other is read in
place, any other is packed by a kernel of its own that runs before.

The range counts (batch, block of rows, panel); a unit runs its panel down the block of rows, tile by
tile, so that the panel stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sardonyx.ir.graph import Block, Location, Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.contract_tiles import ProductShape, Tiles
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.evaluator import Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.lane_index import LaneIndex, Place, uniform
from sardonyx.kernels.map import group_location
from sardonyx.kernels.microkernel import Panels, Tile, compute_dtype, tile_for, widths
from sardonyx.kernels.panels import pack_constant, pack_kernel, panel_elements
from sardonyx.kernels.target import Target
from sardonyx.kernels.views import View, view_of
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = ["constant_matrices", "contract_kernels", "row_block"]

_ROW_BLOCK = 480
_UNITS = 8  # pieces of work that are enough for any number of threads to share evenly


def row_block(rows: DimLike, panels: DimLike, batch: DimLike, tile: Tile) -> int:
    """Rows of one unit of work: a multiple of the tile's, fewer where there are few panels to share out."""
    most = _ROW_BLOCK // tile.rows * tile.rows
    others = panels * batch
    if not isinstance(others, int):
        others = panels if isinstance(panels, int) else 1
    if not isinstance(rows, int):
        return most if others >= _UNITS else 120 // tile.rows * tile.rows
    blocks = max(1, -(-_UNITS // max(1, others)))
    block = -(-rows // blocks)
    return min(most, max(4 * tile.rows, -(-block // tile.rows) * tile.rows))


def constant_matrices(view: View, shape: Shape, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The elements of a view of a constant, axes along which it only repeats cut to 1."""
    sizes = [1 if s == 0 else static(d) for d, s in zip(shape, view.strides, strict=True)]
    flat = np.ascontiguousarray(array).reshape(-1)
    if 0 in sizes:
        return np.zeros(sizes, flat.dtype)
    strides = [static(s) * flat.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(flat[static(view.offset) :], sizes, strides, writeable=False)


def is_known(view: View, shape: Shape) -> bool:
    """Whether the same elements are seen in every run; in a loop they may move from pass to pass."""
    steps = zip(view.strides, shape, strict=True)
    return isinstance(view.offset, int) and all(
        s == 0 or (isinstance(s, int) and isinstance(d, int)) for s, d in steps
    )


def static(dim: DimLike) -> int:
    """A dim that is known."""
    assert isinstance(dim, int)
    return dim


def contract_kernels(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> list[Kernel]:
    """The kernels of a group with one ``core.contract``: packing where it is needed, then the product."""
    return _Contract(region, operands, results, target).build()


@dataclass
class _Weights:
    """B as the product's kernel reads it: packed panels or a view in place; and how."""

    buffer: Callable[[KernelBuilder], Value]
    view: View | None  # in place
    batch_steps: tuple[DimLike, ...]  # elements from one batch index to the next
    kernels: list[Kernel]
    how: str  # in words


class _Contract:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        self.region, self.results, self.target = region, results, target
        self.outer = dict(zip(region.arguments, operands, strict=True))
        self.op = next(op for op in region.ops if op.name == "core.contract")
        self.location: Location = group_location(region)
        x, y = self.op.operands
        self.product = self.op.result
        shape = self.product.type.shape
        self.batch, self.rows, self.columns = shape[:-2], shape[-2], shape[-1]
        self.depth: DimLike = y.type.shape[-2]
        self.dtype: DType = compute_dtype(x.type.dtype)
        self.a = view_of(x)
        if self.op.attributes.get("words", False):  # a step of the depth is a word: four bytes of A
            self.dtype = self.op.result.type.dtype
            self.a = View(self.a.root, self.a.offset, (*self.a.strides[:-1], 4))
        self.b_view = view_of(y)
        self.tile = tile_for(target, self.dtype, self.columns)
        self.cut: Panels | None = widths(self.columns, self.tile) if isinstance(self.columns, int) else None

    def build(self) -> list[Kernel]:
        weights = self._weights()
        return [*weights.kernels, self._product(weights)]

    # -- the right operand

    def _weights(self) -> _Weights:
        y, view = self.op.operands[1], self.b_view
        constant = self._constant(view.root)
        known = isinstance(self.columns, int) and isinstance(self.depth, int) and is_known(view, y.type.shape)
        if constant is not None and known:
            return self._packed_constant(constant)
        if self._in_place():
            root = view.root
            steps = view.strides[:-2]
            return _Weights(
                lambda kernel: kernel.buffer(self.outer[root], name="b"), view, steps, [], "in place"
            )
        batch, steps = self._distinct_batch()
        scratch = Scratch(self.dtype, panel_elements(product(batch), self.depth, self.columns, self.tile))
        place_of = self._pack_place(batch)
        pack = pack_kernel(
            "pack",
            self.location,
            scratch,
            self.tile,
            batch,
            self.depth,
            self.columns,
            place_of,
            y,
            self._pack_sources,
        )
        return _Weights(
            lambda kernel: kernel.scratch(scratch, "panels"),
            None,
            steps,
            [pack],
            "packed by a kernel of its own",
        )

    def _constant(self, root: Value) -> NDArray[np.generic] | None:
        outer = self.outer.get(root, root)
        if outer.op is not None and outer.op.name == "core.constant":
            array: NDArray[np.generic] = outer.op.attributes["value"].array
            return array
        return None

    def _packed_constant(self, array: NDArray[np.generic]) -> _Weights:
        view = self.b_view
        shape = self.op.operands[1].type.shape
        matrices = constant_matrices(view, shape, array)
        lead = matrices.shape[:-2]
        full = np.broadcast_to(matrices, (*lead, static(self.depth), static(self.columns)))
        dense = pack_constant(full.reshape(math.prod(lead), *full.shape[-2:]), self.tile, self.dtype)
        one = panel_elements(1, self.depth, self.columns, self.tile)
        steps = [0 if n == 1 else product(lead[i + 1 :]) * one for i, n in enumerate(lead)]
        return _Weights(
            lambda kernel: kernel.constant(dense, "panels"), None, tuple(steps), [], "packed when compiled"
        )

    def _in_place(self) -> bool:
        view = self.b_view
        if view.root not in self.outer or view.root.type.dtype is not self.dtype:
            return False
        step, row = view.strides[-1], view.strides[-2]
        whole = isinstance(self.columns, int) and self.columns % self.tile.lanes == 0
        if step != 1 or not (whole or self.target.vector_bytes >= 32):
            return False
        # Rows that all fall into the same few sets of the cache are better packed, if packing is paid back.
        aliasing = isinstance(row, int) and row * self.dtype.itemsize % 4096 == 0 and row > 0
        return not (aliasing and not (isinstance(self.rows, int) and self.rows <= 32))

    def _distinct_batch(self) -> tuple[tuple[DimLike, ...], tuple[DimLike, ...]]:
        """Batch axes along which B differs (others cut to 1), and packed elements between their indices."""
        view = self.b_view
        batch = tuple(1 if s == 0 else d for d, s in zip(self.batch, view.strides, strict=False))
        one = panel_elements(1, self.depth, self.columns, self.tile)
        steps = tuple(0 if d == 1 else product(batch[i + 1 :]) * one for i, d in enumerate(batch))
        return batch, steps

    def _pack_place(
        self, batch: tuple[DimLike, ...]
    ) -> Callable[[KernelBuilder, list[Index], Index, LaneIndex], Place]:
        def place(kernel: KernelBuilder, indices: list[Index], step: Index, lane: LaneIndex) -> Place:
            return (*(uniform(i) for i in indices), uniform(step), lane)

        return place

    def _pack_sources(self, kernel: KernelBuilder) -> dict[Value, Source]:
        """B alone, as a source under its view's strides."""
        y, view = self.op.operands[1], self.b_view
        if view.root not in self.outer:  # a constant of one element, inside the region
            return {}
        buffer = kernel.offset_buffer(kernel.buffer(self.outer[view.root], name="b"), view.offset, "b")
        return {y: Source(buffer, y.type.shape, view.strides)}

    # -- the product

    def _product(self, weights: _Weights) -> Kernel:
        kernel = KernelBuilder("contract", self.location, baked=1)
        kernel.all_equal = False
        b, tile = kernel.b, self.tile
        kernel.note(f"tiles of {tile}")
        kernel.note(f"the right operand is {weights.how}")
        a_buffer = kernel.offset_buffer(self._memory(kernel, self.a.root), self.a.offset, "a")
        w_buffer = weights.buffer(kernel)
        if weights.view is not None:
            w_buffer = kernel.offset_buffer(w_buffer, weights.view.offset, "b")
        sources = {
            v: Source(kernel.buffer(o), v.type.shape)
            for v, o in self.outer.items()
            if any(user is not self.op and not self._feeds_product(user) for user in v.uses)
        }
        out = kernel.buffer(self.results[0], name="out")
        accumulators = tile.rows * tile.vectors
        epilogue = Epilogue(kernel, self.region, sources, self.product, out, tile.lanes, accumulators)
        panels: DimLike = self.cut.count if self.cut else ceildiv(self.columns, tile.lanes * tile.vectors)
        block = row_block(self.rows, panels, product(self.batch), tile)
        blocks = ceildiv(self.rows, block)
        n_panels, n_blocks = kernel.parameter(panels, "panels"), kernel.parameter(blocks, "blocks")
        n_rows, size = kernel.parameter(self.rows, "rows"), kernel.parameter(block, "block")
        whole = ProductShape(
            self.rows,
            self.columns,
            self.depth,
            self.dtype,
            tile,
            self.cut,
            self.a,
            weights.view,
            weights.batch_steps,
        )
        run = Tiles(whole, kernel, epilogue, a_buffer, w_buffer)
        with b.loop(kernel.begin, kernel.end) as unit:
            rest, panel = b.idiv(unit.index, n_panels), b.imod(unit.index, n_panels)
            if blocks == 1:
                number: Index = 0
            else:
                number, rest = b.imod(rest, n_blocks), b.idiv(rest, n_blocks)
            indices: list[Index] = []
            for axis, dim in reversed(list(enumerate(self.batch))):
                extent = kernel.parameter(dim, ("batch", axis))
                indices.insert(0, b.imod(rest, extent) if axis else rest)
                rest = b.idiv(rest, extent) if axis else rest
            first = b.imul(number, size)
            count = b.imin(b.isub(n_rows, first), size) if blocks != 1 else n_rows
            run.unit(indices, first, count, panel)
        units = product(self.batch) * blocks * panels
        return kernel.finish(units, product(self.batch) * self.rows * self.columns * self.depth)

    def _memory(self, kernel: KernelBuilder, root: Value) -> Value:
        """The buffer of a tensor outside, or of a constant of one element inside the group."""
        if root in self.outer:
            return kernel.buffer(self.outer[root], name="a")
        assert root.op is not None
        return kernel.constant(root.op.attributes["value"], "a")

    def _feeds_product(self, op: Op) -> bool:
        """Whether the op is movement in front of the product (absorbed as a view)."""
        todo = [op]
        while todo:
            one = todo.pop()
            if one is self.op:
                return True
            if one.kind in ("transpose", "broadcast", "assume", "slice", "reshape", "unfold"):
                todo.extend(one.result.uses)
        return False
