"""Ops that depend on the order of elements, or give as many as the data say.

Where the size of a result is data, it is counted first with ordinary ops and bound to a symbol
(`core.bind_dims`); the op here then fills a result of that shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.rules import one_dtype, tensors
from sardonyx.ir.declare import Trait, TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes

__all__ = ["ranks"]

Array = np.ndarray[Any, Any]


def ranks(x: Array) -> Array:
    """Numbers in the order of the elements, equal for equal ones: NaN is above all, zeros are equal."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    _, inverse = np.unique(wide, return_inverse=True)
    return inverse.reshape(x.shape).astype(np.int64)


def _top_k_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """Values of the dtype of x and indices in i64; the shape of x with `k` in the place of the last dim."""
    (x,) = tensors(types, "top_k")
    k = attributes["k"]
    if not x.rank:
        raise TypeRuleError(f"top_k: {x.describe()} has no axis")
    if isinstance(k, int) and (k < 0 or (isinstance(x.shape[-1], int) and k > x.shape[-1])):
        raise TypeRuleError(f"top_k: {k} elements of the last axis of {x.describe()}")
    shape = (*x.shape[:-1], k)
    return [TensorType(x.dtype, shape), TensorType(dtypes.i64, shape)]


def _top_k(attributes: Mapping[str, Any], x: Array) -> tuple[Array, Array]:
    order = ranks(x) * (-1 if attributes["largest"] else 1)
    found = np.argsort(order, axis=-1, kind="stable")[..., : attributes["k"]]
    return np.take_along_axis(x, found, -1), found.astype(np.int64)


declare(
    "core.top_k",
    "x",
    "k largest",
    infer=_top_k_rule,
    evaluate=_top_k,
    traits=[Trait.EXACT],
    doc=(
        "the k largest or smallest elements of the last axis in that order, and their indices; NaN is above "
        "all, equal elements keep the order of their indices; with k the extent it sorts"
    ),
    example=(
        "%values, %indices = core.top_k %x {k = 3, largest = true}"
        " : (tensor<8xf32>) -> (tensor<3xf32>, tensor<3xi64>)"
    ),
)


def _sort_rows_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """One i64 for each row of x, which has rank 2."""
    (x,) = tensors(types, "sort_rows")
    if x.rank != 2:
        raise TypeRuleError(f"sort_rows: {x.describe()} has no rows")
    return [TensorType(dtypes.i64, x.shape[:1])]


def _sort_rows(attributes: Mapping[str, Any], x: Array) -> Array:
    rank = ranks(x)
    if not x.shape[1]:
        return np.arange(len(x), dtype=np.int64)
    return np.lexsort(rank.T[::-1]).astype(np.int64)


declare(
    "core.sort_rows",
    "x",
    "",
    infer=_sort_rows_rule,
    evaluate=_sort_rows,
    traits=[Trait.EXACT],
    doc="how the rows of a matrix ascend, compared element by element; equal rows keep their order",
    example="%order = core.sort_rows %x : (tensor<8x3xf32>) -> tensor<8xi64>",
)


def _nonzero_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """i64; (rank of x, `count`)."""
    (x,) = tensors(types, "nonzero")
    return [TensorType(dtypes.i64, (x.rank, attributes["count"]))]


declare(
    "core.nonzero",
    "x",
    "count",
    infer=_nonzero_rule,
    evaluate=lambda attributes, x: np.array(np.nonzero(x), np.int64).reshape(x.ndim, -1),
    traits=[Trait.EXACT],
    doc="the indices of the true elements of a bool tensor, a column for each; `count` is how many there are",
    example=(
        '%y = core.nonzero %x {count = #sdx.dim<"k">}'
        ' : (tensor<8x3xi1>) -> tensor<2x?xi64, #sdx.dims<2, "k">>'
    ),
)


SCANS = ("sum", "prod")


