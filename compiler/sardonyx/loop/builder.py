"""Builds loop-level functions.

Index arithmetic takes and gives ``Value | int`` and folds constants at once, so that the code that
makes kernels need not care which extents are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sardonyx.ir.graph import UNKNOWN, Block, Function, Location, Op, Value
from sardonyx.ir.types import BufferType, IndexType, Type, VectorType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["INDEX", "For", "Index", "LoopBuilder", "lanes_of"]

Index = Value | int
INDEX = IndexType()


def lanes_of(value: Value) -> int:
    """The lanes of a machine value."""
    return value.type.lanes if isinstance(value.type, VectorType) else 1


class For:
    """A loop under construction: its index and carried values; ``results`` once the body has ended."""

    def __init__(self, op: Op, first: int = 1) -> None:
        self.op = op
        self.carried: list[Value] = op.regions[0].arguments[first:]

    @property
    def index(self) -> Value:
        return self.op.regions[0].arguments[0]

    @property
    def results(self) -> list[Value]:
        return self.op.results


class LoopBuilder:
    """Appends loop ops to the current block."""

    def __init__(self, name: str, location: Location = UNKNOWN) -> None:
        self.function = Function(name, Block(), {}, location)
        self.block = self.function.body
        self.location = location

    # -- structure

    def argument(self, type: Type, name: str) -> Value:
        return self.function.body.add_argument(type, name)

    def emit(
        self, kind: str, operands: Sequence[Value], types: Sequence[Type] = (), /, **attributes: Any
    ) -> Op:
        return self.block.append(Op(f"loop.{kind}", operands, types, attributes, location=self.location))

    def value(self, kind: str, operands: Sequence[Value], type: Type, /, **attributes: Any) -> Value:
        return self.emit(kind, operands, (type,), **attributes).results[0]

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    @contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """What is emitted inside stems from these nodes."""
        outer, self.location = self.location, location
        try:
            yield
        finally:
            self.location = outer

    @contextmanager
    def loop(
        self,
        low: Index,
        high: Index,
        step: Index = 1,
        carried: Sequence[Value] = (),
        *,
        at_least_once: bool = False,
    ) -> Iterator[For]:
        """``with b.loop(0, n) as for_:``; a body with carried values calls ``b.yield_`` last.

        ``at_least_once`` promises that low < high, so that the loop is tested at its end only.
        """
        body = Block([INDEX, *(c.type for c in carried)], ["i"])
        bounds = [self.index(low), self.index(high), self.index(step)]
        types = [c.type for c in carried]
        attributes = {"at_least_once": True} if at_least_once else {}
        op = Op("loop.for", [*bounds, *carried], types, attributes, regions=[body], location=self.location)
        self.block.append(op)
        with self.inside(body):
            yield For(op)
            if not body.ops or body.ops[-1].name != "loop.yield":
                self.yield_()

    @contextmanager
    def repeat(self, carried: Sequence[Value]) -> Iterator[For]:
        """A body that runs at least once; it ends with ``b.yield_(again, *carried)``."""
        body = Block([c.type for c in carried])
        op = Op(
            "loop.while", list(carried), [c.type for c in carried], {}, regions=[body], location=self.location
        )
        self.block.append(op)
        with self.inside(body):
            yield For(op, first=0)

    def yield_(self, *values: Value) -> None:
        self.emit("yield", values)

    def if_(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] | None = None,
    ) -> list[Value]:
        """Two regions made by functions that return what the region yields."""
        blocks = [Block(), Block()]
        yielded: list[Sequence[Value]] = []
        for block, make in zip(blocks, (then, otherwise or (lambda: ())), strict=True):
            with self.inside(block):
                yielded.append(make())
                self.yield_(*yielded[-1])
        types = [v.type for v in yielded[0]]
        op = Op("loop.if", [condition], types, regions=blocks, location=self.location)
        return self.block.append(op).results

    # -- index arithmetic, folded

    def index(self, value: Index) -> Value:
        return value if isinstance(value, Value) else self.value("const", (), INDEX, value=value)

    def _fold(self, kind: str, x: Index, y: Index) -> Value:
        return self.value(kind, (self.index(x), self.index(y)), INDEX)

    def iadd(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if isinstance(x, int) and x == 0:
            return y
        return x if isinstance(y, int) and y == 0 else self._fold("add", x, y)

    def isub(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if isinstance(y, int) and y == 0 else self._fold("sub", x, y)

    def imul(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        for a, b in ((x, y), (y, x)):
            if isinstance(a, int) and a in (0, 1):
                return b if a else 0
        return self._fold("mul", x, y)

    def idiv(self, x: Index, y: Index) -> Index:
        """x / y of an x that is not negative."""
        if isinstance(x, int) and isinstance(y, int):
            return x // y
        return x if isinstance(y, int) and y == 1 else self._fold("div", x, y)

    def imod(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x % y
        return 0 if isinstance(y, int) and y == 1 else self._fold("rem", x, y)

    def imin(self, x: Index, y: Index) -> Index:
        return min(x, y) if isinstance(x, int) and isinstance(y, int) else self._fold("min", x, y)

    def imax(self, x: Index, y: Index) -> Index:
        return max(x, y) if isinstance(x, int) and isinstance(y, int) else self._fold("max", x, y)

    def icmp(self, kind: str, x: Index, y: Index) -> Value:
        """A comparison of indices: an i1 scalar."""
        return self.value(kind, (self.index(x), self.index(y)), VectorType(dtypes.boolean))

    def truth(self, condition: Value) -> Index:
        """1 where the i1 scalar holds, else 0, as an index."""
        return self.value("convert", (condition,), INDEX, to=dtypes.i64)

    def round_down(self, x: Index, multiple: int) -> Index:
        return self.imul(self.idiv(x, multiple), multiple)

    # -- machine values

    def const(self, value: Any, dtype: DType, lanes: int = 1) -> Value:
        return self.value("const", (), VectorType(dtype, lanes), value=value)

    def splat(self, x: Value, lanes: int) -> Value:
        return (
            x
            if lanes_of(x) == lanes
            else self.value("splat", (x,), VectorType(x.type.dtype, lanes), lanes=lanes)
        )

    def same_lanes(self, *xs: Value) -> list[Value]:
        """All values with as many lanes as the widest."""
        lanes = max(map(lanes_of, xs))
        return [self.splat(x, lanes) for x in xs]

    def scalar_op(self, kind: str, *xs: Value, dtype: DType | None = None, **attributes: Any) -> Value:
        """An elementwise op on vectors; scalars are spread."""
        operands = self.same_lanes(*xs)
        type_ = VectorType(dtype or operands[-1].type.dtype, lanes_of(operands[0]))
        return self.value(kind, operands, type_, **attributes)

    def compare(self, kind: str, x: Value, y: Value) -> Value:
        return self.scalar_op(kind, x, y, dtype=dtypes.boolean)

    def convert(self, x: Value, to: DType, **attributes: Any) -> Value:
        if x.type.dtype is to:
            return x
        return self.value("convert", (x,), VectorType(to, lanes_of(x)), to=to, **attributes)

    def from_index(self, x: Index, dtype: DType) -> Value:
        """An index as a machine scalar."""
        wide = self.value("convert", (self.index(x),), VectorType(dtypes.i64), to=dtypes.i64)
        return self.convert(wide, dtype)

    def to_index(self, x: Value) -> Value:
        """An integer scalar as an index."""
        return self.value("convert", (x,), INDEX, to=dtypes.i64)

    def lanes(self, lanes: int) -> Value:
        return self.value("lanes", (), VectorType(dtypes.i64, lanes), lanes=lanes)

    def mask(self, count: Index, lanes: int) -> Value:
        return self.value("mask", (self.index(count),), VectorType(dtypes.boolean, lanes), lanes=lanes)

    def shuffle(self, x: Value, y: Value, picks: Sequence[int]) -> Value:
        """Lanes picked from x (numbers below its lanes) and y (numbers from there on)."""
        return self.value("shuffle", (x, y), VectorType(x.type.dtype, len(picks)), picks=tuple(picks))

    def reduce_lanes(self, kind: str, x: Value) -> Value:
        return (
            x if lanes_of(x) == 1 else self.value("reduce_lanes", (x,), VectorType(x.type.dtype), kind=kind)
        )

    # -- memory

    def load(
        self,
        buffer: Value,
        index: Index,
        lanes: int = 1,
        mask: Value | None = None,
        other: Value | None = None,
    ) -> Value:
        operands = [buffer, self.index(index)]
        if mask is not None:
            operands.append(mask)
            if other is not None:
                operands.append(other)
        return self.value("load", operands, VectorType(buffer.type.dtype, lanes), lanes=lanes)

    def store(
        self, value: Value, buffer: Value, index: Index, mask: Value | None = None, *, streaming: bool = False
    ) -> None:
        """Write consecutive elements; ``streaming`` by-passes the caches and needs a whole aligned register."""
        operands = [value, buffer, self.index(index), *([mask] if mask is not None else [])]
        self.emit("store", operands, **({"streaming": True} if streaming else {}))

    def gather(self, buffer: Value, indices: Value, mask: Value | None = None) -> Value:
        operands = [buffer, indices, *([mask] if mask is not None else [])]
        return self.value("gather", operands, VectorType(buffer.type.dtype, lanes_of(indices)))

    def scatter(self, value: Value, buffer: Value, indices: Value, mask: Value | None = None) -> None:
        self.emit("scatter", [value, buffer, indices, *([mask] if mask is not None else [])])

    def compress(self, value: Value, buffer: Value, index: Index, mask: Value) -> None:
        """Write the lanes of the mask one behind another."""
        self.emit("compress", [value, buffer, self.index(index), mask])

    def count(self, mask: Value) -> Value:
        """How many lanes hold."""
        return self.value("count", (mask,), INDEX)

    def offset(self, buffer: Value, index: Index) -> Value:
        if isinstance(index, int) and index == 0:
            return buffer
        return self.value("offset", (buffer, self.index(index)), buffer.type)

    def address(self, buffer: Value, index: Index = 0) -> Value:
        """The address of an element, an i64 scalar: for tables of rows."""
        return self.value("address", (buffer, self.index(index)), VectorType(dtypes.i64))

    def pointer(self, address: Value, dtype: DType) -> Value:
        """The buffer at an address."""
        return self.value("pointer", (address,), BufferType(dtype))

    def muladd(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z inside a sum of products."""
        return self.scalar_op("muladd", x, y, z)

    def dot_bytes(self, x: Value, y: Value, z: Value) -> Value:
        """z plus the products of the four bytes of each int32 lane of x (no sign) and y (with sign)."""
        return self.scalar_op("dot_bytes", x, y, z)

    def prefetch(self, buffer: Value, index: Index = 0) -> None:
        """A hint that the element is read soon."""
        self.emit("prefetch", (buffer, self.index(index)))

    def local(self, dtype: DType, size: int) -> Value:
        return self.value("local", (), BufferType(dtype), dtype=dtype, size=size)

    def finish(self) -> Function:
        self.emit("return", ())
        return self.function
