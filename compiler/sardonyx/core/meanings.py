"""NumPy meanings of the elementwise core ops: functions of attributes and arrays, an array each.

The meaning for float16 and bfloat16 is: widen to float32, apply, round once to nearest even.  For
+, -, *, / and sqrt that is the correctly rounded result.  Integers wrap.  An inexact function is
computed in float64 for float32 and narrower types, so that it can serve as the tests' oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx.core import rounding

__all__ = [
    "Meaning",
    "divide",
    "erf",
    "extreme",
    "integral",
    "modulo",
    "normal_cdf",
    "plain",
    "power",
    "remainder",
    "shift",
    "sigmoid",
    "sign",
    "softplus",
    "wide",
]

Array = np.ndarray[Any, Any]
Meaning = Callable[..., Array]
Attributes = Mapping[str, Any]


def plain(fn: Callable[..., Any]) -> Meaning:
    """NumPy's own result in the type of the operands."""

    def evaluate(attributes: Attributes, *arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(fn(*arrays))

    return evaluate


def wide(fn: Callable[..., Any], *, exact: bool) -> Meaning:
    """A function of floats: computed wider, rounded once at the end.  Other types: NumPy's own result.

    ``exact`` says that float32 (float64) is wide enough for 16 bits (for itself): the function is one
    that IEEE 754 rounds correctly.
    """

    def evaluate(attributes: Attributes, *arrays: Array) -> Array:
        dtype = arrays[0].dtype
        with np.errstate(all="ignore"):
            if dtype.kind not in "fV":
                return np.asarray(fn(*arrays))
            if dtype.itemsize == 2:
                inner: Any = np.float32 if exact else np.float64
                return rounding.to_float(np.asarray(fn(*(a.astype(inner) for a in arrays))), dtype)
            if dtype == np.float32 and not exact:
                return np.asarray(fn(*(a.astype(np.float64) for a in arrays))).astype(dtype)
            return np.asarray(fn(*arrays)).astype(dtype, copy=False)

    return evaluate


def integral(fn: Callable[..., Any]) -> Meaning:
    """Rounding to an integral value; NaNs pass bit for bit (numpy quiets or replaces some)."""

    def evaluate(attributes: Attributes, x: Array) -> Array:
        with np.errstate(all="ignore"):
            rounded = fn(x.astype(np.float32)).astype(x.dtype) if x.dtype.itemsize == 2 else fn(x)
            return np.where(np.isnan(x), x, rounded)

    return evaluate


def sign(x: Array) -> Array:
    if x.dtype.kind not in "fV":
        return np.asarray(np.sign(x))
    signs = (x > 0).astype(np.int8) - (x < 0).astype(np.int8)
    return np.where(np.isnan(x), x, signs.astype(x.dtype))


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def _erfc(x: Array) -> Array:
    return np.vectorize(math.erfc, otypes=[np.float64])(x) if x.size else x


def normal_cdf(x: Array) -> Array:
    """erfc(-x / sqrt(2)) / 2; the rounding error of the argument, which the tail magnifies, is made good."""
    exact = x.astype(np.longdouble) * -np.sqrt(np.longdouble(0.5))
    near = exact.astype(np.float64)
    lost = np.where(np.isfinite(x), exact - near, 0).astype(np.float64)
    slope = 2 / math.sqrt(math.pi) * np.exp(-near * near)
    return np.asarray(0.5 * (_erfc(near) - slope * lost))


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _one_for_zero(y: Array) -> Array:
    """Divisors without zeros: a division by zero is the run's fault, and is found before this."""
    return np.where(y == 0, np.ones_like(y), y)


def divide(attributes: Attributes, x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return wide(np.divide, exact=True)(attributes, x, y)
    with np.errstate(all="ignore"):
        y = _one_for_zero(y)
        quotient = np.floor_divide(x, y)
        inexact = (np.remainder(x, y) != 0) & ((x < 0) != (y < 0))
        return np.asarray(quotient + inexact.astype(x.dtype))


def remainder(attributes: Attributes, x: Array, y: Array) -> Array:
    """The sign of the dividend (C's % and fmod)."""
    return wide(np.fmod, exact=True)(attributes, x, _one_for_zero(y) if x.dtype.kind in "iu" else y)


def modulo(attributes: Attributes, x: Array, y: Array) -> Array:
    """The sign of the divisor (Python's %)."""
    if x.dtype.kind in "iu":
        return plain(np.remainder)(attributes, x, _one_for_zero(y))
    return wide(_float_modulo, exact=True)(attributes, x, y)


def _float_modulo(x: Array, y: Array) -> Array:
    """fmod, then one addition where the signs differ."""
    r = np.fmod(x, y)
    differs = (r != 0) & (np.signbit(r) != np.signbit(y))
    return np.where(differs, r + y, np.where(r == 0, np.copysign(r, y), r))


def power(attributes: Attributes, x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        return rounding.integer_power(x, y)
    return wide(np.power, exact=False)(attributes, x, y)


def extreme(of_numbers: Callable[..., Any], *, largest: bool) -> Meaning:
    """max or min: a NaN wins (the first of two), -0 is below +0."""

    def evaluate(attributes: Attributes, x: Array, y: Array) -> Array:
        if x.dtype.kind not in "fV":
            return np.asarray(of_numbers(x, y))
        with np.errstate(all="ignore"):
            below = (x < y) | ((x == y) & np.signbit(x))
            ordered = np.where(below == largest, y, x)
            return np.where(np.isnan(x), x, np.where(np.isnan(y), y, ordered))

    return evaluate


def shift(*, left: bool) -> Meaning:
    """A shift that pushes all bits out for counts of the width or more, and for negative ones."""

    def evaluate(attributes: Attributes, x: Array, y: Array) -> Array:
        over = (y < 0) | (y >= x.dtype.itemsize * 8)
        count = np.where(over, 0, y).astype(x.dtype)
        shifted = np.left_shift(x, count) if left else np.right_shift(x, count)
        fill = (
            np.where((x < 0) & (not left), -1, 0).astype(x.dtype) if x.dtype.kind == "i" else np.zeros_like(x)
        )
        return np.where(over, fill, shifted)

    return evaluate
