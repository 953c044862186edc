"""Products summed over axes: the generalised dot product and the convolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.reduction import identity
from sardonyx.core.rules import one_dtype, tensors
from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, floordiv

__all__ = ["convolution_extent"]

Array = np.ndarray[Any, Any]


def _contract_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x (or the attribute `dtype`); batch dims and rows of x, columns of y; ranks, batch dims and
    inner dims have to be equal."""
    x, y = tensors(types, "contract")
    if attributes.get("words", False):
        return _words_rule(x, y)
    if not ("dtype" in attributes and all(t.dtype in (dtypes.i8, dtypes.u8) for t in (x, y))):
        one_dtype([x, y], "contract")
    if x.rank < 2 or y.rank != x.rank:
        raise TypeRuleError(f"contract: ranks {x.rank} and {y.rank}; equal ranks of at least 2 are needed")
    if x.shape[:-2] != y.shape[:-2]:
        raise TypeRuleError(f"contract: batch dims of {x.describe()} and {y.describe()} differ")
    inner_x, inner_y = x.shape[-1], y.shape[-2]
    if inner_x != inner_y and not (isinstance(inner_x, Dim) or isinstance(inner_y, Dim)):
        raise TypeRuleError(
            f"contract: inner dims {inner_x} and {inner_y} of {x.describe()}, {y.describe()} differ"
        )
    dtype = attributes.get("dtype", x.dtype)
    return [TensorType(dtype, (*x.shape[:-1], y.shape[-1]))]


def _words_rule(x: TensorType, y: TensorType) -> list[Type]:
    if x.dtype is not dtypes.u8 or y.dtype is not dtypes.i32:
        raise TypeRuleError(
            f"contract of words: {x.describe()} and {y.describe()}; uint8 and int32 are needed"
        )
    if x.rank < 2 or y.rank != x.rank or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2] * 4:
        raise TypeRuleError(f"contract of words: {x.describe()} and {y.describe()} do not fit")
    return [TensorType(dtypes.i32, (*x.shape[:-1], y.shape[-1]))]


def _bytes_of_words(y: Array) -> Array:
    """Words (..., k, n) of four signed bytes as (..., 4 k, n)."""
    parts = [(y.astype(np.uint32) >> np.uint32(8 * i)).astype(np.uint8).view(np.int8) for i in range(4)]
    return np.stack(parts, -2).reshape(*y.shape[:-2], 4 * y.shape[-2], y.shape[-1])


def _contract(attributes: Mapping[str, Any], x: Array, y: Array) -> Array:
    if attributes.get("words", False):
        return np.asarray(np.matmul(x.astype(np.int32), _bytes_of_words(y).astype(np.int32)))
    source = dtypes.by_numpy(x.dtype)
    dtype = attributes.get("dtype", source)
    with np.errstate(all="ignore"):
        if source.is_float:
            inner = np.float64
            return rounding.to_float(np.matmul(x.astype(inner), y.astype(inner)), dtype.numpy)
        return np.asarray(np.matmul(x.astype(dtype.numpy), y.astype(dtype.numpy)))


declare(
    "core.contract",
    "x y",
    "dtype? words?",
    infer=_contract_rule,
    evaluate=_contract,
    doc=(
        "batched matrix product (..., m, k) x (..., k, n) -> (..., m, n); "
        "floats accumulate in float32 or wider; "
        "bytes with and without a sign may meet in a wider `dtype`; with `words` x is of bytes without a sign "
        "(..., m, 4 k) and each int32 of y (..., k, n) stands for four bytes with a sign, the lowest first"
    ),
    example="%z = core.contract %x, %y : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
)


def convolution_extent(
    size: DimLike, kernel: int, stride: int, dilation: int, pads: tuple[DimLike, DimLike]
) -> DimLike:
    """The output extent of one spatial axis of a convolution or window, rounded down."""
    span = (kernel - 1) * dilation + 1
    return floordiv(size + pads[0] + pads[1] - span, stride) + 1


