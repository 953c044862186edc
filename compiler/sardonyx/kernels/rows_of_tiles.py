"""Cuts rows into tiles: as many whole ones as fit, then what is left."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.kernels.microkernel import Tile
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime.dims import DimLike

__all__ = ["row_tiles"]

Emit = Callable[[Index, int, bool], None]


def row_tiles(b: LoopBuilder, total: DimLike, tile: Tile, first: Index, count: Index, emit: Emit) -> None:
    """Call ``emit(first row, rows, clamp)`` for code that covers the rows first .. first + count.

    ``total`` is the extent they are a block of (blocks are multiples of the tile but for the last).
    Where it is known the rest is a tile of its own size.  Else it is the next larger of a few sizes and
    the rows beyond the end are to be clamped to the last one.
    """
    if isinstance(total, int):
        _static(b, total, tile.rows, first, count, emit)
    else:
        _symbolic(b, tile.rows, first, count, emit)


def _static(b: LoopBuilder, total: int, rows: int, first: Index, count: Index, emit: Emit) -> None:
    rest = total % rows
    end = b.iadd(first, count)
    if total >= rows:
        whole = b.isub(end, b.imod(count, rows)) if rest else end
        with b.loop(first, whole, rows) as loop:
            emit(loop.index, rows, False)
    if rest:
        last: Index = total - rest
        if isinstance(first, int) and isinstance(count, int):
            emit(last, rest, False)
            return
        with b.loop(last, end, rows):  # once, in the last block only
            emit(last, rest, False)


def _symbolic(b: LoopBuilder, rows: int, first: Index, count: Index, emit: Emit) -> None:
    half = max(1, rows // 2)
    end = b.iadd(first, count)
    whole = b.imul(b.idiv(b.iadd(count, rows - 1 - half), rows), rows)
    with b.loop(first, b.iadd(first, whole), rows) as loop:
        emit(loop.index, rows, True)
    start = b.iadd(first, whole)
    left = b.isub(end, start)
    with b.loop(0, b.truth(b.icmp("gt", left, 1))):
        emit(start, half, True)
    with b.loop(0, b.truth(b.icmp("eq", left, 1))):
        emit(start, 1, False)
