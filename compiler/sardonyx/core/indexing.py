"""Reads and writes at computed places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.rules import tensors
from sardonyx.ir.declare import Trait, TypeRuleError, declare, lookup
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes

__all__ = ["REDUCTIONS", "combine"]

Array = np.ndarray[Any, Any]


def _gather_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x; its shape, with the shape of the indices (i32 or i64) in the place of `axis`."""
    x, indices = tensors(types, "gather")
    axis = attributes["axis"]
    if not 0 <= axis < x.rank:
        raise TypeRuleError(f"gather: axis {axis} of {x.describe()}")
    if indices.dtype not in (dtypes.i32, dtypes.i64):
        raise TypeRuleError(f"gather: the indices are {indices.describe()}; int32 or int64 is needed")
    return [TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))]


def _gather(attributes: Mapping[str, Any], x: Array, indices: Array) -> Array:
    return np.take(x, indices, axis=attributes["axis"])


def _symbolic_gather(attributes: Mapping[str, Any], x: Array, indices: Array) -> Array | None:
    if any(not isinstance(i, (int, np.integer)) for i in indices.ravel()):
        return None
    return np.asarray(np.take(x, indices.astype(np.int64), axis=attributes["axis"]), dtype=object)


def out_of_range(indices: Array, extent: int) -> str:
    """What is wrong with indices of an axis; empty if nothing."""
    wrong = (indices < -extent) | (indices >= extent)
    if not wrong.any():
        return ""
    return f"the index {indices[wrong].ravel()[0]} is out of range of an axis of {extent}"


def _gather_fault(attributes: Mapping[str, Any], x: Array, indices: Array) -> str:
    return out_of_range(indices, x.shape[attributes["axis"]])


declare(
    "core.gather",
    "x indices",
    "axis trusted?",
    infer=_gather_rule,
    evaluate=_gather,
    symbolic=_symbolic_gather,
    traits=[Trait.EXACT, Trait.CAN_FAULT],
    fault=_gather_fault,
    doc=(
        "slices of x along an axis at the indices; negative ones count from the end, others out of range are a "
        "fault; `trusted` indices are known to be within the axis and are not looked at again"
    ),
    example="%y = core.gather %x, %i {axis = 0} : (tensor<8x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>",
)


def _elements_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, the shape of the indices (i32 or i64), which have the rank of x."""
    x, indices = tensors(types, "gather_elements")
    axis = attributes["axis"]
    if not 0 <= axis < x.rank or indices.rank != x.rank:
        raise TypeRuleError(f"gather_elements: axis {axis} of {x.describe()}, indices {indices.describe()}")
    if indices.dtype not in (dtypes.i32, dtypes.i64):
        raise TypeRuleError(
            f"gather_elements: the indices are {indices.describe()}; int32 or int64 is needed"
        )
    for i, (have, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if i != axis and isinstance(have, int) and isinstance(most, int) and have > most:
            raise TypeRuleError(
                f"gather_elements: the indices {indices.describe()} reach beyond axis {i} of {x.describe()}"
            )
    return [TensorType(x.dtype, indices.shape)]


def _gather_elements(attributes: Mapping[str, Any], x: Array, indices: Array) -> Array:
    axis = attributes["axis"]
    within = tuple(slice(None) if i == axis else slice(0, d) for i, d in enumerate(indices.shape))
    return np.take_along_axis(x[within], indices.astype(np.int64), axis)


declare(
    "core.gather_elements",
    "x indices",
    "axis trusted?",
    infer=_elements_rule,
    evaluate=_gather_elements,
    traits=[Trait.EXACT, Trait.CAN_FAULT],
    fault=_gather_fault,
    doc="the element of x at each place of the indices, whose value stands for the place along the axis",
    example="%y = core.gather_elements %x, %i {axis = 0} : (tensor<8x3xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>",
)


def _nd_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x; the shape of the indices (i32 or i64) without the last dim, then the axes of x behind
    those that an index names."""
    x, indices = tensors(types, "gather_nd")
    batch = attributes["batch_dims"]
    if indices.dtype not in (dtypes.i32, dtypes.i64):
        raise TypeRuleError(f"gather_nd: the indices are {indices.describe()}; int32 or int64 is needed")
    depth = indices.shape[-1] if indices.rank else None
    if not isinstance(depth, int):
        raise TypeRuleError(
            f"gather_nd: the last dim of the indices {indices.describe()} has to be a known number"
        )
    if not 0 <= batch < indices.rank or batch + depth > x.rank:
        raise TypeRuleError(
            f"gather_nd: indices {indices.describe()} with batch_dims {batch} do not fit {x.describe()}"
        )
    for i in range(batch):
        have, want = indices.shape[i], x.shape[i]
        if isinstance(have, int) and isinstance(want, int) and have != want:
            raise TypeRuleError(
                f"gather_nd: batch dim {i} is {have} in the indices, {want} in {x.describe()}"
            )
    return [TensorType(x.dtype, (*indices.shape[:-1], *x.shape[batch + depth :]))]


def nd_fault(attributes: Mapping[str, Any], x: Array, indices: Array, *others: Array) -> str:
    batch = attributes.get("batch_dims", 0)
    texts = (out_of_range(indices[..., i], x.shape[batch + i]) for i in range(indices.shape[-1]))
    return next(filter(None, texts), "")


