"""Shape rules that several operators share, besides NumPy's broadcasting (`Builder.broadcast`)."""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.shape import normal_axis

__all__ = ["legacy_broadcast", "same_shape", "to_shape_of"]


def same_shape(b: Builder, *values: Value) -> list[Value]:
    """The values under the shape of the first; CompileError, or a check at run time, where they differ."""
    first = values[0]
    return [first, *(_equal_shape(b, first, v) for v in values[1:])]


def _equal_shape(b: Builder, first: Value, other: Value) -> Value:
    return b.expect_shape(
        other, first.type.shape, f"the shapes of {_name(first)} and {_name(other)} have to be equal"
    )


def to_shape_of(b: Builder, x: Value, y: Value) -> Value:
    """y repeated to the shape of x: broadcasting in one direction."""
    message = f"{_name(y)} does not broadcast to the shape of {_name(x)}"
    joint = b.joint_shape(x.type.shape, y.type.shape, [x, y])
    if len(joint) != x.type.rank:
        raise CompileError(message, hint="only the second operand is repeated")
    return b.expect_shape(b.broadcast_to(y, joint), x.type.shape, message)


def legacy_broadcast(b: Builder, x: Value, y: Value, axis: int | None, broadcast: int) -> list[Value]:
    """The broadcasting of opset 1 to 6: only y is repeated, and only if the node says so.

    The shape of y stands for a run of axes of x, which starts at ``axis`` or, without it, ends with the
    last; a y of one element fits everywhere.
    """
    if not broadcast:
        return same_shape(b, x, y)
    if y.type.size == 1:
        return [x, b.broadcast_to(b.reshape(y, ()), x.type.shape)]
    start = x.type.rank - y.type.rank if axis is None else normal_axis(axis, x.type.rank)
    behind = x.type.rank - start - y.type.rank
    if start < 0 or behind < 0:
        raise CompileError(f"{_name(y)} at axis {start} has more axes than {_name(x)}")
    return [x, to_shape_of(b, x, b.reshape(y, (*y.type.shape, *(1,) * behind)))]


def _name(value: Value) -> str:
    return f"{value.name or 'an operand'} {value.type.describe()}"
