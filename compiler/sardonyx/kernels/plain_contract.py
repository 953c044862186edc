"""The matrix product as it is defined, for every numeric type: the twin of the fast kernel.

One row of the result at a time, in vectors of columns; the depth in order.  Integers wrap, 16-bit floats
are summed in f32.  Operands may be anything the Evaluator understands.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.geometry import unravel
from sardonyx.kernels.kernel import Kernel, KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, known_multiple, vector_lanes
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index, LoopBuilder, lanes_of
from sardonyx_runtime.dims import product

__all__ = ["plain_contract_kernel"]


def plain_contract_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.contract``."""
    op = next(op for op in region.ops if op.name == "core.contract")
    kernel = KernelBuilder("plain_contract", group_location(region))
    kernel.all_equal = False
    b = kernel.b
    sources = {
        v: Source(kernel.buffer(o), v.type.shape) for v, o in zip(region.arguments, operands, strict=True)
    }
    out = kernel.buffer(results[0], name="out")
    x, y = op.operands
    total_type = compute_type(op.result.type.dtype)
    lanes = vector_lanes(target, [x.type.dtype, total_type])
    inner = Evaluator(kernel, sources, lanes)
    epilogue = Epilogue(kernel, region, sources, op.result, out, lanes, 1)
    shape = op.result.type.shape
    columns = shape[-1]
    per_step = 4 if op.attributes.get("words", False) else 1  # elements of x that an element of y meets

    with b.loop(kernel.begin, kernel.end) as unit:
        *batch, row = unravel(kernel, unit.index, shape[:-1])
        lead = [uniform(i) for i in batch]

        def body(index: Index, mask: Value | None) -> None:
            lane = LaneIndex(index, 1, multiple=lanes)
            zero = b.const(0.0 if total_type.is_float else 0, total_type, lanes)
            inner.mask = mask
            with b.loop(0, kernel.dim(y.type.shape[-2]), carried=[zero]) as step:
                inner.forget()
                right = b.splat(b.convert(inner.at(y, (*lead, uniform(step.index), lane)), total_type), lanes)
                total = step.carried[0]
                for number in range(per_step):
                    place = b.iadd(b.imul(step.index, per_step), number)
                    left = inner.at(x, (*lead, uniform(row), uniform(place)))
                    left = b.splat(b.convert(left, total_type), lanes)
                    total = b.muladd(left, _byte(b, right, number) if per_step == 4 else right, total)
                b.yield_(total)
            end = kernel.dim(columns)
            epilogue.store_tile(step.results, batch, [row], None, index, end, [mask], multiple=lanes)

        vector_loop(b, 0, kernel.dim(columns), lanes, 1, known_multiple(columns), body)
    return kernel.finish(product(shape[:-1]), product(shape) * x.type.shape[-1])


def _byte(b: LoopBuilder, word: Value, number: int) -> Value:
    """One byte of an int32, with its sign."""
    lanes = lanes_of(word)
    up = b.scalar_op("shl", word, b.const(24 - 8 * number, word.type.dtype, lanes))
    return b.scalar_op("shr", up, b.const(24, word.type.dtype, lanes))
