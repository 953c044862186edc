"""Transposes that change the innermost axis: square blocks are turned in registers.

A block of ``lanes`` rows is read as vectors and turned by log2(lanes) steps of pairwise shuffles
(J. O. Eklundh, "A fast computer method for matrix transposing", 1972): step ``h`` exchanges the halves of
all pairs of vectors that are ``h`` apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.map import group_location
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.kernels.views import row_major
from sardonyx.loop.builder import Index, LoopBuilder, lanes_of
from sardonyx_runtime.dims import DimLike, ceildiv, product

__all__ = ["merged_axes", "transpose_kernel", "turn"]

_PIECE = 4096  # elements of a row that are one unit of work where few rows are interleaved


def turn(b: LoopBuilder, rows: Sequence[Value]) -> list[Value]:
    """The transpose of as many vectors as they have lanes."""
    vectors, lanes = list(rows), lanes_of(rows[0])
    half = 1
    while half < lanes:
        low = [i if not i & half else lanes + i - half for i in range(lanes)]
        high = [i + half if not i & half else lanes + i for i in range(lanes)]
        for i in range(lanes):
            if not i & half:
                x, y = vectors[i], vectors[i + half]
                vectors[i], vectors[i + half] = b.shuffle(x, y, low), b.shuffle(x, y, high)
        half *= 2
    return vectors


def merged_axes(shape: Shape, permutation: Sequence[int]) -> tuple[list[DimLike], list[int]]:
    """The transpose with axes of extent 1 dropped and those merged that stay neighbours."""
    kept = [a for a in permutation if shape[a] != 1]
    groups: list[list[int]] = []
    for axis in kept:
        before = groups[-1][-1] if groups else None
        follows = before is not None and before < axis and all(shape[a] == 1 for a in range(before + 1, axis))
        if follows:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    order = sorted(range(len(groups)), key=lambda g: groups[g][0])
    place = {g: i for i, g in enumerate(order)}
    return [product(shape[a] for a in groups[g]) for g in order], [place[g] for g in range(len(groups))]


def transpose_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel | None:
    """The kernel of a lone ``core.transpose``; None where rows stay rows or elements have no vectors."""
    op = region.ops[0]
    dtype = op.result.type.dtype
    shape, permutation = merged_axes(op.operands[0].type.shape, op.attributes["permutation"])
    if (
        len(shape) < 2
        or permutation[-1] == len(shape) - 1
        or dtype.bits < 8
        or dtype.kind not in ("float", "signed", "unsigned")
    ):
        return None
    lanes = min(16, target.vector_bytes // dtype.itemsize)
    if lanes < 4 and dtype.itemsize < 8:
        return None
    if shape[permutation[-1]] in (2, 3, 4) and list(permutation) == [
        *range(len(shape) - 2),
        len(shape) - 1,
        len(shape) - 2,
    ]:
        return _interleave_kernel(region, operands, results, shape, lanes)
    kernel = KernelBuilder("transpose", group_location(region))
    kernel.note(f"squares of {lanes} lanes turned in registers")
    b = kernel.b
    source, out = kernel.buffer(operands[0], name="x"), kernel.buffer(results[0], name="out")
    inner = len(shape) - 1  # innermost in the operand
    last = permutation[-1]  # the operand's axis that is innermost in the result
    from_strides, to_strides = row_major(tuple(shape)), row_major(tuple(shape[p] for p in permutation))
    to_of = {axis: to_strides[i] for i, axis in enumerate(permutation)}
    outer = [a for a in range(len(shape)) if a not in (inner, last)]
    columns, rows = kernel.dim(shape[inner]), kernel.dim(shape[last])
    read_step, write_step = kernel.dim(from_strides[last]), kernel.dim(to_of[inner])
    strips = ceildiv(shape[inner], lanes)
    with b.loop(kernel.begin, kernel.end) as unit:
        count = kernel.dim(strips)
        rest, strip = b.idiv(unit.index, count), b.imod(unit.index, count)
        read: Index = 0
        write: Index = 0
        for axis in reversed(outer):
            extent = kernel.dim(shape[axis])
            index, rest = (b.imod(rest, extent), b.idiv(rest, extent)) if axis != outer[0] else (rest, rest)
            read = b.iadd(read, b.imul(index, kernel.dim(from_strides[axis])))
            write = b.iadd(write, b.imul(index, kernel.dim(to_of[axis])))
        column = b.imul(strip, lanes)
        read, write = b.iadd(read, column), b.iadd(write, b.imul(column, write_step))
        have = b.imin(b.isub(columns, column), lanes)
        _strip(b, source, out, lanes, have, rows, read, write, read_step, write_step)
    return kernel.finish(product(shape[a] for a in outer) * strips, product(shape) * 8)


def _interleave_kernel(
    region: Block,
    operands: Sequence[Value],
    results: Sequence[Value],
    shape: Sequence[DimLike],
    lanes: int,
) -> Kernel:
    """(..., few, many) to (..., many, few): vectors of all rows are shuffled into one run of elements."""
    few, many = shape[-2], shape[-1]
    assert isinstance(few, int)
    kernel = KernelBuilder("interleave", group_location(region))
    kernel.note(f"{few} rows shuffled into one, {lanes} lanes")
    b = kernel.b
    source, out = kernel.buffer(operands[0], name="x"), kernel.buffer(results[0], name="out")
    length = kernel.dim(many)
    pieces = ceildiv(many, _PIECE)
    with b.loop(kernel.begin, kernel.end) as unit:
        count = kernel.dim(pieces)
        image, piece = b.idiv(unit.index, count), b.imod(unit.index, count)
        base = b.imul(image, b.imul(length, few))
        start = b.imul(piece, _PIECE)
        stop = b.imin(b.iadd(start, _PIECE), length)

        def body(index: Index, mask: Value | None) -> None:
            rows = [
                b.load(source, b.iadd(base, b.iadd(b.imul(length, r), index)), lanes, mask)
                for r in range(few)
            ]
            to = b.iadd(base, b.imul(index, few))
            left = b.imul(b.isub(length, index), few)
            for part, vector in enumerate(_interleaved(b, rows)):
                keep = None if mask is None else b.mask(b.imax(b.isub(left, part * lanes), 0), lanes)
                b.store(vector, out, b.iadd(to, part * lanes), keep)

        vector_loop(b, start, stop, lanes, 1, 1, body)
    return kernel.finish(product(shape[:-2]) * pieces, product(shape) * 8)


def _interleaved(b: LoopBuilder, rows: Sequence[Value]) -> list[Value]:
    """The elements of the rows in turn, as as many vectors."""
    lanes, few = lanes_of(rows[0]), len(rows)
    vectors = []
    for part in range(few):
        places = [divmod(part * lanes + lane, few) for lane in range(lanes)]  # (element, row)
        vector = rows[0]
        for number in range(1, few):
            # Lanes of earlier rows stay where they were put; the first shuffle picks those of the first row.
            picks = []
            for lane, (element, row) in enumerate(places):
                if row == number:
                    picks.append(lanes + element)
                else:
                    picks.append(element if number == 1 and row == 0 else lane)
            vector = b.shuffle(vector, rows[number], picks)
        vectors.append(vector)
    return vectors


def _strip(
    b: LoopBuilder,
    source: Value,
    out: Value,
    lanes: int,
    have: Index,
    rows: Index,
    read: Index,
    write: Index,
    read_step: Index,
    write_step: Index,
) -> None:
    """``have`` columns of the operand, down all its rows, become as many rows of the result."""

    def whole() -> Sequence[Value]:
        end = b.round_down(rows, lanes)
        with b.loop(0, end, lanes) as block:
            at = b.iadd(read, b.imul(block.index, read_step))
            vectors = [b.load(source, b.iadd(at, b.imul(read_step, i)), lanes) for i in range(lanes)]
            to = b.iadd(write, block.index)
            for i, vector in enumerate(turn(b, vectors)):
                b.store(vector, out, b.iadd(to, b.imul(write_step, i)))
        edge(end)
        return ()

    def edge(start: Index) -> Sequence[Value]:
        """Blocks whose rows or columns are fewer: rows beyond the last repeat it, stores are masked."""
        mask = b.mask(have, lanes)
        final = b.isub(rows, 1)
        with b.loop(start, rows, lanes) as block:
            vectors = []
            for i in range(lanes):
                row = b.imin(b.iadd(block.index, i), final)
                vectors.append(b.load(source, b.iadd(read, b.imul(row, read_step)), lanes, mask))
            keep = b.mask(b.imin(b.isub(rows, block.index), lanes), lanes)
            to = b.iadd(write, block.index)
            turned = turn(b, vectors)
            for i, vector in enumerate(turned):
                with b.loop(0, b.truth(b.icmp("gt", have, i))):
                    b.store(vector, out, b.iadd(to, b.imul(write_step, i)), keep)
        return ()

    b.if_(b.icmp("eq", have, lanes), whole, lambda: edge(0))
