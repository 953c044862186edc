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
from sardonyx.kernels.kernel import KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.loop.builder import lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, never_negative, product
from sardonyx_runtime.dtypes import DType

__all__ = ["Evaluator", "Source", "checked_index", "compute_type"]

Place = tuple[LaneIndex, ...]

_NO_ROUNDING = frozenset(
    {"neg", "abs", "sign", "floor", "ceil", "trunc", "round_even", "max", "min", "copysign", "select", "rem"}
)
_ROUNDERS = frozenset({"floor", "ceil", "trunc", "round_even"})
_SIGN_BIT = {"neg": "xor", "abs": "and"}


def compute_type(dtype: DType) -> DType:
    """The type a machine value has while it is computed with."""
    if dtype is dtypes.string:
        return dtypes.i64
    if dtype.kind == "float" and dtype.bits < 32:
        return dtypes.f32
    return dtype


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
            found_ = self._memo[key] = self._evaluate(value, place, raw=raw)
        return found_

    def _evaluate(self, value: Value, place: Place, *, raw: bool) -> Value:
        dtype: DType = value.type.dtype
        if value in self.sources:
            stored = self.load(self.sources[value], place)
            return stored if raw else self.widen(stored, dtype)
        op = value.op
        assert op is not None, f"{value} is neither computed nor in memory"
        move = _MOVES.get(op.kind)
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


# -- movement: the index of an operand from the index of the result


