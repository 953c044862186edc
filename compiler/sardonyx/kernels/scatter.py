"""Scatters: the operand is copied, then the updates are applied in their order.

Updates that may meet in one element stay in one thread: a scatter along an axis is parallel over the
other axes, a scatter of slices over the elements of a slice.  An index out of range notes a fault and
writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.core.indexing import combine
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.index_maps import checked_index
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources, map_kernel, vector_lanes
from sardonyx.kernels.regions import region_of
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index, lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, ceildiv, product

__all__ = ["scatter_kernels"]

_BLOCK = 512  # neighbouring elements that one unit of work updates


def scatter_kernels(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Sequence[Kernel]:
    """The kernels of a group that ends in a scatter: copy, then update."""
    (op,) = [o for o in region.ops if o.kind.startswith("scatter")]
    copied, needed = region_of(region, operands, op.operands[0])
    update = _Update(region, op, operands, results, target)
    return [map_kernel(copied, needed, results, target), update.build()]


class _Update:
    def __init__(
        self, region: Block, op: Op, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        self.op = op
        self.x, self.indices, self.updates = op.operands
        self.reduction: str = op.attributes["reduction"]
        self.kernel = KernelBuilder(op.kind, group_location(region))
        self.b = self.kernel.b
        sources = make_sources(self.kernel, region, operands)
        self.out = Source(self.kernel.buffer(results[0], name="out"), self.x.type.shape)
        self.lanes = vector_lanes(target, [self.x.type.dtype, dtypes.i64])
        self.sources = sources

    def build(self) -> Kernel:
        return self._along_axis() if self.op.kind == "scatter_elements" else self._slices()

    def _unravel(self, number: Index, shape: Shape) -> list[LaneIndex]:
        b, place = self.b, list[LaneIndex]()
        for position, dim in reversed(list(enumerate(shape))):
            extent = self.kernel.dim(dim)
            place.insert(0, uniform(b.imod(number, extent) if position else number))
            number = b.idiv(number, extent) if position else number
        return place

    def _apply(
        self,
        e: Evaluator,
        from_place: tuple[LaneIndex, ...],
        to: Sequence[LaneIndex],
        good: Sequence[Value | None],
    ) -> None:
        """One update (one per lane), unless a condition forbids it."""
        b = self.b
        scalar = [g for g in good if g is not None and lanes_of(g) == 1]
        vector = [g for g in good if g is not None and lanes_of(g) > 1]

        def write() -> Sequence[Value]:
            outer = e.mask
            e.forget()
            for test in vector:
                e.mask = test if e.mask is None else b.scalar_op("and", test, e.mask, dtype=dtypes.boolean)
            address = e.address(self.out, to)
            value = e.raw(self.updates, from_place)
            if self.reduction != "none":
                dtype = self.x.type.dtype
                kind = combine(self.reduction, dtype)
                old = e.widen(e.load(self.out, tuple(to)), dtype)
                total = e.apply(kind, dtype, dtype, [old, e.widen(value, dtype)])
                value = e.store_form(total, dtype)
            e.store(value, self.out.buffer, address)
            e.mask = outer
            e.forget()
            return ()

        condition = scalar[0] if scalar else None
        for test in scalar[1:]:
            condition = b.scalar_op("and", condition, test, dtype=dtypes.boolean)  # type: ignore[arg-type]
        if condition is None:
            write()
        else:
            b.if_(condition, write)

    def _along_axis(self) -> Kernel:
        """Steps along the axis, each over a block of the last axis; units are all other places."""
        b, kernel, shape = self.b, self.kernel, self.indices.type.shape
        axis, rank = self.op.attributes["axis"], len(self.indices.type.shape)
        wide = axis != rank - 1
        e = Evaluator(kernel, self.sources, self.lanes if wide else 1)
        others = [i for i in range(rank) if i != axis and not (wide and i == rank - 1)]
        outer = tuple(shape[i] for i in others)
        last: DimLike = shape[-1] if wide else 1
        blocks = ceildiv(last, _BLOCK)
        with b.loop(kernel.begin, kernel.end) as unit:
            count = kernel.dim(blocks)
            rows, block = b.idiv(unit.index, count), b.imod(unit.index, count)
            fixed = dict(zip(others, self._unravel(rows, outer), strict=True))
            low = b.imul(block, _BLOCK)
            high = b.imin(b.iadd(low, _BLOCK), kernel.dim(last))
            with b.loop(0, kernel.dim(shape[axis])) as step:
                fixed[axis] = uniform(step.index)

                def body(index: Index, mask: Value | None) -> None:
                    e.forget()
                    e.mask = mask
                    here = {**fixed, rank - 1: LaneIndex(index, 1)} if wide else fixed
                    place = tuple(here[i] for i in range(rank))
                    found, good = checked_index(
                        e, self.op, e.at(self.indices, place), self.x.type.shape[axis]
                    )
                    self._apply(e, place, (*place[:axis], found, *place[axis + 1 :]), [good])

                if wide:
                    vector_loop(b, low, high, e.lanes, 1, 1, body)
                else:
                    body(0, None)
        return kernel.finish(product(outer) * blocks, product(shape) * 4)

    def _slices(self) -> Kernel:
        """Update after update, each over a part of a slice; units are the parts."""
        b, kernel, lead = self.b, self.kernel, self.indices.type.shape[:-1]
        depth: int = self.indices.type.shape[-1]
        inner = self.x.type.shape[depth:]
        e = Evaluator(kernel, self.sources, self.lanes if inner else 1)
        last: DimLike = inner[-1] if inner else 1
        blocks = ceildiv(last, _BLOCK)
        with b.loop(kernel.begin, kernel.end) as unit:
            count = kernel.dim(blocks)
            rows, block = b.idiv(unit.index, count), b.imod(unit.index, count)
            fixed = self._unravel(rows, inner[:-1])
            low = b.imul(block, _BLOCK)
            high = b.imin(b.iadd(low, _BLOCK), kernel.dim(last))

            def update(place: tuple[LaneIndex, ...]) -> None:
                e.forget()
                e.mask = None
                found = [
                    checked_index(e, self.op, e.at(self.indices, (*place, uniform(i))), self.x.type.shape[i])
                    for i in range(depth)
                ]

                def body(index: Index, mask: Value | None) -> None:
                    e.mask = mask
                    within = (*fixed, LaneIndex(index, 1)) if inner else ()
                    self._apply(
                        e, (*place, *within), (*(i for i, _ in found), *within), [g for _, g in found]
                    )

                if inner:
                    vector_loop(b, low, high, e.lanes, 1, 1, body)
                else:
                    body(0, None)

            self._nest(lead, (), update)
        return kernel.finish(product(inner[:-1]) * blocks, product(self.updates.type.shape) * 4)

    def _nest(
        self, shape: Shape, place: tuple[LaneIndex, ...], body: Callable[[tuple[LaneIndex, ...]], None]
    ) -> None:
        if len(place) == len(shape):
            body(place)
            return
        with self.b.loop(0, self.kernel.dim(shape[len(place)])) as loop:
            self._nest(shape, (*place, uniform(loop.index)), body)
