"""Keys that order elements as unsigned integers, and entries (key, index) that no two elements share.

A key maps NaN above everything and both zeros to one, so comparing integers compares elements.  An
entry adds the index, so that equal elements keep their order whatever algorithm sorts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.ir.types import VectorType
from sardonyx.kernels.kernel import KernelBuilder, Scratch
from sardonyx.loop.builder import Index, LoopBuilder, lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = ["Entries", "Entry", "key_type", "sort_key"]

Entry = tuple[Value, ...]


def key_type(dtype: DType) -> DType:
    """The unsigned type of the keys of a type's elements."""
    return dtypes.u64 if dtype.bits > 32 else dtypes.u32


def _cast(b: LoopBuilder, x: Value, to: DType) -> Value:
    return b.value("bitcast", (x,), VectorType(to, lanes_of(x)), to=to)


def sort_key(b: LoopBuilder, x: Value, dtype: DType, *, falling: bool = False) -> Value:
    """The key of a machine value; with ``falling`` larger elements have smaller keys."""
    to, lanes = key_type(dtype), lanes_of(x)
    signed = dtypes.i64 if to is dtypes.u64 else dtypes.i32
    lowest = b.const(-(1 << (to.bits - 1)), signed, lanes)
    if dtype.is_float:
        zero = b.const(0.0, x.type.dtype, lanes)
        bits = _cast(b, b.scalar_op("select", b.compare("eq", x, zero), zero, x), signed)
        sign = b.scalar_op("shr", bits, b.const(to.bits - 1, signed, lanes))
        key = _cast(b, b.scalar_op("xor", bits, b.scalar_op("or", sign, lowest)), to)
        above_all = b.const((1 << to.bits) - 1, to, lanes)
        key = b.scalar_op("select", b.scalar_op("is_nan", x, dtype=dtypes.boolean), above_all, key)
    elif dtype.kind == "signed":
        key = _cast(b, b.scalar_op("xor", b.convert(x, signed), lowest), to)
    else:
        key = b.convert(x, to)
    return b.scalar_op("not", key) if falling else key


@dataclass
class Entries:
    """An array of entries in scratch memory: one u64 where the key has 32 bits, else key and index.

    ``base`` is the first entry of the part in use.
    """

    b: LoopBuilder
    buffers: tuple[Value, ...]
    base: Index = 0

    @classmethod
    def make(cls, kernel: KernelBuilder, dtype: DType, size: DimLike) -> Entries:
        count = 1 if key_type(dtype) is dtypes.u32 else 2
        buffers = tuple(kernel.scratch(Scratch(dtypes.u64, size), f"entries{i}") for i in range(count))
        return cls(kernel.b, buffers)

    def pack(self, key: Value, index: Index) -> Entry:
        b = self.b
        number = b.from_index(index, dtypes.u64)
        if len(self.buffers) == 2:
            return key, number
        high = b.scalar_op("shl", b.convert(key, dtypes.u64), b.const(32, dtypes.u64))
        return (b.scalar_op("or", high, number),)

    def key(self, entry: Entry) -> Value:
        b = self.b
        if len(entry) == 2:
            return entry[0]
        return b.convert(b.scalar_op("shr", entry[0], b.const(32, dtypes.u64)), dtypes.u32)

    def index(self, entry: Entry) -> Value:
        """The index of an entry's element."""
        b = self.b
        if len(entry) == 2:
            return b.to_index(entry[1])
        return b.to_index(b.scalar_op("and", entry[0], b.const(0xFFFFFFFF, dtypes.u64)))

    def load(self, place: Index) -> Entry:
        return tuple(self.b.load(buffer, self.b.iadd(self.base, place)) for buffer in self.buffers)

    def store(self, entry: Sequence[Value], place: Index) -> None:
        for item, buffer in zip(entry, self.buffers, strict=True):
            self.b.store(item, buffer, self.b.iadd(self.base, place))

    def before(self, x: Entry, y: Entry) -> Value:
        """Whether x comes before y: by key, then by index."""
        b = self.b
        less = b.compare("lt", x[0], y[0])
        if len(x) == 1:
            return less
        tie = b.scalar_op(
            "and", b.compare("eq", x[0], y[0]), b.compare("lt", x[1], y[1]), dtype=dtypes.boolean
        )
        return b.scalar_op("or", less, tie, dtype=dtypes.boolean)
