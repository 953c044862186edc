"""Reductions over axes, and scans along one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.rules import axes_of, tensors
from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product

__all__ = ["identity"]

Array = np.ndarray[Any, Any]

KINDS = ("sum", "prod", "max", "min", "and", "or")


def identity(kind: str, dtype: dtypes.DType) -> Any:
    """What a reduction over nothing gives."""
    if kind in ("sum", "or"):
        return 0
    if kind == "prod":
        return 1
    if kind == "and":
        return True
    lowest = kind == "max"
    if dtype.is_float:
        return float("-inf") if lowest else float("inf")
    if dtype is dtypes.boolean:
        return not lowest
    info = np.iinfo(dtype.numpy)
    return int(info.min if lowest else info.max)


def _reduce_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, its shape without `axes`."""
    (x,) = tensors(types, "reduce")
    axes = axes_of(attributes, x.rank, "reduce")
    if attributes["kind"] not in KINDS:
        raise TypeRuleError(f"reduce: {attributes['kind']!r} is none of {KINDS}")
    return [TensorType(x.dtype, tuple(d for i, d in enumerate(x.shape) if i not in axes))]


def _reduce(attributes: Mapping[str, Any], x: Array) -> Array:
    kind, axes = attributes["kind"], tuple(attributes["axes"])
    dtype = dtypes.by_numpy(x.dtype)
    with np.errstate(all="ignore"):
        if kind in ("sum", "prod"):
            fn = np.add if kind == "sum" else np.multiply
            if dtype.is_float:
                inner = np.float64 if dtype.bits <= 32 else np.longdouble
                return rounding.to_float(fn.reduce(x.astype(inner), axis=axes).astype(np.float64), x.dtype)
            return np.asarray(fn.reduce(x, axis=axes, dtype=x.dtype))
        if kind in ("and", "or"):
            return np.asarray((np.bitwise_and if kind == "and" else np.bitwise_or).reduce(x, axis=axes))
        if dtype.is_float and dtype.bits == 16:
            wide = x.astype(np.float32)
            ufunc = np.maximum if kind == "max" else np.minimum
            return np.asarray(ufunc.reduce(wide, axis=axes, initial=identity(kind, dtype))).astype(x.dtype)
        ufunc = np.maximum if kind == "max" else np.minimum
        return np.asarray(ufunc.reduce(x, axis=axes, initial=identity(kind, dtype)))


def _symbolic_reduce(attributes: Mapping[str, Any], x: Array) -> Array | None:
    if attributes["kind"] != "prod" or x.ndim != 1 or tuple(attributes["axes"]) != (0,):
        return None
    result = np.empty((), dtype=object)
    result[()] = product(x.tolist())
    return result


declare(
    "core.reduce",
    "x",
    "kind axes",
    infer=_reduce_rule,
    evaluate=_reduce,
    symbolic=_symbolic_reduce,
    doc=(
        "sum, prod, max, min, and, or over axes, which vanish; floats of 16 bits accumulate in float32; "
        "max and min propagate NaN; over nothing the identity"
    ),
    example='%y = core.reduce %x {kind = "sum", axes = [1]} : (tensor<2x3xf32>) -> tensor<2xf32>',
)
