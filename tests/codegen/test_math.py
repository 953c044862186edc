"""The vector math functions against mpmath, in units in the last place (ULP) of the exact result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from sardonyx.codegen.emitter import Emitter, ModuleText, V, ltype
from sardonyx.codegen.math import MATH

INF = float("inf")
NAN = float("nan")

# The bound each function keeps, in ULP, (f32, f64). The tests fail beyond it.
LIMIT = {
    "acos": (1.0, 1.0),
    "acosh": (2.0, 2.0),
    "asin": (1.0, 1.0),
    "asinh": (1.5, 1.5),
    "atan": (1.0, 1.0),
    "atanh": (1.5, 1.5),
    "cos": (1.0, 1.0),
    "cosh": (1.5, 1.5),
    "erf": (1.0, 1.5),
    "exp": (1.0, 1.0),
    "exp2": (1.0, 1.0),
    "expm1": (1.0, 1.0),
    "log": (1.0, 1.0),
    "log1p": (1.0, 1.0),
    "log2": (1.5, 1.5),
    "pow": (1.0, 1.0),
    "sigmoid": (1.0, 1.0),
    "sin": (1.0, 1.0),
    "sinh": (1.0, 1.0),
    "softplus": (1.5, 1.5),
    "tan": (1.0, 1.0),
    "tanh": (1.0, 1.0),
}

# How far an argument matters: beyond, the reference is taken at the limit (mpmath would work for ever).
SATURATION = {
    "cosh": 2000.0,
    "erf": 40.0,
    "exp": 2000.0,
    "exp2": 2000.0,
    "expm1": 2000.0,
    "sigmoid": 2000.0,
    "sinh": 2000.0,
    "tanh": 2000.0,
}

# Where random arguments are densest.
INTERVAL = {
    "acos": (-1.0, 1.0),
    "acosh": (1.0, 9.0),
    "asin": (-1.0, 1.0),
    "atanh": (-1.0, 1.0),
    "cos": (-60.0, 60.0),
    "log": (0.25, 4.0),
    "log1p": (-0.9, 3.0),
    "log2": (0.25, 4.0),
    "sin": (-60.0, 60.0),
    "tan": (-60.0, 60.0),
}

# (argument, result), for both types; results compared with their signs.
SPECIAL = {
    "acos": [(1.0, 0.0), (1.5, NAN), (-INF, NAN)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN), (-5.0, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (INF, NAN)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(0.0, 0.0), (-0.0, -0.0)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e30, INF)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e30, INF), (-1e30, 0.0)],
    "exp2": [(0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125), (INF, INF), (-INF, 0.0), (-1e30, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (-1e30, -1.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1.0, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-INF, NAN), (-2.0, NAN)],
    "log2": [(1.0, 0.0), (1024.0, 10.0), (0.125, -3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (1e30, 1.0), (-1e30, 0.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e30, INF), (-1e30, -INF)],
    "softplus": [(INF, INF), (-INF, 0.0), (1e30, 1e30), (-1e30, 0.0)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0)],
}

REFERENCE: dict[str, Callable[[Any], Any]] = {
    **{n: getattr(mpmath, n) for n in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh")},
    **{n: getattr(mpmath, n) for n in ("erf", "exp", "expm1", "log", "log1p", "sin", "sinh", "tan", "tanh")},
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: x if x > 2000 else mpmath.log1p(mpmath.exp(max(x, -2000))),
}

UNARY = sorted(REFERENCE)
TYPES = [np.float32, np.float64]


def reference(name: str, x: float) -> Any:
    """The exact value (some 40 digits) at x, or NaN where the function has no real value."""
    exact = mpf(x)
    limit = SATURATION.get(name)
    if limit is not None:
        exact = max(min(exact, mpf(limit)), mpf(-limit))
    value = REFERENCE[name](exact)
    return value if isinstance(value, mpf) else mpf("nan")


def ulp_error(got: float, exact: Any, mantissa: int, least_exponent: int, largest_exponent: int) -> float:
    """|got - exact| in units of the last place of `exact`; infinity counts as the power of two after the largest."""
    if mpmath.isnan(exact):
        return 0.0 if math.isnan(got) else INF
    if math.isnan(got):
        return INF
    top = mpf(2) ** (largest_exponent + 1)
    exact = max(min(exact, top), -top)
    value = max(min(mpf(got), top), -top)
    if value == exact:
        return 0.0
    exponent = mpmath.frexp(exact)[1] - 1 if exact else least_exponent
    unit = mpf(2) ** (max(exponent, least_exponent) - mantissa)
    return float(abs(value - exact) / unit)


def worst(name: str, x: np.ndarray, got: np.ndarray, dtype: type) -> tuple[float, str]:
    """The largest error in ULP and where it is."""
    info = np.finfo(dtype)
    bound, where = -1.0, ""
    for argument, value in zip(x.tolist(), got.tolist(), strict=True):
        exact = reference(name, argument)
        error = ulp_error(value, exact, info.nmant, int(info.minexp), int(info.maxexp) - 1)
        if error > bound:
            bound, where = error, f"{name}({argument!r}) = {value!r}, not {mpmath.nstr(exact, 20)}"
    return bound, where


def arguments(name: str, dtype: type, rng: np.random.Generator) -> np.ndarray:
    """Every exponent with random mantissas and both signs, every power of two of f32, the dense interval."""
    info = np.finfo(dtype)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    exponents = np.arange(0, (1 << info.iexp) - 1)
    if dtype is np.float64:
        # every other exponent, and all of the middle
        exponents = np.concatenate([exponents[::4], np.arange(1023 - 64, 1023 + 64)])
    repeated = np.repeat(exponents.astype(unsigned) << info.nmant, 3 if dtype is np.float32 else 1)
    mantissas = rng.integers(0, 1 << info.nmant, repeated.size, dtype=np.int64).astype(unsigned)
    magnitudes = (repeated | mantissas).view(dtype)
    if dtype is np.float32:
        magnitudes = np.concatenate([magnitudes, (exponents.astype(unsigned) << info.nmant).view(dtype)])
    low, high = INTERVAL.get(name, (-4.0, 4.0))
    dense = rng.uniform(low, high, 1000).astype(dtype)
    edges = np.array([info.smallest_subnormal, info.tiny, info.max, np.nextafter(dtype(1), dtype(2))], dtype)
    multiples = (np.arange(1, 60) * (math.pi / 4)).astype(dtype)
    x = np.concatenate([magnitudes, edges, multiples, [np.nextafter(dtype(1), dtype(0))]]).astype(dtype)
    return np.concatenate([x, -x, dense])


@pytest.fixture(autouse=True)
def precision() -> Any:
    with mpmath.workprec(140):
        yield


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_error_in_ulp(jit: Any, name: str, dtype: type) -> None:
    x = arguments(name, dtype, np.random.default_rng(7))
    got = jit.compile(MATH[name], [dtype], dtype, 8)(x)
    bound, where = worst(name, x, got, dtype)
    limit = LIMIT[name][TYPES.index(dtype)]
    print(f"ULP {name} {np.dtype(dtype)}: {bound:.3f} (limit {limit}) at {where}")
    assert bound <= limit, f"{bound:.3f} ULP, limit {limit}: {where}"
