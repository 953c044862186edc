"""Col2Im and DeformConv: the columns of a convolution, put back together or read at moved places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.convolution import make_window, with_kernel
from sardonyx.ops.interpolation import clamped, compute_type, number
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.sampling import Neighbour, has_elements, joint, sum_of_taps
from sardonyx.ops.shape import static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, floordiv, maximum, product
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []


@onnx_op("Col2Im")
def col2im(
    b: Builder,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    """Each place of a block, spread over the image by the strides; what falls onto one place is added."""
    if not (x.type.dtype.is_float or x.type.dtype.is_integer):
        raise CompileError(f"Col2Im adds numbers, not {x.type.dtype.onnx_name}")
    block = static_ints(b, block_shape, "block_shape")
    image = b.dims_of(image_shape)
    if len(image) != len(block) or x.type.rank != 3:
        raise CompileError(
            f"Col2Im takes (n, c * block, places), an image and a block of as many axes, not {x.type.describe()}, "
            f"{image_shape.type.describe()} and {block_shape.type.describe()}"
        )
    window = make_window(tuple(image), block, strides, dilations, pads, "NOTSET")
    count = len(block)
    counts = [
        floordiv(size + window.pads[i] + window.pads[i + count] - (k - 1) * d - 1, s) + 1
        for i, (size, k, d, s) in enumerate(zip(image, block, window.dilations, window.strides, strict=True))
    ]
    n, rows, places = x.type.shape
    for what, have, want in (
        ("the channels of the columns", rows, floordiv(rows, math.prod(block)) * math.prod(block)),
        ("the places of the columns", places, product(counts)),
    ):
        if have != want:
            message = (
                f"{what} are {have}; the image {list(map(str, image))} and block {list(block)} need {want}"
            )
            if not isinstance(have, Dim) and not isinstance(want, Dim):
                raise CompileError(message)
            b.require("equal", have, want, message)
    channels = floordiv(rows, math.prod(block))
    x = b.assume_shape(x, (n, channels * math.prod(block), product(counts)))
    columns = b.reshape(x, (n, channels, math.prod(block), *counts))

    @one_rounding
    def added(b: Builder, columns: Value) -> Value:
        total: Value | None = None
        for position, tap in enumerate(itertools.product(*(range(k) for k in block))):
            part = _part(b, columns, 2, position, 1)
            part = b.reshape(part, (n, channels, *counts))
            for axis, (k, d, s) in enumerate(zip(tap, window.dilations, window.strides, strict=True)):
                part = _spread(b, part, 2 + axis, s, k * d - window.pads[axis], image[axis])
            total = part if total is None else b.add(total, part)
        assert total is not None
        return total

    return added(b, columns)


def _part(b: Builder, x: Value, axis: int, start: DimLike, size: DimLike) -> Value:
    one = [i == axis for i in range(x.type.rank)]
    return b.op(
        "core.slice",
        x,
        starts=tuple(start if o else 0 for o in one),
        sizes=tuple(size if o else d for o, d in zip(one, x.type.shape, strict=True)),
        steps=(1,) * x.type.rank,
    )


def _padded(b: Builder, x: Value, axis: int, low: DimLike, high: DimLike) -> Value:
    if low == 0 and high == 0:
        return x
    one = [i == axis for i in range(x.type.rank)]
    zero = b.constant(0, x.type.dtype)
    return b.op(
        "core.pad",
        x,
        zero,
        low=tuple(low if o else 0 for o in one),
        high=tuple(high if o else 0 for o in one),
    )


def _spread(b: Builder, x: Value, axis: int, stride: int, first: DimLike, size: DimLike) -> Value:
    """Element i of an axis at place ``first + i * stride`` of one of the given size, zeros between and around."""
    shape = x.type.shape
    length = shape[axis]
    if stride > 1:
        apart = _padded(b, b.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :])), axis + 1, 0, stride - 1)
        length = length * stride
        x = b.reshape(apart, (*shape[:axis], length, *shape[axis + 1 :]))
    crop, low = maximum(-first, 0), maximum(first, 0)
    high = maximum(size - low - (length - crop), 0)
    x = _padded(b, x, axis, low, high)
    if crop == 0 and x.type.shape[axis] == size:
        return x
    return _part(b, x, axis, crop, size)


@onnx_op("DeformConv")
def deform_conv(
    b: Builder,
    x: Value,
    w: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    offset_group: int = 1,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    """A convolution whose taps are read between the places of x, each moved by an offset of its own."""
    spatial = x.type.rank - 2
    if spatial < 1 or w.type.rank != x.type.rank or offset.type.rank != x.type.rank:
        raise CompileError(
            f"DeformConv takes x (n, c, spatial...), weights and offsets of the same rank, not {x.type.describe()}, "
            f"{w.type.describe()} and {offset.type.describe()}"
        )
    w = with_kernel(b, w, kernel_shape)
    kernel = [int(k) for k in w.type.shape[2:]]
    window = make_window(x.type.shape[2:], kernel, strides, dilations, pads, "NOTSET")
    n, _, *sizes = x.type.shape
    (channels,) = b.static_dims(x, [1], "the channels are grouped, so their number has to be known")
    taps = math.prod(kernel)
    out = offset.type.shape[2:]
    count = offset_group * taps * spatial
    offset = b.expect_shape(
        offset,
        (offset.type.shape[0], count, *out),
        f"DeformConv needs {count} offsets for each place, not {offset.type.describe()}",
    )
    misfit = (
        f"{channels} channels do not fit {offset_group} offset groups, {group} groups and {w.type.describe()}"
    )
    if channels % offset_group or channels % group:
        raise CompileError(misfit)
    w = b.expect_shape(w, (w.type.shape[0], channels // group, *kernel), misfit)
    has_elements(b, x)

    def table(values: Value, index: int) -> Value:
        return b.reshape(_part(b, values, 1, index, 1), (n, *out))

    @one_rounding
    def compute(b: Builder, x: Value, w: Value, offset: Value, *rest: Value) -> Value:
        dtype = x.type.dtype
        wide = compute_type(dtype)
        columns = []
        for position, tap in enumerate(itertools.product(*(range(k) for k in kernel))):
            groups = []
            for g in range(offset_group):
                first = (g * taps + position) * spatial
                lines = [
                    _moved(
                        b,
                        table(offset, first + i),
                        i,
                        tap[i] * window.dilations[i] - window.pads[i],
                        window.strides[i],
                        size,
                        wide,
                    )
                    for i, size in enumerate(sizes)
                ]
                part = _part(b, x, 1, g * (channels // offset_group), channels // offset_group)
                choices = [joint(b, choice, tuple(sizes)) for choice in itertools.product(*lines)]
                value = sum_of_taps(b, part, choices, wide)
                if mask is not None:
                    share = b.reshape(table(rest[-1], g * taps + position), (n, 1, *out))
                    value = b.mul(value, b.broadcast_to(b.convert(share, wide), value.type.shape))
                groups.append(value)
            joined = b.op("core.concat", *groups, axis=1) if len(groups) > 1 else groups[0]
            columns.append(b.reshape(joined, (n, group, channels // group, 1, product(out))))
        rows = b.op("core.concat", *columns, axis=3) if taps > 1 else columns[0]
        depth = channels // group * taps
        filters = floordiv(w.type.shape[0], group)
        weights = b.reshape(b.convert(w, wide), (1, group, filters, depth))
        result = b.op(
            "core.contract",
            b.broadcast_to(weights, (n, group, filters, depth)),
            b.reshape(rows, (n, group, depth, product(out))),
        )
        result = b.reshape(result, (n, filters * group, *out))
        if bias is not None:
            spread = b.reshape(b.convert(rest[0], wide), (filters * group, *(1,) * spatial))
            result = b.add(result, b.broadcast_to(spread, result.type.shape))
        return b.convert(result, dtype)

    return compute(b, x, w, offset, *(v for v in (bias, mask) if v is not None))


def _moved(
    b: Builder, offset: Value, axis: int, start: DimLike, stride: int, size: DimLike, weights: DType
) -> Sequence[Neighbour]:
    """The two neighbours along one spatial axis of the places ``start + stride * index + offset``."""
    index = b.op("core.iota", shape=offset.type.shape, axis=1 + axis, dtype=dtypes.i64)
    place = b.mul(index, b.full(stride, index))
    place = b.add(place, b.broadcast_to(b.dims([start], scalar=True), index.type.shape))
    at = b.add(b.convert(place, offset.type.dtype), offset)
    low = b.floor(at)
    share = b.sub(at, low)
    one = b.full(1.0, at)
    last = b.broadcast_to(b.convert(number(b, size - 1), at.type.dtype), at.type.shape)
    found = []
    for where, weight in ((low, b.sub(one, share)), (b.add(low, one), share)):
        inside = b.and_(b.ge(where, b.full(0.0, at)), b.le(where, last))
        found.append(Neighbour(clamped(b, where, size), b.convert(weight, weights), inside))
    return found
