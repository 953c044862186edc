"""Kernels of strings: one element after the other, each a record of its length (i64) and bytes, by address."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Function, Op, Value
from sardonyx.ir.types import BufferType
from sardonyx.kernels.evaluator import Evaluator
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, make_sources
from sardonyx.kernels.text_builder import Element, TextBuilder
from sardonyx.kernels.text_case import change_case
from sardonyx.kernels.text_find import find_string
from sardonyx.kernels.text_format import format_element
from sardonyx.kernels.text_parse import parse_element
from sardonyx.kernels.text_split import count_parts, string_part
from sardonyx.loop.builder import INDEX, Index, LoopBuilder
from sardonyx_runtime import dtypes

__all__ = ["address_kernel", "text_kernel"]


def text_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value]) -> Kernel:
    """The kernel of a lone op on strings.  One that makes strings runs in one piece: their memory is one."""
    (op,) = [o for o in region.ops if o.kind in _ELEMENTS]
    kernel = KernelBuilder(op.kind, group_location(region))
    b = kernel.b
    evaluator = Evaluator(kernel, make_sources(kernel, region, operands), 1)
    out = kernel.buffer(results[0], name="out")
    makes = results[0].type.dtype is dtypes.string
    shape = results[0].type.shape
    size = results[0].type.size
    count = kernel.dim(size)
    make = _ELEMENTS[op.kind](TextBuilder(kernel, op.location), op)

    def element(index: Index) -> None:
        evaluator.forget()
        values = []
        for operand in op.operands:
            source = evaluator.sources.get(operand)
            place = () if source is not None else _place(kernel, shape, index)
            values.append(
                b.load(source.buffer, index) if source is not None else evaluator.at(operand, place)
            )
        b.store(make(values, index), out, index)

    with b.loop(kernel.begin, kernel.end) as unit:
        if makes:
            with b.loop(0, count) as loop:
                element(loop.index)
        else:
            element(unit.index)
    return kernel.finish(1 if makes else size, size * 10_000)


def _place(kernel: KernelBuilder, shape: Sequence[int], index: Index) -> tuple[LaneIndex, ...]:
    """The place of an element by its row-major number."""
    place: list[LaneIndex] = []
    for position, dim in reversed(list(enumerate(shape))):
        extent = kernel.dim(dim)
        place.insert(0, uniform(kernel.b.imod(index, extent) if position else index))
        index = kernel.b.idiv(index, extent) if position else index
    return tuple(place)


def address_kernel() -> Function:
    """(offsets, memory, out, count): the addresses of the records in constant memory."""
    b = LoopBuilder("addresses")
    offsets, memory = (
        b.argument(BufferType(dtypes.i64), "offsets"),
        b.argument(BufferType(dtypes.u8), "memory"),
    )
    out, count = b.argument(BufferType(dtypes.i64), "out"), b.argument(INDEX, "count")
    begin, end = b.argument(INDEX, "begin"), b.argument(INDEX, "end")
    with b.loop(begin, end), b.loop(0, count) as loop:
        offset = b.to_index(b.load(offsets, loop.index))
        b.store(b.address(memory, offset), out, loop.index)
    return b.finish()


def _equal(t: TextBuilder, op: Op) -> Element:
    return lambda values, index: t.equal(t.text(values[0]), t.text(values[1]))


def _concat(t: TextBuilder, op: Op) -> Element:
    def make(values: list[Value], index: Index) -> Value:
        first, second = t.text(values[0]), t.text(values[1])
        made = t.new(t.b.iadd(first.length, second.length))
        t.copy(made, 0, first.data, 0, first.length)
        t.copy(made, first.length, second.data, 0, second.length)
        return made.address

    return make


def _matches(t: TextBuilder, op: Op) -> Element:
    b, kernel = t.b, t.kernel
    table = op.attributes["table"].array
    rows = kernel.constant(Dense((table * table.shape[1]).astype(np.int32).reshape(-1)), "table")
    classes = kernel.constant(op.attributes["classes"], "classes")
    accepting = kernel.constant(Dense(op.attributes["accepting"].array.repeat(table.shape[1])), "accepting")

    def make(values: list[Value], index: Index) -> Value:
        """States are the places of their rows."""
        text = t.text(values[0])
        with b.loop(0, text.length, 1, [t.number(0)]) as loop:
            kind = b.load(classes, b.to_index(b.load(text.data, loop.index)))
            place = t.op("add", loop.carried[0], b.convert(kind, dtypes.i64))
            b.yield_(b.convert(b.load(rows, b.to_index(place)), dtypes.i64))
        return b.load(accepting, b.to_index(loop.results[0]))

    return make


_ELEMENTS: dict[str, Callable[[TextBuilder, Op], Element]] = {
    "string_equal": _equal,
    "string_concat": _concat,
    "find_string": find_string,
    "string_matches": _matches,
    "change_case": change_case,
    "count_parts": count_parts,
    "string_part": string_part,
    "format": format_element,
    "parse": parse_element,
}
