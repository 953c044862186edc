"""Running sums and products along an axis.

Along any axis but the last, lanes are neighbours of the last axis and the running totals stay in
registers; along the last one it is element after element, so that every target rounds alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources, vector_lanes
from sardonyx.kernels.regions import only_op
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product

__all__ = ["scan_kernel"]

_COMBINE = {"sum": ("add", 0), "prod": ("mul", 1)}
_VECTORS = 4  # of neighbouring totals kept in registers
_ROWS = 4  # lines of the last axis done together, for one waits for its own sums


def scan_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target) -> Kernel:
    """The kernel of a group with one ``core.scan``."""
    return _Scan(region, operands, results, target).build()


class _Scan:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        op = only_op(region, "core.scan")
        (self.x,) = op.operands
        self.shape = self.x.type.shape
        self.axis: int = op.attributes["axis"]
        self.exclusive, self.reverse = bool(op.attributes["exclusive"]), bool(op.attributes["reverse"])
        self.kind, self.neutral = _COMBINE[op.attributes["kind"]]
        self.kernel = KernelBuilder("scan", group_location(region))
        self.b = self.kernel.b
        self.dtype = compute_type(self.x.type.dtype)
        sources = make_sources(self.kernel, region, operands)
        self.out = Source(self.kernel.buffer(results[0], name="out"), self.shape)
        self.wide = self.axis != len(self.shape) - 1
        self.lanes = vector_lanes(target, [self.x.type.dtype]) if self.wide else 1
        self.kernel.note(
            f"{self.lanes} lanes, each a line of its own" if self.wide else f"{_ROWS} lines at a time"
        )
        self.e = Evaluator(self.kernel, sources, self.lanes)

    def build(self) -> Kernel:
        b, kernel, shape = self.b, self.kernel, self.shape
        others = [i for i in range(len(shape)) if i != self.axis and not (self.wide and i == len(shape) - 1)]
        rows: DimLike = product(shape[i] for i in others)
        width = self.lanes * _VECTORS if self.wide else _ROWS
        across: DimLike = shape[-1] if self.wide else rows
        blocks = ceildiv(across, width)
        with b.loop(kernel.begin, kernel.end) as unit:
            if self.wide:
                count = kernel.dim(blocks)
                row, block = b.idiv(unit.index, count), b.imod(unit.index, count)
            else:
                row, block = 0, unit.index
            start = b.imul(block, width)
            left = b.isub(kernel.dim(across), start)

            def some(number: int) -> Sequence[Value]:
                for i in range(0, width, self.lanes * number):
                    with b.loop(0, b.truth(b.icmp("gt", left, i))):
                        self._lines(others, row, b.iadd(start, i), left, i, number)
                return ()

            vectors = width // self.lanes
            if vectors == 1:
                some(1)
            else:
                b.if_(b.icmp("ge", left, width), lambda: some(vectors), lambda: some(1))
        return kernel.finish(rows * blocks if self.wide else blocks, product(shape) * 2)

    def _places(self, others: Sequence[int], row: Index) -> dict[int, LaneIndex]:
        b, place = self.b, dict[int, LaneIndex]()
        for position, axis in reversed(list(enumerate(others))):
            extent = self.kernel.dim(self.shape[axis])
            place[axis] = uniform(b.imod(row, extent) if position else row)
            row = b.idiv(row, extent) if position else row
        return place

    def _lines(
        self, others: Sequence[int], row: Index, start: Index, left: Index, done: int, number: int
    ) -> None:
        """``number`` lines (of lanes) side by side, from one end of the axis to the other."""
        b, e, last = self.b, self.e, len(self.shape) - 1
        fixed: list[dict[int, LaneIndex]] = []
        for i in range(number):
            if self.wide:
                fixed.append({**self._places(others, row), last: LaneIndex(b.iadd(start, i * self.lanes), 1)})
            else:
                fixed.append(self._places(others, b.iadd(start, i)))
        mask = b.mask(b.isub(left, done), self.lanes) if self.wide and number == 1 else None
        n = self.kernel.dim(self.shape[self.axis])
        totals = [b.const(self.neutral, self.dtype, self.lanes) for _ in range(number)]
        with b.loop(0, n, carried=totals) as loop:
            at = b.isub(b.isub(n, 1), loop.index) if self.reverse else loop.index
            following = []
            for place, total in zip(fixed, loop.carried, strict=True):
                e.forget()
                e.mask = mask
                here = tuple(uniform(at) if i == self.axis else place[i] for i in range(len(self.shape)))
                x = b.splat(e.at(self.x, here), self.lanes)
                new = b.scalar_op(self.kind, total, x)
                following.append(new)
                written = e.round(total if self.exclusive else new, self.x.type.dtype)
                address = e.address(self.out, here)
                e.store(e.store_form(written, self.x.type.dtype), self.out.buffer, address)
            b.yield_(*following)
        e.mask = None
