"""Schedules groups with reductions: softmax, normalisations, means and the like become one kernel each.

All reductions of a group go over the same axes of the same shape.  For one row (one place along the
kept axes) the group runs in phases: each phase is a loop over the reduced axes that feeds all
reductions whose operands are known by then; the last phase writes the results.  The last axis is done
in vectors: if it is reduced, lanes are partial results; if it is kept, a "row" is a vector of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sardonyx.core.reduction import identity
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import (
    HEAVY,
    element_cost,
    group_location,
    known_multiple,
    make_sources,
    used_types,
    vector_lanes,
)
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product

__all__ = ["rows_kernel"]

_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


def rows_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target) -> Kernel:
    """The kernel of a group with at least one ``core.reduce``."""
    return _Rows(region, operands, results, target).build()


@dataclass
class _Rows:
    region: Block
    operands: Sequence[Value]
    results: Sequence[Value]
    target: Target
    depth: dict[Value, int] = field(default_factory=dict)

    def build(self) -> Kernel:
        region = self.region
        reductions = [op for op in region.ops if op.name == "core.reduce"]
        self.shape: Shape = reductions[0].operands[0].type.shape
        self.axes: tuple[int, ...] = tuple(reductions[0].attributes["axes"])
        self.kept = [a for a in range(len(self.shape)) if a not in self.axes]
        self.kernel = kernel = KernelBuilder("rows", group_location(region))
        self.b = kernel.b
        sources = make_sources(kernel, region, self.operands)
        self.outputs = [kernel.buffer(r, name=r.name or "out") for r in self.results]
        self.lanes = self._lanes()
        self.e = Evaluator(kernel, sources, self.lanes)
        self._measure_depths()
        self.phases: list[list[Op]] = []
        for op in reductions:
            level = self.depth[op.operands[0]]
            while len(self.phases) <= level:
                self.phases.append([])
            self.phases[level].append(op)
        self.inner_reduced = bool(self.axes) and self.axes[-1] == len(self.shape) - 1
        self.heavy = any(op.kind in HEAVY for op in region.ops)
        how = "along each row" if self.inner_reduced else "each lane a row of its own"
        kernel.note(f"{self.lanes} lanes, {how}")
        kernel.note(
            f"{len(self.phases)} reductions one after the other" if len(self.phases) > 1 else "one reduction"
        )
        self.extents = [kernel.dim(d) for d in self.shape]
        last = self.shape[-1]
        rows: DimLike = product(self.shape[a] for a in self.kept)
        if self.inner_reduced:
            units = rows
            with self.b.loop(kernel.begin, kernel.end) as loop:
                self._row(self._kept_place(loop.index, self.kept), None)
        else:
            outer = self.kept[:-1]
            blocks = ceildiv(last, self.lanes)
            units = product(self.shape[a] for a in outer) * blocks
            with self.b.loop(kernel.begin, kernel.end) as loop:
                self._vector_row(loop.index, outer, kernel.dim(blocks))
        return kernel.finish(units, product(self.shape) * element_cost(region))

    def _lanes(self) -> int:
        lanes = vector_lanes(self.target, used_types(self.region))
        last = self.shape[-1]
        if isinstance(last, int) and last < lanes:
            lanes = 1 << max(0, (last - 1).bit_length())
        return lanes

    def _measure_depths(self) -> None:
        """How many reductions stand in a row before a value."""
        for argument in self.region.arguments:
            self.depth[argument] = 0
        for op in self.region.ops:
            level = max((self.depth[o] for o in op.operands), default=0)
            for result in op.results:
                self.depth[result] = level + (op.name == "core.reduce")

    # -- places

    def _kept_place(self, row: Index, axes: Sequence[int]) -> dict[int, LaneIndex]:
        """The index along each kept axis, from the number of the row."""
        b, place = self.b, dict[int, LaneIndex]()
        rest = row
        for position, axis in reversed(list(enumerate(axes))):
            place[axis] = uniform(rest if position == 0 else b.imod(rest, self.extents[axis]))
            if position:
                rest = b.idiv(rest, self.extents[axis])
        return place

    def _full(self, kept: dict[int, LaneIndex], reduced: dict[int, LaneIndex]) -> tuple[LaneIndex, ...]:
        return tuple((kept | reduced)[a] for a in range(len(self.shape)))

    # -- one row, or one vector of rows

    def _vector_row(self, unit: Index, outer: Sequence[int], blocks: Index) -> None:
        b, last = self.b, self.shape[-1]
        row, block = b.idiv(unit, blocks), b.imod(unit, blocks)
        start = b.imul(block, self.lanes)
        lane = LaneIndex(start, 1, multiple=self.lanes)
        kept = self._kept_place(row, outer)
        kept[len(self.shape) - 1] = lane
        if known_multiple(last) % self.lanes == 0 or self.lanes == 1:
            self._row(kept, None)
            return
        left = b.isub(self.extents[-1], start)
        whole = b.icmp("ge", left, self.lanes)

        def variant(mask: Value | None) -> Sequence[Value]:
            self._row(kept, mask)
            return ()

        b.if_(whole, lambda: variant(None), lambda: variant(b.mask(left, self.lanes)))

    def _row(self, kept: dict[int, LaneIndex], mask: Value | None) -> None:
        e = self.e
        e.known, e.mask = {}, mask
        e.forget()
        restore = dict(e.sources)
        for number, phase in enumerate(self.phases):
            cached = self._cached(number)
            for op, accumulated in zip(phase, self._accumulate(phase, kept, mask, cached), strict=True):
                e.known[op.result] = e.round(accumulated, op.result.type.dtype)
            e.forget()
            for value, buffer in cached:
                e.sources[value] = Source(buffer, self.shape)
        self._write(kept, mask)
        e.sources.clear()
        e.sources.update(restore)

    def _cached(self, phase: int) -> list[tuple[Value, Value]]:
        """Costly values first needed in this phase and again later: kept in a result's own memory meanwhile."""
        chosen: list[tuple[Value, Value]] = []
        if not self.inner_reduced:
            return chosen
        free = [
            (root, buffer)
            for root, buffer in zip(self.region.terminator.operands, self.outputs, strict=True)
            if root.type.shape == self.shape
        ]
        for op in self.region.ops:
            if op.kind not in HEAVY or self.depth[op.result] != phase or op.result.type.shape != self.shape:
                continue
            again = any(self.depth[r] > phase for user in op.result.uses for r in user.results)
            for position, (root, buffer) in enumerate(free):
                same = root.type.dtype is op.result.type.dtype is compute_type(root.type.dtype)
                if again and same and self.depth[root] > phase:
                    chosen.append((op.result, buffer))
                    del free[position]
                    break
        return chosen

    def _accumulate(
        self,
        phase: Sequence[Op],
        kept: dict[int, LaneIndex],
        mask: Value | None,
        cached: Sequence[tuple[Value, Value]],
    ) -> list[Value]:
        """Run one phase over the reduced axes; the finished value of each of its reductions."""
        b = self.b
        types = [compute_type(op.operands[0].type.dtype) for op in phase]
        kinds = [op.attributes["kind"] for op in phase]
        start = [b.const(identity(k, t), t, self.lanes) for k, t in zip(kinds, types, strict=True)]
        vector_axis = len(self.shape) - 1 if self.inner_reduced else None
        loops = [a for a in self.axes if a != vector_axis]

        def nest(level: int, reduced: dict[int, LaneIndex], accumulators: list[Value]) -> list[Value]:
            if level < len(loops):
                with b.loop(0, self.extents[loops[level]], 1, accumulators) as loop:
                    inner = nest(level + 1, {**reduced, loops[level]: uniform(loop.index)}, loop.carried)
                    b.yield_(*inner)
                return loop.results
            if vector_axis is None:
                self.e.forget()
                return self._step(phase, self._full(kept, reduced), accumulators, None)
            return self._line(phase, kept, reduced, accumulators, vector_axis, cached)

        finished = nest(0, {}, start)
        if not self.inner_reduced:
            return finished
        return [b.reduce_lanes(k, v) for k, v in zip(kinds, finished, strict=True)]

    def _line(
        self,
        phase: Sequence[Op],
        kept: dict[int, LaneIndex],
        reduced: dict[int, LaneIndex],
        accumulators: list[Value],
        axis: int,
        cached: Sequence[tuple[Value, Value]],
    ) -> list[Value]:
        """One line of the last axis in vectors: an unrolled part with accumulators of its own, then the rest."""
        b, lanes, count = self.b, self.lanes, len(phase)
        extent = self.extents[axis]
        unroll = 1 if self.heavy or lanes == 1 else 4

        def body(index: Index, mask: Value | None, current: list[Value]) -> list[Value]:
            self.e.forget()
            self.e.mask = mask
            place = self._full(kept, {**reduced, axis: LaneIndex(index, 1, multiple=lanes)})
            result = self._step(phase, place, current, mask)
            for value, buffer in cached:
                self.e.store(self.e.raw(value, place), buffer, self._linear(place))
            return result

        done: Index = 0
        if unroll > 1 and not (isinstance(extent, int) and extent < lanes * unroll):
            extra = [
                b.const(identity(op.attributes["kind"], a.type.dtype), a.type.dtype, lanes)
                for _ in range(unroll - 1)
                for op, a in zip(phase, accumulators, strict=True)
            ]
            done = b.round_down(extent, lanes * unroll)
            with b.loop(0, done, lanes * unroll, [*accumulators, *extra]) as loop:
                following: list[Value] = []
                for i in range(unroll):
                    part = loop.carried[i * count : (i + 1) * count]
                    following += body(b.iadd(loop.index, i * lanes), None, part)
                b.yield_(*following)
            accumulators = loop.results[:count]
            for i in range(1, unroll):
                accumulators = [
                    b.scalar_op(_COMBINE[op.attributes["kind"]], a, c)
                    for op, a, c in zip(
                        phase, accumulators, loop.results[i * count : (i + 1) * count], strict=True
                    )
                ]
        whole = b.round_down(extent, lanes)
        if not (isinstance(extent, int) and extent < lanes):
            with b.loop(done, whole, lanes, accumulators) as loop:
                b.yield_(*body(loop.index, None, loop.carried))
            accumulators = loop.results
        if known_multiple(self.shape[axis]) % lanes:
            with b.loop(whole, extent, lanes, accumulators) as loop:
                mask = b.mask(b.isub(extent, loop.index), lanes)
                b.yield_(*body(loop.index, mask, loop.carried))
            accumulators = loop.results
        self.e.mask = None
        return accumulators

    def _step(
        self,
        phase: Sequence[Op],
        place: tuple[LaneIndex, ...],
        accumulators: Sequence[Value],
        mask: Value | None,
    ) -> list[Value]:
        b = self.b
        following = []
        for op, accumulator in zip(phase, accumulators, strict=True):
            with b.at(op.location):
                value = b.splat(self.e.at(op.operands[0], place), self.lanes)
                combined = b.scalar_op(_COMBINE[op.attributes["kind"]], accumulator, value)
                if mask is not None:
                    combined = b.scalar_op("select", mask, combined, accumulator)
            following.append(combined)
        return following

    # -- results

    def _linear(self, place: Sequence[LaneIndex]) -> LaneIndex:
        """The row-major position of a place of the full shape."""
        position: Index = 0
        for axis, index in enumerate(place):
            position = self.b.iadd(self.b.imul(position, self.extents[axis]), index.base)
        return LaneIndex(position, place[-1].step)

    def _write(self, kept: dict[int, LaneIndex], mask: Value | None) -> None:
        b, e = self.b, self.e
        pairs = list(zip(self.region.terminator.operands, self.outputs, strict=True))
        whole = [(r, o) for r, o in pairs if r.type.shape == self.shape]
        for root, buffer in pairs:
            if root.type.shape == self.shape:
                continue
            place = self._place_of(root, kept)
            position: Index = 0
            for index, dim in zip(place, root.type.shape, strict=True):
                position = b.iadd(b.imul(position, self.kernel.dim(dim)), index.base)
            step = 0 if self.inner_reduced else 1
            e.store(e.raw(root, place), buffer, LaneIndex(position, step))
        if whole:
            self._write_full(whole, kept, mask)

    def _place_of(self, root: Value, kept: dict[int, LaneIndex]) -> tuple[LaneIndex, ...]:
        """The place of a result without the reduced axes, or with extent 1 there."""
        if root.type.rank == len(self.shape):
            return tuple(kept.get(a, uniform(0)) for a in range(len(self.shape)))
        return tuple(kept[a] for a in self.kept)

    def _write_full(
        self, whole: Sequence[tuple[Value, Value]], kept: dict[int, LaneIndex], mask: Value | None
    ) -> None:
        b, e, lanes = self.b, self.e, self.lanes
        vector_axis = len(self.shape) - 1 if self.inner_reduced else None
        loops = [a for a in self.axes if a != vector_axis]

        def write(reduced: dict[int, LaneIndex], mask: Value | None) -> None:
            e.forget()
            e.mask = mask
            place = self._full(kept, reduced)
            values = [e.raw(root, place) for root, _ in whole]
            for value, (_, buffer) in zip(values, whole, strict=True):
                e.store(value, buffer, self._linear(place))

        def nest(level: int, reduced: dict[int, LaneIndex]) -> None:
            if level < len(loops):
                with b.loop(0, self.extents[loops[level]]) as loop:
                    nest(level + 1, {**reduced, loops[level]: uniform(loop.index)})
                return
            if vector_axis is None:
                write(reduced, mask)
                return
            extent = self.extents[vector_axis]
            whole_part = b.round_down(extent, lanes)
            if not (isinstance(extent, int) and extent < lanes):
                with b.loop(0, whole_part, lanes) as loop:
                    write({**reduced, vector_axis: LaneIndex(loop.index, 1, multiple=lanes)}, None)
            if known_multiple(self.shape[vector_axis]) % lanes:
                with b.loop(whole_part, extent, lanes) as loop:
                    tail = b.mask(b.isub(extent, loop.index), lanes)
                    write({**reduced, vector_axis: LaneIndex(loop.index, 1, multiple=lanes)}, tail)

        nest(0, {})
