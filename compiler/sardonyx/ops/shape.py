"""Constants, shapes and views: operators that make or move tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.core.builder import Builder, dims_in
from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, ceildiv, floordiv, maximum, minimum, never_negative, product

__all__ = ["normal_axes", "normal_axis"]


def normal_axis(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front; CompileError if it is outside of the rank."""
    if not -rank <= axis < rank:
        raise CompileError(f"{what} {axis} is not within -{rank} to {rank - 1}")
    return axis % rank if rank else 0


def normal_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; CompileError for one outside of the rank or named twice."""
    result = tuple(normal_axis(int(a), rank) for a in axes)
    if len(set(result)) != len(result):
        raise CompileError(f"axes {list(axes)} name an axis twice")
    return result


def static_ints(b: Builder, value: Value, what: str) -> tuple[int, ...]:
    """The elements of an integer input that has to be known at compile time."""
    known = dims_in(value)
    if known is None or any(isinstance(k, Dim) for k in known.ravel()):
        raise NeedsConstant(
            f"the input {what!r} decides the rank or layout, so it has to be constant", value.name
        )
    return tuple(int(k) for k in known.ravel())


@onnx_op("Constant")
def constant(
    b: Builder,
    *,
    value: Dense | None = None,
    sparse_value: Dense | None = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
) -> Value:
    given = {
        dtypes.f32: value_float if value_float is not None else value_floats,
        dtypes.i64: value_int if value_int is not None else value_ints,
        dtypes.string: value_string if value_string is not None else value_strings,
    }
    dense = value or sparse_value
    if dense is not None:
        return b.constant(dense)
    for dtype, item in given.items():
        if item is not None:
            return b.constant(np.array(item, dtype.numpy), dtype)
    raise CompileError("Constant has none of its value attributes")


@onnx_op("Identity")
def identity(b: Builder, x: Value) -> Value:
    return x


@onnx_op("Shape")
def shape(b: Builder, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    rank = x.type.rank
    first, last, _ = slice(start, end).indices(rank)
    return b.dims(x.type.shape[first : max(first, last)])


@onnx_op("Size")
def size(b: Builder, x: Value) -> Value:
    return b.dims([x.type.size], scalar=True)


@onnx_op("ConstantOfShape")
def constant_of_shape(b: Builder, dims: Value, *, value: Dense | None = None) -> Value:
    fill = value.array.reshape(()) if value is not None else np.zeros((), np.float32)
    return b.broadcast_to(b.constant(fill, value.dtype if value else dtypes.f32), b.dims_of(dims))


@onnx_op("Reshape", since=5)
def reshape(b: Builder, x: Value, target: Value, *, allowzero: int = 0) -> Value:
    if dims_in(target) is not None:
        return reshape_to(b, x, b.dims_of(target), allowzero=bool(allowzero))
    rank = b.length_of(target)
    stems = [f"{target.name or 'shape'}.{i}" for i in range(rank)]
    wanted = b.bind("reshape", [target], stems, dims=x.type.shape, allowzero=bool(allowzero))
    b.require(
        "equal",
        x.type.size,
        product(wanted),
        f"{x.name or 'the input'} does not have as many elements as its new shape",
    )
    return b.reshape(x, wanted)


@onnx_op("Reshape", until=4)
def reshape_1(b: Builder, x: Value, *, shape: tuple[int, ...] = (), consumed_inputs: Any = None) -> Value:
    return reshape_to(b, x, shape, allowzero=False)


def reshape_to(b: Builder, x: Value, target: tuple[DimLike, ...], *, allowzero: bool) -> Value:
    """ONNX's Reshape: 0 copies a dim by position unless allowzero, one -1 takes what is left."""
    wanted = list(target)
    for i, dim in enumerate(wanted):
        if dim == 0 and not allowzero:
            if i >= x.type.rank:
                raise CompileError(
                    f"the 0 at position {i} of the shape {list(map(str, target))} copies no dim of the input"
                )
            wanted[i] = x.type.shape[i]
    open_axes = [i for i, d in enumerate(wanted) if d == -1]
    if len(open_axes) > 1 or any(isinstance(d, int) and d < -1 for d in wanted):
        raise CompileError(f"{list(map(str, target))} is no shape: at most one dim is -1 and none is below")
    if open_axes:
        rest = product(d for i, d in enumerate(wanted) if i != open_axes[0])
        if rest == 0:
            if allowzero or x.type.size != 0:
                raise CompileError(
                    f"-1 next to a 0 in the shape {list(map(str, target))} has no single value"
                )
            wanted[open_axes[0]] = 0
        else:
            if isinstance(x.type.size, int) and isinstance(rest, int) and x.type.size % rest:
                raise CompileError(
                    f"{x.type.size} elements do not divide into the shape {list(map(str, target))}"
                )
            wanted[open_axes[0]] = floordiv(x.type.size, rest)
    size = product(wanted)
    if size != x.type.size and (isinstance(size, Dim) or isinstance(x.type.size, Dim)):
        b.require(
            "equal",
            x.type.size,
            size,
            f"{x.name or 'the input'} does not have as many elements as its new shape",
        )
    return b.reshape(x, wanted)


