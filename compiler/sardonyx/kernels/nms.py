"""Non-maximum suppression: per image and label, boxes by falling score, each unless a chosen one overlaps it.

Boxes above the score limit go into a heap as they are found, so that only those that are looked at get
sorted.  Chosen boxes stand in scratch memory, coordinate by coordinate, and are compared in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.evaluator import Evaluator
from sardonyx.kernels.heap import Heap
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.keys import Entries, sort_key
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources, vector_lanes
from sardonyx.kernels.regions import only_op
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, minimum

__all__ = ["nms_kernel"]

_UNITS = 32  # parts that the pairs of image and label are dealt to


def nms_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target) -> Kernel:
    """The kernel of a group with one ``core.nms``."""
    return _Nms(region, operands, results, target).build()


class _Nms:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        op = only_op(region, "core.nms")
        self.boxes, self.scores, self.iou, self.least = op.operands
        self.images, self.labels, self.count = self.scores.type.shape
        self.most: DimLike = op.attributes["most"]
        self.center = bool(op.attributes["center"])
        self.kernel = kernel = KernelBuilder("nms", group_location(region))
        self.b = kernel.b
        sources = make_sources(kernel, region, operands)
        yielded = dict(zip(region.terminator.operands, results, strict=True))
        self.chosen, self.counts = (
            kernel.buffer(yielded[r], name="out") if r in yielded else None for r in op.results
        )
        self.pairs = self.images * self.labels
        self.units = minimum(self.pairs, _UNITS)
        self.entries = Entries.make(kernel, dtypes.f32, self.units * self.count)
        self.heap = Heap(self.entries, self.entries.before)
        self.kept = [kernel.scratch(Scratch(dtypes.f32, self.units * self.most), f"c{i}") for i in range(5)]
        self.lanes = vector_lanes(target, [dtypes.f32])
        self.wide, self.single = (Evaluator(kernel, sources, lanes) for lanes in (self.lanes, 1))

    def build(self) -> Kernel:
        b, kernel = self.b, self.kernel
        n, most = kernel.dim(self.count), kernel.dim(self.most)
        limits = [self.single.at(v, ()) for v in (self.iou, self.least)]
        with b.loop(kernel.begin, kernel.end) as unit:
            self.entries.base, self.first = b.imul(unit.index, n), b.imul(unit.index, most)
            with b.loop(unit.index, kernel.dim(self.pairs), kernel.dim(self.units)) as loop:
                labels = kernel.dim(self.labels)
                image, label = b.idiv(loop.index, labels), b.imod(loop.index, labels)
                found = self._candidates(uniform(image), uniform(label), n, limits[1])
                self.heap.build(found)
                self._choose(loop.index, image, found, most, limits[0])
        return kernel.finish(self.units, self.pairs * self.count * 8)

    def _candidates(self, image: LaneIndex, label: LaneIndex, n: Index, least: Value) -> Value:
        """The boxes whose score is above the limit, as entries; how many there are."""
        b, single, wide = self.b, self.single, self.wide

        def one(index: Index, found: Value) -> Value:
            single.forget()
            score = single.at(self.scores, (image, label, uniform(index)))

            def keep() -> Sequence[Value]:
                key = sort_key(b, score, dtypes.f32, falling=True)
                self.entries.store(self.entries.pack(key, index), found)
                return [b.index(b.iadd(found, 1))]

            return b.if_(b.compare("gt", score, least), keep, lambda: [found])[0]

        total, done = b.index(0), b.round_down(n, self.lanes)
        if self.lanes > 1:
            with b.loop(0, done, self.lanes, [total]) as loop:
                wide.forget()
                scores = b.splat(wide.at(self.scores, (image, label, LaneIndex(loop.index, 1))), self.lanes)
                hit = b.reduce_lanes("or", b.compare("gt", scores, b.splat(least, self.lanes)))

                def each(start: Index = loop.index, found: Value = loop.carried[0]) -> Sequence[Value]:
                    with b.loop(0, self.lanes, carried=[found]) as lane:
                        b.yield_(one(b.iadd(start, lane.index), lane.carried[0]))
                    return lane.results

                b.yield_(*b.if_(hit, each, lambda found=loop.carried[0]: [found]))  # type: ignore[misc]
            total = loop.results[0]
        else:
            done = 0
        with b.loop(done, n, carried=[total]) as loop:
            b.yield_(one(loop.index, loop.carried[0]))
        return loop.results[0]

    def _choose(self, pair: Index, image: Index, found: Value, most: Index, iou: Value) -> None:
        b = self.b

        def go_on(count: Value, size: Value) -> Value:
            room = b.icmp("lt", count, most)
            return b.scalar_op("and", room, b.icmp("gt", size, 0), dtype=dtypes.boolean)

        def choose() -> Sequence[Value]:
            with b.repeat([b.index(0), found]) as loop:
                count, size = loop.carried
                box = self.entries.index(self.heap.pop(size))
                corners = self._corners(image, box)
                after = b.index(b.isub(size, 1))

                def keep() -> Sequence[Value]:
                    for value, buffer in zip(corners, self.kept, strict=True):
                        b.store(value, buffer, b.iadd(self.first, count))
                    if self.chosen is not None:
                        b.store(b.from_index(box, dtypes.i64), self.chosen, b.iadd(b.imul(pair, most), count))
                    return [b.index(b.iadd(count, 1))]

                (count,) = b.if_(self._overlaps(corners, count, iou), lambda: [count], keep)
                b.yield_(go_on(count, after), count, after)
            return [loop.results[0]]

        zero = b.index(0)
        (count,) = b.if_(go_on(zero, found), choose, lambda: [b.index(0)])
        if self.counts is not None:
            b.store(b.from_index(count, dtypes.i64), self.counts, pair)

    def _corners(self, image: Index, box: Index) -> list[Value]:
        """Lower and upper coordinates of a box, and its area."""
        b, e = self.b, self.single
        e.forget()
        p, q, r, s = (e.at(self.boxes, (uniform(image), uniform(box), uniform(i))) for i in range(4))
        if self.center:
            half = b.const(0.5, dtypes.f32)
            width, height = b.scalar_op("mul", r, half), b.scalar_op("mul", s, half)
            corners = [b.scalar_op(k, c, h) for k in ("sub", "add") for c, h in ((p, width), (q, height))]
        else:
            corners = [b.scalar_op(k, c, d) for k in ("min", "max") for c, d in ((p, r), (q, s))]
        sides = [b.scalar_op("sub", corners[i + 2], corners[i]) for i in (0, 1)]
        return [*corners, b.scalar_op("mul", *sides)]

    def _overlaps(self, corners: Sequence[Value], count: Value, iou: Value) -> Value:
        """Whether one of the chosen boxes overlaps a box by more than the limit."""
        b, lanes = self.b, self.lanes
        box = [b.splat(c, lanes) for c in corners]
        limit, zero = b.splat(iou, lanes), b.const(0.0, dtypes.f32, lanes)
        with b.loop(0, count, lanes, [b.const(0, dtypes.boolean, lanes)]) as loop:
            mask = b.mask(b.isub(count, loop.index), lanes) if lanes > 1 else None
            place = b.iadd(self.first, loop.index)
            other = [b.load(buffer, place, lanes, mask) for buffer in self.kept]
            sides = []
            for i in (0, 1):
                high, low = b.scalar_op("min", box[i + 2], other[i + 2]), b.scalar_op("max", box[i], other[i])
                sides.append(b.scalar_op("max", b.scalar_op("sub", high, low), zero))
            both = b.scalar_op("mul", *sides)
            union = b.scalar_op("sub", b.scalar_op("add", box[4], other[4]), both)
            hit = b.compare("gt", b.scalar_op("div", both, union), limit)
            if mask is not None:
                hit = b.scalar_op("and", hit, mask, dtype=dtypes.boolean)
            b.yield_(b.scalar_op("or", loop.carried[0], hit, dtype=dtypes.boolean))
        return b.reduce_lanes("or", loop.results[0])
