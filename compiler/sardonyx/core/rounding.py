"""NumPy meanings of conversions: what `core.convert` does, value by value.

The table is the policy of docs/numerics.md: float to integer truncates to int32 (to int64 for 64 bits
and uint32), what does not fit becomes the lowest value, then the low bits count; everything else
rounds once, to nearest even, straight from the source type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.core.small_floats import DEFAULT, OutOfRange, to_small_float
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["CONVERSIONS", "convert", "integer_power", "to_float"]

Array = np.ndarray[Any, Any]


def to_float(x: Array, dtype: np.dtype[Any]) -> Array:
    """Float to float, rounded once to nearest even.

    ml_dtypes converts float64 by way of float32, which rounds twice: the float32 is made odd first
    (round to odd), so that the second rounding sees the lost bits.
    """
    if x.dtype == np.float64 and dtype not in (
        np.dtype(np.float16),
        np.dtype(np.float32),
        np.dtype(np.float64),
    ):
        x = _round_to_odd(x)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def _round_to_odd(x: Array) -> Array:
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        back = near.astype(np.float64)
        bits = near.view(np.int32).copy()
        inexact = (back != x) & np.isfinite(x) & np.isfinite(near)
        toward_zero = np.where(inexact & (np.abs(back) > np.abs(x)), bits - 1, bits)
        odd = np.where(inexact, toward_zero | 1, toward_zero).astype(np.int32)
        result = odd.view(np.float32)
        overflow = np.isfinite(x) & np.isinf(near)
        return np.where(overflow, np.copysign(np.finfo(np.float32).max, x), result).astype(np.float32)


def _to_signed(wide: Array, inner: Any) -> Array:
    info = np.iinfo(inner)
    fits = (wide >= float(info.min)) & (wide < -float(info.min))
    return np.where(fits, np.where(fits, wide, 0).astype(inner), info.min).astype(inner)


def _low_bits(x: Array, to: DType) -> Array:
    """Integers to an integer type of 8 bits or more, or to the low bits of a narrower one."""
    if to.bits >= 8:
        return x.astype(to.numpy)
    bits = x.astype(np.int8).view(np.uint8) & np.uint8((1 << to.bits) - 1)
    if to.kind == "signed":
        sign = np.int8(1 << (to.bits - 1))
        return ((bits.view(np.int8) ^ sign) - sign).astype(to.numpy)
    return bits.astype(to.numpy)


def _widen(x: Array) -> Array:
    """Integers of fewer than 8 bits in 8, small floats in float32, bool as 0 and 1; others as they are."""
    source = dtypes.by_numpy(x.dtype)
    if source is dtypes.boolean:
        return x.astype(np.uint8)
    if source.is_integer and source.bits < 8:
        return x.astype(np.int8 if source.kind == "signed" else np.uint8)
    return x.astype(np.float32) if source.is_small_float else x


def _exact_float64(x: Array) -> Array:
    """Integers in float64; of those beyond 2**53 the lost low bits are kept as one odd bit (round to odd)."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    negative = x < 0
    size = x.view(np.uint64)
    size = np.where(negative, ~size + np.uint64(1), size)
    low = size & np.uint64(0x7FF)
    odd = (size - low) | np.where(low != 0, np.uint64(0x800), np.uint64(0))
    near = np.where(size < np.uint64(1 << 53), size, odd).astype(np.float64)
    return np.where(negative, -near, near)


def _number_to_bool(x: Array, to: DType, rule: OutOfRange) -> Array:
    return np.asarray(_widen(x) != 0)


def _integer_to_integer(x: Array, to: DType, rule: OutOfRange) -> Array:
    return _low_bits(_widen(x), to)


def _integer_to_float(x: Array, to: DType, rule: OutOfRange) -> Array:
    values = _widen(x)
    direct = to in (dtypes.f32, dtypes.f64)
    return values.astype(to.numpy) if direct else to_float(_exact_float64(values), to.numpy)


def _integer_to_small(x: Array, to: DType, rule: OutOfRange) -> Array:
    return to_small_float(_exact_float64(_widen(x)), to, rule)