@onnx_op("Flatten")
def flatten(b: Builder, x: Value, *, axis: int = 1) -> Value:
    rank = x.type.rank
    if not -rank <= axis <= rank:
        raise CompileError(f"axis {axis} is not within -{rank} to {rank}")
    axis = axis + rank if axis < 0 else axis
    return b.reshape(x, [product(x.type.shape[:axis]), product(x.type.shape[axis:])])


@onnx_op("Transpose")
def transpose(b: Builder, x: Value, *, perm: tuple[int, ...] | None = None) -> Value:
    order = tuple(range(x.type.rank))[::-1] if perm is None else perm
    return b.transpose(x, order)


@onnx_op("Squeeze", until=12)
def squeeze_1(b: Builder, x: Value, *, axes: tuple[int, ...] | None = None) -> Value:
    return _squeeze(b, x, axes)


@onnx_op("Squeeze", since=13)
def squeeze(b: Builder, x: Value, axes: Value | None = None) -> Value:
    return _squeeze(b, x, None if axes is None else static_ints(b, axes, "axes"))


def _squeeze(b: Builder, x: Value, axes: tuple[int, ...] | None) -> Value:
    if axes is None:
        if any(isinstance(d, Dim) for d in x.type.shape):
            raise CompileError("without axes the symbolic dims decide the rank; name the axes to squeeze")
        chosen = {i for i, d in enumerate(x.type.shape) if d == 1}
    else:
        chosen = set(normal_axes(axes, x.type.rank))
    for i in chosen:
        if x.type.shape[i] != 1:
            if isinstance(x.type.shape[i], int):
                raise CompileError(f"axis {i} of {x.type.describe()} has the extent {x.type.shape[i]}, not 1")
            b.require(
                "equal",
                x.type.shape[i],
                1,
                f"axis {i} of {x.name} {x.type.describe()} has to be 1 to be squeezed",
            )
    return b.reshape(x, [d for i, d in enumerate(x.type.shape) if i not in chosen])


@onnx_op("Unsqueeze", until=12)
def unsqueeze_1(b: Builder, x: Value, *, axes: tuple[int, ...]) -> Value:
    return _unsqueeze(b, x, axes)


@onnx_op("Unsqueeze", since=13)
def unsqueeze(b: Builder, x: Value, axes: Value) -> Value:
    return _unsqueeze(b, x, static_ints(b, axes, "axes"))


def _unsqueeze(b: Builder, x: Value, axes: tuple[int, ...]) -> Value:
    rank = x.type.rank + len(axes)
    chosen = set(normal_axes(axes, rank))
    rest = iter(x.type.shape)
    return b.reshape(x, [1 if i in chosen else next(rest) for i in range(rank)])