def _broadcast(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    (x,) = op.operands
    shape = op.attributes["shape"]
    inner: list[LaneIndex] = []
    lead = len(shape) - x.type.rank
    for have, want, index in zip(x.type.shape, shape[lead:], place[lead:], strict=True):
        if have == want:
            inner.append(index)
        elif have == 1:
            inner.append(uniform(0))
        else:  # a symbol that may be 1
            inner.append(e.maybe_broadcast(index, have, want))
    return e._get(x, tuple(inner), raw=raw)


def reshape_groups(source: Shape, target: Shape) -> list[tuple[range, range]]:
    """The finest pairs of axis ranges (source, target) with equal products, in order."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        i0, j0 = i, j
        left: DimLike = source[i] if i < len(source) else 1
        right: DimLike = target[j] if j < len(target) else 1
        i, j = min(i + 1, len(source)), min(j + 1, len(target))
        while left != right:
            if i < len(source) and (j >= len(target) or _smaller(left, right)):
                left = left * source[i]
                i += 1
            elif j < len(target):
                right = right * target[j]
                j += 1
            else:
                return [*groups, (range(i0, len(source)), range(j0, len(target)))]
        groups.append((range(i0, i), range(j0, j)))
    return groups


def _smaller(a: DimLike, b: DimLike) -> bool:
    """A guess which side of a reshape has to grow next."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    weight_a, weight_b = _weight(a), _weight(b)
    return weight_a < weight_b


def _weight(a: DimLike) -> tuple[int, int]:
    if isinstance(a, Dim):
        return max(len(m) for m, _ in a.terms), max(abs(c) for _, c in a.terms)
    return 0, a


def _reshape(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    (x,) = op.operands
    b, lanes = e.b, e.lanes
    source, target = x.type.shape, op.result.type.shape
    inner: list[LaneIndex] = [uniform(0)] * len(source)
    for have, want in reshape_groups(source, target):
        linear = uniform(0)
        for axis in want:
            if target[axis] != 1:
                factor = e.kernel.dim(target[axis])
                linear = lane_index.multiply(
                    b, linear, factor, lanes, lane_index.known_multiple(target[axis])
                )
                linear = lane_index.add(b, linear, place[axis], lanes)
        axes = [a for a in have if source[a] != 1]
        for position, axis in reversed(list(enumerate(axes))):
            if position == 0:
                inner[axis] = linear
            else:
                divisor, known = e.kernel.dim(source[axis]), lane_index.known_multiple(source[axis])
                linear, inner[axis] = lane_index.divide(b, linear, divisor, lanes, known)
    return e._get(x, tuple(inner), raw=raw)


def _assume(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    return e._get(op.operands[0], place, raw=raw)


def _transpose(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    inner: list[LaneIndex] = [uniform(0)] * len(place)
    for index, axis in zip(place, op.attributes["permutation"], strict=True):
        inner[axis] = index
    return e._get(op.operands[0], tuple(inner), raw=raw)


def _slice(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    inner = []
    for index, start, step in zip(place, op.attributes["starts"], op.attributes["steps"], strict=True):
        moved = lane_index.multiply(e.b, index, step, e.lanes)
        inner.append(lane_index.add(e.b, moved, uniform(e.kernel.dim(start)), e.lanes))
    return e._get(op.operands[0], tuple(inner), raw=raw)


def _repeat(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    axis = op.attributes["axis"]
    index, _ = lane_index.divide(e.b, place[axis], op.attributes["count"], e.lanes)
    return e._get(op.operands[0], (*place[:axis], index, *place[axis + 1 :]), raw=raw)


def _unfold(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    axis = op.attributes["axis"]
    start = lane_index.multiply(e.b, place[axis], op.attributes["step"], e.lanes)
    within = lane_index.multiply(e.b, place[axis + 1], op.attributes["dilation"], e.lanes)
    index = lane_index.add(e.b, start, within, e.lanes)
    return e._get(op.operands[0], (*place[:axis], index, *place[axis + 2 :]), raw=raw)


def _all(e: Evaluator, conditions: Sequence[Value]) -> Value:
    result = conditions[0]
    for condition in conditions[1:]:
        result = e.b.scalar_op("and", result, condition, dtype=dtypes.boolean)
    return result


def _pad(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    """Inside of the operand an index is moved, and lanes stay neighbours; outside of it the mode says what is read."""
    x, *fill = op.operands
    mode = op.attributes.get("mode", "constant")
    inner = list(place)
    scalar: list[Value] = []
    vector: list[Value] = []
    pads = list(zip(op.attributes["low"], op.attributes["high"], x.type.shape, strict=True))
    near = [never_negative(size - low) and never_negative(size - high) for low, high, size in pads]
    spread: dict[int, LaneIndex] = {}  # axes along which lanes may lie on both sides of an end
    for axis, (low, high, size) in enumerate(pads):
        if low == 0 and high == 0:
            continue
        moved = lane_index.add(e.b, place[axis], uniform(e.b.isub(0, e.kernel.dim(low))), e.lanes)
        inner[axis] = moved
        if mode != "constant" and moved.is_uniform:
            inner[axis] = lane_index.around(e.b, mode, moved, e.kernel.dim(size), e.lanes, near=near[axis])
            continue
        if not moved.is_uniform:
            spread[axis] = moved
        if mode == "constant":
            tests = [lane_index.compare(e.b, "ge", moved, 0, e.lanes)] if low != 0 else []
            tests += [lane_index.compare(e.b, "lt", moved, e.kernel.dim(size), e.lanes)] if high != 0 else []
            (scalar if moved.is_uniform else vector).extend(tests)

    def read(where: Sequence[LaneIndex] = tuple(inner)) -> Value:
        return e._get(x, tuple(where), raw=raw)

    def at_end() -> Value:
        if mode == "constant":
            return e.under(_all(e, vector), read, outside)
        there = list(inner)
        for axis, moved in spread.items():
            size = e.kernel.dim(x.type.shape[axis])
            there[axis] = lane_index.around(e.b, mode, moved, size, e.lanes, near=near[axis])
        return read(there)

    def outside() -> Value:
        return e._get(fill[0], (), raw=raw)

    def within() -> Value:
        if not spread:
            return read()
        ends = [(moved, e.kernel.dim(x.type.shape[axis])) for axis, moved in spread.items()]
        tests = [t for moved, size in ends for t in lane_index.all_within(e.b, moved, size, e.lanes)]
        return e.under(_all(e, tests), read, at_end) if tests else at_end()

    return e.under(_all(e, scalar), within, outside) if scalar else within()


def _concat(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    """Part after part; a vector that lies in one part whole is read without masks."""
    axis = op.attributes["axis"]
    index = place[axis]

    def read(number: int, start: DimLike) -> Value:
        moved = lane_index.add(e.b, index, uniform(e.b.isub(0, e.kernel.dim(start))), e.lanes)
        return e._get(op.operands[number], (*place[:axis], moved, *place[axis + 1 :]), raw=raw)

    def part(number: int, start: DimLike, split: bool) -> Value:
        """From this part on; ``split``: lanes may stand on both sides of an end."""
        if number == len(op.operands) - 1:
            return read(number, start)
        end = start + op.operands[number].type.shape[axis]
        bound = e.kernel.dim(end)

        def rest() -> Value:
            return part(number + 1, end, split)

        if index.is_uniform or split:
            return e.under(
                lane_index.compare(e.b, "lt", index, bound, e.lanes), lambda: read(number, start), rest
            )
        below = e.b.icmp("le", e.b.iadd(index.base, (e.lanes - 1) * index.step + 1), bound)
        above = e.b.icmp("ge", index.base, bound)
        return e.under(
            below,
            lambda: read(number, start),
            lambda: e.under(above, rest, lambda: part(number, start, True)),
        )

    return part(0, 0, split=index.places is not None or index.step < 0)


def checked_index(e: Evaluator, op: Op, found: Value, extent: DimLike) -> tuple[LaneIndex, Value | None]:
    """An index that was read, with negative ones counted from the end; a fault if it is out of range.

    The condition says where it may be used; None where any index given here may.
    """
    b = e.b
    found = b.convert(found, dtypes.i64)
    lanes = lanes_of(found)
    if op.attributes.get("trusted", False):
        return (LaneIndex(b.to_index(found)) if lanes == 1 else LaneIndex(0, places=found)), None
    size = b.splat(b.from_index(e.kernel.dim(extent), dtypes.i64), lanes)
    zero = b.const(0, dtypes.i64, lanes)
    moved = b.scalar_op("select", b.compare("lt", found, zero), b.scalar_op("add", found, size), found)
    good = b.scalar_op(
        "and", b.compare("ge", moved, zero), b.compare("lt", moved, size), dtype=dtypes.boolean
    )
    e.fault(op, b.scalar_op("not", good, dtype=dtypes.boolean), found, FaultKind.INDEX_OUT_OF_RANGE)
    safe = b.scalar_op("select", good, moved, zero)
    index = LaneIndex(b.to_index(safe)) if lanes == 1 else LaneIndex(0, places=safe)
    return index, None if isinstance(extent, int) and extent > 0 else good


def _read_checked(e: Evaluator, x: Value, inner: Place, good: Sequence[Value | None], raw: bool) -> Value:
    """An element at indices of which some hold only under a condition (an axis may be empty)."""
    tests = [g for g in good if g is not None]
    if not tests:
        return e._get(x, inner, raw=raw)
    fill = e.b.const(0, compute_type(x.type.dtype))
    if raw:
        fill = e.store_form(fill, x.type.dtype)
    lanes = max(map(lanes_of, tests))
    joint = e.b.splat(tests[0], lanes)
    for test in tests[1:]:
        joint = e.b.scalar_op("and", joint, e.b.splat(test, lanes), dtype=dtypes.boolean)
    return e.under(joint, lambda: e._get(x, inner, raw=raw), lambda: fill)


def _gather(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    x, indices = op.operands
    axis, count = op.attributes["axis"], indices.type.rank
    index, good = checked_index(e, op, e.at(indices, place[axis : axis + count]), x.type.shape[axis])
    return _read_checked(e, x, (*place[:axis], index, *place[axis + count :]), [good], raw)


def _gather_elements(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    x, indices = op.operands
    axis = op.attributes["axis"]
    index, good = checked_index(e, op, e.at(indices, place), x.type.shape[axis])
    return _read_checked(e, x, (*place[:axis], index, *place[axis + 1 :]), [good], raw)


def _gather_nd(e: Evaluator, op: Op, place: Place, raw: bool) -> Value:
    x, indices = op.operands
    batch, lead = op.attributes["batch_dims"], indices.type.rank - 1
    depth: int = indices.type.shape[-1]
    found = []
    for i in range(depth):
        read = e.at(indices, (*place[:lead], uniform(i)))
        found.append(checked_index(e, op, read, x.type.shape[batch + i]))
    inner = (*place[:batch], *(index for index, _ in found), *place[lead:])
    return _read_checked(e, x, inner, [good for _, good in found], raw)


Move = Callable[[Evaluator, Op, Place, bool], Value]

_MOVES: dict[str, Move] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "assume": _assume,
    "transpose": _transpose,
    "slice": _slice,
    "repeat": _repeat,
    "unfold": _unfold,
    "pad": _pad,
    "concat": _concat,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
}

_SPECIAL: dict[str, Callable[[Evaluator, Op, Place], Value]] = {
    "convert": Evaluator.convert,
    "div": Evaluator.divide,
    "rem": Evaluator.divide,
    "mod": Evaluator.divide,
    "iota": Evaluator.iota,
    "constant": Evaluator.constant,
    "dims": Evaluator.dims,
}
