"""The register tile of all products: rows of A times panels of B, summed in registers.

A tile holds ``rows x vectors`` accumulators.  Per step of the depth it loads ``vectors`` vectors of one
row of B, and multiplies them with one element of every row of A, spread over the lanes.  The rows of A
are pointers, so the same code serves matrices of any strides and the taps of a convolution.  Sums run
over the depth in order, whatever the tile: how work is cut never changes a result.

The tiles keep accumulators, one row of B and a spread element within the registers; wider ones spill
(K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008, gives the
blocking around them).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.ir.types import VectorType
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index, LoopBuilder, lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = ["Panels", "Tile", "accumulate", "compute_dtype", "is_fast", "read_row", "tile_for", "widths"]

_FAST = (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16)


@dataclass(frozen=True)
class Tile:
    """A register tile: lanes of a vector, rows of A, vectors of B."""

    lanes: int
    rows: int
    vectors: int

    def __str__(self) -> str:
        return f"{self.rows} rows x {self.vectors} vectors of {self.lanes} lanes"


def is_fast(dtype: DType) -> bool:
    """Whether the tile computes products of this type."""
    return dtype in _FAST


def compute_dtype(dtype: DType) -> DType:
    """The type products are summed in: 16-bit floats in f32."""
    return dtypes.f32 if dtype.is_float and dtype.bits < 32 else dtype


def tile_for(target: Target, dtype: DType, columns: DimLike) -> Tile:
    """The tile for products summed in ``dtype`` with so many columns.

    Narrow products take more rows instead of more vectors: the accumulators stay as many.
    """
    lanes = max(1, target.vector_bytes // dtype.itemsize)
    many = target.registers >= 32
    needed = -(-columns // lanes) if isinstance(columns, int) else 4
    if needed <= 1:
        return Tile(lanes, 12 if many else 6, 1)
    if needed == 2 or not many:
        return Tile(lanes, 12 if many else 6, 2)
    return Tile(lanes, 6, 4)


@dataclass(frozen=True)
class Panels:
    """Columns cut into panels as even as whole vectors allow: the first ``wide`` have one vector more."""

    count: int
    vectors: int
    wide: int

    @property
    def total(self) -> int:
        """Vectors of all panels."""
        return self.count * self.vectors + self.wide


def widths(columns: int, tile: Tile) -> Panels:
    """The panels of a known number of columns."""
    vectors = -(-columns // tile.lanes)
    count = max(1, -(-vectors // tile.vectors))
    return Panels(count, vectors // count, vectors % count)


def read_row(
    b: LoopBuilder, buffer: Value, vectors: int, lanes: int, masks: Sequence[Value | None]
) -> list[Value]:
    """One row of B from its panel (masks None) or in place."""
    return [b.load(buffer, j * lanes, lanes, masks[j]) for j in range(vectors)]


def _element(b: LoopBuilder, row: Value, index: Index, dtype: DType) -> Value:
    """One element of A as products are summed; sums in int32 are of words of four bytes."""
    if dtype is dtypes.i32:
        return b.value("bitcast", (b.load(row, index, 4),), VectorType(dtype), to=dtype)
    return b.convert(b.load(row, index), dtype)


def accumulate(
    b: LoopBuilder,
    *,
    dtype: DType,
    depth: Index,
    rows: Sequence[Value],
    step: Index,
    weights: Value,
    weight_step: Index,
    read: Callable[[Value], Sequence[Value]],
    sums: Sequence[Value],
    at_least_once: bool,
    prefetch: int = 0,
) -> tuple[list[Value], Value]:
    """Add the products of ``depth`` steps to the sums (row by row); the sums, and B behind what was read.

    ``rows``: a buffer per row of A, whose elements of consecutive steps are ``step`` apart.  ``read``
    gives the vectors of the row of B at a buffer; ``prefetch`` rows ahead are asked for.
    """
    vectors = len(sums) // len(rows)
    ahead = b.imul(weight_step, prefetch) if prefetch else 0
    with b.loop(0, depth, carried=[*sums, weights], at_least_once=at_least_once) as loop:
        totals, panel = list(loop.carried[:-1]), loop.carried[-1]
        index = b.imul(loop.index, step)
        row_of_b = read(panel)
        if prefetch:
            per_line = max(1, 64 // panel.type.dtype.itemsize)
            for line in range(0, vectors * lanes_of(row_of_b[0]), per_line):
                b.prefetch(panel, b.iadd(ahead, line))
        for r, row in enumerate(rows):
            element = b.splat(_element(b, row, index, dtype), lanes_of(row_of_b[0]))
            for j in range(vectors):
                place = r * vectors + j
                add = b.dot_bytes if dtype is dtypes.i32 else b.muladd
                totals[place] = add(element, row_of_b[j], totals[place])
        b.yield_(*totals, b.offset(panel, weight_step))
    return loop.results[:-1], loop.results[-1]