def _spatial_extents(
    what: str, x: TensorType, window: Sequence[Any], attributes: Mapping[str, Any]
) -> list[DimLike]:
    """The output extents of the spatial axes, all but first and last; TypeRuleError if they do not fit."""
    spatial = x.rank - 2
    strides, dilations, pads = attributes["strides"], attributes["dilations"], attributes["pads"]
    counts = (len(window), len(strides), len(dilations))
    if spatial < 1 or counts != (spatial,) * 3 or len(pads) != 2 * spatial:
        raise TypeRuleError(
            f"{what}: {x.describe()} has {spatial} spatial axes; "
            f"the kernel {list(window)}, strides {list(strides)} "
            f"and dilations {list(dilations)} need one entry each, pads {list(map(str, pads))} two"
        )
    if any(isinstance(k, Dim) for k in window):
        raise TypeRuleError(f"{what}: the kernel has symbolic extents: {list(map(str, window))}")
    if any(v < 1 for v in (*window, *strides, *dilations)):
        raise TypeRuleError(
            f"{what}: kernel {list(window)}, strides {list(strides)} "
            f"and dilations {list(dilations)} have to be positive"
        )
    extents = [
        convolution_extent(d, int(k), s, dl, (pads[i], pads[i + spatial]))
        for i, (d, k, s, dl) in enumerate(zip(x.shape[1:-1], window, strides, dilations, strict=True))
    ]
    for i, extent in enumerate(extents):
        if isinstance(extent, int) and extent < 0:
            raise TypeRuleError(
                f"{what}: spatial axis {i} of {x.describe()} with its pads "
                f"is smaller than the kernel {list(window)}"
            )
    return extents


def _window_slices(
    attributes: Mapping[str, Any], window: Sequence[int], padded: Array
) -> Iterator[tuple[Any, Array]]:
    """Each kernel position with the elements of the padded array (n, spatial..., c) that it meets."""
    strides, dilations = attributes["strides"], attributes["dilations"]
    out = [
        (d - (k - 1) * dl - 1) // s + 1
        for d, k, s, dl in zip(padded.shape[1:-1], window, strides, dilations, strict=True)
    ]
    for position in np.ndindex(*window):
        index = tuple(
            slice(p * d, p * d + (o - 1) * s + 1, s) if o else slice(0, 0)
            for p, d, o, s in zip(position, dilations, out, strides, strict=True)
        )
        yield position, padded[(slice(None), *index)]


def _pad_spatial(x: Array, pads: Sequence[int], value: Any) -> Array:
    spatial = x.ndim - 2
    widths = [(0, 0), *((pads[i], pads[i + spatial]) for i in range(spatial)), (0, 0)]
    return np.pad(x, widths, constant_values=value)


def _convolve_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x (or the attribute `dtype`); (images, spatial extents by strides, dilations and pads,
    filters); x is (images, spatial..., channels), the weights (filters, channels of a group, spatial...)."""
    x, w = tensors(types, "convolve")
    one_dtype([x, w], "convolve")
    if w.rank != x.rank:
        raise TypeRuleError(f"convolve: {x.describe()} and the weights {w.describe()} have unlike ranks")
    group = attributes["group"]
    channels, filters = x.shape[-1], w.shape[0]
    if group < 1:
        raise TypeRuleError(f"convolve: {group} groups")
    if isinstance(channels, int) and isinstance(w.shape[1], int) and channels != w.shape[1] * group:
        raise TypeRuleError(
            f"convolve: x has {channels} channels, but weights {w.describe()} "
            f"in {group} groups take {w.shape[1] * group}"
        )
    if isinstance(filters, int) and filters % group:
        raise TypeRuleError(f"convolve: {filters} filters do not divide into {group} groups")
    extents = _spatial_extents("convolve", x, w.shape[2:], attributes)
    return [TensorType(attributes.get("dtype", x.dtype), (x.shape[0], *extents, filters))]


def _convolve(attributes: Mapping[str, Any], x: Array, w: Array) -> Array:
    """By shifting: one einsum per kernel position; floats in float64."""
    group = attributes["group"]
    source = dtypes.by_numpy(x.dtype)
    dtype = attributes.get("dtype", source)
    wide = np.dtype(np.float64) if source.is_float else dtype.numpy
    padded = _pad_spatial(x.astype(wide), attributes["pads"], 0)
    result: Any = None
    with np.errstate(all="ignore"):
        for position, part in _window_slices(attributes, w.shape[2:], padded):
            grouped = part.reshape(*part.shape[:-1], group, w.shape[1])
            weight = w[(slice(None), slice(None), *position)].astype(wide)
            product = np.einsum(
                "...gc,gfc->...gf", grouped, weight.reshape(group, w.shape[0] // group, w.shape[1])
            )
            result = product if result is None else result + product
        flat = result.reshape(*result.shape[:-2], w.shape[0])
        return rounding.to_float(flat, dtype.numpy) if source.is_float else np.asarray(flat, dtype.numpy)


declare(
    "core.convolve",
    "x w",
    "strides dilations pads group dtype?",
    infer=_convolve_rule,
    evaluate=_convolve,
    doc=(
        "convolution of x (n, spatial..., c) with w (filters, c / group, kernel...), no bias, "
        "to (n, spatial..., filters); pads are lows, then highs; floats accumulate in float32 or wider"
    ),
    example=(
        "%y = core.convolve %x, %w {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1], group = 1}"
        " : (tensor<1x5x5x3xf32>, tensor<8x3x3x3xf32>) -> tensor<1x5x5x8xf32>"
    ),
)

_WINDOW_KINDS = ("sum", "max", "min", "arg_max")


def _window_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x (i64 for `arg_max`); images and channels of x, spatial extents by strides, dilations and
    pads."""
    (x,) = tensors(types, "window_reduce")
    if attributes["kind"] not in _WINDOW_KINDS:
        raise TypeRuleError(f"window_reduce: {attributes['kind']!r} is none of {_WINDOW_KINDS}")
    extents = _spatial_extents("window_reduce", x, attributes["window"], attributes)
    dtype = dtypes.i64 if attributes["kind"] == "arg_max" else x.dtype
    return [TensorType(dtype, (x.shape[0], *extents, x.shape[-1]))]


