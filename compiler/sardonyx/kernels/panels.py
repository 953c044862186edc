"""Panels: the right operand of a product, laid out in the order the register tile reads it.

A panel holds, for every step of the depth, the elements of its columns: ``[panel][step][column]``.
Columns beyond the last are zero, so that only the last vector of a result needs a mask.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Location, Value
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.lane_index import LaneIndex, Place
from sardonyx.kernels.microkernel import Tile, widths
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = ["pack_constant", "pack_kernel", "panel_elements"]


def pack_constant(matrices: NDArray[np.generic], tile: Tile, dtype: DType) -> Dense:
    """(batch, depth, columns) as panels of ``dtype``, one after another."""
    batch, depth, columns = matrices.shape
    panels = widths(columns, tile)
    padded = np.zeros((batch, depth, panels.total * tile.lanes), dtype.numpy)
    padded[:, :, :columns] = matrices.astype(dtype.numpy, copy=False)
    parts = []
    start = 0
    for number in range(panels.count):
        width = (panels.vectors + (number < panels.wide)) * tile.lanes
        parts.append(padded[:, :, start : start + width].reshape(batch, depth * width))
        start += width
    return Dense(np.concatenate(parts, axis=1).reshape(-1), dtype)


def panel_elements(batch: DimLike, depth: DimLike, columns: DimLike, tile: Tile) -> DimLike:
    """Elements that panels take: all panels are of full width where the columns are symbolic."""
    if isinstance(columns, int):
        return batch * depth * (widths(columns, tile).total * tile.lanes)
    width = tile.vectors * tile.lanes
    return batch * depth * (ceildiv(columns, width) * width)


def pack_kernel(
    name: str,
    location: Location,
    scratch: Scratch,
    tile: Tile,
    batch: tuple[DimLike, ...],
    depth: DimLike,
    columns: DimLike,
    place: Callable[[KernelBuilder, list[Index], Index, LaneIndex], Place],
    value: Value,
    sources: Callable[[KernelBuilder], dict[Value, Source]],
) -> Kernel:
    """The kernel that packs a tensor computed at run time.

    ``place`` maps (batch indices, step of the depth, columns by lanes) to the tensor's index.  The range
    counts (batch, panel) pairs.
    """
    kernel = KernelBuilder(name, location)
    kernel.all_equal = False
    b = kernel.b
    evaluator = Evaluator(kernel, sources(kernel), tile.lanes)
    target = kernel.scratch(scratch, "panels")
    steps = kernel.dim(depth)
    limit = kernel.dim(columns)
    dtype = scratch.dtype
    cut = widths(columns, tile) if isinstance(columns, int) else None
    count: DimLike = cut.count if cut is not None else ceildiv(columns, tile.vectors * tile.lanes)
    total: DimLike = cut.total if cut is not None else count * tile.vectors
    vectors_of_all = kernel.dim(total)
    lanes = tile.lanes
    with b.loop(kernel.begin, kernel.end) as unit:
        panels = kernel.dim(count)
        rest, panel = b.idiv(unit.index, panels), b.imod(unit.index, panels)
        base = b.imul(b.imul(rest, steps), b.imul(vectors_of_all, lanes))
        indices: list[Index] = []
        for dim in reversed(batch):
            extent = kernel.dim(dim)
            indices.insert(0, b.imod(rest, extent))
            rest = b.idiv(rest, extent)
        narrow = cut.vectors if cut is not None else tile.vectors
        wide = cut.wide if cut is not None else 0
        first = b.iadd(b.imul(panel, narrow), b.imin(panel, wide) if wide else 0)
        here: Index = narrow
        if wide:
            here = b.iadd(narrow, b.truth(b.icmp("lt", panel, wide)))
        start = b.iadd(base, b.imul(b.imul(first, lanes), steps))
        with b.loop(0, steps) as step, b.loop(0, here) as vector:
            evaluator.forget()
            column = b.imul(b.iadd(first, vector.index), lanes)
            lane = LaneIndex(column, 1, multiple=lanes)
            evaluator.mask = None
            if not (isinstance(columns, int) and columns % lanes == 0):
                evaluator.mask = b.mask(b.imax(b.isub(limit, column), 0), lanes)
            found = evaluator.at(value, place(kernel, indices, step.index, lane))
            found = b.convert(b.splat(found, lanes), dtype)
            if evaluator.mask is not None:
                zero = b.const(0 if not dtype.is_float else 0.0, dtype, lanes)
                found = b.scalar_op("select", evaluator.mask, found, zero, dtype=dtype)
            where = b.iadd(b.imul(step.index, b.imul(here, lanes)), b.imul(vector.index, lanes))
            b.store(found, target, b.iadd(start, where))
    units = product(batch) * count
    return kernel.finish(units, units * depth * tile.vectors * lanes)
