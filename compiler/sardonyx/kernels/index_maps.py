"""Index maps: the place in an operand from the place in the result, for every core op that moves elements.

Each entry of the table evaluates the operand at the mapped place, so that moved elements cost index
arithmetic and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sardonyx.ir.graph import Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels import lane_index
from sardonyx.kernels.faults import FaultKind
from sardonyx.kernels.kernel import compute_type
from sardonyx.kernels.lane_index import LaneIndex, Place, uniform
from sardonyx.loop.builder import lanes_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, never_negative

if TYPE_CHECKING:
    from sardonyx.kernels.evaluator import Evaluator

__all__ = ["MOVES", "checked_index", "reshape_groups"]


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


Move = Callable[["Evaluator", Op, Place, bool], Value]

MOVES: dict[str, Move] = {
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
