"""Schedules groups of elementwise and movement ops: a nest of loops over the result's axes.

The last axis is done in vectors.  The parallel range counts pairs of (row, block): rows are the outer
axes, blocks are pieces of a long last axis.  The axis before the last is a loop of its own inside,
so that short last axes pay no division per row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Location, Value
from sardonyx.ir.types import TensorType
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index
from sardonyx_runtime.dims import DimLike, ceildiv, product
from sardonyx_runtime.dtypes import DType

__all__ = ["HEAVY", "group_location", "known_multiple", "make_sources", "map_kernel", "used_types", "vector_lanes"]

_BLOCK = 8192  # elements of the last axis that are one unit of parallel work


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


def vector_lanes(target: Target, dtypes_used: Sequence[DType]) -> int:
    """Lanes so that the widest value computed with fills one register."""
    widest = 1
    for dtype in dtypes_used:
        size = 4 if dtype.kind == "float" and dtype.bits < 32 else max(1, dtype.bits // 8)
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


def known_multiple(dim: DimLike) -> int:
    """A power of two that divides the dim whatever its symbols are."""
    if isinstance(dim, int):
        return dim & -dim if dim else 1 << 20
    return min(c & -c for _, c in dim.terms)


def map_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target) -> Kernel:
    """The kernel of a group whose results all have one shape (after collapsing axes)."""
    kernel = KernelBuilder("map", group_location(region))
    roots = region.terminator.operands
    sources = make_sources(kernel, region, operands)
    outputs = [kernel.buffer(r, name=r.name or "out") for r in results]
    shape: tuple[DimLike, ...] = roots[0].type.shape
    lanes = vector_lanes(target, used_types(region))
    if isinstance(last := (shape[-1] if shape else 1), int) and last < lanes:
        lanes = 1 << max(0, (last - 1).bit_length())
    evaluator = Evaluator(kernel, sources, lanes)
    b = kernel.b
    inner: DimLike = shape[-1] if shape else 1
    middle: DimLike = shape[-2] if len(shape) > 2 else 1
    outer = shape[:-2] if len(shape) > 2 else shape[:-1]
    unroll = _unroll(region)
    n, m = kernel.dim(inner), kernel.dim(middle)

    def nest() -> None:
        with b.loop(kernel.begin, kernel.end) as unit:
            blocks = kernel.dim(ceildiv(inner, _BLOCK))
            row, block = b.idiv(unit.index, blocks), b.imod(unit.index, blocks)
            places: list[LaneIndex] = []
            rest = row
            for dim in reversed(outer):
                extent = kernel.dim(dim)
                places.insert(0, uniform(b.imod(rest, extent) if len(places) < len(outer) - 1 else rest))
                rest = b.idiv(rest, extent) if len(places) < len(outer) else rest
            low = b.imul(block, _BLOCK)
            high = b.imin(b.iadd(low, _BLOCK), n)

            def line(axes: list[LaneIndex], start: Index) -> None:
                def body(index: Index, mask: Value | None) -> None:
                    evaluator.forget()
                    evaluator.mask = mask
                    place = (*axes, LaneIndex(index, 1, multiple=lanes))[-len(shape) :] if shape else ()
                    values = [evaluator.raw(root, place) for root in roots]
                    for value, buffer in zip(values, outputs, strict=True):
                        evaluator.store(value, buffer, LaneIndex(b.iadd(start, index), 1))

                vector_loop(b, low, high, lanes, unroll, known_multiple(inner), body)

            if len(shape) > 2:
                with b.loop(0, m) as second:
                    line([*places, uniform(second.index)], b.imul(b.iadd(b.imul(row, m), second.index), n))
            else:
                line(places, b.imul(row, n))

    # Two variants where symbolic dims may broadcast: the body is first built to find out whether any do.
    probe = _probe(kernel, evaluator, roots, shape)
    if not probe:
        nest()
    else:
        equal = b.icmp("eq", kernel.dim(probe[0][0]), kernel.dim(probe[0][1]))
        for have, want in probe[1:]:
            equal = b.scalar_op("and", equal, b.icmp("eq", kernel.dim(have), kernel.dim(want)))

        def variant(all_equal: bool) -> Sequence[Value]:
            kernel.all_equal = all_equal
            nest()
            return ()

        b.if_(equal, lambda: variant(True), lambda: variant(False))
    units = product(outer) * ceildiv(inner, _BLOCK)
    return kernel.finish(units, product(shape) * max(1, len(region.ops)))


def _probe(
    kernel: KernelBuilder, evaluator: Evaluator, roots: Sequence[Value], shape: Sequence[DimLike]
) -> list[tuple[DimLike, DimLike]]:
    """The pairs of dims that may broadcast, found by looking at the broadcasts of the group."""
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
