"""The k extreme elements of each row, in order.

A heap holds the best k so far, its root the worst of them.  Rows are read in vectors, and a vector none
of whose lanes is better than the root costs one comparison; elements arrive in the order of their
indices, so one that only equals the root never replaces it.  Where much of a long row is wanted it is
sorted whole, by the bytes of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.evaluator import Evaluator
from sardonyx.kernels.heap import Heap
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.keys import Entries, key_type, sort_key
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources, vector_lanes
from sardonyx.kernels.radix import digit_counts, radix_sort
from sardonyx.kernels.regions import only_op
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, minimum, product

__all__ = ["top_k_kernel"]

_LONG = 128  # elements from which on sorting by bytes beats a heap
_UNITS = 32  # parts that the rows are dealt to; each has scratch memory of its own


def _sorts_all(k: DimLike, extent: DimLike) -> bool:
    """Whether so large a part is wanted that it pays to sort whole rows."""
    if isinstance(k, int) and isinstance(extent, int):
        return extent >= _LONG and 4 * k >= extent
    return k == extent


def top_k_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.top_k``."""
    return _TopK(region, operands, results, target).build()


class _TopK:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        op = only_op(region, "core.top_k")
        (self.x,) = op.operands
        self.shape = self.x.type.shape
        self.dtype = self.x.type.dtype
        self.count: DimLike = op.attributes["k"]
        self.falling = bool(op.attributes["largest"])
        self.rows: DimLike = product(self.shape[:-1])
        self.units = minimum(self.rows, _UNITS)
        self.kernel = kernel = KernelBuilder("top_k", group_location(region))
        self.b = kernel.b
        sources = make_sources(kernel, region, operands)
        yielded = dict(zip(region.terminator.operands, results, strict=True))
        self.values, self.indices = (
            kernel.buffer(yielded[r], name="out") if r in yielded else None for r in op.results
        )
        self.sorts = _sorts_all(self.count, self.shape[-1])
        self.room: DimLike = 2 * self.shape[-1] if self.sorts else self.count
        self.entries = Entries.make(kernel, self.dtype, self.units * self.room)
        self.heap = Heap(self.entries, lambda x, y: self.entries.before(y, x))
        self.lanes = vector_lanes(target, [self.dtype, key_type(self.dtype)])
        self.wide, self.single = (Evaluator(kernel, sources, lanes) for lanes in (self.lanes, 1))

    def build(self) -> Kernel:
        b, kernel = self.b, self.kernel
        k = kernel.dim(self.count)
        self.counts = digit_counts(b) if self.sorts else None
        with b.loop(kernel.begin, kernel.end) as unit:
            self.entries.base = b.imul(unit.index, kernel.dim(self.room))
            with b.loop(unit.index, kernel.dim(self.rows), kernel.dim(self.units)) as row:

                def work(row: Index = row.index) -> Sequence[Value]:
                    self._row(row, k)
                    return ()

                b.if_(b.icmp("gt", b.index(k), 0), work)
        return kernel.finish(self.units, product(self.shape) * 4)

    def _row(self, row: Index, k: Index) -> None:
        b, kernel, n = self.b, self.kernel, self.kernel.dim(self.shape[-1])
        outer: list[LaneIndex] = []
        number = row
        for position, dim in reversed(list(enumerate(self.shape[:-1]))):
            extent = kernel.dim(dim)
            outer.insert(0, uniform(b.imod(number, extent) if position else number))
            number = b.idiv(number, extent) if position else number

        def by_heap() -> Sequence[Value]:
            self._pack(outer, k)
            self.heap.build(k)
            self._rest(outer, k, n)
            self.heap.sort(k)
            return [b.index(self.entries.base)]

        def by_bytes() -> Sequence[Value]:
            assert self.counts is not None
            self._pack(outer, n)
            return [b.index(radix_sort(self.entries, n, self.counts).base)]

        if not self.sorts:
            (base,) = by_heap()
        elif isinstance(self.shape[-1], int):
            (base,) = by_bytes()
        else:
            (base,) = b.if_(b.icmp("ge", n, _LONG), by_bytes, by_heap)
        best = replace(self.entries, base=base)
        with b.loop(0, k) as loop:
            found = self.entries.index(best.load(loop.index))
            to = b.iadd(b.imul(row, k), loop.index)
            if self.values is not None:
                self.single.forget()
                b.store(self.single.raw(self.x, (*outer, uniform(found))), self.values, to)
            if self.indices is not None:
                b.store(b.from_index(found, dtypes.i64), self.indices, to)

    def _pack(self, outer: Sequence[LaneIndex], size: Index) -> None:
        """The first elements of a row as entries."""
        with self.b.loop(0, size) as loop:
            self.entries.store(self.entries.pack(self._key(outer, loop.index), loop.index), loop.index)

    def _key(self, outer: Sequence[LaneIndex], index: Index) -> Value:
        self.single.forget()
        return sort_key(
            self.b, self.single.at(self.x, (*outer, uniform(index))), self.dtype, falling=self.falling
        )

    def _rest(self, outer: Sequence[LaneIndex], k: Index, n: Index) -> None:
        """Let the elements behind the first k into the heap."""
        b, entries = self.b, self.entries

        def one(index: Index) -> None:
            key = self._key(outer, index)

            def replace() -> Sequence[Value]:
                self.heap.sift(0, k, entries.pack(key, index))
                return ()

            b.if_(b.compare("lt", key, entries.key(entries.load(0))), replace)

        done: Index = k
        if self.lanes > 1:
            done = b.iadd(k, b.round_down(b.isub(n, k), self.lanes))
            with b.loop(k, done, self.lanes) as loop:
                self.wide.forget()
                x = b.splat(self.wide.at(self.x, (*outer, LaneIndex(loop.index, 1))), self.lanes)
                keys = sort_key(b, x, self.dtype, falling=self.falling)
                worst = b.splat(entries.key(entries.load(0)), self.lanes)

                def each(start: Index = loop.index) -> Sequence[Value]:
                    with b.loop(0, self.lanes) as lane:
                        one(b.iadd(start, lane.index))
                    return ()

                b.if_(b.reduce_lanes("or", b.compare("lt", keys, worst)), each)
        with b.loop(done, n) as loop:
            one(loop.index)
