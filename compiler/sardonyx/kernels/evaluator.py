"""Evaluates core ops element by element: the value of a tensor at an index, as loop ops.

This is what a core op *means* at the loop level.  Asking for a value asks its operands in turn, with
the index mapped on the way, so broadcasts, transposes, slices and the like cost nothing but index
arithmetic, and a group of ops becomes one loop body.  Every kernel uses it: for elementwise loops,
the operands of reductions, the prologues and epilogues of products.

16-bit floats are evaluated as f32 values that are already rounded to the type; ``raw`` gives a value as
it is stored, so that moved NaNs keep every bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Op, Value
from sardonyx.ir.types import Shape, VectorType
from sardonyx.kernels import lane_index
from sardonyx.kernels.faults import FaultKind
from sardonyx.kernels.index_maps import MOVES
from sardonyx.kernels.kernel import KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, Place, uniform
from sardonyx.loop.builder import lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, product
from sardonyx_runtime.dtypes import DType

__all__ = ["Evaluator", "Source"]

_NO_ROUNDING = frozenset(
    {"neg", "abs", "sign", "floor", "ceil", "trunc", "round_even", "max", "min", "copysign", "select", "rem"}
)
_ROUNDERS = frozenset({"floor", "ceil", "trunc", "round_even"})
_SIGN_BIT = {"neg": "xor", "abs": "and"}


@dataclass(frozen=True)
class Source:
    """A tensor in memory: its buffer, shape, and strides in elements (row-major unless given)."""

    buffer: Value
    shape: Shape
    strides: Shape | None = None

    def stride(self, axis: int) -> DimLike:
        if self.strides is not None:
            return self.strides[axis]
        return product(self.shape[axis + 1 :])


class Evaluator:
    """Evaluates the values of one group.

    ``sources`` are tensors in memory; ``known`` values that are already there (an accumulator, a row's
    maximum), whatever the index.  ``lanes`` is the vector width asked for; a value that is the same in
    every lane stays a scalar.
    """

    def __init__(self, kernel: KernelBuilder, sources: dict[Value, Source], lanes: int) -> None:
        self.kernel = kernel
        self.b = kernel.b
        self.sources = sources
        self.known: dict[Value, Value] = {}
        self.lanes = lanes
        self.mask: Value | None = None
        self._memo: dict[tuple[bool, Value, Place, Value | None], Value] = {}
        self._indices: dict[tuple[LaneIndex, DimLike, DimLike], LaneIndex] = {}

    def forget(self) -> None:
        """Start a new scope: nothing evaluated so far may be used again."""
        self._memo = {}
        self._indices = {}

    def maybe_broadcast(self, index: LaneIndex, have: DimLike, want: DimLike) -> LaneIndex:
        """The kernel's `maybe_broadcast`, made once per scope so that equal reads stay equal."""
        key = (index, have, want)
        found = self._indices.get(key)
        if found is None:
            found = self._indices[key] = self.kernel.maybe_broadcast(index, have, want, self.lanes)
        return found

    # -- entry points

    def at(self, value: Value, place: Place) -> Value:
        """The element (one per lane) as a machine value in its compute type."""
        return self._get(value, place, raw=False)

    def raw(self, value: Value, place: Place) -> Value:
        """The element as it is stored."""
        return self._get(value, place, raw=True)

    def _get(self, value: Value, place: Place, *, raw: bool) -> Value:
        if value in self.known:
            found = self.known[value]
            return self.store_form(found, value.type.dtype) if raw else found
        key = (raw, value, place, self.mask)
        found_ = self._memo.get(key)
        if found_ is None:
            outer = self.b.location
            if value.op is not None and value not in self.sources:
                self.b.location = value.op.location
            found_ = self._memo[key] = self._evaluate(value, place, raw=raw)
            self.b.location = outer
        return found_

    def _evaluate(self, value: Value, place: Place, *, raw: bool) -> Value:
        dtype: DType = value.type.dtype
        if value in self.sources:
            stored = self.load(self.sources[value], place)
            return stored if raw else self.widen(stored, dtype)
        op = value.op
        assert op is not None, f"{value} is neither computed nor in memory"
        move = MOVES.get(op.kind)
        if move is not None:
            return move(self, op, place, raw)
        if op.kind == "select":
            return self._select(op, place, raw)
        if op.kind == "bitcast":
            return self._bitcast(op, place, raw)
        if raw and dtype.is_float and dtype.bits == 16:
            if op.kind in _ROUNDERS:
                return self._round_stored(op, place)
            if op.kind in _SIGN_BIT:
                return self._sign_bit(op, place)
        special = _SPECIAL.get(op.kind)
        if special is not None:
            result = special(self, op, place)
        else:
            result = self._apply(op, [self.at(o, place) for o in op.operands])
        return self.store_form(result, dtype) if raw else result

    # -- memory

    def load(self, source: Source, place: Place) -> Value:
        """The stored element: a scalar where all lanes read one place."""
        b, address = self.b, self.address(source, place)
        if address.is_uniform:
            return self._load_uniform(source, address)
        if address.places is None and address.step == 1:
            return b.load(source.buffer, address.base, self.lanes, self.mask)
        if address.repeat and self.mask is None:
            few = b.load(source.buffer, address.run, self.lanes // address.repeat)
            if self.lanes == address.repeat:
                return b.splat(few, self.lanes)
            return b.shuffle(few, few, [lane // address.repeat for lane in range(self.lanes)])
        return b.gather(source.buffer, lane_index.as_vector(b, address, self.lanes), self.mask)

    def address(self, source: Source, place: Sequence[LaneIndex]) -> LaneIndex:
        """The position of an element in its buffer."""
        address = uniform(0)
        for axis, index in enumerate(place):
            if isinstance(index.base, int) and index.base == 0 and index.is_uniform:
                continue
            part = lane_index.multiply(self.b, index, self.kernel.dim(source.stride(axis)), self.lanes)
            address = lane_index.add(self.b, address, part, self.lanes)
        return address

    def _load_uniform(self, source: Source, address: LaneIndex) -> Value:
        return self.b.load(source.buffer, address.base)

    def store(self, value: Value, buffer: Value, index: LaneIndex, *, streaming: bool = False) -> None:
        """Write stored-form lanes; a uniform value is spread."""
        b = self.b
        if index.is_uniform:
            b.store(value, buffer, index.base)
            return
        value = b.splat(value, self.lanes)
        if index.places is None and index.step == 1:
            b.store(value, buffer, index.base, self.mask, streaming=streaming and self.mask is None)
        else:
            b.scatter(value, buffer, lane_index.as_vector(b, index, self.lanes), self.mask)

    def widen(self, stored: Value, dtype: DType) -> Value:
        return self.b.convert(stored, compute_type(dtype))

    def store_form(self, machine: Value, dtype: DType) -> Value:
        """A machine value, already rounded to the type, as it is stored."""
        if machine.type.dtype is dtype or dtype is dtypes.string:
            return machine
        return self.b.convert(machine, dtype, exact=True)

    # -- elementwise

    def _apply(self, op: Op, xs: Sequence[Value]) -> Value:
        """One elementwise op on machine values; the result is rounded to the op's type."""
        return self.apply(op.kind, op.operands[0].type.dtype, op.result.type.dtype, xs)

    def apply(self, kind: str, source: DType, to: DType, xs: Sequence[Value]) -> Value:
        result_type = dtypes.boolean if to is dtypes.boolean else xs[-1].type.dtype
        result = self.b.scalar_op(kind, *xs, dtype=result_type)
        if kind in _ROUNDERS and to.bits >= 32:  # an instruction would make a signalling NaN quiet
            is_nan = self.b.scalar_op("is_nan", xs[0], dtype=dtypes.boolean)
            result = self.b.scalar_op("select", is_nan, xs[0], result, dtype=result_type)
        if to.is_float and to.bits == 16 and kind not in _NO_ROUNDING:
            return self.round(result, to)
        return result

    def round(self, x: Value, to: DType) -> Value:
        """An f32 rounded to a 16-bit float and kept as f32; other types as they are."""
        if not (to.is_float and to.bits == 16):
            return x
        return self.b.value("round", (x,), VectorType(dtypes.f32, lanes_of(x)), to=to)

    def convert(self, op: Op, place: Place) -> Value:
        """`core.convert`: rounds once, straight from the source type."""
        b, (operand,) = self.b, op.operands
        source, to = operand.type.dtype, op.attributes["to"]
        x = self.at(operand, place)
        options = {k: v for k, v in op.attributes.items() if k != "to"}
        if compute_type(to) is to:
            return b.convert(x, to, **options)
        if to.bits == 16 and x.type.dtype is dtypes.f32:
            return self.round(x, to) if source is not to else x
        return b.convert(b.convert(x, to, **options), compute_type(to))

    def _bitcast(self, op: Op, place: Place, raw: bool) -> Value:
        """Bits travel as they are stored, so that chains of bitcasts change none."""
        (operand,) = op.operands
        stored = self.raw(operand, place)
        to = op.attributes["to"]
        cast = self.b.value("bitcast", (stored,), VectorType(to, lanes_of(stored)), to=to)
        return cast if raw else self.widen(cast, to)

    def divide(self, op: Op, place: Place) -> Value:
        """div, rem, mod: an integer zero divisor is a fault of the node."""
        x, y = (self.at(o, place) for o in op.operands)
        if y.type.dtype.is_integer:
            zero = self.b.const(0, y.type.dtype, lanes_of(y))
            self.fault(
                op, self.b.compare("eq", y, zero), self.b.const(0, dtypes.i64), FaultKind.DIVISION_BY_ZERO
            )
        return self._apply(op, [x, y])

    def fault(self, op: Op, condition: Value, value: Value, kind: FaultKind) -> None:
        """Note a fault of the op's node where the condition holds in a lane that counts."""
        if self.mask is not None:
            condition = self.b.scalar_op(
                "and", *self.b.same_lanes(condition, self.mask), dtype=dtypes.boolean
            )
        self.kernel.fault(op.location, condition, value, kind)

    def _select(self, op: Op, place: Place, raw: bool) -> Value:
        condition = self.at(op.operands[0], place)
        x, y = (self._get(o, place, raw=raw) for o in op.operands[1:])
        return self.b.scalar_op("select", condition, x, y, dtype=x.type.dtype)

    def _round_stored(self, op: Op, place: Place) -> Value:
        """floor and the like of a 16-bit float: a NaN is passed on bit by bit."""
        b, (operand,) = self.b, op.operands
        x, stored = self.at(operand, place), self.raw(operand, place)
        rounded = self.store_form(b.scalar_op(op.kind, x), operand.type.dtype)
        is_nan = b.scalar_op("is_nan", x, dtype=dtypes.boolean)
        return b.scalar_op("select", is_nan, stored, rounded, dtype=operand.type.dtype)

    def _sign_bit(self, op: Op, place: Place) -> Value:
        b, (operand,) = self.b, op.operands
        dtype = operand.type.dtype
        stored = self.raw(operand, place)
        bits = b.value("bitcast", (stored,), VectorType(dtypes.u16, lanes_of(stored)), to=dtypes.u16)
        pattern = 0x8000 if op.kind == "neg" else 0x7FFF
        changed = b.scalar_op(_SIGN_BIT[op.kind], bits, b.const(pattern, dtypes.u16, lanes_of(bits)))
        return b.value("bitcast", (changed,), VectorType(dtype, lanes_of(changed)), to=dtype)

    def iota(self, op: Op, place: Place) -> Value:
        dtype = op.attributes["dtype"]
        index = place[op.attributes["axis"]]
        if index.is_uniform:
            return self.b.from_index(index.base, compute_type(dtype))
        return self.b.convert(lane_index.as_vector(self.b, index, self.lanes), compute_type(dtype))

    def constant(self, op: Op, place: Place) -> Value:
        """A constant of one element, as an immediate."""
        dense = op.attributes["value"]
        assert dense.array.size == 1, "larger constants are sources"
        value = dense.array.reshape(())[()]
        if dense.dtype.is_float:
            return self.b.const(float(value), compute_type(dense.dtype))
        if dense.dtype.kind == "complex":  # moved as its bits, never computed with
            return self.b.const(int.from_bytes(value.tobytes(), sys.byteorder), dense.dtype)
        return self.b.const(int(value), dense.dtype)

    def dims(self, op: Op, place: Place) -> Value:
        """A dim as a scalar; several are chosen from by the index."""
        values, dtype = op.attributes["values"], op.attributes["dtype"]
        items = [self.b.from_index(self.kernel.dim(v), dtype) for v in values]
        if not place:
            return items[0]
        result = items[-1]
        for i in reversed(range(len(items) - 1)):
            here = lane_index.compare(self.b, "eq", place[0], i, self.lanes)
            result = self.b.scalar_op("select", here, items[i], result, dtype=dtype)
        return result

    def under(self, condition: Value, make: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """A value where the condition holds, else another; neither side reads memory that is not its own."""
        b = self.b
        if lanes_of(condition) == 1:
            outer, indices = self._memo, self._indices
            results: list[Value] = []

            def inside(fn: Callable[[], Value]) -> list[Value]:
                self.forget()
                value = b.splat(fn(), self.lanes)
                results.append(value)
                return [value]

            (chosen,) = b.if_(condition, lambda: inside(make), lambda: inside(otherwise))
            self._memo, self._indices = outer, indices
            return chosen
        outer_mask = self.mask
        both = (
            b.scalar_op("and", condition, outer_mask, dtype=dtypes.boolean)
            if outer_mask is not None
            else condition
        )
        self.mask = both
        yes = make()
        inverse = b.scalar_op("not", condition, dtype=dtypes.boolean)
        self.mask = (
            b.scalar_op("and", inverse, outer_mask, dtype=dtypes.boolean)
            if outer_mask is not None
            else inverse
        )
        no = otherwise()
        self.mask = outer_mask
        return b.scalar_op("select", condition, yes, no, dtype=yes.type.dtype)


_SPECIAL: dict[str, Callable[[Evaluator, Op, Place], Value]] = {
    "convert": Evaluator.convert,
    "div": Evaluator.divide,
    "rem": Evaluator.divide,
    "mod": Evaluator.divide,
    "iota": Evaluator.iota,
    "constant": Evaluator.constant,
    "dims": Evaluator.dims,
}