def _float_to_integer(x: Array, to: DType, rule: OutOfRange) -> Array:
    wide = np.trunc(_widen(x).astype(np.float64))
    if to is dtypes.u64:
        high = (wide >= 2.0**63) & (wide < 2.0**64)
        low = _to_signed(np.where(high, wide - 2.0**63, wide), np.int64).view(np.uint64)
        return np.where(high, low + np.uint64(2**63), low)
    return _low_bits(_to_signed(wide, np.int64 if to.bits == 64 or to is dtypes.u32 else np.int32), to)


def _float_to_float(x: Array, to: DType, rule: OutOfRange) -> Array:
    return to_float(_widen(x), to.numpy)


def _float_to_small(x: Array, to: DType, rule: OutOfRange) -> Array:
    return to_small_float(_widen(x).astype(np.float64), to, rule)


def _real_to_complex(x: Array, to: DType, rule: OutOfRange) -> Array:
    return convert(x, dtypes.f32 if to is dtypes.c64 else dtypes.f64).astype(to.numpy)


def _complex_to_complex(x: Array, to: DType, rule: OutOfRange) -> Array:
    return x.astype(to.numpy)


def _complex_to_real(x: Array, to: DType, rule: OutOfRange) -> Array:
    return convert(np.ascontiguousarray(x.real), to, rule)


Conversion = Callable[[Array, DType, OutOfRange], Array]

# (kind of source, kind of target) -> meaning; kinds are those of `_kind`.
CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("bool", "integer"): _integer_to_integer,
    ("bool", "float"): _integer_to_float,
    ("bool", "small"): _integer_to_small,
    ("bool", "complex"): _real_to_complex,
    ("integer", "bool"): _number_to_bool,
    ("integer", "integer"): _integer_to_integer,
    ("integer", "float"): _integer_to_float,
    ("integer", "small"): _integer_to_small,
    ("integer", "complex"): _real_to_complex,
    ("float", "bool"): _number_to_bool,
    ("float", "integer"): _float_to_integer,
    ("float", "float"): _float_to_float,
    ("float", "small"): _float_to_small,
    ("float", "complex"): _real_to_complex,
    ("small", "bool"): _number_to_bool,
    ("small", "integer"): _float_to_integer,
    ("small", "float"): _float_to_float,
    ("small", "small"): _float_to_small,
    ("small", "complex"): _real_to_complex,
    ("complex", "bool"): _number_to_bool,
    ("complex", "integer"): _complex_to_real,
    ("complex", "float"): _complex_to_real,
    ("complex", "small"): _complex_to_real,
    ("complex", "complex"): _complex_to_complex,
}


def _kind(dtype: DType) -> str:
    if dtype.is_small_float:
        return "small"
    return "integer" if dtype.is_integer else dtype.kind


def convert(x: Array, to: DType, rule: OutOfRange = DEFAULT) -> Array:
    """The elements of x in the type ``to``; KeyError for strings."""
    source = dtypes.by_numpy(x.dtype)
    if source is to:
        return x
    with np.errstate(all="ignore"):
        return CONVERSIONS[_kind(source), _kind(to)](x, to, rule)


def integer_power(x: Array, y: Array) -> Array:
    """x to the y in the integers, wrapping; a negative exponent gives 1 / x**n truncated (0 for x = 0)."""
    with np.errstate(all="ignore"):
        result = np.ones(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        base, exponent = np.broadcast_to(x, result.shape).copy(), np.broadcast_to(y, result.shape)
        negative = exponent < 0
        rest = np.where(negative, 0, exponent).astype(np.uint64)
        while (rest != 0).any():
            result = np.where(rest & np.uint64(1), result * base, result)
            base = base * base
            rest = rest >> np.uint64(1)
        odd = (exponent & exponent.dtype.type(1)).astype(bool)
        unit = (x == 1) if x.dtype.kind == "u" else (x == 1) | (x == -1)
        inverse = np.where(unit, np.where((x != 1) & ~odd, 1, x), 0)
        return np.where(negative, inverse, result).astype(x.dtype)
