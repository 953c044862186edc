"""LabelEncoder and CategoryMapper: a table of keys and values, searched by halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.strings import as_text
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["lookup"]

Array = np.ndarray[Any, Any]
ML = "ai.onnx.ml"


def lookup(b: Builder, x: Value, keys: Array, values: Array, default: Any, dtype: DType) -> Value:
    """``values[i]`` where x equals ``keys[i]``, else the default; of equal keys the last counts, NaN equals NaN."""
    source: DType = x.type.dtype
    if not len(keys):
        return b.broadcast_to(b.constant(np.asarray(default, dtype.numpy), dtype), x.type.shape)
    table = b.constant(np.append(values.astype(dtype.numpy), np.asarray(default, dtype.numpy)[None]), dtype)
    if source is dtypes.string:
        place = b.find_string(x, keys=Dense(keys.astype(object), source))
        return b.op("core.gather", table, place, axis=0, trusted=True)
    last = {float(k) if source.is_float else int(k): i for i, k in enumerate(keys.tolist()) if k == k}
    nan = [i for i, k in enumerate(keys.tolist()) if k != k]
    found = sorted(last.items())
    place = _search(b, x, [k for k, _ in found], [i for _, i in found], len(values))
    if nan:
        place = b.select(b.is_nan(x), b.full(nan[-1], place), place)
    return b.op("core.gather", table, place, axis=0, trusted=True)


def _search(b: Builder, x: Value, keys: Sequence[Any], places: Sequence[int], missing: int) -> Value:
    """The place that belongs to the key equal to x: halving steps, the same number for every element."""
    shape = x.type.shape
    if not keys:
        return b.broadcast_to(b.constant(missing, dtypes.i64), shape)
    size = 1 << max(0, len(keys) - 1).bit_length()
    padded = [*keys, *[keys[-1]] * (size - len(keys))]
    ordered = b.constant(padded, x.type.dtype)
    targets = b.constant([*places, *[places[-1]] * (size - len(keys))], dtypes.i64)
    at = b.broadcast_to(b.constant(0, dtypes.i64), shape)
    step = size // 2
    while step:  # the last key that is not above x
        ahead = b.add(at, b.full(step, at))
        at = b.select(b.le(b.op("core.gather", ordered, ahead, axis=0, trusted=True), x), ahead, at)
        step //= 2
    hit = b.eq(b.op("core.gather", ordered, at, axis=0, trusted=True), x)
    return b.select(hit, b.op("core.gather", targets, at, axis=0, trusted=True), b.full(missing, at))


def _given(kind: str, choices: dict[str, Any]) -> tuple[str, Any]:
    """The one attribute of several that is there: (its suffix, its value)."""
    found = {k: v for k, v in choices.items() if v is not None and (isinstance(v, Dense) or len(v))}
    if len(found) != 1:
        names = ", ".join(f"{kind}_{k}" for k in found or choices)
        raise CompileError(f"one of {kind}_* is needed, not {len(found)}: {names}")
    return next(iter(found.items()))


_TYPES = {"strings": dtypes.string, "int64s": dtypes.i64, "floats": dtypes.f32}


def _table(name: str, value: Any) -> tuple[Array, DType]:
    if isinstance(value, Dense):
        return value.array.reshape(-1), value.dtype
    dtype = _TYPES[name]
    if dtype is dtypes.string:
        value = list(map(as_text, value))
    return np.array(value, dtype.numpy), dtype


@onnx_op("LabelEncoder", since=4, domain=ML)
def label_encoder(
    b: Builder,
    x: Value,
    *,
    keys_tensor: Dense | None = None,
    keys_strings: Any = None,
    keys_int64s: Any = None,
    keys_floats: Any = None,
    values_tensor: Dense | None = None,
    values_strings: Any = None,
    values_int64s: Any = None,
    values_floats: Any = None,
    default_tensor: Dense | None = None,
    default_string: str = "_Unused",
    default_int64: int = -1,
    default_float: float = -0.0,
) -> Value:
    keys, source = _table(
        *_given(
            "keys",
            {"tensor": keys_tensor, "strings": keys_strings, "int64s": keys_int64s, "floats": keys_floats},
        )
    )
    values, dtype = _table(
        *_given(
            "values",
            {
                "tensor": values_tensor,
                "strings": values_strings,
                "int64s": values_int64s,
                "floats": values_floats,
            },
        )
    )
    if source is not x.type.dtype:
        raise CompileError(f"the keys are {source.onnx_name}, but the input is {x.type.describe()}")
    if len(keys) != len(values):
        raise CompileError(f"{len(keys)} keys for {len(values)} values")
    default: Any = (
        default_string if dtype is dtypes.string else default_float if dtype.is_float else default_int64
    )
    if default_tensor is not None:
        if default_tensor.dtype is not dtype:
            raise CompileError(
                f"default_tensor is {default_tensor.dtype.onnx_name}, the values are {dtype.onnx_name}"
            )
        default = default_tensor.array.reshape(-1)[0]
    return lookup(b, x, keys, values, default, dtype)


@onnx_op("LabelEncoder", since=2, until=3, domain=ML)
def label_encoder_2(b: Builder, x: Value, **attributes: Any) -> Value:
    return label_encoder(b, x, **attributes)


@onnx_op("LabelEncoder", until=1, domain=ML)
def label_encoder_1(
    b: Builder, x: Value, *, classes_strings: Sequence[str] = (), default_int64: int, default_string: str
) -> Value:
    """Strings to their places in the list, or places to strings."""
    names, places = np.array(classes_strings, object), np.arange(len(classes_strings))
    if x.type.dtype is dtypes.string:
        return lookup(b, x, names, places, default_int64, dtypes.i64)
    return lookup(b, x, places, names, default_string, dtypes.string)


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(
    b: Builder,
    x: Value,
    *,
    cats_strings: Sequence[str] = (),
    cats_int64s: Sequence[int] = (),
    default_int64: int,
    default_string: str,
) -> Value:
    if len(cats_strings) != len(cats_int64s):
        raise CompileError(f"{len(cats_strings)} strings for {len(cats_int64s)} integers")
    names, numbers = np.array(cats_strings, object), np.array(cats_int64s, np.int64)
    if x.type.dtype is dtypes.string:
        return lookup(b, x, names, numbers, default_int64, dtypes.i64)
    return lookup(b, x, numbers, names, default_string, dtypes.string)