def _scan_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The type of x."""
    (x,) = tensors(types, "scan")
    if attributes["kind"] not in SCANS or not 0 <= attributes["axis"] < x.rank:
        raise TypeRuleError(f"scan: {attributes['kind']!r} along axis {attributes['axis']} of {x.describe()}")
    return [x]


def _scan(attributes: Mapping[str, Any], x: Array) -> Array:
    axis, kind = attributes["axis"], attributes["kind"]
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    if attributes["reverse"]:
        wide = np.flip(wide, axis)
    with np.errstate(all="ignore"):
        total = (np.add if kind == "sum" else np.multiply).accumulate(wide, axis=axis, dtype=wide.dtype)
    if attributes["exclusive"] and x.shape[axis]:
        first = np.full_like(np.take(total, [0], axis), 0 if kind == "sum" else 1)
        total = np.concatenate([first, np.delete(total, -1, axis)], axis)
    if attributes["reverse"]:
        total = np.flip(total, axis)
    return rounding.to_float(total, x.dtype) if wide is not x and wide.dtype != x.dtype else total


declare(
    "core.scan",
    "x",
    "kind axis exclusive reverse",
    infer=_scan_rule,
    evaluate=_scan,
    traits=[Trait.EXACT],
    doc=(
        "running sums or products along an axis, one element after another; floats of 16 bits accumulate in "
        "float32; `exclusive` leaves the element itself out, `reverse` starts at the end"
    ),
    example=(
        '%y = core.scan %x {kind = "sum", axis = 0, exclusive = false, reverse = false}'
        " : (tensor<4xf32>) -> tensor<4xf32>"
    ),
)


def _nms_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """i64 indices (batches, classes, `most`), and how many of them count (batches, classes)."""
    boxes, scores, *limits = tensors(types, "nms")
    one_dtype([boxes, scores, *limits], "nms")
    if boxes.rank != 3 or boxes.shape[2] != 4 or scores.rank != 3 or any(v.rank for v in limits):
        raise TypeRuleError(f"nms: boxes {boxes.describe()} and scores {scores.describe()}")
    if boxes.shape[:2] != (scores.shape[0], scores.shape[2]):
        raise TypeRuleError(f"nms: boxes {boxes.describe()} do not fit the scores {scores.describe()}")
    lead = scores.shape[:2]
    return [TensorType(dtypes.i64, (*lead, attributes["most"])), TensorType(dtypes.i64, lead)]


def _corners(boxes: Array, center: bool) -> tuple[Array, Array, Array, Array]:
    """Two lower and two upper coordinates."""
    a, c, d, e = (boxes[..., i] for i in range(4))
    half = np.float32(0.5)
    if center:
        return a - d * half, c - e * half, a + d * half, c + e * half
    return np.minimum(a, d), np.minimum(c, e), np.maximum(a, d), np.maximum(c, e)


def _nms(
    attributes: Mapping[str, Any], boxes: Array, scores: Array, iou: Array, least: Array
) -> tuple[Array, Array]:
    most, lead = attributes["most"], scores.shape[:2]
    found, counts = np.zeros((*lead, most), np.int64), np.zeros(lead, np.int64)
    for image, label in np.ndindex(*lead):
        score = scores[image, label]
        x0, y0, x1, y1 = _corners(boxes[image], attributes["center"])
        area = (x1 - x0) * (y1 - y0)
        kept: list[int] = []
        for box in np.argsort(-ranks(score), kind="stable").tolist():
            if len(kept) == most or not score[box] > least:
                continue
            with np.errstate(all="ignore"):
                width = np.maximum(np.minimum(x1[box], x1[kept]) - np.maximum(x0[box], x0[kept]), 0)
                height = np.maximum(np.minimum(y1[box], y1[kept]) - np.maximum(y0[box], y0[kept]), 0)
                both = width * height
                overlap = both / (area[box] + area[kept] - both)
            if not (overlap > iou).any():
                kept.append(box)
        found[image, label, : len(kept)] = kept
        counts[image, label] = len(kept)
    return found, counts


declare(
    "core.nms",
    "boxes scores iou least",
    "most center",
    infer=_nms_rule,
    evaluate=_nms,
    doc=(
        "per image and label the boxes with a score above `least`, by falling score, each unless it overlaps "
        "one chosen before by more than `iou`; at most `most`, and how many there are (the rest is undefined)"
    ),
    example=(
        "%chosen, %count = core.nms %boxes, %scores, %iou, %least {most = 10, center = false}"
        " : (tensor<1x20x4xf32>, tensor<1x3x20xf32>, tensor<f32>, tensor<f32>) -> (tensor<1x3x10xi64>, tensor<1x3xi64>)"
    ),
)