def _gather_nd(attributes: Mapping[str, Any], x: Array, indices: Array) -> Array:
    batch, lead = attributes["batch_dims"], indices.shape[:-1]
    places = [
        np.arange(d).reshape([-1 if a == i else 1 for a in range(len(lead))])
        for i, d in enumerate(lead[:batch])
    ]
    found = tuple(indices[..., i].astype(np.int64) for i in range(indices.shape[-1]))
    if not (batch or found):
        return np.broadcast_to(x, (*lead, *x.shape))
    picked = x[(*places, *found)]
    return np.broadcast_to(picked, (*lead, *x.shape[batch + len(found) :]))


declare(
    "core.gather_nd",
    "x indices",
    "batch_dims",
    infer=_nd_rule,
    evaluate=_gather_nd,
    traits=[Trait.EXACT, Trait.CAN_FAULT],
    fault=nd_fault,
    doc="slices of x at the index vectors that the last axis of the indices holds; the first `batch_dims` axes are shared",
    example="%y = core.gather_nd %x, %i {batch_dims = 0} : (tensor<8x3xf32>, tensor<4x1xi64>) -> tensor<4x3xf32>",
)


def _scatter_elements_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The type of x; the updates have its dtype and the shape of the indices."""
    x, indices, updates = tensors(types, "scatter_elements")
    _elements_rule(types[:2], attributes)
    _scatter_checks("scatter_elements", x, updates, indices.shape, attributes)
    return [x]


def _scatter_checks(
    what: str, x: TensorType, updates: TensorType, shape: Any, attributes: Mapping[str, Any]
) -> None:
    if attributes["reduction"] not in REDUCTIONS:
        raise TypeRuleError(f"{what}: the reduction {attributes['reduction']!r} is none of {REDUCTIONS}")
    if updates.dtype is not x.dtype:
        raise TypeRuleError(f"{what}: updates {updates.describe()} for data {x.describe()}")
    same = len(shape) == updates.rank and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(shape, updates.shape, strict=True)
    )
    if not same:
        raise TypeRuleError(
            f"{what}: updates {updates.describe()}; the shape {list(map(str, shape))} is needed"
        )


REDUCTIONS = ("none", "add", "mul", "max", "min")
_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and"}


def combine(reduction: str, dtype: dtypes.DType) -> str:
    """The elementwise kind that a reduction applies; of bools there are and, or."""
    return _OF_BOOLS[reduction] if dtype is dtypes.boolean else reduction


def _combined(reduction: str, old: Array, new: Array) -> Array:
    if reduction == "none":
        return new
    decl = lookup(f"core.{combine(reduction, dtypes.by_numpy(old.dtype))}")
    assert decl is not None and decl.evaluate is not None
    return np.asarray(decl.evaluate({}, old, new))


def _scatter_elements(attributes: Mapping[str, Any], x: Array, indices: Array, updates: Array) -> Array:
    """In steps along the axis: within one step no two updates meet."""
    axis, result = attributes["axis"], np.array(x)
    rest = [d for i, d in enumerate(indices.shape) if i != axis]
    others = [
        np.arange(d).reshape([-1 if a == i else 1 for a in range(len(rest))]) for i, d in enumerate(rest)
    ]
    for step in range(indices.shape[axis]):
        found = np.take(indices, step, axis).astype(np.int64)
        place = (*others[:axis], found, *others[axis:])
        result[place] = _combined(attributes["reduction"], result[place], np.take(updates, step, axis))
    return result


declare(
    "core.scatter_elements",
    "x indices updates",
    "axis reduction",
    infer=_scatter_elements_rule,
    evaluate=_scatter_elements,
    traits=[Trait.EXACT, Trait.CAN_FAULT],
    fault=lambda attributes, x, indices, updates: out_of_range(indices, x.shape[attributes["axis"]]),
    doc=(
        "x with updates written, or combined by `reduction`, at places whose index along the axis the indices "
        "give; of several updates of one place the later comes later"
    ),
    example=(
        '%y = core.scatter_elements %x, %i, %u {axis = 0, reduction = "add"}'
        " : (tensor<8x3xf32>, tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<8x3xf32>"
    ),
)


def _scatter_nd_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The type of x; the updates have its dtype and the shape that `gather_nd` would give."""
    x, _, updates = tensors(types, "scatter_nd")
    (picked,) = _nd_rule(types[:2], {"batch_dims": 0})
    assert isinstance(picked, TensorType)
    _scatter_checks("scatter_nd", x, updates, picked.shape, attributes)
    return [x]


def _scatter_nd(attributes: Mapping[str, Any], x: Array, indices: Array, updates: Array) -> Array:
    result, depth = np.array(x), indices.shape[-1]
    slices = updates.reshape((math.prod(indices.shape[:-1]), *x.shape[depth:]))
    for index, update in zip(indices.reshape(len(slices), depth).tolist(), slices, strict=True):
        place = tuple(index)
        result[place] = _combined(attributes["reduction"], np.asarray(result[place]), update)
    return result


declare(
    "core.scatter_nd",
    "x indices updates",
    "reduction",
    infer=_scatter_nd_rule,
    evaluate=_scatter_nd,
    traits=[Trait.EXACT, Trait.CAN_FAULT],
    fault=nd_fault,
    doc="x with slices written, or combined by `reduction`, at index vectors; updates of one place apply in their order",
    example=(
        '%y = core.scatter_nd %x, %i, %u {reduction = "none"}'
        " : (tensor<8x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<8x3xf32>"
    ),
)
