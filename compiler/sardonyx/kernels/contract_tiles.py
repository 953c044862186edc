"""The tiles of a matrix product: what one unit of work of `kernels.contract` does.

A deep product is done in blocks of its depth, so that a panel's rows stay in the cache; the partial sums
stand in the result's memory until the last block's epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.kernel import KernelBuilder
from sardonyx.kernels.microkernel import Panels, Tile, accumulate, read_row
from sardonyx.kernels.rows_of_tiles import row_tiles
from sardonyx.kernels.views import View
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import Dim, DimLike
from sardonyx_runtime.dtypes import DType

__all__ = ["ProductShape", "Tiles"]

_PANEL_BYTES = 900_000  # a panel this large still stays in the second-level cache
_DEPTH_BLOCK = 1024  # steps of a packed panel at a time where it would be larger
_DEPTH_IN_PLACE = 256  # rows of B read in place at a time, for the sake of the address translation
_PREFETCH = 8  # rows of B ahead, where B is read in place


@dataclass(frozen=True)
class ProductShape:
    """The extents of a product, the type it is summed in, and how it is cut.

    ``a`` is the left operand's view; ``b`` the right one's where it is read in place, else None (packed);
    ``b_steps`` are the elements from one batch index of B to the next.
    """

    rows: DimLike
    columns: DimLike
    depth: DimLike
    dtype: DType
    tile: Tile
    cut: Panels | None  # None: symbolic columns, all panels of full width
    a: View
    b: View | None
    b_steps: tuple[DimLike, ...]


class Tiles:
    """Emits the tiles of one unit of work."""

    def __init__(
        self, shape: ProductShape, kernel: KernelBuilder, epilogue: Epilogue, a_buffer: Value, w_buffer: Value
    ) -> None:
        self.shape, self.kernel, self.b = shape, kernel, kernel.b
        self.epilogue = epilogue
        self.a_buffer, self.w_buffer = a_buffer, w_buffer
        self.lanes = shape.tile.lanes
        self.in_place = shape.b is not None
        a = [kernel.parameter(s, ("a", i)) for i, s in enumerate(shape.a.strides)]
        self.a_batch, self.a_row, self.a_step = a[:-2], a[-2], a[-1]
        self.w_batch = [kernel.parameter(s, ("b", i)) for i, s in enumerate(shape.b_steps)]
        self.w_row: Index = kernel.parameter(shape.b.strides[-2], "b row") if shape.b is not None else 0
        self.depth = 0 if shape.depth == 0 else kernel.parameter(shape.depth, "depth")
        self.columns = kernel.parameter(shape.columns, "columns")
        self.depth_block = self._depth_block()

    def _depth_block(self) -> int | None:
        """Steps at a time, None for all at once."""
        depth, tile = self.shape.depth, self.shape.tile
        if not self.epilogue.can_hold_sums:
            return None
        if self.in_place:
            return None if isinstance(depth, int) and depth <= _DEPTH_BLOCK else _DEPTH_IN_PLACE
        width = tile.vectors * tile.lanes * self.shape.dtype.itemsize
        return None if isinstance(depth, int) and depth * width <= _PANEL_BYTES else _DEPTH_BLOCK

    def unit(self, batch: list[Index], first: Index, count: Index, panel: Index) -> None:
        b, cut = self.b, self.shape.cut
        if cut is None:
            width = self.shape.tile.vectors
            left = b.isub(self.columns, b.imul(panel, width * self.lanes))
            self._by_width(batch, first, count, b.imul(panel, width), left, width)
        elif not cut.wide:
            self._panel(batch, first, count, b.imul(panel, cut.vectors), cut.vectors)
        else:
            is_wide = b.icmp("lt", panel, cut.wide)

            def wide() -> Sequence[Value]:
                self._panel(batch, first, count, b.imul(panel, cut.vectors + 1), cut.vectors + 1)
                return ()

            def narrow() -> Sequence[Value]:
                self._panel(batch, first, count, b.iadd(b.imul(panel, cut.vectors), cut.wide), cut.vectors)
                return ()

            b.if_(is_wide, wide, narrow)

    def _by_width(
        self, batch: list[Index], first: Index, count: Index, vector: Index, left: Index, width: int
    ) -> None:
        """Panels of symbolic columns: the last one may be narrower, down to one vector."""
        b = self.b

        def whole() -> Sequence[Value]:
            self._panel(batch, first, count, vector, width)
            return ()

        def part() -> Sequence[Value]:
            self._by_width(batch, first, count, vector, left, width // 2)
            return ()

        if width == 1 or not self.in_place:
            whole()
        else:
            b.if_(b.icmp("gt", left, width // 2 * self.lanes), whole, part)

    def _panel(self, batch: list[Index], first: Index, count: Index, vector: Index, vectors: int) -> None:
        """One panel down the rows first .. first + count; ``vector``: vectors of columns before it."""
        b, lanes = self.b, self.lanes
        column = b.imul(vector, lanes)
        base: Index = 0
        for index, step in zip(batch, self.w_batch, strict=False):
            base = b.iadd(base, b.imul(index, step))
        start = column if self.in_place else b.imul(column, self.depth)
        panel = b.offset(self.w_buffer, b.iadd(base, start))
        a_base: Index = 0
        for index, stride in zip(batch, self.a_batch, strict=True):
            a_base = b.iadd(a_base, b.imul(index, stride))
        a = b.offset(self.a_buffer, a_base)
        masks = self._masks(column, vectors)
        row_step = self._row_step(vectors)

        def tile(
            row: Index,
            rows: int,
            last: Index | None,
            k: Index,
            steps: Index,
            ends: tuple[Value, Value] | None,
        ) -> None:
            self._tile(batch, a, panel, column, masks, row, rows, last, k, steps, ends)

        def down(k: Index, steps: Index, ends: tuple[Value, Value] | None) -> None:
            end = b.isub(b.iadd(first, count), 1)
            row_tiles(
                b,
                self.shape.rows,
                self.shape.tile,
                first,
                count,
                lambda row, rows, clamp: tile(row, rows, end if clamp else None, k, steps, ends),
            )

        self.row_step = row_step
        if self.depth_block is None:
            down(0, self.depth, None)
            return
        # An empty depth still has one pass, which stores the epilogue of zeros.
        with b.loop(0, b.imax(self.depth, 1), self.depth_block) as block:
            steps = b.imin(b.isub(self.depth, block.index), self.depth_block)
            is_first = b.icmp("eq", block.index, 0)
            is_last = b.icmp("ge", b.iadd(block.index, steps), self.depth)
            down(block.index, steps, (is_first, is_last))

    def _row_step(self, vectors: int) -> Index:
        return self.w_row if self.in_place else vectors * self.lanes

    def _masks(self, column: Index, vectors: int) -> list[Value | None]:
        """Masks of a panel's vectors: none where all columns are known to exist."""
        b, columns = self.b, self.shape.columns
        if isinstance(columns, int) and columns % self.lanes == 0:
            return [None] * vectors
        masks: list[Value | None] = []
        for j in range(vectors):
            if isinstance(columns, int) and j < vectors - 1:
                masks.append(None)
                continue
            left = b.isub(self.columns, b.iadd(column, j * self.lanes))
            masks.append(b.mask(b.imax(left, 0) if isinstance(columns, Dim) else left, self.lanes))
        return masks

    def _tile(
        self,
        batch: list[Index],
        a: Value,
        panel: Value,
        column: Index,
        masks: list[Value | None],
        row: Index,
        rows: int,
        last: Index | None,
        k: Index,
        steps: Index,
        ends: tuple[Value, Value] | None,
    ) -> None:
        b, lanes, vectors = self.b, self.lanes, len(masks)
        numbers = [b.iadd(row, r) for r in range(rows)]
        if last is not None:  # rows beyond the last repeat it: they compute and store the same values again
            numbers = [numbers[0], *(b.imin(n, last) for n in numbers[1:])]
        k_offset = b.imul(k, self.a_step)
        pointers = [b.offset(a, b.iadd(b.imul(n, self.a_row), k_offset)) for n in numbers]
        addresses = [self.epilogue.row_address(batch, n) for n in numbers]
        out = self.epilogue.out
        places = [b.iadd(column, j * lanes) for j in range(vectors)]

        def zeros() -> list[Value]:
            zero = b.const(0.0 if self.shape.dtype.is_float else 0, self.shape.dtype, lanes)
            return [zero] * (rows * vectors)

        def partial() -> list[Value]:
            return [
                b.load(out, b.iadd(address, places[j]), lanes, masks[j])
                for address in addresses
                for j in range(vectors)
            ]

        sums = zeros() if ends is None else b.if_(ends[0], zeros, partial)
        if not (isinstance(steps, int) and steps == 0):
            sums, _ = accumulate(
                b,
                dtype=self.shape.dtype,
                depth=steps,
                rows=pointers,
                step=self.a_step,
                weights=b.offset(panel, b.imul(k, self.row_step)),
                weight_step=self.row_step,
                read=lambda at: read_row(b, at, vectors, lanes, masks if self.in_place else [None] * vectors),
                sums=sums,
                at_least_once=isinstance(self.shape.depth, int),
                prefetch=_PREFETCH if self.in_place else 0,
            )

        def finish() -> Sequence[Value]:
            self.epilogue.store_tile(sums, batch, numbers, last, column, self.columns, masks, multiple=lanes)
            return ()

        def keep() -> Sequence[Value]:
            for r, address in enumerate(addresses):
                for j in range(vectors):
                    b.store(sums[r * vectors + j], out, b.iadd(address, places[j]), masks[j])
            return ()

        if ends is None or self.epilogue.is_plain:
            finish()
        else:
            b.if_(ends[1], finish, keep)