def _window(attributes: Mapping[str, Any], x: Array) -> Array:
    kind, window, pads = attributes["kind"], attributes["window"], attributes["pads"]
    if kind == "arg_max":
        return _window_arg(attributes, x)
    dtype = dtypes.by_numpy(x.dtype)
    padded = _pad_spatial(x, pads, identity(kind, dtype))
    stacked = np.stack([part for _, part in _window_slices(attributes, window, padded)])
    with np.errstate(all="ignore"):
        if kind == "sum" and dtype.is_float:
            return rounding.to_float(stacked.astype(np.float64).sum(0), x.dtype)
        if kind == "sum":
            return np.asarray(stacked.sum(0, dtype=x.dtype))
        wide = stacked.astype(np.float32) if dtype.is_float and dtype.bits == 16 else stacked
        return np.asarray(wide.max(0) if kind == "max" else wide.min(0)).astype(x.dtype)


def _window_arg(attributes: Mapping[str, Any], x: Array) -> Array:
    dtype = dtypes.by_numpy(x.dtype)
    places = np.arange(int(np.prod(x.shape[1:-1]))).reshape(1, *x.shape[1:-1], 1)
    window, pads = attributes["window"], attributes["pads"]
    padded_places = _pad_spatial(places, pads, -1)
    wide = x.astype(np.float64) if dtype.is_float else x
    padded = _pad_spatial(wide, pads, 0)
    best: Any = None
    for (_, part), (_, place) in zip(
        _window_slices(attributes, window, padded),
        _window_slices(attributes, window, padded_places),
        strict=True,
    ):
        index = np.broadcast_to(place, part.shape)
        if best is None:
            best, found = part.copy(), index.copy()
            continue
        better = (index >= 0) & ((found < 0) | (part > best) | (np.isnan(part) & ~np.isnan(best)))
        best, found = np.where(better, part, best), np.where(better, index, found)
    return np.asarray(found).astype(np.int64)


declare(
    "core.window_reduce",
    "x",
    "kind window strides dilations pads",
    infer=_window_rule,
    evaluate=_window,
    doc=(
        "reduce each window of the spatial axes of x (n, spatial..., c): sum, max, min; "
        "pads (lows, then highs) count as the identity; max and min propagate NaN; "
        "arg_max gives the place of the first maximum (or NaN) among the spatial elements, row-major, "
        "-1 if there is none; 16-bit floats accumulate in float32"
    ),
    example=(
        '%y = core.window_reduce %x {kind = "max", window = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [0, 0, 0, 0]}'
        " : (tensor<1x4x4x3xf32>) -> tensor<1x2x2x3xf32>"
    ),
)
