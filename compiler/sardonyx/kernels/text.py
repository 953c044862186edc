"""Kernels of strings: one element after the other, each a record of its length (i64) and bytes, by address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.ir.graph import Block, Function, Op, Value
from sardonyx.ir.types import BufferType
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.map import group_location
from sardonyx.kernels.text_builder import Text, TextBuilder
from sardonyx.kernels.text_case import change_case
from sardonyx.kernels.text_find import find_string
from sardonyx.kernels.text_float import format_float
from sardonyx.kernels.text_integer import format_bool, format_integer
from sardonyx.kernels.text_parse import parse_number
from sardonyx.kernels.text_split import count_parts, string_part
from sardonyx.loop.builder import INDEX, Index, LoopBuilder
from sardonyx_runtime import dtypes

__all__ = ["address_kernel", "text_kernel"]

Make = Callable[[TextBuilder, Op, list[Value], Index], Value]


def text_kernel(region: Block, operands: Sequence[Value], results: Sequence[Value]) -> Kernel:
    """The kernel of a lone op on strings.  One that makes strings runs in one piece: their memory is one."""
    op = region.ops[-2]  # behind it the yield, before it dims that the operands may be
    kernel = KernelBuilder(op.kind, group_location(region))
    b = kernel.b
    sources = [kernel.buffer(o) for o in operands]
    out = kernel.buffer(results[0], name="out")
    makes = results[0].type.dtype is dtypes.string
    builder = TextBuilder(kernel, op.location)
    prepared = _PREPARE.get(op.kind, lambda builder, op: None)(builder, op)
    size = results[0].type.size
    count = kernel.dim(size)

    def element(index: Index) -> None:
        values = [b.load(s, index) for s in sources]
        b.store(_MAKES[op.kind](builder, op, values, index, prepared), out, index)

    with b.loop(kernel.begin, kernel.end) as unit:
        if makes:
            with b.loop(0, count) as loop:
                element(loop.index)
        else:
            element(unit.index)
    return kernel.finish(1 if makes else size, size * 10_000)


def address_kernel() -> Function:
    """(offsets, memory, out, count): the addresses of the records in constant memory."""
    b = LoopBuilder("addresses")
    offsets, memory = b.argument(BufferType(dtypes.i64), "offsets"), b.argument(BufferType(dtypes.u8), "memory")
    out, count = b.argument(BufferType(dtypes.i64), "out"), b.argument(INDEX, "count")
    begin, end = b.argument(INDEX, "begin"), b.argument(INDEX, "end")
    with b.loop(begin, end), b.loop(0, count) as loop:
        offset = b.to_index(b.load(offsets, loop.index))
        b.store(b.address(memory, offset), out, loop.index)
    return b.finish()


def _equal(t: TextBuilder, op: Op, values: list[Value], index: Index, prepared: Any) -> Value:
    return t.equal(t.text(values[0]), t.text(values[1]))


def _concat(t: TextBuilder, op: Op, values: list[Value], index: Index, prepared: Any) -> Value:
    first, second = t.text(values[0]), t.text(values[1])
    made = t.new(t.b.iadd(first.length, second.length))
    t.copy(made, 0, first, 0, made.limited(t.b, first.length))
    t.copy(made, first.length, second, 0, made.limited(t.b, second.length))
    return made.address


def _format(t: TextBuilder, op: Op, values: list[Value], index: Index, prepared: Any) -> Value:
    dtype = op.operands[0].type.dtype
    if dtype is dtypes.boolean:
        return format_bool(t, values[0])
    return format_float(t, values[0], dtype, prepared) if dtype.is_float else format_integer(t, values[0])


def _prepare_format(t: TextBuilder, op: Op) -> Any:
    return format_float.prepare(t) if op.operands[0].type.dtype.is_float else t.b.local(dtypes.u8, 32)  # type: ignore[attr-defined]


_MAKES: dict[str, Any] = {
    "string_equal": _equal,
    "string_concat": _concat,
    "find_string": lambda t, op, values, index, prepared: find_string(t, values[0], prepared),
    "change_case": lambda t, op, values, index, prepared: change_case(t, values[0], prepared),
    "count_parts": lambda t, op, values, index, prepared: count_parts(t, op, values[0]),
    "string_part": lambda t, op, values, index, prepared: string_part(t, op, *values),
    "format": _format,
    "parse": lambda t, op, values, index, prepared: parse_number(t, op, values[0], index, prepared),
}
