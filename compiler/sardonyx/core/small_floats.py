"""NumPy meanings of conversions to floats of 8 bits and fewer, by the tables of ONNX's Cast.

All take float64, which holds every source value that matters here exactly, and round once, to nearest
even, except E8M0, which has a rounding mode of its own.  What happens out of range:

===================  ==============================  ==========================================
type                 saturating                      not saturating
===================  ==============================  ==========================================
E4M3FN, E5M2         to the largest value            E5M2: infinity; E4M3FN: NaN with the sign
E4M3FNUZ, E5M2FNUZ   to the largest value, but an    NaN
                     infinity by the rule `infinity`
E2M1, E2M3, E3M2     to the largest value            the same: they have neither infinity nor NaN
E8M0                 to the largest or smallest      NaN
===================  ==============================  ==========================================

E2M1, E2M3 and E3M2 give -0 for NaN, E8M0 gives NaN for negative values; the sources are silent there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["DEFAULT", "ROUND_MODES", "OutOfRange", "to_small_float"]

Array = np.ndarray[Any, Any]

ROUND_MODES = ("up", "down", "nearest")
_WITHOUT_NAN = frozenset({dtypes.f4e2m1, dtypes.f6e2m3, dtypes.f6e3m2})


@dataclass(frozen=True)
class OutOfRange:
    """The attributes of `core.convert`.

    ``infinity`` is what a saturating conversion makes of an infinity: ``saturate`` (the largest value), or
    ``nan`` (E4M3FNUZ and E5M2FNUZ before opset 24).  ``round_mode`` is E8M0's: ``up`` and ``down`` to the
    next power of two above or below, ``nearest`` with ties up.
    """

    saturate: bool = True
    infinity: str = "saturate"
    round_mode: str = "up"


DEFAULT = OutOfRange()


def to_small_float(x: Array, to: DType, rule: OutOfRange = DEFAULT) -> Array:
    """The values of a float64 array in a float type of at most 8 bits."""
    with np.errstate(all="ignore"):
        return _to_exponent(x, rule) if to is dtypes.f8e8m0 else _to_fraction(x, to, rule)


def _to_fraction(x: Array, to: DType, rule: OutOfRange) -> Array:
    info = ml_dtypes.finfo(to.numpy)
    largest = float(info.max)
    rounded = _round(np.where(np.isfinite(x), x, 0), to.mantissa, int(np.log2(float(info.smallest_normal))))
    infinite = np.isinf(x)
    over = infinite | (np.abs(rounded) > largest)
    limit = np.copysign(largest, x)
    nan = np.copysign(np.nan, x)
    if to in _WITHOUT_NAN:
        result = np.where(np.isnan(x), -0.0, np.where(over, limit, rounded))
    elif rule.saturate:
        beyond = np.where(infinite, nan, limit) if rule.infinity == "nan" else limit
        result = np.where(np.isnan(x), x, np.where(over, beyond, rounded))
    else:
        beyond = np.copysign(np.inf, x) if to is dtypes.f8e5m2 else nan
        result = np.where(np.isnan(x), x, np.where(over, beyond, rounded))
    return result.astype(np.float32).astype(to.numpy)  # exact: the values are the type's own


def _round(x: Array, mantissa: int, lowest: int) -> Array:
    """x with `mantissa` bits behind the leading one, fewer below 2**lowest; ties to even, no upper end."""
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest) - mantissa
    return np.asarray(np.copysign(np.ldexp(np.rint(np.ldexp(x, -exponent)), exponent), x))


def _to_exponent(x: Array, rule: OutOfRange) -> Array:
    """E8M0: powers of two from 2**-127 (code 0) to 2**127 (code 254); code 255 is NaN."""
    # x = fraction * 2**exponent with a fraction from 0.5 to below 1
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0))
    up = {"up": fraction > 0.5, "down": np.zeros(x.shape, bool), "nearest": fraction >= 0.75}[rule.round_mode]
    code = np.where(x == 0, -1, exponent - 1 + 127 + up)
    code = np.where(np.isinf(x), 255, code)
    limited = np.clip(code, 0, 254) if rule.saturate else np.where((code < 0) | (code > 254), 255, code)
    return np.where(np.isnan(x) | (x < 0), 255, limited).astype(np.uint8).view(dtypes.f8e8m0.numpy)
