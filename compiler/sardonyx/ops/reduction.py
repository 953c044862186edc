"""Reductions, and the softmax family.

Every reduction is built from `core.reduce` by sum, product, maximum or minimum, with a map before and
after.  float16 and bfloat16 compute in float32 and round once.  With nothing to reduce
(``noop_with_empty_axes``) the maps still apply.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axes, normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product

__all__: list[str] = []

Axes = tuple[int, ...]
Reduction = Callable[[Builder, Value, Axes], Value]


def _identity_map(b: Builder, x: Value) -> Value:
    return x


def _square(b: Builder, x: Value) -> Value:
    return b.mul(x, x)


def _plain(kind: str, before: Callable[[Builder, Value], Value] = _identity_map) -> Reduction:
    def reduction(b: Builder, x: Value, axes: Axes) -> Value:
        return b.reduce(kind, before(b, x), axes, keepdims=True)

    return reduction


def _count(b: Builder, x: Value, axes: Axes) -> Value:
    """How many elements go into one result, in the type of x."""
    count = b.dims([product(x.type.shape[a] for a in axes)], scalar=True)
    return b.convert(count, x.type.dtype)


def mean(b: Builder, x: Value, axes: Axes) -> Value:
    """The arithmetic mean with the reduced axes kept; integers truncate."""
    total = b.reduce("sum", x, axes, keepdims=True)
    return b.div(total, b.broadcast_to(_count(b, x, axes), total.type.shape)) if axes else total


def _l2(b: Builder, x: Value, axes: Axes) -> Value:
    total = b.reduce("sum", b.mul(x, x), axes, keepdims=True)
    return _through_float(b, total, lambda v: b.sqrt(v))


def _log_sum(b: Builder, x: Value, axes: Axes) -> Value:
    return _through_float(b, b.reduce("sum", x, axes, keepdims=True), lambda v: b.log(v))


def _log_sum_exp(b: Builder, x: Value, axes: Axes) -> Value:
    def of_floats(v: Value) -> Value:
        top = b.reduce("max", v, axes, keepdims=True)
        # An infinite maximum must not be subtracted from itself.
        shift = b.select(b.is_inf(top), b.full(0, top), top)
        total = b.reduce("sum", b.exp(b.sub(*b.broadcast(v, shift))), axes, keepdims=True)
        return b.add(b.log(total), shift)

    return _through_float(b, x, of_floats)


def _through_float(b: Builder, x: Value, function: Callable[[Value], Value]) -> Value:
    """Integers take the way through float64 and are truncated at the end."""
    if x.type.dtype.is_float:
        return function(x)
    return b.convert(function(b.convert(x, dtypes.f64)), x.type.dtype)


def _bool_through_integer(b: Builder, kind: str, x: Value, axes: Axes) -> Value:
    return b.reduce("or" if kind == "max" else "and", x, axes, keepdims=True)


def _extreme(kind: str) -> Reduction:
    def reduction(b: Builder, x: Value, axes: Axes) -> Value:
        if x.type.dtype is dtypes.boolean:
            return _bool_through_integer(b, kind, x, axes)
        return b.reduce(kind, x, axes, keepdims=True)

    return reduction


_REDUCTIONS: dict[str, tuple[Reduction, int]] = {  # the opset from which axes are an input
    "ReduceSum": (_plain("sum"), 13),
    "ReduceProd": (_plain("prod"), 18),
    "ReduceMax": (_extreme("max"), 18),
    "ReduceMin": (_extreme("min"), 18),
    "ReduceMean": (mean, 18),
    "ReduceL1": (_plain("sum", lambda b, x: b.abs(x)), 18),
    "ReduceL2": (_l2, 18),
    "ReduceSumSquare": (_plain("sum", _square), 18),
    "ReduceLogSum": (_log_sum, 18),
    "ReduceLogSumExp": (_log_sum_exp, 18),
}


def _reduce(b: Builder, x: Value, reduction: Reduction, axes: Axes, keepdims: int) -> Value:
    @one_rounding
    def compute(b: Builder, x: Value) -> Value:
        return reduction(b, x, axes)

    result = compute(b, x)
    if keepdims or not axes:
        return result
    return b.reshape(result, [d for i, d in enumerate(x.type.shape) if i not in axes])


def _register(op_type: str, reduction: Reduction, input_since: int) -> None:
    def with_attribute(b: Builder, x: Value, *, axes: Axes | None = None, keepdims: int = 1) -> Value:
        chosen = range(x.type.rank) if axes is None else axes
        return _reduce(b, x, reduction, normal_axes(chosen, x.type.rank), keepdims)

    def with_input(
        b: Builder, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Value:
        named = () if axes is None else static_ints(b, axes, "axes")
        if not named and not noop_with_empty_axes:
            named = tuple(range(x.type.rank))
        return _reduce(b, x, reduction, normal_axes(named, x.type.rank), keepdims)

    onnx_op(op_type, until=input_since - 1)(with_attribute)
    onnx_op(op_type, since=input_since)(with_input)


for _op_type, (_reduction, _since) in _REDUCTIONS.items():
    _register(_op_type, _reduction, _since)


def arg_extreme(b: Builder, x: Value, kind: str, axis: int, *, last: bool = False) -> Value:
    """Where the extreme value along an axis stands (the axis kept): the first or last place that equals it.

    A NaN is the extreme value; comparing finds no place equal to it, so the NaNs themselves are the places.
    """
    best = b.reduce(kind, x, (axis,), keepdims=True)
    hit = b.eq(*b.broadcast(x, best))
    if x.type.dtype.is_float:
        hit = b.or_(hit, b.is_nan(x))
    place = b.op("core.iota", shape=x.type.shape, axis=axis, dtype=dtypes.i64)
    nowhere = b.full(-1 if last else 2**62, place)
    return b.reduce("max" if last else "min", b.select(hit, place, nowhere), (axis,), keepdims=True)


def _arg(kind: str) -> Callable[..., Value]:
    def arg(b: Builder, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
        position = normal_axis(axis, x.type.rank)
        extent = x.type.shape[position]
        if extent == 0:
            raise CompileError(f"axis {axis} of {x.type.describe()} is empty: it has no extreme value")
        if not isinstance(extent, int):
            b.require("at_least", extent, 1, f"axis {axis} of {x.name} has no extreme value, it is empty")
        result = arg_extreme(b, x, kind, position, last=bool(select_last_index))
        return (
            result
            if keepdims
            else b.reshape(result, [d for i, d in enumerate(x.type.shape) if i != position])
        )

    return arg


onnx_op("ArgMax")(_arg("max"))
onnx_op("ArgMin")(_arg("min"))


@one_rounding
def softmax_over(b: Builder, x: Value, *, axes: Axes) -> Value:
    top = b.reduce("max", x, axes, keepdims=True)
    e = b.exp(b.sub(*b.broadcast(x, top)))
    return b.div(*b.broadcast(e, b.reduce("sum", e, axes, keepdims=True)))


@one_rounding
def log_softmax_over(b: Builder, x: Value, *, axes: Axes) -> Value:
    top = b.reduce("max", x, axes, keepdims=True)
    moved = b.sub(*b.broadcast(x, top))
    total = b.log(b.reduce("sum", b.exp(moved), axes, keepdims=True))
    return b.sub(*b.broadcast(moved, total))


@one_rounding
def hardmax_over(b: Builder, x: Value, *, axes: Axes) -> Value:
    """1 at the first largest element along the (one) axis, else 0."""
    (axis,) = axes
    best = arg_extreme(b, x, "max", axis)
    place = b.op("core.iota", shape=x.type.shape, axis=axis, dtype=dtypes.i64)
    return b.select(b.eq(*b.broadcast(place, best)), b.full(1, x), b.full(0, x))


def _softmax_family(op_type: str, over: Callable[..., Value]) -> None:
    def along_axis(b: Builder, x: Value, *, axis: int = -1) -> Value:
        return over(b, x, axes=(normal_axis(axis, x.type.rank),)) if x.type.rank else over(b, x, axes=())

    def flattened(b: Builder, x: Value, *, axis: int = 1) -> Value:
        """Up to opset 12: two dimensions, the rows made of the axes before ``axis``."""
        rank = x.type.rank
        if not -rank <= axis <= rank:
            raise CompileError(f"axis {axis} is not within -{rank} to {rank}")
        axis = axis + rank if axis < 0 else axis
        flat = b.reshape(x, [product(x.type.shape[:axis]), product(x.type.shape[axis:])])
        return b.reshape(over(b, flat, axes=(1,)), x.type.shape)

    onnx_op(op_type, until=12)(flattened)
    onnx_op(op_type, since=13)(along_axis)


_softmax_family("Softmax", softmax_over)
_softmax_family("LogSoftmax", log_softmax_over)
_softmax_family("Hardmax", hardmax_over)
