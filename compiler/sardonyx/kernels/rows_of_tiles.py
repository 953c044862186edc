"""Cuts rows into tiles: as many whole ones as fit, then what is left."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.kernels.microkernel import Tile
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime.dims import DimLike

__all__ = ["row_tiles"]

Emit = Callable[[Index, int, bool], None]


def row_tiles(
    b: LoopBuilder,
    total: DimLike,
    tile: Tile,
    first: Index,
    count: Index,
    emit: Emit,
    *,
    single: bool = True,
) -> None:
    """Call ``emit(first row, rows, clamp)`` for code that covers the rows first .. first + count.

    ``total`` is the extent they are a block of (blocks are multiples of the tile but for the last).
    Where it is known the rest is a tile of its own size.  Else the last tile is a whole one too, its rows
    beyond the end to be clamped to the last one; a rest of one row has code of its own if ``single`` (a
    product by a vector would else do the work of a whole tile).
    """
    if isinstance(total, int):
        _static(b, total, tile.rows, first, count, emit)
    else:
        _symbolic(b, tile.rows, first, count, emit, single=single)


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


def _symbolic(b: LoopBuilder, rows: int, first: Index, count: Index, emit: Emit, *, single: bool) -> None:
    end = b.iadd(first, count)
    most = rows - 2 if single and rows > 1 else rows - 1
    whole = b.imul(b.idiv(b.iadd(count, most), rows), rows)
    with b.loop(first, b.iadd(first, whole), rows) as loop:
        emit(loop.index, rows, True)
    if single and rows > 1:
        with b.loop(b.iadd(first, whole), end):  # once or not at all
            emit(b.isub(end, 1), 1, False)
