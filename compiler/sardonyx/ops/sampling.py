"""GridSample and AffineGrid: interpolation at places that are computed for each result.

Places and weights are tables over the results, the same for all channels.  Data with many channels is
read channels last, a place at a time; with few, a vector of places at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.convolution import channels_first, channels_last
from sardonyx.ops.interpolation import clamped, compute_type, cubic_weight, index_type, number, rounded
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, product

__all__ = ["Neighbour", "Tap", "component", "has_elements", "joint", "number_like", "sum_of_taps"]

_MANY_CHANNELS = 8
_CUBIC = -0.75


@dataclass(frozen=True)
class Tap:
    """A place among the spatial elements, row-major, its weight, and where it counts at all (None: everywhere)."""

    place: Value
    weight: Value | None
    inside: Value | None


@dataclass(frozen=True)
class Neighbour:
    """The same along one axis."""

    index: Value
    weight: Value | None
    inside: Value | None


# -- GridSample


@onnx_op("GridSample", until=19)
def grid_sample_16(
    b: Builder, x: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: int
) -> Value:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    if x.type.rank != 4:
        raise CompileError(f"GridSample before opset 20 takes (n, c, h, w), not {x.type.describe()}")
    return grid_sample(
        b, x, grid, mode=names.get(mode, mode), padding_mode=padding_mode, align_corners=align_corners
    )


@onnx_op("GridSample", since=20)
def grid_sample(
    b: Builder, x: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: int
) -> Value:
    for name, value, known in (
        ("mode", mode, ("linear", "nearest", "cubic")),
        ("padding_mode", padding_mode, ("zeros", "border", "reflection")),
    ):
        if value not in known:
            raise CompileError(f"{name} {value!r} is none of {', '.join(known)}")
    spatial = x.type.rank - 2
    message = (
        f"GridSample takes x (n, c, spatial...) and a grid (n, places..., number of spatial axes) of as many "
        f"batches, not {x.type.describe()} and {grid.type.describe()}"
    )
    if spatial < 1 or grid.type.rank != x.type.rank:
        raise CompileError(message)
    grid = b.expect_shape(grid, (x.type.shape[0], *grid.type.shape[1:-1], spatial), message)
    dtype = x.type.dtype
    if mode != "nearest" and not (dtype.is_float or dtype.is_integer):
        raise CompileError(
            f"GridSample interpolates numbers, not {dtype.onnx_name}; the mode nearest takes any type"
        )
    has_elements(b, x)
    at = b.convert(grid, dtypes.f64 if grid.type.dtype is dtypes.f64 else dtypes.f32)
    axes = []
    for axis, size in enumerate(x.type.shape[2:]):
        coordinate = component(b, at, spatial - 1 - axis)
        axes.append(
            _neighbours(b, coordinate, size, mode, padding_mode, bool(align_corners), compute_type(dtype))
        )
    taps = [joint(b, choice, x.type.shape[2:]) for choice in itertools.product(*axes)]
    return (
        rounded(b, sum_of_taps(b, x, taps, compute_type(dtype)), dtype)
        if mode != "nearest"
        else sum_of_taps(b, x, taps, dtype)
    )


def has_elements(b: Builder, x: Value) -> None:
    """An empty image has no place to read."""
    message = f"the image {x.name or ''} {x.type.describe()} has no elements"
    size = product(x.type.shape[2:])
    if size == 0:
        raise CompileError(message)
    if isinstance(size, Dim):
        b.require("at_least", size, 1, message)


def component(b: Builder, x: Value, index: int) -> Value:
    """One entry of the last axis, which vanishes."""
    count = x.type.rank - 1
    one = b.op(
        "core.slice",
        x,
        starts=(0,) * count + (index,),
        sizes=(*x.type.shape[:-1], 1),
        steps=(1,) * (count + 1),
    )
    return b.reshape(one, x.type.shape[:-1])


def _neighbours(
    b: Builder, n: Value, size: DimLike, mode: str, padding: str, align: bool, weights: dtypes.DType
) -> list[Neighbour]:
    """What goes into each result along one axis, for coordinates from -1 to 1."""
    dtype = n.type.dtype

    def spread(v: Value) -> Value:
        return b.broadcast_to(b.convert(v, dtype), n.type.shape)

    length, last = spread(number(b, size)), spread(number(b, size - 1))
    one, half = b.full(1.0, n), b.full(0.5, n)
    moved = b.add(n, one)
    if align:
        low, high, span = b.full(0.0, n), last, last
        at = b.mul(b.mul(moved, half), last)
    else:
        low, high, span = b.full(-0.5, n), spread(b.sub(number(b, size), number(b, 0.5))), length
        at = b.mul(b.sub(b.mul(moved, length), one), half)
    if mode == "nearest":
        at = b.round_even(at)
    if padding == "border":
        outside = b.or_(b.lt(at, low), b.gt(at, high))
        at = b.select(outside, b.max(b.min(at, last), b.full(0.0, n)), at)
    elif padding == "reflection":
        at = _reflected(b, at, low, high, span)

    def neighbour(place: Value, weight: Value | None) -> Neighbour:
        inside = None
        if padding == "zeros":
            inside = b.and_(b.ge(place, b.full(0.0, n)), b.lt(place, length))
        elif padding == "reflection":
            place = b.trunc(_reflected(b, place, low, high, span))
        return Neighbour(
            clamped(b, place, size), None if weight is None else b.convert(weight, weights), inside
        )

    if mode == "nearest":
        return [neighbour(at, None)]
    floor = b.floor(at)
    share = b.sub(at, floor)
    if mode == "linear":
        return [neighbour(floor, b.sub(one, share)), neighbour(b.add(floor, one), share)]
    steps = (
        (-1.0, b.add(share, one)),
        (0.0, share),
        (1.0, b.sub(one, share)),
        (2.0, b.sub(b.full(2.0, n), share)),
    )
    return [neighbour(b.add(floor, b.full(s, n)), cubic_weight(b, d, _CUBIC)) for s, d in steps]


def _reflected(b: Builder, at: Value, low: Value, high: Value, span: Value) -> Value:
    """Mirrored at both borders until it is between them."""
    flat = b.eq(span, b.full(0.0, at))  # a single place
    divisor = b.select(flat, b.full(1.0, at), span)
    distance = b.abs(b.sub(at, low))
    turns = b.floor(b.div(distance, divisor))
    rest = b.sub(distance, b.mul(turns, span))
    odd = b.ne(b.sub(turns, b.mul(b.floor(b.mul(turns, b.full(0.5, at))), b.full(2.0, at))), b.full(0.0, at))
    mirrored = b.select(odd, b.sub(high, rest), b.add(low, rest))
    within = b.and_(b.ge(at, low), b.le(at, high))
    return b.select(within, at, b.select(flat, low, mirrored))


def joint(b: Builder, choice: Sequence[Neighbour], sizes: Shape) -> Tap:
    """One neighbour along each axis: a place, the product of the weights, inside all axes."""
    kind = index_type(product(sizes))
    place, weight, inside = b.convert(choice[0].index, kind), choice[0].weight, choice[0].inside
    for one, size in zip(choice[1:], sizes[1:], strict=True):
        place = b.add(b.mul(place, number_like(b, size, place)), b.convert(one.index, kind))
        if weight is not None and one.weight is not None:
            weight = b.mul(weight, one.weight)
        if inside is not None and one.inside is not None:
            inside = b.and_(inside, one.inside)
    return Tap(place, weight, inside)


def sum_of_taps(b: Builder, x: Value, taps: Sequence[Tap], dtype: dtypes.DType) -> Value:
    """The weighted sum of taps with tables (n, places...) of x (n, c, spatial...), as (n, c, places...)."""
    channels = x.type.shape[1]
    by_channel = not isinstance(channels, int) or channels >= _MANY_CHANNELS
    total: Value | None = None
    for tap in taps:
        part = b.convert(_many(b, x, tap) if by_channel else _few(b, x, tap), dtype)
        if tap.weight is not None:
            part = b.mul(part, _over_channels(b, tap.weight, part.type.shape, by_channel))
        total = part if total is None else b.add(total, part)
    assert total is not None
    return channels_first(b, total) if by_channel else total


def _over_channels(b: Builder, table: Value, shape: Shape, last: bool) -> Value:
    n, *places = table.type.shape
    return b.broadcast_to(b.reshape(table, (n, *places, 1) if last else (n, 1, *places)), shape)


def _masked(b: Builder, found: Value, tap: Tap, last: bool) -> Value:
    if tap.inside is None:
        return found
    return b.select(_over_channels(b, tap.inside, found.type.shape, last), found, b.full(0, found))


def _many(b: Builder, x: Value, tap: Tap) -> Value:
    """The tap of all channels as (n, places..., c)."""
    n, c, *spatial = x.type.shape
    rows = b.reshape(channels_last(b, x), (n * product(spatial), c))
    place = b.convert(tap.place, index_type(n * product(spatial)))
    if n != 1:
        image = b.op("core.iota", shape=place.type.shape, axis=0, dtype=place.type.dtype)
        place = b.add(place, b.mul(image, number_like(b, product(spatial), place)))
    return _masked(b, b.op("core.gather", rows, place, axis=0, trusted=True), tap, True)


def _few(b: Builder, x: Value, tap: Tap) -> Value:
    """The tap of all channels as (n, c, places...)."""
    n, c, *spatial = x.type.shape
    flat = b.reshape(x, (n * c * product(spatial),))
    shape = (n, c, *tap.place.type.shape[1:])
    kind = index_type(n * c * product(spatial))
    place = _over_channels(b, b.convert(tap.place, kind), shape, False)
    image = b.op("core.iota", shape=shape, axis=0, dtype=kind)
    channel = b.op("core.iota", shape=shape, axis=1, dtype=kind)
    plane = b.add(b.mul(image, number_like(b, c, place)), channel)
    place = b.add(place, b.mul(plane, number_like(b, product(spatial), place)))
    return _masked(b, b.op("core.gather", flat, place, axis=0, trusted=True), tap, False)


def number_like(b: Builder, value: DimLike, like: Value) -> Value:
    return b.broadcast_to(b.dims([value], like.type.dtype, scalar=True), like.type.shape)


@onnx_op("AffineGrid")
def affine_grid(b: Builder, theta: Value, size: Value, *, align_corners: int) -> Value:
    """The grid (n, places..., axes) that theta (n, axes, axes + 1) maps the coordinates from -1 to 1 to."""
    shape = b.dims_of(size)
    spatial = len(shape) - 2
    message = (
        f"AffineGrid takes theta (n, 2, 3) and 4 sizes or (n, 3, 4) and 5, "
        f"not {theta.type.describe()} and {size.type.describe()} (n = {shape[0] if shape else '?'})"
    )
    if spatial not in (2, 3):
        raise CompileError(message)
    theta = b.expect_shape(theta, (shape[0], spatial, spatial + 1), message)
    dtype = compute_type(theta.type.dtype)
    sizes = tuple(shape[2:])
    columns = []
    for axis in reversed(range(spatial)):  # x comes first
        index = b.convert(b.op("core.iota", shape=(*sizes, 1), axis=axis, dtype=dtypes.i64), dtypes.f64)
        extent = b.broadcast_to(number(b, sizes[axis]), index.type.shape)
        one, two = b.full(1.0, index), b.full(2.0, index)
        if align_corners:
            last = b.sub(extent, one)
            at = b.sub(b.div(b.mul(index, two), b.max(last, one)), one)
            at = b.select(
                b.gt(last, b.full(0.0, index)), at, b.full(0.0, index)
            )  # a single place is in the middle
        else:
            at = b.sub(b.div(b.add(b.mul(index, two), one), extent), one)
        columns.append(b.convert(at, dtype))
    base = b.op("core.concat", *columns, b.full(1.0, columns[0]), axis=spatial)
    flat = b.reshape(base, (1, product(sizes), spatial + 1))
    moved = b.op(
        "core.contract",
        b.broadcast_to(flat, (shape[0], *flat.type.shape[1:])),
        b.transpose(b.convert(theta, dtype), (0, 2, 1)),
    )
    return b.convert(b.reshape(moved, (shape[0], *sizes, spatial)), theta.type.dtype)
