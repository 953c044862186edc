"""Numbers as text and back, in Python: the meanings of `core.format` and `core.parse`."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.core import rounding
from sardonyx.core.small_floats import OutOfRange
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


def parse_integer(text: str, to: DType) -> Any:
    """Whole digits modulo the type's range; a text with a point or an exponent is a float64 that is converted."""
    text = text.strip(WHITE)
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        if to is dtypes.boolean:
            return int(text) != 0
        low = int(text) & (1 << to.bits) - 1
        return low - (1 << to.bits) if to.kind == "signed" and low >> (to.bits - 1) else low
    return rounding.convert(np.array(parse_float(text)), to, OutOfRange())[()]


def format_number(value: Any) -> str:
    """Integers exactly; a float by the fewest digits that are read back as it, the nearest of these.

    Its form is that of Python's ``repr``: plain from 1e-4 to below 1e16, else with an exponent of two digits.
    """
    if isinstance(value, np.bool_):
        return str(value)
    if isinstance(value, ml_dtypes.bfloat16):
        return _text(float(value), _digits(value))
    if isinstance(value, np.floating):
        return _text(float(value), np.format_float_scientific(value, unique=True, trim="-"))
    return str(int(value))


def _text(x: float, scientific: str) -> str:
    if not math.isfinite(x) or x == 0:
        return str(x)
    mantissa, _, exponent = scientific.lstrip("-").partition("e")
    digits, first = mantissa.replace(".", "").rstrip("0"), int(exponent)
    if -4 <= first < 16:
        padded = "0" * -first + digits + "0" * (first + 2 - len(digits))
        point = max(first, 0) + 1
        text = f"{padded[:point]}.{padded[point:]}"
    else:
        text = f"{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{first:+03d}"
    return f"-{text}" if x < 0 else text


def _digits(value: Any) -> str:
    """The fewest digits of a bfloat16, in scientific form."""
    x = abs(float(value))
    if not math.isfinite(x) or x == 0:
        return "0e0"
    exponent = math.floor(math.log10(x)) + 1
    for count in range(1, 12):
        unit = Fraction(10) ** (exponent - count)
        low = math.floor(Fraction(x) / unit)
        for _, _, n in sorted((abs(Fraction(x) - n * unit), n % 2, n) for n in (low, low + 1)):
            if float(parse_float(f"{n}e{exponent - count}", dtypes.bf16)) == x:
                return f"{str(n)[0]}.{str(n)[1:]}e{exponent - count + len(str(n)) - 1}"
    raise AssertionError(value)
