"""Numbers as text and back, in Python: the meanings of `core.format` and `core.parse`."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.core import rounding
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["NUMBER", "WHITE", "format_number", "is_number", "parse_float", "parse_integer"]

WHITE = " \t\n\v\f\r"  # may stand around a number
NUMBER = tuple(
    dtypes.by_name(n) for n in "f16 bf16 f32 f64 i8 i16 i32 i64 ui8 ui16 ui32 ui64 i1".split()
)  # what text is read as

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPECIAL = re.compile(r"([+-]?)(?:(inf(?:inity)?)|nan)", re.IGNORECASE | re.ASCII)


def is_number(text: str) -> bool:
    """Whether the text is a number: decimal digits with sign, point and exponent, an infinity, or a NaN."""
    text = text.strip(WHITE)
    return bool(_DECIMAL.fullmatch(text) or _SPECIAL.fullmatch(text))


def parse_float(text: str, to: DType = dtypes.f64) -> Any:
    """The number nearest to the text, ties to even: rounded once whatever the type."""
    text = text.strip(WHITE)
    special = _SPECIAL.fullmatch(text)
    if special is not None:
        value = math.inf if special[2] else math.nan
        return to.numpy.type(-value if special[1] == "-" else value)
    wide = float(text)
    if to is dtypes.f64 or not math.isfinite(wide) or abs(Fraction(wide)) == abs(_exact(text)):
        return rounding.to_float(np.asarray(wide), to.numpy)[()]
    odd = wide if abs(Fraction(wide)) < abs(_exact(text)) else math.nextafter(wide, 0.0)
    bits = np.array([odd]).view(np.int64) | 1  # rounded to odd, a second rounding sees what was lost
    return rounding.to_float(bits.view(np.float64), to.numpy)[0]


def _exact(text: str) -> Fraction:
    """The text's value; of exponents beyond all types only that they are."""
    mantissa, _, exponent = text.lower().partition("e")
    power = max(-5000, min(5000, int(exponent or 0)))
    return Fraction(mantissa) * Fraction(10) ** power


def parse_integer(text: str) -> int:
    """An integer modulo 2^64, as int64; a text with a point or an exponent is a float64 that is truncated."""
    text = text.strip(WHITE)
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        low = int(text) & (1 << 64) - 1
        return low - (1 << 64) if low >> 63 else low
    return int(rounding.convert(np.array(float(text)), dtypes.i64)[()])


def format_number(value: Any) -> str:
    """As NumPy writes it: a float by the fewest digits that are read back as it, and the nearest of these."""
    if isinstance(value, ml_dtypes.bfloat16):
        return _shortest(value)
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return str(value)
    return str(int(value))  # integers of fewer than 8 bits


def _shortest(value: Any) -> str:
    """A bfloat16, whose own text has six digits."""
    x = float(value)
    if not math.isfinite(x) or x == 0:
        return str(np.float64(x))
    exponent = math.floor(math.log10(abs(x))) + 1
    for digits in range(1, 12):
        unit = Fraction(10) ** (exponent - digits)
        low = math.floor(Fraction(abs(x)) / unit)
        near = sorted((abs(Fraction(abs(x)) - n * unit), n) for n in (low, low + 1))
        for _, n in near:
            if float(parse_float(f"{n}e{exponent - digits}", dtypes.bf16)) == abs(x):
                text = str(np.float64(f"{n}e{exponent - digits}"))
                return f"-{text}" if x < 0 else text
    raise AssertionError(value)
