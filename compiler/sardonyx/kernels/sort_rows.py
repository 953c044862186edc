"""The order in which the rows of a matrix ascend: a merge sort of row numbers, bottom up.

Rows are compared element by element, from the first on; equal rows keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.evaluator import Evaluator
from sardonyx.kernels.kernel import Kernel, KernelBuilder, Scratch
from sardonyx.kernels.keys import sort_key
from sardonyx.kernels.lane_index import uniform
from sardonyx.kernels.map import group_location, make_sources
from sardonyx.kernels.regions import only_op
from sardonyx.kernels.target import Target
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product

__all__ = ["sort_rows_kernel"]


def sort_rows_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.sort_rows``; one thread does it."""
    op = only_op(region, "core.sort_rows")
    (x,) = op.operands
    kernel = KernelBuilder("sort_rows", group_location(region))
    b = kernel.b
    e = Evaluator(kernel, make_sources(kernel, region, operands), 1)
    out = kernel.buffer(results[0], name="out")
    other = kernel.scratch(Scratch(dtypes.i64, x.type.shape[0]))
    rows, columns = (kernel.dim(d) for d in x.type.shape)

    def key(row: Index, column: Index) -> Value:
        e.forget()
        return sort_key(b, e.at(x, (uniform(row), uniform(column))), x.type.dtype)

    def not_after(first: Index, second: Index) -> Value:
        """Whether the first row is less than the second, or equal."""

        def compare() -> Sequence[Value]:
            with b.repeat([b.index(0), b.const(1, dtypes.boolean)]) as loop:
                column = loop.carried[0]
                left, right = key(first, column), key(second, column)
                following = b.index(b.iadd(column, 1))
                equal = b.compare("eq", left, right)
                again = b.scalar_op("and", equal, b.icmp("lt", following, columns), dtype=dtypes.boolean)
                b.yield_(again, following, b.compare("le", left, right))
            return [loop.results[1]]

        return b.if_(b.icmp("gt", b.index(columns), 0), compare, lambda: [b.const(1, dtypes.boolean)])[0]

    def merge(start: Index, width: Index) -> None:
        """Two neighbouring runs become one, in the other memory."""
        middle = b.imin(b.iadd(start, width), rows)
        end = b.imin(b.iadd(middle, width), rows)
        with b.loop(start, end, carried=[b.index(start), b.index(middle)]) as loop:
            left, right = loop.carried
            has_left, has_right = b.icmp("lt", left, middle), b.icmp("lt", right, end)
            first = b.to_index(b.load(out, b.imin(left, b.isub(middle, 1))))
            second = b.to_index(b.load(out, b.imin(right, b.isub(end, 1))))

            def by_rows(first: Value = first, second: Value = second) -> Sequence[Value]:
                return [not_after(first, second)]

            both = b.scalar_op("and", has_left, has_right, dtype=dtypes.boolean)
            (take_left,) = b.if_(both, by_rows, lambda found=has_left: [found])  # type: ignore[misc]
            taken = b.truth(take_left)
            chosen = b.scalar_op("select", take_left, *(b.from_index(i, dtypes.i64) for i in (first, second)))
            b.store(chosen, other, loop.index)
            b.yield_(b.index(b.iadd(left, taken)), b.index(b.iadd(right, b.isub(1, taken))))

    with b.loop(kernel.begin, kernel.end):
        with b.loop(0, rows) as loop:
            b.store(b.from_index(loop.index, dtypes.i64), out, loop.index)
        with b.repeat([b.index(1)]) as passes:
            (width,) = passes.carried
            pair = b.imul(width, 2)
            with b.loop(0, rows, pair) as loop:
                merge(loop.index, width)
            with b.loop(0, rows) as loop:
                b.store(b.load(other, loop.index), out, loop.index)
            b.yield_(b.icmp("lt", pair, rows), b.index(pair))
    return kernel.finish(1, product(x.type.shape) * 8)
