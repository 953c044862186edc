"""Operators that cut, repeat, pad and rearrange tensors: index maps, nearly all of them."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import normal_axes, normal_axis, static_ints
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, ceildiv, floordiv, maximum, minimum

__all__ = ["crop", "pad_by"]


def crop(b: Builder, x: Value, starts: Sequence[DimLike], sizes: Sequence[DimLike]) -> Value:
    """A window of x; x itself if it is the whole."""
    if tuple(sizes) == x.type.shape and all(s == 0 for s in starts):
        return x
    return b.op("core.slice", x, starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * x.type.rank)


def _at_least(b: Builder, left: DimLike, right: DimLike, message: str) -> None:
    """A relation of dims that has to hold: refused at once, or checked by the run."""
    if isinstance(left, int) and isinstance(right, int):
        if left < right:
            raise CompileError(message)
    else:
        b.require("at_least", left, right, message)


# -- Split


@onnx_op("Split", until=1)
def split_1(
    b: Builder,
    x: Value,
    sizes: Value | None = None,
    *,
    split: tuple[int, ...] | None = None,
    axis: int | None = None,
) -> tuple[Value, ...]:
    given = b.dims_of(sizes) if sizes is not None else split
    return _split(b, x, given, axis or 0)


@onnx_op("Split", since=2, until=12)
def split_2(
    b: Builder, x: Value, *, split: tuple[int, ...] | None = None, axis: int = 0
) -> tuple[Value, ...]:
    return _split(b, x, split, axis)


@onnx_op("Split", since=13)
def split_13(
    b: Builder, x: Value, split: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> tuple[Value, ...]:
    """``num_outputs`` lets the last part be shorter; without it and without sizes all parts are equal."""
    if num_outputs is None:
        return _split(b, x, None if split is None else b.dims_of(split), axis)
    if split is not None:
        raise CompileError("Split has both `split` and `num_outputs`; exactly one of them is allowed")
    position = normal_axis(axis, x.type.rank)
    return _split(b, x, _uneven(x.type.shape[position], num_outputs), axis)


def _uneven(dim: DimLike, count: int) -> tuple[DimLike, ...]:
    if count < 1:
        raise CompileError(f"num_outputs of Split is {count}; at least 1 is needed")
    if floordiv(dim, count) * count == dim:
        return (floordiv(dim, count),) * count
    chunk = ceildiv(dim, count)
    if count == 2:
        return chunk, dim - chunk
    return tuple(minimum(chunk, maximum(dim - i * chunk, 0)) if i else chunk for i in range(count))


def _split(b: Builder, x: Value, sizes: Sequence[DimLike] | None, axis: int) -> tuple[Value, ...]:
    axis = normal_axis(axis, x.type.rank)
    dim = x.type.shape[axis]
    if not sizes:
        part = floordiv(dim, b.outputs)
        if isinstance(dim, int) and dim % b.outputs:
            raise CompileError(
                f"axis {axis} of {x.type.describe()} does not divide into {b.outputs} equal parts"
            )
        if part * b.outputs != dim:
            b.require(
                "equal",
                dim,
                part * b.outputs,
                f"axis {axis} of {x.name} does not divide into {b.outputs} parts",
            )
        sizes = (part,) * b.outputs
    total: DimLike = 0
    for size in sizes:
        total = total + size
    if total != dim:
        text = (
            f"the parts of Split are {', '.join(map(str, sizes))}: together not the dim {dim} of axis {axis}"
        )
        if isinstance(total, int) and isinstance(dim, int):
            raise CompileError(text)
        b.require("equal", total, dim, text)
    if len(sizes) < b.outputs:
        raise CompileError(f"Split has {len(sizes)} parts and {b.outputs} outputs")
    results, start = [], [0] * x.type.rank
    extent = list(x.type.shape)
    position: DimLike = 0
    for size in sizes:
        if isinstance(size, int) and size < 0:
            raise CompileError(f"a part of Split has the size {size}")
        starts: list[DimLike] = list(start)
        starts[axis], extent[axis] = position, size
        results.append(crop(b, x, starts, extent))
        position = position + size
    return tuple(results)


# -- Pad


@onnx_op("Pad", until=1)
def pad_1(
    b: Builder, x: Value, *, paddings: tuple[int, ...], mode: str = "constant", value: float = 0.0
) -> Value:
    return pad_2(b, x, pads=paddings, mode=mode, value=value)


@onnx_op("Pad", since=2, until=10)
def pad_2(
    b: Builder, x: Value, *, pads: tuple[int, ...], mode: str = "constant", value: float = 0.0
) -> Value:
    return _pad(
        b, x, b.constant(list(pads), dtypes.i64), b.constant(value, x.type.dtype), range(x.type.rank), mode
    )


@onnx_op("Pad", since=11)
def pad_11(
    b: Builder,
    x: Value,
    pads: Value,
    constant_value: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    if constant_value is None or constant_value.type.size == 0:
        fill = b.constant(0, x.type.dtype)
    else:
        fill = b.reshape(constant_value, ())
    chosen = range(x.type.rank) if axes is None else normal_axes(static_ints(b, axes, "axes"), x.type.rank)
    return _pad(b, x, pads, fill, chosen, mode)


def _pad(b: Builder, x: Value, pads: Value, fill: Value, axes: Sequence[int], mode: str) -> Value:
    """Negative pads crop first.  The pads may be known at run time only; their signs are told apart there."""
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise CompileError(f"the mode of Pad is {mode!r}; constant, reflect, edge and wrap are known")
    message = f"the pads are {pads.type.describe()}; {2 * len(axes)} are needed for {len(axes)} axes"
    pads = b.expect_shape(b.reshape(pads, (pads.type.size,)), (2 * len(axes),), message)
    added = b.dims_of(b.max(pads, b.full(0, pads)))
    taken = b.dims_of(b.max(b.neg(pads), b.full(0, pads)))
    low: list[DimLike] = [0] * x.type.rank
    high, first = list(low), list(low)
    sizes = list(x.type.shape)
    for i, axis in enumerate(axes):
        low[axis], high[axis], first[axis] = added[i], added[i + len(axes)], taken[i]
        sizes[axis] = sizes[axis] - taken[i] - taken[i + len(axes)]
        _at_least(
            b, sizes[axis], 0, f"the negative pads of axis {axis} crop more than {x.type.describe()} has"
        )
    return pad_by(b, crop(b, x, first, sizes), low, high, mode, fill)


def pad_by(
    b: Builder,
    x: Value,
    low: Sequence[DimLike],
    high: Sequence[DimLike],
    mode: str = "constant",
    fill: Value | None = None,
) -> Value:
    """x with pads that are not negative; all zero gives x itself."""
    if all(p == 0 for p in (*low, *high)):
        return x
    if mode == "constant":
        return b.op(
            "core.pad",
            x,
            b.constant(0, x.type.dtype) if fill is None else fill,
            low=tuple(low),
            high=tuple(high),
        )
    for axis, size in enumerate(x.type.shape):
        for pad in (low[axis], high[axis]):
            text = f"{mode} pads of axis {axis} of {x.type.describe()}"
            if pad != 0 and mode == "reflect":
                _at_least(b, size, pad, f"{text}: the pad {pad} is longer than the dim {size}")
            if pad != 0 and not (isinstance(size, int) and size > 0):
                _at_least(b, size, minimum(pad, 1), f"{text}: the axis is empty")
    return b.op("core.pad", x, low=tuple(low), high=tuple(high), mode=mode)


@onnx_op("CenterCropPad")
def center_crop_pad(b: Builder, x: Value, shape: Value, *, axes: tuple[int, ...] | None = None) -> Value:
    """The middle of x, or x in the middle of zeros; the odd element is at the end."""
    chosen = range(x.type.rank) if axes is None else normal_axes(axes, x.type.rank)
    wanted = b.dims_of(shape)
    if len(wanted) != len(chosen):
        raise CompileError(f"the shape has {len(wanted)} elements for {len(chosen)} axes")
    first: list[DimLike] = [0] * x.type.rank
    low, high, sizes = list(first), list(first), list(x.type.shape)
    for axis, want in zip(chosen, wanted, strict=True):
        have = x.type.shape[axis]
        first[axis] = floordiv(maximum(have - want, 0), 2)
        sizes[axis] = minimum(have, want)
        missing = maximum(want - have, 0)
        low[axis] = floordiv(missing, 2)
        high[axis] = want - sizes[axis] - low[axis]
    return pad_by(b, crop(b, x, first, sizes), low, high)


# -- Tile


@onnx_op("Tile", until=5)
def tile_1(b: Builder, x: Value, tiles: Value, axis: Value) -> Value:
    (count,) = b.dims_of(b.convert(tiles, dtypes.i64))
    (position,) = static_ints(b, b.convert(axis, dtypes.i64), "axis")
    repeats: list[DimLike] = [1] * x.type.rank
    repeats[normal_axis(position, x.type.rank)] = count
    return _tile(b, x, repeats)


@onnx_op("Tile", since=6)
def tile_6(b: Builder, x: Value, repeats: Value) -> Value:
    counts = b.dims_of(repeats)
    if len(counts) != x.type.rank:
        raise CompileError(f"{len(counts)} repeats for {x.type.describe()}; one per axis is needed")
    return _tile(b, x, counts)


def _tile(b: Builder, x: Value, repeats: Sequence[DimLike]) -> Value:
    """A broadcast along new axes, which are then merged with the old ones."""
    split: list[DimLike] = []
    spread: list[DimLike] = []
    for dim, count in zip(x.type.shape, repeats, strict=True):
        if isinstance(count, int) and count < 0:
            raise CompileError(f"a repeat of Tile is {count}")
        if count != 1:
            split.append(1)
            spread.append(count)
        split.append(dim)
        spread.append(dim)
    wide = b.broadcast_to(b.reshape(x, split), tuple(spread))
    return b.reshape(wide, [d * r for d, r in zip(x.type.shape, repeats, strict=True)])


# -- rearranged blocks


@onnx_op("DepthToSpace")
def depth_to_space(b: Builder, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    n, c, h, w = _image(x, blocksize)
    block = blocksize * blocksize
    if isinstance(c, int) and c % block:
        raise CompileError(f"{c} channels of {x.type.describe()} do not divide into blocks of {block}")
    depth = floordiv(c, block)
    if depth * block != c:
        b.require("equal", c, depth * block, f"the channels of {x.name} do not divide into blocks of {block}")
    splits: dict[str, tuple[tuple[DimLike, ...], tuple[int, ...]]] = {
        "CRD": ((n, depth, blocksize, blocksize, h, w), (0, 1, 4, 2, 5, 3)),
        "DCR": ((n, blocksize, blocksize, depth, h, w), (0, 3, 4, 1, 5, 2)),
    }
    if mode not in splits:
        raise CompileError(f"the mode of DepthToSpace is {mode!r}; DCR and CRD are known")
    split, order = splits[mode]
    return b.reshape(b.transpose(b.reshape(x, split), order), (n, depth, h * blocksize, w * blocksize))


@onnx_op("SpaceToDepth")
def space_to_depth(b: Builder, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    n, c, h, w = _image(x, blocksize)
    rows, columns = floordiv(h, blocksize), floordiv(w, blocksize)
    for dim, count in ((h, rows), (w, columns)):
        if count * blocksize != dim:
            text = f"{dim} in {x.type.describe()} does not divide into blocks of {blocksize}"
            if isinstance(dim, int):
                raise CompileError(text)
            b.require("equal", dim, count * blocksize, text)
    orders = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}
    if mode not in orders:
        raise CompileError(f"the mode of SpaceToDepth is {mode!r}; DCR and CRD are known")
    cut = b.reshape(x, (n, c, rows, blocksize, columns, blocksize))
    return b.reshape(b.transpose(cut, orders[mode]), (n, c * blocksize * blocksize, rows, columns))


def _image(x: Value, blocksize: int) -> tuple[DimLike, ...]:
    if x.type.rank != 4:
        raise CompileError(f"{x.type.describe()} is no image: (n, c, h, w) is needed")
    if blocksize < 1:
        raise CompileError(f"the blocksize is {blocksize}; at least 1 is needed")
    return tuple(x.type.shape)


@onnx_op("ReverseSequence")
def reverse_sequence(
    b: Builder, x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Value:
    """The first elements of each sequence backwards, the rest as they are."""
    if {batch_axis, time_axis} != {0, 1} or x.type.rank < 2:
        raise CompileError(
            f"batch_axis {batch_axis} and time_axis {time_axis} of {x.type.describe()}: they are 0 and 1"
        )
    batch = x.type.shape[batch_axis]
    misfit = f"sequence_lens is {lengths.type.describe()}; a length for each of {batch} is needed"
    lengths = b.expect_shape(lengths, (batch,), misfit)
    plane = x.type.shape[:2]
    count = b.broadcast_to(b.reshape(lengths, (batch, 1) if batch_axis == 0 else (batch,)), plane)
    time = b.op("core.iota", shape=plane, axis=time_axis, dtype=dtypes.i64)
    back = b.sub(b.sub(count, b.full(1, count)), time)
    place = b.select(b.lt(time, count), back, time)
    index = b.broadcast_to(b.reshape(place, (*plane, *(1,) * (x.type.rank - 2))), x.type.shape)
    return b.op("core.gather_elements", x, index, axis=time_axis)
