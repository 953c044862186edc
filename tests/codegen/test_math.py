"""The vector math functions against mpmath, in units in the last place (ULP) of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from sardonyx.codegen.emitter import PTR, Emitter, ModuleText, V, ltype
from sardonyx.codegen.math import MATH

INF = float("inf")
NAN = float("nan")

# The bound each function keeps, in ULP, (f32, f64). The tests fail beyond it.
LIMIT = {
    "acos": (1.0, 1.0),
    "acosh": (1.25, 1.0),
    "asin": (1.0, 1.0),
    "asinh": (1.25, 1.25),
    "atan": (1.0, 1.0),
    "atanh": (1.25, 1.25),
    "cos": (1.0, 1.0),
    "cosh": (1.0, 1.0),
    "erf": (1.0, 1.0),
    "exp": (1.0, 1.0),
    "exp2": (1.0, 1.0),
    "expm1": (1.0, 1.0),
    "log": (1.0, 1.0),
    "log1p": (1.0, 1.0),
    "log2": (1.25, 1.0),
    "normal_cdf": (2.0, 2.0),
    "pow": (1.0, 1.0),
    "sigmoid": (1.0, 1.0),
    "sin": (1.0, 1.0),
    "sinh": (1.0, 1.0),
    "softplus": (1.25, 1.0),
    "tan": (1.0, 1.25),
    "tanh": (1.0, 1.0),
}

# How far an argument matters: beyond, the reference is taken at the limit (mpmath would work for
# ever).
SATURATION = {
    "normal_cdf": 60.0,
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
    "normal_cdf": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (1e30, 1.0), (-1e30, 0.0)],
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
    "log2": [
        (1.0, 0.0),
        (1024.0, 10.0),
        (0.125, -3.0),
        (0.0, -INF),
        (-0.0, -INF),
        (INF, INF),
        (-1.0, NAN),
    ],
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
    "normal_cdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: x if x > 2000 else mpmath.log1p(mpmath.exp(max(x, -2000))),
}

UNARY = sorted(REFERENCE)
ODD = ["asin", "asinh", "atan", "atanh", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh"]
TYPES = [np.float32, np.float64]

Array = np.ndarray[Any, Any]

# NumPy's functions for f64, as the reference of sweeps over f32.
SWEPT: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "tan": np.tan,
    "tanh": np.tanh,
}


def reference(name: str, x: float) -> Any:
    """The exact value (some 40 digits) at x, or NaN where the function has no real value."""
    exact = mpf(x)
    limit = SATURATION.get(name)
    if limit is not None:
        exact = max(min(exact, mpf(limit)), mpf(-limit))
    value = REFERENCE[name](exact)
    return value if isinstance(value, mpf) else mpf("nan")


def ulp_error(got: float, exact: Any, mantissa: int, least_exponent: int, largest_exponent: int) -> float:
    """|got - exact| in units of the last place of `exact`; infinity counts as the power of two
    after the largest.
    """
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


def worst(name: str, x: Array, got: Array, dtype: type) -> tuple[float, str]:
    """The largest error in ULP and where it is."""
    info = np.finfo(dtype)
    bound, where = -1.0, ""
    for argument, value in zip(x.tolist(), got.tolist(), strict=True):
        exact = reference(name, argument)
        error = ulp_error(value, exact, info.nmant, int(info.minexp), int(info.maxexp) - 1)
        if error > bound:
            bound, where = error, f"{name}({argument!r}) = {value!r}, not {mpmath.nstr(exact, 20)}"
    return bound, where


def sweep_errors(got: Array, exact: Array) -> Array:
    """The errors of f32 results in ULP of f64 references; equal specials count as right."""
    rounded = exact.astype(np.float32)
    exponent = np.frexp(np.where(np.isfinite(exact), exact, 1.0))[1] - 1
    unit = np.ldexp(1.0, np.clip(exponent, -126, 127) - 23)
    error = np.abs(got.astype(np.float64) - exact) / unit
    special = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(special & ~np.isfinite(rounded), 0.0, error)
    return np.where(np.isnan(error), np.inf, error)


def arguments(name: str, dtype: type, rng: np.random.Generator) -> Array:
    """Every exponent with random mantissas and both signs, every power of two of f32, the dense
    interval.
    """
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
    dense = np.concatenate([rng.uniform(low, high, 1000), rng.uniform(-40, 40, 300)]).astype(dtype)
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


@pytest.mark.parametrize("name", sorted(SWEPT))
def test_error_of_f32_over_a_dense_sweep(jit: Any, name: str) -> None:
    """Half a million patterns over all exponents against NumPy's f64 functions, whose own error
    does not count here.
    """
    dtype = np.dtype(np.float32)
    bits = np.arange(3, 1 << 32, 8191, dtype=np.uint64).astype(np.uint32)
    low, high = INTERVAL.get(name, (-4.0, 4.0))
    dense = np.linspace(low, high, 200_001, dtype=dtype)
    x = np.concatenate([bits.view(dtype), dense])
    with np.errstate(all="ignore"):
        exact = SWEPT[name](x.astype(np.float64))
        got = jit.compile(MATH[name], [np.float32], np.float32, 16)(x)
        errors = sweep_errors(got, exact)
    k = int(np.argmax(errors))
    assert errors[k] <= LIMIT[name][0], (
        f"{errors[k]:.3f} ULP: {name}({x[k]!r}) = {got[k]!r}, not {exact[k]!r}"
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(jit: Any, name: str, dtype: type) -> None:
    cases = [*SPECIAL[name], (NAN, NAN), (-NAN, NAN)]
    x = np.array([a for a, _ in cases], dtype)
    expected = np.array([r for _, r in cases], dtype)
    got = jit.compile(MATH[name], [dtype], dtype, 4)(x)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ODD)
def test_odd_functions_keep_signs_and_denormals(jit: Any, name: str, dtype: type) -> None:
    info = np.finfo(dtype)
    x = np.array([info.smallest_subnormal, info.tiny / 2, info.tiny, 1e-30], dtype)
    run = jit.compile(MATH[name], [dtype], dtype, 4)
    if name != "erf":  # its slope at 0 is 2 / sqrt(pi)
        np.testing.assert_array_equal(run(x), x)
    assert (run(x) > 0).all()
    np.testing.assert_array_equal(run(-x), -run(x))


@pytest.mark.parametrize("dtype", TYPES)
def test_widths_agree(jit: Any, dtype: type) -> None:
    """Bit for bit, and no lane looks at another: one huge argument among small ones changes only
    its own result.
    """
    x = np.concatenate([np.linspace(-3, 3, 61), [1e30, -1e10, 5e4, 1e9, NAN, INF, 1e-40]]).astype(dtype)
    for name in UNARY:
        results = [jit.compile(MATH[name], [dtype], dtype, width)(x) for width in (1, 4, 8, 16)]
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0], err_msg=name)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "softplus", "sinh", "cosh", "normal_cdf"])
def test_features_of_the_target_change_no_result(jit: Any, name: str, dtype: type) -> None:
    x = arguments(name, dtype, np.random.default_rng(9))
    for width in (4, 8, 16):
        plain = jit.compile(MATH[name], [dtype], dtype, width)(x)
        special = jit.compile(MATH[name], [dtype], dtype, width, ModuleText(jit.host_features))(x)
        np.testing.assert_array_equal(special, plain)


# C99, F.9.4.4: (x, y, x**y)
POW_SPECIAL = [
    *[(x, y, 1.0) for x in (0.0, -0.0, 2.0, -3.5, INF, -INF, NAN) for y in (0.0, -0.0)],
    *[(1.0, y, 1.0) for y in (0.0, 3.5, -1e30, INF, -INF, NAN)],
    *[(-1.0, y, 1.0) for y in (INF, -INF, 2.0, -4.0)],
    *[(-1.0, y, -1.0) for y in (1.0, -3.0)],
    *[(0.0, y, INF) for y in (-1.0, -0.5, -2.0, -INF)],
    *[(-0.0, y, -INF) for y in (-1.0, -3.0)],
    *[(-0.0, y, INF) for y in (-0.5, -2.0, -INF)],
    *[(0.0, y, 0.0) for y in (1.0, 0.5, 2.0, INF)],
    *[(-0.0, y, -0.0) for y in (1.0, 3.0)],
    *[(-0.0, y, 0.0) for y in (0.5, 2.0, INF)],
    *[(x, y, NAN) for x in (-2.0, -0.5, -1e-3) for y in (0.5, -1.5, 1e-3)],
    *[(x, INF, 0.0) for x in (0.5, -0.5)],
    *[(x, INF, INF) for x in (2.0, -2.0)],
    *[(x, -INF, INF) for x in (0.5, -0.5)],
    *[(x, -INF, 0.0) for x in (2.0, -2.0)],
    *[(INF, y, INF) for y in (0.5, 1.0, 3.0, INF)],
    *[(INF, y, 0.0) for y in (-0.5, -1.0, -INF)],
    *[(-INF, y, -INF) for y in (1.0, 3.0)],
    *[(-INF, y, INF) for y in (0.5, 2.0, INF)],
    *[(-INF, y, -0.0) for y in (-1.0, -3.0)],
    *[(-INF, y, 0.0) for y in (-0.5, -2.0, -INF)],
    *[(NAN, y, NAN) for y in (1.0, -2.0, INF)],
    *[(x, NAN, NAN) for x in (2.0, -1.0, 0.0, INF)],
    (-2.0, 3.0, -8.0),
    (-2.0, 2.0, 4.0),
    (3.0, 4.0, 81.0),
    (-2.0, -1.0, -0.5),
    (10.0, 400.0, INF),
    (-10.0, 401.0, -INF),
    (10.0, -400.0, 0.0),
    (-10.0, -401.0, -0.0),
    (-2.0, 16777215.0, -INF),
    (-2.0, 16777216.0, INF),
]


@pytest.mark.parametrize("dtype", TYPES)
def test_pow_special_cases(jit: Any, dtype: type) -> None:
    x, y, expected = (np.array(column, dtype) for column in zip(*POW_SPECIAL, strict=True))
    got = jit.compile(MATH["pow"], [dtype, dtype], dtype, 4)(x, y)
    bad = ~(
        (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
    )
    assert not bad.any(), list(zip(x[bad], y[bad], got[bad], expected[bad], strict=True))


@pytest.mark.parametrize("dtype", TYPES)
def test_pow_error_in_ulp(jit: Any, dtype: type) -> None:
    """Results over the whole range, bases near 1 with huge exponents, and negative bases with whole
    exponents.
    """
    rng = np.random.default_rng(11)
    info = np.finfo(dtype)
    span = -float(info.minexp) + info.nmant
    logs = rng.uniform(-span, span, 2500) * math.log(2)
    x = np.concatenate(
        [
            np.exp(rng.uniform(-80, 80, 1000)),
            rng.uniform(0, 4, 1000),
            1 + rng.uniform(-1e-4, 1e-4, 500),
        ]
    )
    x = x.astype(dtype)
    with np.errstate(all="ignore"):
        y = (logs / np.log(x.astype(np.float64))).astype(dtype)
    whole = rng.integers(-20, 20, 500).astype(dtype)
    x = np.concatenate([x, -rng.uniform(0.1, 9, 500).astype(dtype)])
    y = np.concatenate([y, whole])
    keep = np.isfinite(y)
    x, y = x[keep], y[keep]
    got = jit.compile(MATH["pow"], [dtype, dtype], dtype, 8)(x, y)
    bound, where = -1.0, ""
    for base, exponent, value in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        exact = mpmath.power(mpf(base), int(exponent)) if base < 0 else mpmath.power(mpf(base), mpf(exponent))
        error = ulp_error(value, exact, info.nmant, int(info.minexp), int(info.maxexp) - 1)
        if error > bound:
            bound, where = (
                error,
                f"pow({base!r}, {exponent!r}) = {value!r}, not {mpmath.nstr(exact, 20)}",
            )
    limit = LIMIT["pow"][TYPES.index(dtype)]
    print(f"ULP pow {np.dtype(dtype)}: {bound:.3f} (limit {limit}) at {where}")
    assert bound <= limit, f"{bound:.3f} ULP, limit {limit}: {where}"


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_f64_arguments_next_to_multiples_of_a_quadrant(jit: Any, name: str) -> None:
    """The doubles nearest to multiples of pi/2, by continued fractions of 2**e 2/pi: the reduction
    cancels most.
    """
    x = []
    for exponent in range(-52, 970, 7):
        with mpmath.workprec(1400):
            numerator, denominator = best_fraction(mpf(2) ** exponent / (mpmath.pi / 2), 1 << 53)
        if denominator >= 1 << 50 and numerator:
            x.append(math.ldexp(denominator, exponent))
    argument = np.array(x)
    assert argument.size > 40
    bound, where = worst(
        name, argument, jit.compile(MATH[name], [np.float64], np.float64, 8)(argument), np.float64
    )
    assert bound <= LIMIT[name][1], f"{bound:.3f} ULP: {where}"


def best_fraction(value: Any, largest: int) -> tuple[int, int]:
    """The last convergent of a continued fraction with a denominator below `largest`."""
    p, p_before, q, q_before = 1, 0, 0, 1
    while True:
        whole = int(mpmath.floor(value))
        p, p_before, q, q_before = whole * p + p_before, p, whole * q + q_before, q
        if q >= largest:
            return p_before, q_before
        value = 1 / (value - whole)


def test_constants_print_exactly() -> None:
    em = Emitter(ModuleText())
    assert em.const(ltype("f", 32), 0.1).ref == "0x3FB99999A0000000"
    assert em.const(ltype("f", 64, 4), 0.1).ref == "splat (double 0x3FB999999999999A)"
    assert em.const(ltype("f", 16), 1.5).ref == "0xH3E00"
    assert em.const(ltype("f", 32), -0.0).ref == "0x8000000000000000"
    assert em.const(ltype("i", 8, 16), 255).ref == "splat (i8 -1)"


def test_masked_memory_and_gather(jit: Any) -> None:
    """Lanes under the mask from a table by gather, the others from what a masked load gives."""

    def lanes(e: Emitter, x: V) -> V:
        table = e.module.table("test.table", ltype("f", 32), [10.0 * k for k in range(8)])
        index = e.fptosi(x, 32)
        mask = e.icmp("slt", index, e.const(index.type, 4))
        gathered = e.gather(x.type, table, index, mask)
        head = e.masked_load(x.type, table, mask, e.const(x.type, -1.0))
        total = e.add(gathered, e.select(mask, e.const(x.type, 0.0), head))
        slot = e.result(PTR, "alloca [8 x float], align 4")
        e.store(head, slot)
        e.masked_store(total, slot, mask)  # what is not under the mask was there before
        return e.load(x.type, slot)

    x = np.array([3, 7, 0, 5, 1, 2, 6, 4], np.float32)
    expected = [30.0, -1.0, 0.0, -1.0, 10.0, 20.0, -1.0, -1.0]
    for width in (1, 4, 8):
        assert jit.compile(lanes, [np.float32], np.float32, width)(x).tolist() == expected
