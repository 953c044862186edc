"""Control flow: If, Loop and Scan.  Subgraphs come as functions that lower them (``bodies``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.core.control_builder import LoopBody, build_if, build_loop
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike

__all__: list[str] = []

Body = Callable[[Builder, Sequence[Value]], list[Value]]


@onnx_op("If")
def if_(b: Builder, condition: Value, *, bodies: Sequence[Body]) -> tuple[Value, ...]:
    then, otherwise = bodies
    return tuple(build_if(b, condition, lambda inner: then(inner, ()), lambda inner: otherwise(inner, ())))


@onnx_op("Loop")
def loop(
    b: Builder, trip: Value | None, condition: Value | None, *initial: Value, bodies: Sequence[Body]
) -> tuple[Value, ...]:
    (subgraph,) = bodies
    bound: DimLike | None = None if trip is None else b.dims_of(trip, minimum=-(2**63))[0]

    def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
        number = inner.dims([index], scalar=True)
        goes_on = inner.constant(True, dtypes.boolean)  # a pass runs only where the condition holds
        next_condition, *results = subgraph(inner, [number, goes_on, *carried])
        return LoopBody(next_condition, results[: len(carried)], results[len(carried) :])

    final, stacked = build_loop(b, bound, condition, initial, body)
    return (*final, *stacked)


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
    axes = [normal_axis(a, x.type.rank) for a, x in zip(scan_input_axes or (0,) * len(inputs), inputs, strict=True)]
    backward = scan_input_directions or (0,) * len(inputs)
    length = inputs[0].type.shape[axes[0]]
    for x, axis in zip(inputs, axes, strict=True):
        if x.type.shape[axis] != length:
            if isinstance(x.type.shape[axis], int) and isinstance(length, int):
                raise CompileError(f"the scanned inputs have {length} and {x.type.shape[axis]} steps")
            b.require("equal", length, x.type.shape[axis], "the scanned inputs have unlike numbers of steps")

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
