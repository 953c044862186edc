"""Compares the outputs of two engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx_runtime import dtypes

__all__ = ["Comparison", "compare_arrays", "ulp_distance"]

Array = np.ndarray[Any, Any]

# Relative tolerance by element type; what is not listed has to be equal bit for bit.  Sums are formed in
# another order by another engine, so that a deep model cannot agree to the last bit.
_RELATIVE = {"f64": 1e-9, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2, "complex<f32>": 1e-4, "complex<f64>": 1e-9}


@dataclass(frozen=True)
class Comparison:
    """How one output differs.  Errors are None where they mean nothing (other shape, no numbers)."""

    verdict: str  # "identical", "equal" (within the tolerance) or "DIFFERS"
    why: str = ""
    max_ulp: int | None = None
    max_absolute: float | None = None
    max_relative: float | None = None

    @property
    def good(self) -> bool:
        return self.verdict != "DIFFERS"


def compare_arrays(
    got: Any, want: Any, *, rtol: float | None = None, atol: float | None = None
) -> Comparison:
    """Compare an output with the reference's.

    Elements are equal if they differ by no more than ``atol + rtol * abs(want)``; NaN equals NaN, infinities
    have to be the same.  By default ``rtol`` depends on the type and ``atol`` is a tenth of it, times the
    largest magnitude in the reference.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return Comparison(
            "DIFFERS", f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
        )
    dtype = dtypes.by_numpy(got.dtype)
    if dtype is dtypes.string:
        return _exact(got, want)
    if not (dtype.is_float or dtype.kind == "complex"):
        wide = np.int64 if dtype.kind != "unsigned" else np.uint64
        return _exact(got.astype(wide), want.astype(wide))
    return _floats(got, want, rtol, atol, _RELATIVE.get(dtype.name, 0.0))


def _exact(got: Array, want: Array) -> Comparison:
    wrong = int((got != want).sum())
    if not wrong:
        return Comparison("identical", max_ulp=0, max_absolute=0.0, max_relative=0.0)
    return Comparison("DIFFERS", f"{wrong} of {want.size} elements" + _first(got, want, got != want))


def _floats(got: Array, want: Array, rtol: float | None, atol: float | None, usual: float) -> Comparison:
    kind = np.complex128 if got.dtype.kind == "c" else np.float64
    left, right = got.astype(kind), want.astype(kind)
    both_nan = np.isnan(left) & np.isnan(right)
    finite = np.isfinite(left) & np.isfinite(right)
    error = np.abs(np.where(finite, left, 0) - np.where(finite, right, 0))
    size = np.abs(np.where(finite, right, 0))
    relative = np.divide(error, size, out=np.where(error > 0, np.inf, 0.0), where=size > 0)
    rtol = usual if rtol is None else rtol
    atol = rtol / 10 * float(size.max(initial=0)) if atol is None else atol
    wrong = ~((finite & (error <= atol + rtol * size)) | both_nan | (left == right))
    steps = ulp_distance(got, want)
    most = None if steps is None else int(np.where(finite, steps, 0).max(initial=0))
    figures = (most, float(error.max(initial=0)), float(relative.max(initial=0)))
    count = int(wrong.sum())
    if count:
        why = f"{count} of {want.size} elements beyond {atol:.2g} + {rtol:.2g} * abs" + _first(
            got, want, wrong
        )
        return Comparison("DIFFERS", why, *figures)
    same = _bits(got) == _bits(want) if got.dtype.kind != "c" else left == right
    return Comparison("identical" if bool((same | both_nan).all()) else "equal", "", *figures)


def _first(got: Array, want: Array, wrong: Array) -> str:
    index = tuple(map(int, np.argwhere(wrong)[0])) if want.ndim else ()
    return f"; at {list(index)}: {got[index]} instead of {want[index]}"


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def ulp_distance(got: Array, want: Array) -> Array | None:
    """Per element, how many values of the type lie between the two; None for complex numbers."""
    if got.dtype.kind == "c":
        return None
    width = got.dtype.itemsize * 8

    def magnitude_and_sign(array: Array) -> tuple[Array, Array]:
        bits = _bits(array).astype(np.uint64)
        return bits & np.uint64((1 << (width - 1)) - 1), bits >> np.uint64(width - 1)

    (left, left_sign), (right, right_sign) = magnitude_and_sign(got), magnitude_and_sign(want)
    apart = np.maximum(left, right) - np.minimum(left, right)
    return np.where(left_sign == right_sign, apart, left + right)
