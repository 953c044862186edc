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
    nothing = np.asarray(default, dtype.numpy).reshape(1)
    if not len(keys):
        return b.broadcast_to(b.constant(nothing.reshape(()), dtype), x.type.shape)
    values = values.astype(dtype.numpy)
    if source is dtypes.string:
        place = b.find_string(x, keys=Dense(keys.astype(object), source))
        return _take(b, np.append(values, nothing), dtype, place)
    last = {float(k) if source.is_float else int(k): i for i, k in enumerate(keys.tolist()) if k == k}
    nan = [i for i, k in enumerate(keys.tolist()) if k != k]
    ordered = np.array(sorted(last), keys.dtype)
    chosen = values[[last[k] for k in sorted(last)]]
    if source.is_integer and int(ordered[-1]) - int(ordered[0]) < max(_DENSE, 4 * len(ordered)):
        return _by_number(b, x, ordered, chosen, nothing, dtype)
    place = _by_hash(b, x, ordered) if len(ordered) else b.full(0, b.convert(b.is_nan(x), dtypes.i64))
    if nan:
        place = b.select(b.is_nan(x), b.full(len(ordered), place), place)
    return _take(b, np.concatenate([chosen, values[nan[-1:]] if nan else nothing, nothing]), dtype, place)


_DENSE = 256  # integers this near to each other are always a table by number


def _take(b: Builder, table: Array, dtype: DType, place: Value) -> Value:
    return b.op("core.gather", b.constant(table, dtype), place, axis=0, trusted=True)


def _by_number(b: Builder, x: Value, keys: Array, values: Array, nothing: Array, dtype: DType) -> Value:
    """Keys that are close together: a table of all numbers between them."""
    low, span = int(keys[0]), int(keys[-1]) - int(keys[0]) + 1
    table = np.repeat(nothing, span + 1)
    table[(keys.astype(object) - low).astype(np.int64)] = values
    wide = b.convert(x, dtypes.i64)
    within = b.and_(b.ge(wide, b.full(low, wide)), b.le(wide, b.full(low + span - 1, wide)))
    return _take(b, table, dtype, b.select(within, b.sub(wide, b.full(low, wide)), b.full(span, wide)))


def _by_hash(b: Builder, x: Value, keys: Array) -> Value:
    """The place of x among the keys; behind them by one if it is none: a table of slots, some of which are looked at.

    A slot without a key of its own holds the first key, which does no harm wherever it is found.
    """
    source: DType = x.type.dtype
    bits = _bits(keys)
    slots, factor, shift, probes = _hash_table(bits)
    table = np.where(slots < 0, 0, slots)
    clean = b.add(x, b.full(0, x)) if source.is_float else x  # -0 becomes 0
    kind = dtypes.u64 if source.bits == 64 else dtypes.u32
    wide = b.convert(b.bitcast(clean, to=kind), dtypes.u64) if source.bits >= 32 else b.convert(x, dtypes.u64)
    hashed = b.shr(b.mul(wide, b.full(factor, wide)), b.full(shift, wide))
    slot = b.convert(hashed, dtypes.i64)
    known, places = b.constant(keys[table], source), b.constant(table, dtypes.i64)
    found = b.full(len(keys) + 1, slot)
    for probe in range(probes):
        at = b.add(slot, b.full(probe, slot)) if probe else slot
        here = b.eq(b.op("core.gather", known, at, axis=0, trusted=True), x)
        found = b.select(here, b.op("core.gather", places, at, axis=0, trusted=True), found)
    return found


def _bits(keys: Array) -> Array:
    """What is hashed of a key: its bits, those of 32-bit types without a sign, those of narrower ones with it."""
    clean = keys + keys.dtype.type(0)
    if keys.dtype.itemsize >= 4:
        return np.asarray(clean.view(f"u{keys.dtype.itemsize}").astype(np.uint64))
    return np.asarray(clean.astype(np.int64).view(np.uint64))


def _hash_table(bits: Array) -> tuple[Array, int, int, int]:
    """(slots with the numbers of keys or -1, factor, shift, slots to look at): the best of some random factors."""
    size = 1 << max(3, (4 * len(bits) - 1).bit_length())
    shift = 64 - (size.bit_length() - 1)
    rng = np.random.RandomState(1)
    best: tuple[Array, int, int, int] | None = None
    for _ in range(8):
        factor = int(rng.randint(1 << 62, dtype=np.int64)) * 2 + 1
        home = (bits * np.uint64(factor)) >> np.uint64(shift)
        slots, probes = _filled(home.astype(np.int64), size)
        if best is None or probes < best[3]:
            best = slots, factor, shift, probes
    assert best is not None
    return best


def _filled(home: Array, size: int) -> tuple[Array, int]:
    """Keys at their slots or the next free ones behind, in the order of their homes; and how far the farthest went."""
    order = np.argsort(home, kind="stable")
    place = np.maximum.accumulate(home[order] - np.arange(len(home))) + np.arange(len(home))
    probes = int((place - home[order]).max(initial=0)) + 1
    slots = np.full(size + probes + int(max(0, place.max(initial=0) - size + 1)), -1, np.int64)
    slots[place] = order
    return slots, probes


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
