"""Control flow: If, Loop and Scan.  Subgraphs come as functions that lower them (``bodies``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.core.aggregates import OptionalValue, is_plain
from sardonyx.core.builder import Builder, constant_of
from sardonyx.core.control_builder import LoopBody, build_if, build_loop, discard
from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.ir.graph import Block, Value
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import concat, normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike

__all__: list[str] = []

Body = Callable[[Builder, Sequence[Value]], list[Value]]


_MOST_PASSES = 1024  # of a loop that is unrolled


@onnx_op("If")
def if_(b: Builder, condition: Value, *, bodies: Sequence[Body]) -> tuple[Value, ...]:
    then, otherwise = bodies
    return tuple(build_if(b, condition, lambda inner: then(inner, ()), lambda inner: otherwise(inner, ())))


@onnx_op("Loop")
def loop(
    b: Builder,
    trip: Value | None = None,
    condition: Value | None = None,
    *initial: Value,
    bodies: Sequence[Body],
) -> tuple[Value, ...]:
    """Where only a trip count is given, the condition that the body yields is ignored, as the text says; where
    neither is, it ends the loop, which would not end otherwise."""
    (subgraph,) = bodies
    counted = condition is None and trip is not None
    if not is_plain(initial):
        return tuple(_unrolled(b, trip, condition, initial, subgraph))
    # A symbol is never negative, so a negative trip count becomes 0 before it is one.
    bound: DimLike | None = None if trip is None else b.dims_of(b.max(trip, b.full(0, trip)))[0]

    def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
        number = inner.dims([index], scalar=True)
        goes_on = inner.constant(True, dtypes.boolean)  # a pass runs only where the condition holds
        next_condition, *results = subgraph(inner, [number, goes_on, *carried])
        return LoopBody(None if counted else next_condition, results[: len(carried)], results[len(carried) :])

    try:
        final, stacked = build_loop(b, bound, condition, initial, body)
    except NeedsConstant:
        if trip is None or constant_of(trip) is None:
            raise
        return tuple(
            _unrolled(b, trip, condition, initial, subgraph)
        )  # what was not known may be, pass by pass
    return (*final, *stacked)


def _known(value: Value) -> bool:
    found = constant_of(value)
    if found is None:
        raise NeedsConstant("a loop that is unrolled needs a condition that is known", value.name)
    return bool(found.reshape(-1)[0])


def _unrolled(
    b: Builder, trip: Value | None, condition: Value | None, initial: Sequence[Any], body: Body
) -> list[Any]:
    """A loop that carries sequences or picks of them, pass by pass: what a pass makes of them has to be known."""
    most = None if trip is None else static_ints(b, trip, "M")[0]
    counted = condition is None and trip is not None
    carried = list(initial)
    stacks: list[list[Value]] = []
    going = condition is None or _known(condition)
    index = 0
    while going and (most is None or index < most):
        if index >= _MOST_PASSES:
            raise CompileError(f"a loop that has to be unrolled makes more than {_MOST_PASSES} passes")
        number, goes_on = b.constant(index, dtypes.i64), b.constant(True, dtypes.boolean)
        next_condition, *results = body(b, [number, goes_on, *carried])
        elements = results[len(carried) :]
        carried = [_as_carried(old, new) for old, new in zip(carried, results, strict=False)]
        stacks = stacks or [[] for _ in elements]
        for stack, element in zip(stacks, elements, strict=True):
            stack.append(element)
        going = counted or _known(next_condition)
        index += 1
    if not index:
        return [*carried, *_nothing_stacked(b, carried, body)]
    stacked = [concat(b, *[b.reshape(e, (1, *e.type.shape)) for e in stack], axis=0) for stack in stacks]
    return [*carried, *stacked]


def _as_carried(old: Any, new: Any) -> Any:
    """What a pass gives, as an optional where one is carried."""
    if isinstance(old, OptionalValue) and not isinstance(new, OptionalValue):
        return OptionalValue(new, new.type)
    return new


def _nothing_stacked(b: Builder, carried: Sequence[Any], body: Body) -> list[Value]:
    """The stacked results of a loop that makes no pass; one is tried, for their types."""
    trial = b.child(Block())
    number, goes_on = trial.constant(0, dtypes.i64), trial.constant(True, dtypes.boolean)
    elements = body(trial, [number, goes_on, *carried])[1 + len(carried) :]
    discard(trial.block)
    return [b.broadcast_to(b.constant(0, e.type.dtype), (0, *e.type.shape)) for e in elements]


def slice_at(b: Builder, x: Value, axis: int, index: DimLike) -> Value:
    """The slice of x at one index along an axis, which vanishes."""
    starts = tuple(index if a == axis else 0 for a in range(x.type.rank))
    sizes = tuple(1 if a == axis else d for a, d in enumerate(x.type.shape))
    one = b.op("core.slice", x, starts=starts, sizes=sizes, steps=(1,) * x.type.rank)
    return b.reshape(one, [d for a, d in enumerate(x.type.shape) if a != axis])


def reversed_along(b: Builder, x: Value, axis: int) -> Value:
    """x backwards along an axis."""
    extent = x.type.shape[axis]
    starts = tuple(extent - 1 if a == axis else 0 for a in range(x.type.rank))
    steps = tuple(-1 if a == axis else 1 for a in range(x.type.rank))
    return b.op("core.slice", x, starts=starts, sizes=x.type.shape, steps=steps)


@onnx_op("Scan", since=9)
def scan(
    b: Builder,
    *operands: Value,
    bodies: Sequence[Body],
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None = None,
    scan_input_directions: tuple[int, ...] | None = None,
    scan_output_axes: tuple[int, ...] | None = None,
    scan_output_directions: tuple[int, ...] | None = None,
) -> tuple[Value, ...]:
    (subgraph,) = bodies
    states, inputs = operands[: len(operands) - num_scan_inputs], operands[len(operands) - num_scan_inputs :]
    axes = [
        normal_axis(a, x.type.rank)
        for a, x in zip(scan_input_axes or (0,) * len(inputs), inputs, strict=True)
    ]
    backward = scan_input_directions or (0,) * len(inputs)
    length = inputs[0].type.shape[axes[0]]
    for x, axis in zip(inputs, axes, strict=True):
        same_dim(b, length, x.type.shape[axis], "the scanned inputs have unlike numbers of steps")

    def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
        elements = [
            slice_at(inner, x, axis, length - 1 - index if turned else index)
            for x, axis, turned in zip(inputs, axes, backward, strict=True)
        ]
        results = subgraph(inner, [*carried, *elements])
        return LoopBody(None, results[: len(states)], results[len(states) :])

    final, stacked = build_loop(b, length, None, states, body)
    finished: list[Value] = []
    to_axes: Any = scan_output_axes or (0,) * len(stacked)
    directions: Any = scan_output_directions or (0,) * len(stacked)
    for value, axis, turned in zip(stacked, to_axes, directions, strict=True):
        place = normal_axis(axis, value.type.rank)
        one = reversed_along(b, value, 0) if turned else value
        order = list(range(1, value.type.rank))
        order.insert(place, 0)
        finished.append(b.transpose(one, order))
    return (*final, *finished)


@onnx_op("Scan", until=8)
def scan_8(
    b: Builder,
    lengths: Value | None,
    *operands: Value,
    bodies: Sequence[Body],
    num_scan_inputs: int,
    directions: tuple[int, ...] | None = None,
) -> tuple[Value, ...]:
    """Opset 8: batches on axis 0, steps on axis 1.  Past the end of a shorter sequence the outputs are 0, and a
    backward pass starts at its last step."""
    (subgraph,) = bodies
    states, inputs = operands[: len(operands) - num_scan_inputs], operands[len(operands) - num_scan_inputs :]
    backward = directions or (0,) * len(inputs)
    if any(v.type.rank < 2 for v in inputs):
        raise CompileError("the scanned inputs need the axes of the batch and of the steps")
    batch, most = inputs[0].type.shape[:2]
    for x in operands:
        same_dim(b, batch, x.type.shape[0], "the operands have unlike batch sizes")
    for x in inputs:
        same_dim(b, most, x.type.shape[1], "the scanned inputs have unlike numbers of steps")
    if lengths is not None:
        same_dim(b, batch, lengths.type.shape[0], "sequence_lens is not as long as the batch")

    def entry(outer: Builder, number: DimLike, _: Sequence[Value]) -> LoopBody:
        own = [slice_at(outer, x, 0, number) for x in inputs]
        length = most
        if lengths is not None:
            (length,) = outer.dims_of(slice_at(outer, lengths, 0, number))
            outer.require("at_least", most, length, "a sequence is longer than the scanned inputs")

        def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
            places = [length - 1 - index if turned else index for turned in backward]
            elements = [slice_at(inner, x, 0, place) for x, place in zip(own, places, strict=True)]
            results = subgraph(inner, [*carried, *elements])
            return LoopBody(None, results[: len(states)], results[len(states) :])

        final, stacked = build_loop(
            outer, length, None, [slice_at(outer, s, 0, number) for s in states], body
        )
        return LoopBody(None, (), [*final, *(_padded(outer, y, most - length) for y in stacked)])

    return tuple(build_loop(b, batch, None, (), entry)[1])


def same_dim(b: Builder, left: DimLike, right: DimLike, message: str) -> None:
    """Two dims have to be equal: a refusal where both are known, else a fault of the run."""
    if left == right:
        return
    if isinstance(left, int) and isinstance(right, int):
        raise CompileError(f"{message}: {left} and {right}")
    b.require("equal", left, right, message)


def _padded(b: Builder, x: Value, count: DimLike) -> Value:
    """x with that many zeros more along its first axis."""
    if count == 0:
        return x
    rest = (0,) * (x.type.rank - 1)
    return b.op("core.pad", x, b.constant(0, x.type.dtype), low=(0, *rest), high=(count, *rest))
