"""Products summed over axes: the generalised dot product and the convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.rules import one_dtype, tensors
from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, floordiv

__all__ = ["convolution_extent"]

Array = np.ndarray[Any, Any]


def _contract_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    x, y = tensors(types, "contract")
    one_dtype([x, y], "contract")
    if x.rank < 2 or y.rank != x.rank:
        raise TypeRuleError(f"contract: ranks {x.rank} and {y.rank}; equal ranks of at least 2 are needed")
    if x.shape[:-2] != y.shape[:-2]:
        raise TypeRuleError(f"contract: batch dims of {x.describe()} and {y.describe()} differ")
    inner_x, inner_y = x.shape[-1], y.shape[-2]
    if inner_x != inner_y and not (isinstance(inner_x, Dim) or isinstance(inner_y, Dim)):
        raise TypeRuleError(f"contract: inner dims {inner_x} and {inner_y} of {x.describe()}, {y.describe()} differ")
    dtype = attributes.get("dtype", x.dtype)
    return [TensorType(dtype, (*x.shape[:-1], y.shape[-1]))]


def _contract(attributes: Mapping[str, Any], x: Array, y: Array) -> Array:
    source = dtypes.by_numpy(x.dtype)
    dtype = attributes.get("dtype", source)
    with np.errstate(all="ignore"):
        if source.is_float:
            inner = np.float64
            return rounding.to_float(np.matmul(x.astype(inner), y.astype(inner)), dtype.numpy)
        return np.matmul(x.astype(dtype.numpy), y.astype(dtype.numpy))


declare(
    "core.contract",
    "x y",
    "dtype?",
    infer=_contract_rule,
    evaluate=_contract,
    doc="batched matrix product (..., m, k) x (..., k, n) -> (..., m, n); floats accumulate in float32 or wider",
)


def convolution_extent(size: DimLike, kernel: int, stride: int, dilation: int, pads: tuple[DimLike, DimLike]) -> DimLike:
    """The output extent of one spatial axis of a convolution or window, rounded down."""
    span = (kernel - 1) * dilation + 1
    return floordiv(size + pads[0] + pads[1] - span, stride) + 1


def _convolve_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    x, w = tensors(types, "convolve")
    one_dtype([x, w], "convolve")
    spatial = x.rank - 2
    strides, dilations, pads = attributes["strides"], attributes["dilations"], attributes["pads"]
    if spatial < 1 or w.rank != x.rank or not len(strides) == len(dilations) == spatial or len(pads) != 2 * spatial:
        raise TypeRuleError(f"convolve: {x.describe()} by {w.describe()}: ranks, strides, dilations and pads do not fit")
    group = attributes["group"]
    channels, filters = x.shape[1], w.shape[0]
    if isinstance(channels, int) and isinstance(w.shape[1], int) and channels != w.shape[1] * group:
        raise TypeRuleError(
            f"convolve: {x.describe()} has {channels} channels, {w.describe()} in {group} groups takes {w.shape[1] * group}"
        )
    if isinstance(filters, int) and filters % group:
        raise TypeRuleError(f"convolve: {filters} filters do not divide into {group} groups")
    if any(isinstance(k, Dim) for k in w.shape[2:]):
        raise TypeRuleError(f"convolve: the kernel of {w.describe()} has symbolic extents")
    extents = [
        convolution_extent(d, int(k), s, dl, (pads[i], pads[i + spatial]))  # type: ignore[call-overload]
        for i, (d, k, s, dl) in enumerate(zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True))
    ]
    for i, extent in enumerate(extents):
        if isinstance(extent, int) and extent < 0:
            raise TypeRuleError(f"convolve: {x.describe()} is smaller than the kernel {w.describe()} on spatial axis {i}")
    return [TensorType(x.dtype, (x.shape[0], filters, *extents))]


def _convolve(attributes: Mapping[str, Any], x: Array, w: Array) -> Array:
    """By shifting: one einsum per kernel position, in float64."""
    spatial = x.ndim - 2
    pads, strides, dilations = attributes["pads"], attributes["strides"], attributes["dilations"]
    group = attributes["group"]
    wide = np.float64 if dtypes.by_numpy(x.dtype).is_float else x.dtype
    padded = np.pad(x.astype(wide), [(0, 0), (0, 0)] + [(pads[i], pads[i + spatial]) for i in range(spatial)])
    out = [
        (padded.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(spatial)
    ]
    result = np.zeros((x.shape[0], group, w.shape[0] // group, *out), wide)
    for position in np.ndindex(*w.shape[2:]):
        window = tuple(
            slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(position, dilations, out, strides, strict=True)
        )
        part = padded[(slice(None), slice(None), *window)].reshape(x.shape[0], group, w.shape[1], *out)
        weight = w[(slice(None), slice(None), *position)].astype(wide).reshape(group, w.shape[0] // group, w.shape[1])
        result += np.einsum("ngc...,gfc->ngf...", part, weight)
    flat = result.reshape(x.shape[0], w.shape[0], *out)
    return rounding.to_float(flat, x.dtype) if wide is np.float64 else flat


declare(
    "core.convolve",
    "x w",
    "strides dilations pads group",
    infer=_convolve_rule,
    evaluate=_convolve,
    doc="convolution of x (n, c, spatial...) with w (filters, c / group, kernel...), no bias; pads are lows, then highs",
)


def _window_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    (x,) = tensors(types, "window_reduce")
    window, strides, dilations = attributes["window"], attributes["strides"], attributes["dilations"]
    if not len(window) == len(strides) == len(dilations) == x.rank - 2 or attributes["kind"] not in ("sum", "max", "min"):
        raise TypeRuleError(f"window_reduce: window {window} and strides {strides} do not fit {x.describe()}")
    extents = [
        convolution_extent(d, k, s, dl, (0, 0)) for d, k, s, dl in zip(x.shape[2:], window, strides, dilations, strict=True)
    ]
    return [TensorType(x.dtype, (*x.shape[:2], *extents))]


def _window(attributes: Mapping[str, Any], x: Array) -> Array:
    window, strides, dilations = (attributes[k] for k in ("window", "strides", "dilations"))
    out = [(d - (k - 1) * dl - 1) // s + 1 for d, k, s, dl in zip(x.shape[2:], window, strides, dilations, strict=True)]
    parts = []
    for position in np.ndindex(*window):
        index = tuple(
            slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(position, dilations, out, strides, strict=True)
        )
        parts.append(x[(slice(None), slice(None), *index)])
    stacked = np.stack(parts)
    if attributes["kind"] == "sum":
        return rounding.to_float(stacked.astype(np.float64).sum(0), x.dtype)
    wide = stacked.astype(np.float32) if x.dtype.itemsize == 2 else stacked
    return (wide.max(0) if attributes["kind"] == "max" else wide.min(0)).astype(x.dtype)


declare(
    "core.window_reduce",
    "x",
    "kind window strides dilations",
    infer=_window_rule,
    evaluate=_window,
    doc="reduce each window of the spatial axes of x (n, c, spatial...); x is padded beforehand",
)

