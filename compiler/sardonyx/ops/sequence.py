"""Sequences and optionals.  Their lengths and presence are known while the model is lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.core.aggregates import OptionalValue, SequenceValue
from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.ir.graph import Value
from sardonyx.ir.types import OptionalType, TensorType, Type, UnrankedType
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import concat, normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbols_of

__all__: list[str] = []

Body = Callable[[Builder, Sequence[Any]], list[Any]]


def _position(b: Builder, sequence: SequenceValue, position: Value | None, most: int) -> int:
    """An index into a sequence; negative ones count from the end."""
    length = len(sequence.elements)
    if position is None:
        return most
    (index,) = static_ints(b, position, "position")
    if not -length <= index <= most:
        raise CompileError(f"the position {index} is outside of a sequence of {length}")
    return index + length if index < 0 else index


@onnx_op("SequenceEmpty")
def sequence_empty(b: Builder, *, dtype: int = 1) -> SequenceValue:
    return SequenceValue((), UnrankedType(dtypes.by_onnx(dtype)))


@onnx_op("SequenceConstruct")
def sequence_construct(b: Builder, *elements: Value) -> SequenceValue:
    return SequenceValue(tuple(elements), elements[0].type)


@onnx_op("SequenceInsert")
def sequence_insert(
    b: Builder, sequence: SequenceValue, element: Value, position: Value | None = None
) -> SequenceValue:
    place = _position(b, sequence, position, len(sequence.elements))
    kind = sequence.type.element
    if isinstance(kind, (TensorType, UnrankedType)) and kind.dtype not in (None, element.type.dtype):
        raise CompileError(f"{element.type.describe()} does not go into a {sequence.type.describe()}")
    elements = (*sequence.elements[:place], element, *sequence.elements[place:])
    return SequenceValue(elements, sequence.element_type)


@onnx_op("SequenceErase")
def sequence_erase(b: Builder, sequence: SequenceValue, position: Value | None = None) -> SequenceValue:
    place = _position(b, sequence, position, len(sequence.elements) - 1)
    return SequenceValue(sequence.elements[:place] + sequence.elements[place + 1 :], sequence.element_type)


@onnx_op("SequenceAt")
def sequence_at(b: Builder, sequence: SequenceValue, position: Value) -> Any:
    return sequence.elements[_position(b, sequence, position, len(sequence.elements) - 1)]


@onnx_op("SequenceLength")
def sequence_length(b: Builder, sequence: SequenceValue) -> Value:
    return b.constant(len(sequence.elements), dtypes.i64)


@onnx_op("SplitToSequence")
def split_to_sequence(
    b: Builder, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> SequenceValue:
    place = normal_axis(axis, x.type.rank)
    extent = x.type.shape[place]
    if not isinstance(extent, int):
        raise NeedsConstant(
            f"axis {axis} of {x.type.describe()} decides the length of the sequence",
            x.name,
            frozenset(symbols_of(extent)),
        )
    if split is None:
        sizes = [1] * extent
    elif split.type.rank == 0:
        (size,) = static_ints(b, split, "split")
        if size <= 0:
            raise CompileError(f"the split {size} is not positive")
        sizes = [min(size, extent - start) for start in range(0, extent, size)]
    else:
        sizes = list(static_ints(b, split, "split"))
    if sum(sizes) != extent or any(s < 0 for s in sizes):
        raise CompileError(f"the splits {sizes} do not add up to {extent}")
    parts: list[Value] = []
    start = 0
    for size in sizes:
        starts = tuple(start if a == place else 0 for a in range(x.type.rank))
        extents = tuple(size if a == place else d for a, d in enumerate(x.type.shape))
        part = b.op("core.slice", x, starts=starts, sizes=extents, steps=(1,) * x.type.rank)
        if split is None and not keepdims:
            part = b.reshape(part, [d for a, d in enumerate(x.type.shape) if a != place])
        parts.append(part)
        start += size
    return SequenceValue(tuple(parts), UnrankedType(x.type.dtype))


@onnx_op("ConcatFromSequence")
def concat_from_sequence(b: Builder, sequence: SequenceValue, *, axis: int, new_axis: int = 0) -> Value:
    parts = list(sequence.elements)
    if not parts:
        raise CompileError("there is nothing to concatenate: the sequence is empty")
    rank = parts[0].type.rank + (1 if new_axis else 0)
    place = normal_axis(axis, rank)
    if new_axis:
        parts = [b.reshape(p, (*p.type.shape[:place], 1, *p.type.shape[place:])) for p in parts]
    return concat(b, *parts, axis=place)


@onnx_op("SequenceMap")
def sequence_map(
    b: Builder, first: SequenceValue, *others: Any, bodies: Sequence[Body]
) -> tuple[SequenceValue, ...]:
    (body,) = bodies
    results: list[list[Any]] = []
    for index in range(len(first.elements)):
        arguments = [first.elements[index]]
        for other in others:
            if isinstance(other, SequenceValue):
                if len(other.elements) != len(first.elements):
                    raise CompileError(
                        f"sequences of {len(first.elements)} and {len(other.elements)} elements are mapped"
                    )
                arguments.append(other.elements[index])
            else:
                arguments.append(other)
        results.append(body(b, arguments))
    count = len(results[0]) if results else b.outputs
    return tuple(
        SequenceValue(tuple(r[i] for r in results), results[0][i].type if results else UnrankedType(None))
        for i in range(count)
    )


@onnx_op("Optional")
def optional(b: Builder, value: Any = None, *, type: Type | None = None) -> OptionalValue:
    if value is not None:
        return OptionalValue(value, value.type)
    kind = type.element if isinstance(type, OptionalType) else type
    return OptionalValue(None, kind if kind is not None else UnrankedType(None))


@onnx_op("OptionalHasElement")
def optional_has_element(b: Builder, value: Any = None) -> Value:
    present = value is not None and not (isinstance(value, OptionalValue) and value.value is None)
    return b.constant(present, dtypes.boolean)


@onnx_op("OptionalGetElement")
def optional_get_element(b: Builder, value: Any) -> Any:
    if not isinstance(value, OptionalValue):
        return value
    if value.value is None:
        raise CompileError("the optional holds nothing")
    return value.value
