"""Reads at computed places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.rules import tensors
from sardonyx.ir.declare import Trait, TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes

__all__: list[str] = []

Array = np.ndarray[Any, Any]


def _gather_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
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


declare(
    "core.gather",
    "x indices",
    "axis",
    infer=_gather_rule,
    evaluate=_gather,
    symbolic=_symbolic_gather,
    traits=[Trait.CAN_FAULT],
    doc="slices of x along an axis at the indices; negative ones count from the end, others out of range are a fault",
)
