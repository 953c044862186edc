"""Order and sizes that are data: TopK, NonZero, Unique, Compress, NonMaxSuppression, running sums."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.movement import crop
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, minimum, product

__all__ = ["nonzero", "top_k_along"]


# -- TopK


@onnx_op("TopK", until=9)
def top_k_1(b: Builder, x: Value, *, k: int, axis: int = -1) -> tuple[Value, Value]:
    return top_k_along(b, x, k, axis, largest=True)


@onnx_op("TopK", since=10)
def top_k(
    b: Builder, x: Value, k: Value, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Value, Value]:
    """Sorted always: without ``sorted`` the order is free."""
    (count,) = b.dims_of(k)
    return top_k_along(b, x, count, axis, largest=bool(largest))


def top_k_along(b: Builder, x: Value, k: DimLike, axis: int, *, largest: bool) -> tuple[Value, Value]:
    """The k extreme elements along an axis and their indices."""
    axis = normal_axis(axis, x.type.rank)
    extent = x.type.shape[axis]
    if isinstance(k, int) and isinstance(extent, int):
        if not 0 <= k <= extent:
            raise CompileError(f"k is {k}; axis {axis} of {x.type.describe()} has {extent} elements")
    else:
        b.require("at_least", extent, k, f"k of TopK is larger than axis {axis} of {x.name or 'the input'}")
    order = [i for i in range(x.type.rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(x.type.rank)]
    values, indices = b.several("core.top_k", b.transpose(x, order), k=k, largest=largest)
    return b.transpose(values, back), b.transpose(indices, back)


def _sorted(b: Builder, x: Value) -> tuple[Value, Value]:
    """A vector in ascending order, and where its elements were."""
    values, places = b.several("core.top_k", x, k=x.type.shape[0], largest=False)
    return values, places


# -- what is not zero


def _is_true(b: Builder, x: Value) -> Value:
    return x if x.type.dtype is dtypes.boolean else b.ne(x, b.full(0, x))


def _count(b: Builder, hits: Value) -> DimLike:
    """How many elements of a bool tensor are true, as a dim."""
    (count,) = b.dims_of(b.reduce("sum", b.convert(hits, dtypes.i64), range(hits.type.rank)))
    return count


def nonzero(b: Builder, hits: Value) -> Value:
    """The indices of what is true, a column for each: i64[rank, count]."""
    return b.op("core.nonzero", hits, count=_count(b, hits))


@onnx_op("NonZero")
def non_zero(b: Builder, x: Value) -> Value:
    return nonzero(b, _is_true(b, x if x.type.rank else b.reshape(x, (1,))))


@onnx_op("Compress")
def compress(b: Builder, x: Value, condition: Value, *, axis: int | None = None) -> Value:
    """The slices at which the condition, which may be shorter than the axis, holds."""
    if condition.type.rank != 1:
        raise CompileError(f"the condition is {condition.type.describe()}; a vector is needed")
    if axis is None:
        x, axis = b.reshape(x, (x.type.size,)), 0
    axis = normal_axis(axis, x.type.rank)
    places = nonzero(b, condition)
    index = b.reshape(places, (places.type.shape[1],))
    have, most = condition.type.shape[0], x.type.shape[axis]
    trusted = (isinstance(have, int) and isinstance(most, int) and have <= most) or have == most
    return b.op("core.gather", x, index, axis=axis, **({"trusted": True} if trusted else {}))


# -- Unique


@onnx_op("Unique")
def unique(
    b: Builder, x: Value, *, axis: int | None = None, sorted: int = 1
) -> tuple[Value, Value, Value, Value]:
    """Equal elements (or slices) stand next to each other once sorted; the first of each run stands for it.

    Sorting keeps the order of equal ones, so the first of a run is the first occurrence.  NaNs are equal.
    """
    if axis is None:
        items = b.reshape(x, (x.type.size,))
        _, places = _sorted(b, items)
        axis = 0
        found = b.op("core.gather", items, places, axis=0, trusted=True)
        changes = _unlike_the_one_before(b, found)
    else:
        items, axis = x, normal_axis(axis, x.type.rank)
        order = [axis, *(i for i in range(x.type.rank) if i != axis)]
        extent = x.type.shape[axis]
        rest = product(x.type.shape[i] for i in order[1:])
        rows = b.reshape(b.transpose(x, order), (extent, rest))
        places = b.op("core.sort_rows", rows)
        found = b.op("core.gather", rows, places, axis=0, trusted=True)
        changes = b.reduce("or", _unlike_the_one_before(b, found), (1,))
    first = b.eq(
        *b.broadcast(
            b.op("core.iota", shape=changes.type.shape, axis=0, dtype=dtypes.i64), b.constant(0, dtypes.i64)
        )
    )
    starts_run = b.or_(changes, first)
    count = _count(b, starts_run)
    run_starts = b.reshape(b.op("core.nonzero", starts_run, count=count), (count,))
    first_places = b.op("core.gather", places, run_starts, axis=0, trusted=True)
    one = b.convert(starts_run, dtypes.i64)
    run_of = b.op("core.scan", one, kind="sum", axis=0, exclusive=False, reverse=False)
    run_of = b.sub(run_of, b.full(1, run_of))
    n = places.type.shape[0]
    lengths = b.sub(_shifted(b, run_starts, n), run_starts)
    if not sorted:  # the runs in the order of their first occurrence
        first_places, run_order = _sorted(b, first_places)
        lengths = b.op("core.gather", lengths, run_order, axis=0, trusted=True)
        _, rank = _sorted(b, run_order)
        run_of = b.op("core.gather", rank, run_of, axis=0, trusted=True)
    zeros = b.broadcast_to(b.constant(0, dtypes.i64), (n,))
    inverse = b.op("core.scatter_elements", zeros, places, run_of, axis=0, reduction="none")
    result = b.op("core.gather", items, first_places, axis=axis, trusted=True)
    return result, first_places, inverse, lengths


def _unlike_the_one_before(b: Builder, x: Value) -> Value:
    """Whether each element along axis 0 differs from the one before; the first is compared with itself."""
    n = x.type.shape[0]
    if n == 0:
        return b.ne(x, x)
    start: list[DimLike] = [0] * x.type.rank
    one = [minimum(n, 1), *x.type.shape[1:]]
    rest = [n - one[0], *x.type.shape[1:]]
    before = b.op("core.concat", crop(b, x, start, one), crop(b, x, start, rest), axis=0)
    before = b.assume_shape(before, x.type.shape)
    unlike = b.ne(x, before)
    if x.type.dtype.is_float:
        unlike = b.and_(unlike, b.not_(b.and_(b.is_nan(x), b.is_nan(before))))
    return unlike


def _shifted(b: Builder, x: Value, last: DimLike) -> Value:
    """The following element of a vector; ``last`` follows the last."""
    n = x.type.shape[0]
    end = b.dims([last])
    joined = b.op("core.concat", x, end, axis=0)
    return b.op("core.slice", joined, starts=(1,), sizes=(n,), steps=(1,))


# -- NonMaxSuppression


@onnx_op("NonMaxSuppression")
def non_max_suppression(
    b: Builder,
    boxes: Value,
    scores: Value,
    max_output_boxes_per_class: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    *,
    center_point_box: int = 0,
) -> Value:
    """Rows of (image, label, box).  Each image and label is done by itself; then the results are gathered."""
    for value, what in ((boxes, "boxes (images, boxes, 4)"), (scores, "scores (images, labels, boxes)")):
        if value.type.rank != 3:
            raise CompileError(f"{what} cannot be {value.type.describe()}")
    images, _, count = scores.type.shape
    misfit = f"boxes {boxes.type.describe()} do not fit scores {scores.type.describe()}"
    boxes = b.expect_shape(boxes, (images, count, 4), misfit)
    most: DimLike = 0
    if max_output_boxes_per_class is not None:
        limit = b.reshape(max_output_boxes_per_class, ())
        (most,) = b.dims_of(b.max(limit, b.full(0, limit)))
        most = minimum(most, count)
    iou = b.constant(0, dtypes.f32) if iou_threshold is None else b.reshape(iou_threshold, ())
    least = (
        b.constant(float("-inf"), dtypes.f32) if score_threshold is None else b.reshape(score_threshold, ())
    )
    chosen, counts = b.several(
        "core.nms", boxes, scores, iou, least, most=most, center=bool(center_point_box)
    )
    shape = chosen.type.shape
    place = b.op("core.iota", shape=shape, axis=2, dtype=dtypes.i64)
    valid = b.lt(place, b.broadcast_to(b.reshape(counts, (*shape[:2], 1)), shape))
    where = b.transpose(nonzero(b, valid), (1, 0))
    total = where.type.shape[0]
    box = b.reshape(b.op("core.gather_nd", chosen, where, batch_dims=0), (total, 1))
    return b.op("core.concat", crop(b, where, [0, 0], [total, 2]), box, axis=1)


# -- running sums and products


def _running(kind: str) -> Callable[..., Value]:
    def running(b: Builder, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Value:
        (position,) = static_ints(b, axis, "axis")
        if not x.type.rank:
            raise CompileError(f"{x.type.describe()} has no axis to run along")
        at = normal_axis(position, x.type.rank)
        return b.op("core.scan", x, kind=kind, axis=at, exclusive=bool(exclusive), reverse=bool(reverse))

    return running


onnx_op("CumSum")(_running("sum"))
onnx_op("CumProd")(_running("prod"))
