"""What kernels of strings are built from: records, bytes, copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.ir.graph import Location, Value
from sardonyx.kernels.faults import FaultKind
from sardonyx.kernels.kernel import KernelBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["Element", "Text", "TextBuilder"]

Element = Callable[[list[Value], Index], Value]
_HEAD = 8  # bytes of a record before those of the string


@dataclass(frozen=True)
class Text:
    """A string: the address of its record (an i64), its length in bytes, its bytes.

    The length of a string that could not be made for want of memory is 0, so that nothing is written.
    """

    address: Value
    length: Index
    data: Value


class TextBuilder:
    """Builds the code for one element at a time."""

    def __init__(self, kernel: KernelBuilder, location: Location) -> None:
        self.kernel = kernel
        self.location = location
        self.b = kernel.b

    # -- records

    def text(self, address: Value) -> Text:
        """The string at an address."""
        b = self.b
        length = b.to_index(b.load(b.pointer(address, dtypes.i64), 0))
        return Text(address, length, b.offset(b.pointer(address, dtypes.u8), _HEAD))

    def new(self, length: Index) -> Text:
        """A new string of a length, its bytes to be written."""
        b = self.b
        wanted = b.index(length)
        address = b.value("new_string", (self.kernel.heap(), wanted), b.const(0, dtypes.i64).type)
        missing = b.compare("eq", address, b.const(0, dtypes.i64))
        self.kernel.fault(
            self.location, missing, b.from_index(wanted, dtypes.i64), FaultKind.NO_STRING_MEMORY
        )
        room = self.choose(missing, 0, wanted)
        return Text(address, room, b.offset(b.pointer(address, dtypes.u8), _HEAD))

    def copy(self, target: Text, at: Index, source: Value, start: Index, count: Index) -> None:
        """Copy bytes into a new string, as far as it has room."""
        b = self.b
        with b.loop(0, b.imin(count, b.isub(target.length, at))) as loop:
            byte = b.load(source, b.iadd(start, loop.index))
            b.store(byte, target.data, b.iadd(at, loop.index))

    def made_of(self, source: Value, count: Index) -> Value:
        """The address of a new string of the first bytes of a buffer."""
        made = self.new(count)
        self.copy(made, 0, source, 0, count)
        return made.address

    # -- values

    def choose(self, condition: Value, yes: Index, no: Index) -> Value:
        """One of two indices."""
        b = self.b
        pair = (b.from_index(yes, dtypes.i64), b.from_index(no, dtypes.i64))
        return b.to_index(b.scalar_op("select", condition, *pair, dtype=dtypes.i64))

    def number(self, value: int, dtype: DType = dtypes.i64) -> Value:
        return self.b.const(value, dtype)

    def op(self, kind: str, x: Value, y: Value | int) -> Value:
        """An operation on integers, the second of which may be a constant."""
        right = y if isinstance(y, Value) else self.b.const(y, x.type.dtype)
        return self.b.scalar_op(kind, x, right)

    def test(self, kind: str, x: Value, y: Value | int) -> Value:
        right = y if isinstance(y, Value) else self.b.const(y, x.type.dtype)
        return self.b.compare(kind, x, right)

    def both(self, *conditions: Value) -> Value:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.b.scalar_op("and", result, condition, dtype=dtypes.boolean)
        return result

    def either(self, *conditions: Value) -> Value:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.b.scalar_op("or", result, condition, dtype=dtypes.boolean)
        return result

    def no(self, condition: Value) -> Value:
        return self.b.scalar_op("not", condition, dtype=dtypes.boolean)

    def select(
        self, condition: Value, yes: Value | int, no: Value | int, dtype: DType | None = None
    ) -> Value:
        """One of two machine values, constants of the other's type among them."""
        kind = dtype or next(v.type.dtype for v in (yes, no) if isinstance(v, Value))
        x, y = (v if isinstance(v, Value) else self.b.const(v, kind) for v in (yes, no))
        return self.b.scalar_op("select", condition, x, y, dtype=kind)

    def byte(self, data: Value, index: Index, length: Index) -> Value:
        """A byte as an i64; -1 outside of the string, of which nothing is read there."""
        b = self.b
        inside = self.both(b.icmp("ge", index, 0), b.icmp("lt", index, length))
        safe = b.imul(index, b.truth(inside))
        empty = b.icmp("eq", length, 0)
        byte = b.load(data, safe, 1)
        return self.select(self.both(inside, self.no(empty)), b.convert(byte, dtypes.i64), -1)

    def equal_bytes(self, x: Value, y: Value, count: Index, condition: Value) -> Value:
        """Whether the condition holds and the first bytes of two buffers are equal; else none is read."""
        b = self.b
        with b.loop(0, b.imul(count, b.truth(condition)), 1, [condition]) as loop:
            same = b.compare("eq", b.load(x, loop.index), b.load(y, loop.index))
            b.yield_(self.both(loop.carried[0], same))
        return loop.results[0]

    def equal(self, x: Text, y: Text) -> Value:
        return self.equal_bytes(x.data, y.data, x.length, self.b.icmp("eq", x.length, y.length))