@onnx_op("Concat")
def concat(b: Builder, *parts: Value, axis: int = 1) -> Value:
    position = normal_axis(axis, parts[0].type.rank)
    for part in parts[1:]:
        if part.type.rank != parts[0].type.rank:
            break  # the core op says it
        for i, (have, want) in enumerate(zip(part.type.shape, parts[0].type.shape, strict=True)):
            if i != position and have != want and (isinstance(have, Dim) or isinstance(want, Dim)):
                names = f"{parts[0].name} {parts[0].type.describe()} and {part.name} {part.type.describe()}"
                b.require("equal", have, want, f"axis {i} of the concatenated {names} has to be equal")
    first = parts[0].type.shape
    fitted = [
        b.assume_shape(
            p, [d if i == position else f for i, (d, f) in enumerate(zip(p.type.shape, first, strict=True))]
        )
        if p.type.rank == len(first)
        else p
        for p in parts
    ]
    return b.op("core.concat", *fitted, axis=position) if len(fitted) > 1 else fitted[0]


@onnx_op("Expand")
def expand(b: Builder, x: Value, target: Value) -> Value:
    shape = b.joint_shape(x.type.shape, b.dims_of(target), [x])
    return b.broadcast_to(x, shape)


def slice_bounds(dim: DimLike, start: DimLike, end: DimLike, step: int) -> tuple[DimLike, DimLike]:
    """First index and number of elements of a Slice along one axis; bounds clamp, negative ones count from the end."""

    def from_front(index: DimLike) -> DimLike:
        if isinstance(index, int):
            return index + dim if index < 0 else index
        return index

    start, end = from_front(start), from_front(end)
    if step > 0:
        start = minimum(maximum(start, 0), dim)
        end = minimum(maximum(end, 0), dim)
        span = end - start
        return start, ceildiv(span if never_negative(span) else maximum(span, 0), step)
    start = minimum(maximum(start, 0), dim - 1)
    end = minimum(maximum(end, -1), dim - 1)
    span = start - end
    return maximum(start, 0), ceildiv(span if never_negative(span) else maximum(span, 0), -step)


def slice_axes(
    b: Builder, x: Value, starts: Any, ends: Any, axes: tuple[int, ...], steps: tuple[int, ...]
) -> Value:
    first: list[DimLike] = [0] * x.type.rank
    sizes: list[DimLike] = list(x.type.shape)
    strides = [1] * x.type.rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise CompileError("a step of Slice is 0")
        first[axis], sizes[axis] = slice_bounds(x.type.shape[axis], start, end, step)
        strides[axis] = step
    if tuple(sizes) == x.type.shape and not any(first) and all(s == 1 for s in strides):
        return x
    return b.op("core.slice", x, starts=tuple(first), sizes=tuple(sizes), steps=tuple(strides))


@onnx_op("Slice", until=9)
def slice_1(
    b: Builder,
    x: Value,
    *,
    starts: tuple[int, ...],
    ends: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
) -> Value:
    chosen = normal_axes(range(len(starts)) if axes is None else axes, x.type.rank)
    return slice_axes(b, x, starts, ends, chosen, (1,) * len(starts))


@onnx_op("Slice", since=10)
def slice_10(
    b: Builder, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None
) -> Value:
    count = b.length_of(starts)
    chosen = normal_axes(range(count) if axes is None else static_ints(b, axes, "axes"), x.type.rank)
    strides = (1,) * count if steps is None else static_ints(b, steps, "steps")
    if any(s == 0 for s in strides):
        raise CompileError("a step of Slice is 0")
    if dims_in(starts) is not None and dims_in(ends) is not None:
        return slice_axes(b, x, b.dims_of(starts), b.dims_of(ends), chosen, strides)
    stems = [f"{x.name or 'slice'}.{what}{axis}" for axis in chosen for what in ("first", "count")]
    extents = tuple(x.type.shape[a] for a in chosen)
    bound = b.bind("slice", [starts, ends], stems, dims=extents, steps=strides)
    first: list[DimLike] = [0] * x.type.rank
    sizes: list[DimLike] = list(x.type.shape)
    by = [1] * x.type.rank
    for i, axis in enumerate(chosen):
        first[axis], sizes[axis], by[axis] = bound[2 * i], bound[2 * i + 1], strides[i]
    return b.op("core.slice", x, starts=tuple(first), sizes=tuple(sizes), steps=tuple(by))


@onnx_op("Gather")
def gather(b: Builder, x: Value, indices: Value, *, axis: int = 0) -> Value:
    return b.op("core.gather", x, indices, axis=normal_axis(axis, x.type.rank))
