"""Reads and writes at computed places: GatherElements, GatherND, the scatter operators and their kin."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.movement import pad_by
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, product

__all__: list[str] = []


def _name(value: Value) -> str:
    return f"{value.name or 'an operand'} {value.type.describe()}"


def _fit(b: Builder, x: Value, shape: Shape, what: str) -> Value:
    """x under a shape of the same rank; symbolic dims that have to be equal are checked by the run."""
    if x.type.rank != len(shape):
        return x  # the core op refuses it
    for i, (have, want) in enumerate(zip(x.type.shape, shape, strict=True)):
        if have != want and (isinstance(have, Dim) or isinstance(want, Dim)):
            b.require("equal", have, want, f"axis {i} of {what} {_name(x)} does not fit")
    return b.assume_shape(
        x,
        [
            h if isinstance(w, int) and isinstance(h, int) else w
            for h, w in zip(x.type.shape, shape, strict=True)
        ],
    )


def _within(b: Builder, x: Value, indices: Value, axis: int) -> None:
    """Along the other axes the indices may not reach beyond x."""
    if x.type.rank != indices.type.rank:
        return
    for i, (have, most) in enumerate(zip(indices.type.shape, x.type.shape, strict=True)):
        if i != axis and have != most and (isinstance(have, Dim) or isinstance(most, Dim)):
            b.require(
                "at_least", most, have, f"axis {i} of the indices {_name(indices)} reaches beyond {_name(x)}"
            )


@onnx_op("GatherElements")
def gather_elements(b: Builder, x: Value, indices: Value, *, axis: int = 0) -> Value:
    position = normal_axis(axis, x.type.rank)
    _within(b, x, indices, position)
    return b.op("core.gather_elements", x, indices, axis=position)


@onnx_op("GatherND")
def gather_nd(b: Builder, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    if batch_dims < 0 or batch_dims >= min(x.type.rank, indices.type.rank):
        raise CompileError(f"batch_dims {batch_dims} for {_name(x)} and the indices {_name(indices)}")
    _depth(b, indices)
    shape = (*x.type.shape[:batch_dims], *indices.type.shape[batch_dims:])
    return b.op("core.gather_nd", x, _fit(b, indices, shape, "the indices"), batch_dims=batch_dims)


def _depth(b: Builder, indices: Value) -> int:
    """How many axes each row of the indices counts along."""
    if not indices.type.rank:
        raise CompileError(f"the indices {_name(indices)} need at least one axis")
    return b.static_dims(indices, [-1], "the last axis of the indices decides the rank of the result")[0]


_REDUCTIONS = ("none", "add", "mul", "max", "min")


def _known(reduction: str, numbers: bool) -> str:
    if reduction not in _REDUCTIONS:
        raise CompileError(f"the reduction is {reduction!r}; {', '.join(_REDUCTIONS)} are known")
    if reduction != "none" and not numbers:
        raise CompileError(f"the reduction {reduction!r} needs numbers")
    return reduction


def _is_number(x: Value) -> bool:
    dtype = x.type.dtype
    return dtype.is_integer or dtype.is_float or dtype is dtypes.boolean


@onnx_op("Scatter", since=9, until=10)
@onnx_op("ScatterElements", since=11)
def scatter_elements(
    b: Builder, x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    position = normal_axis(axis, x.type.rank)
    _within(b, x, indices, position)
    fitted = _fit(b, updates, indices.type.shape, "the updates")
    kind = _known(reduction, _is_number(x))
    return b.op("core.scatter_elements", x, indices, fitted, axis=position, reduction=kind)


@onnx_op("ScatterND")
def scatter_nd(b: Builder, x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    depth = _depth(b, indices)
    if depth <= x.type.rank:
        updates = _fit(b, updates, (*indices.type.shape[:-1], *x.type.shape[depth:]), "the updates")
    return b.op("core.scatter_nd", x, indices, updates, reduction=_known(reduction, _is_number(x)))


@onnx_op("TensorScatter")
def tensor_scatter(
    b: Builder,
    cache: Value,
    update: Value,
    write_indices: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """The update written into the cache from an index on; ``circular`` goes on at the front."""
    if mode not in ("linear", "circular"):
        raise CompileError(f"the mode of TensorScatter is {mode!r}; linear and circular are known")
    position = normal_axis(axis, cache.type.rank)
    if position == 0:
        raise CompileError("axis 0 of the cache is the batch; TensorScatter writes along another")
    shape = tuple(update.type.shape[i] if i == position else d for i, d in enumerate(cache.type.shape))
    update = _fit(b, update, shape, "the update")
    line = (*(1,) * position, shape[position], *(1,) * (len(shape) - position - 1))
    place = b.broadcast_to(b.op("core.iota", shape=line, axis=position, dtype=dtypes.i64), shape)
    if write_indices is not None:
        first = b.reshape(
            _fit(b, write_indices, shape[:1], "write_indices"), (shape[0], *(1,) * (len(shape) - 1))
        )
        place = b.add(place, b.broadcast_to(b.convert(first, dtypes.i64), shape))
    if mode == "circular":
        place = b.mod(place, b.broadcast_to(b.dims([cache.type.shape[position]], scalar=True), shape))
    return b.op("core.scatter_elements", cache, place, update, axis=position, reduction="none")


@onnx_op("MaxUnpool")
def max_unpool(
    b: Builder,
    x: Value,
    indices: Value,
    output_shape: Value | None = None,
    *,
    kernel_shape: tuple[int, ...],
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    """Elements at their places in the tensor that was pooled, zeros elsewhere; a larger shape adds zeros."""
    spatial = len(kernel_shape)
    if x.type.rank != spatial + 2:
        raise CompileError(f"kernel_shape {list(kernel_shape)} for {_name(x)}; (n, c, spatial...) is needed")
    around = pads or (0,) * (2 * spatial)
    steps = strides or (1,) * spatial
    sizes: list[DimLike] = list(x.type.shape[:2])
    for i, dim in enumerate(x.type.shape[2:]):
        sizes.append((dim - 1) * steps[i] + kernel_shape[i] - around[i] - around[i + spatial])
    zeros = b.broadcast_to(b.constant(0, x.type.dtype), (product(sizes),))
    flat: Sequence[Value] = [b.reshape(v, (x.type.size,)) for v in (indices, x)]
    placed = b.reshape(b.op("core.scatter_elements", zeros, *flat, axis=0, reduction="none"), sizes)
    if output_shape is None:
        return placed
    wanted = b.dims_of(output_shape)
    if len(wanted) != len(sizes):
        raise CompileError(f"output_shape has {len(wanted)} elements; {len(sizes)} are needed")
    for have, want in zip(sizes, wanted, strict=True):
        if isinstance(have, Dim) or isinstance(want, Dim):
            b.require("at_least", want, have, "output_shape is smaller than what the indices refer to")
        elif want < have:
            raise CompileError(
                f"output_shape {list(map(str, wanted))} is smaller than {list(map(str, sizes))}"
            )
    return pad_by(b, placed, [0] * len(sizes), [w - h for w, h in zip(wanted, sizes, strict=True)])
