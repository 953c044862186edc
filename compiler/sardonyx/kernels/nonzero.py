"""The indices of the true elements of a tensor, a row of the result for each axis.

Along the last axis the places of a vector's true lanes are written one behind another; the indices
along the other axes are the same for a whole line and fill what the line has added.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.evaluator import Evaluator
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources
from sardonyx.kernels.regions import only_op
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product

__all__ = ["nonzero_kernel"]


def nonzero_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.nonzero``; one thread does it."""
    op = only_op(region, "core.nonzero")
    (x,) = op.operands
    shape, last = x.type.shape, x.type.rank - 1
    kernel = KernelBuilder("nonzero", group_location(region))
    b, lanes = kernel.b, max(1, target.vector_bytes // 8)
    e = Evaluator(kernel, make_sources(kernel, region, operands), lanes)
    out, count = kernel.buffer(results[0], name="out"), kernel.dim(op.attributes["count"])

    def line(outer: tuple[LaneIndex, ...], found: Value) -> Value:
        n = kernel.dim(shape[last])

        def vector(index: Index, mask: Value | None, found: Value) -> Index:
            e.forget()
            e.mask = mask
            hits = b.splat(e.at(x, (*outer, LaneIndex(index, 1))), lanes)
            if mask is not None:
                hits = b.scalar_op("and", hits, mask, dtype=dtypes.boolean)
            places = b.lanes(lanes) if lanes > 1 else b.const(0, dtypes.i64)
            places = b.scalar_op("add", places, b.splat(b.from_index(index, dtypes.i64), lanes))
            b.compress(places, out, b.iadd(b.imul(count, last), found), hits)
            return b.iadd(found, b.count(hits))

        whole = b.round_down(n, lanes)
        with b.loop(0, whole, lanes, [found]) as loop:
            b.yield_(b.index(vector(loop.index, None, loop.carried[0])))
        total = loop.results[0]
        if lanes > 1:
            with b.loop(whole, n, lanes, [total]) as loop:
                mask = b.mask(b.isub(n, loop.index), lanes)
                b.yield_(b.index(vector(loop.index, mask, loop.carried[0])))
            total = loop.results[0]
        e.mask = None
        for axis, place in enumerate(outer):
            number = b.splat(b.from_index(place.base, dtypes.i64), lanes)
            row = b.imul(count, axis)

            def fill(index: Index, mask: Value | None, row: Index = row, number: Value = number) -> None:
                b.store(number, out, b.iadd(row, index), mask)

            vector_loop(b, found, total, lanes, 1, 1, fill)
        return total

    def nest(outer: tuple[LaneIndex, ...], found: Value) -> Value:
        if len(outer) == last:
            return line(outer, found)
        with b.loop(0, kernel.dim(shape[len(outer)]), carried=[found]) as loop:
            b.yield_(nest((*outer, uniform(loop.index)), loop.carried[0]))
        return loop.results[0]

    with b.loop(kernel.begin, kernel.end):
        nest((), b.index(0))
    return kernel.finish(1, product(shape))
