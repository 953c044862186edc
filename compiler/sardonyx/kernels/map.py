"""Schedules groups of elementwise and movement ops: a nest of loops over the result's axes.

The last axis is done in vectors.  The parallel range counts pairs of (row, block): rows are the outer
axes, blocks are pieces of a long last axis.  The axis before the last is a loop of its own inside,
so that short last axes pay no division per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Block, Location, Op, Value
from sardonyx.ir.types import Shape, TensorType
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder, memory_type
from sardonyx.kernels.lane_index import LaneIndex, known_multiple, uniform
from sardonyx.kernels.regions import region_of
from sardonyx.kernels.slots import Slot, strides_in
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = [
    "HEAVY",
    "copy_kernel",
    "element_cost",
    "group_location",
    "known_multiple",
    "make_sources",
    "map_kernel",
    "used_types",
    "vector_lanes",
]

_BLOCK = 8192  # elements of the last axis that are one unit of parallel work
_STREAM_BYTES = 14 << 20  # traffic from which on a result of the model is written past the caches


def make_sources(kernel: KernelBuilder, region: Block, operands: Sequence[Value]) -> dict[Value, Source]:
    """Buffer arguments for the operands of a group, and for the constants inside that are no immediates."""
    sources: dict[Value, Source] = {}
    for argument, operand in zip(region.arguments, operands, strict=True):
        sources[argument] = Source(kernel.buffer(operand), argument.type.shape)
    return sources


def group_location(region: Block) -> Location:
    location = Location()
    for op in region.ops:
        location = location | op.location if location.origins else op.location
    return location


def used_types(region: Block) -> list[DType]:
    """The element types a group reads and computes."""
    used = [v.type.dtype for op in region.ops for v in op.results if isinstance(v.type, TensorType)]
    return used + [a.type.dtype for a in region.arguments]


def element_cost(region: Block) -> int:
    """What one element of a group costs, in the unit of `Kernel.cost`: memory, light ops, heavy ops."""
    buffers = len(region.arguments) + len(region.terminator.operands)
    return 4 * buffers + len(region.ops) + 16 * sum(op.kind in HEAVY for op in region.ops)


def vector_lanes(target: Target, dtypes_used: Sequence[DType]) -> int:
    """Lanes so that the widest value computed with fills one register."""
    widest = 1
    for dtype in dtypes_used:
        size = 4 if dtype.kind == "float" and dtype.bits < 32 else max(1, memory_type(dtype).bits // 8)
        widest = max(widest, size)
    return max(1, target.vector_bytes // widest)


def _unroll(region: Block) -> int:
    heavy = sum(op.kind in HEAVY for op in region.ops)
    light = len(region.ops)
    if heavy:
        return 1
    return 4 if light <= 6 else 2 if light <= 12 else 1


HEAVY = frozenset(
    "exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid softplus pow mod rem gather".split()
)


def map_kernel(
    region: Block,
    operands: Sequence[Value],
    results: Sequence[Value],
    target: Target,
    slot: Slot | None = None,
) -> Kernel:
    """The kernel of a group whose results all have one shape (after collapsing axes).

    ``slot``: how the rows of the one result lie in memory, where not one behind another.
    """
    return _Map(region, operands, results, target, slot).build()


def _lanes_text(lanes: int) -> str:
    return "one element at a time" if lanes == 1 else f"{lanes} lanes"


def copy_kernel(
    region: Block, operands: Sequence[Value], value: Value, there: Value, slot: Slot, target: Target
) -> Kernel:
    """The kernel that writes one value of a region into a slot."""
    if value in region.arguments:
        flat: Shape = (slot.width,) if slot.rows == 1 else (slot.rows, slot.width)
        part = Block([TensorType(value.type.dtype, flat)])
        part.append(Op("core.yield", [part.arguments[0]]))
        needed = [operands[region.arguments.index(value)]]
    else:
        part, needed = region_of(region, operands, value)
    return map_kernel(part, needed, [there], target, None if slot.is_dense else slot)


@dataclass
class _Map:
    region: Block
    operands: Sequence[Value]
    results: Sequence[Value]
    target: Target
    slot: Slot | None = None

    def build(self) -> Kernel:
        self.kernel = kernel = KernelBuilder("map", group_location(self.region))
        self.b = b = kernel.b
        self.roots = self.region.terminator.operands
        sources = make_sources(kernel, self.region, self.operands)
        self.outputs = [kernel.buffer(r, name=r.name or "out") for r in self.results]
        self.shape: Shape = self.roots[0].type.shape
        self.inner: DimLike = self.shape[-1] if self.shape else 1
        self.outer = self.shape[:-2] if len(self.shape) > 2 else self.shape[:-1]
        self.lanes, self.unroll = self._width()
        kernel.note(
            _lanes_text(self.lanes) + (f", {self.unroll} vectors at a time" if self.unroll > 1 else "")
        )
        self.evaluator = Evaluator(kernel, sources, self.lanes)
        self.streaming = False
        self.strides = None if self.slot is None else strides_in(self.shape, self.slot)
        maybe = _maybe_broadcast(self.evaluator, self.roots)
        if maybe:
            kernel.note("a variant for runs in which no axis is broadcast")
            equal = b.icmp("eq", *(kernel.dim(d) for d in maybe[0]))
            for have, want in maybe[1:]:
                equal = b.scalar_op("and", equal, b.icmp("eq", kernel.dim(have), kernel.dim(want)))
            b.if_(equal, lambda: self._variant(all_equal=True), lambda: self._variant(all_equal=False))
        else:
            self._by_size()
        units = product(self.outer) * ceildiv(self.inner, _BLOCK)
        return kernel.finish(units, product(self.shape) * element_cost(self.region))

    def _width(self) -> tuple[int, int]:
        """Lanes and unrolling: light work takes as many lanes as fill a register of the narrowest result."""
        lanes = vector_lanes(self.target, used_types(self.region))
        unroll = _unroll(self.region)
        if isinstance(self.inner, int) and self.inner < lanes:
            return 1 << max(0, (self.inner - 1).bit_length()), 1
        narrowest = min(r.type.dtype.itemsize for r in self.roots)
        wide = min(self.target.vector_bytes // narrowest, lanes * unroll)
        if lanes < wide and not (isinstance(self.inner, int) and self.inner < wide):
            return wide, lanes * unroll // wide
        return lanes, unroll

    def _variant(self, *, all_equal: bool) -> Sequence[Value]:
        self.kernel.all_equal = all_equal
        self._nest()
        return ()

    def _by_size(self) -> None:
        """Results of the model that are too large for the caches are written past them."""
        traffic = _traffic([*self.operands, *self.results])
        certain_not = isinstance(traffic, int) and traffic < _STREAM_BYTES
        if (
            certain_not
            or self.slot is not None
            or len(self.results) != 1
            or not _leaves_the_model(self.results[0])
            or self.lanes == 1
        ):
            self._nest()
            return
        b = self.b

        def variant(streaming: bool) -> Sequence[Value]:
            self.streaming = streaming
            self._nest()
            return ()

        if isinstance(traffic, int):
            self.kernel.note("the result is written past the caches")
            variant(True)
        else:
            self.kernel.note(
                f"the result is written past the caches from {_STREAM_BYTES >> 20} MiB of traffic on"
            )
            large = b.icmp("ge", self.kernel.dim(traffic), self.kernel.dim(_STREAM_BYTES))
            b.if_(large, lambda: variant(True), lambda: variant(False))

    # -- the nest of loops

    def _nest(self) -> None:
        b, kernel, shape = self.b, self.kernel, self.shape
        n = kernel.dim(self.inner)
        with b.loop(kernel.begin, kernel.end) as unit:
            blocks = kernel.dim(ceildiv(self.inner, _BLOCK))
            row, block = b.idiv(unit.index, blocks), b.imod(unit.index, blocks)
            places = self._outer_places(row)
            low = b.imul(block, _BLOCK)
            high = b.imin(b.iadd(low, _BLOCK), n)
            if len(shape) > 2:
                m = kernel.dim(shape[-2])
                with b.loop(0, m) as second:
                    start = b.imul(b.iadd(b.imul(row, m), second.index), n)
                    self._line([*places, uniform(second.index)], start, low, high)
            else:
                self._line(places, b.imul(row, n), low, high)
        if self.streaming:
            b.emit("fence", ())

    def _outer_places(self, row: Index) -> list[LaneIndex]:
        b, places = self.b, list[LaneIndex]()
        for position, dim in reversed(list(enumerate(self.outer))):
            extent = self.kernel.dim(dim)
            places.insert(0, uniform(b.imod(row, extent) if position else row))
            row = b.idiv(row, extent) if position else row
        return places

    def _line(self, axes: list[LaneIndex], start: Index, low: Index, high: Index) -> None:
        """The last axis from low to high; its first element is element ``start`` of the result."""
        b, lanes, streaming = self.b, self.lanes, self.streaming

        def body(index: Index, mask: Value | None) -> None:
            e = self.evaluator
            e.forget()
            e.mask = mask
            aligned = 1 if streaming else lanes
            place = (*axes, LaneIndex(index, 1, multiple=aligned))[-len(self.shape) :] if self.shape else ()
            values = [e.raw(root, place) for root in self.roots]
            for value, buffer in zip(values, self.outputs, strict=True):
                to = LaneIndex(b.iadd(start, index), 1)
                if self.strides is not None:
                    to = e.address(Source(buffer, self.shape, self.strides), place)
                e.store(value, buffer, to, streaming=streaming)

        multiple = known_multiple(self.inner)
        if streaming:
            head = self._head(start, low, high)
            with b.loop(low, head, lanes) as loop:  # runs once or not at all
                body(loop.index, b.mask(b.isub(head, loop.index), lanes))
            low, multiple = head, 1
        vector_loop(b, low, high, lanes, self.unroll, multiple, body)

    def _head(self, start: Index, low: Index, high: Index) -> Index:
        """The first index whose element begins a register-aligned place of the result."""
        b, register = self.b, self.lanes * self.roots[0].type.dtype.itemsize
        address = b.to_index(b.address(self.outputs[0], b.iadd(start, low)))
        ahead = b.imod(b.isub(register, b.imod(address, register)), register)
        return b.imin(high, b.iadd(low, b.idiv(ahead, self.roots[0].type.dtype.itemsize)))


def _traffic(tensors: Sequence[Value]) -> DimLike:
    """Bytes moved by reading and writing every tensor once."""
    total: DimLike = 0
    for tensor in tensors:
        total = total + product(tensor.type.shape) * tensor.type.dtype.itemsize
    return total


def _leaves_the_model(value: Value) -> bool:
    return any(user.name == "core.return" for user in value.uses)


def _maybe_broadcast(evaluator: Evaluator, roots: Sequence[Value]) -> list[tuple[DimLike, DimLike]]:
    """The pairs (have, want) of the group's broadcasts where a symbolic extent may turn out to be 1."""
    pairs: dict[tuple[DimLike, DimLike], None] = {}
    seen: set[Value] = set()
    todo = list(roots)
    while todo:
        value = todo.pop()
        if value in seen or value in evaluator.sources or value.op is None:
            continue
        seen.add(value)
        if value.op.kind == "broadcast":
            have, want = value.op.operands[0].type.shape, value.type.shape
            for a, c in zip(have, want[len(want) - len(have) :], strict=True):
                if a not in (1, c):
                    pairs[a, c] = None
        todo.extend(value.op.operands)
    return list(pairs)
