"""Digits of the activation functions: against mpmath in float32 and float64, all values of float16."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model, tensor

mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
mp.dps = 60

Exact = Callable[[Any], Any]

ALPHA = float(np.float32(0.7))
GAMMA = float(np.float32(1.3))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _tanh_gelu(x: Any) -> Any:
    return x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


def _clamp(x: Any) -> Any:
    return min(max(x, mp.mpf(0)), mp.mpf(1))


# name: (node, exact function, units in the last place that float32 and float64 may be off)
FUNCTIONS: dict[str, tuple[str, Exact, int]] = {
    "Celu": (f"Celu <alpha = {ALPHA}>", lambda x: x if x >= 0 else ALPHA * mp.expm1(x / ALPHA), 3),
    "Elu": (f"Elu <alpha = {ALPHA}>", lambda x: x if x >= 0 else ALPHA * mp.expm1(x), 2),
    "Gelu": ("Gelu", lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, 3),
    "HardSigmoid": (f"HardSigmoid <alpha = {ALPHA}>", lambda x: _clamp(ALPHA * x + mp.mpf(0.5)), 2),
    "HardSwish": ("HardSwish", lambda x: x * _clamp((x + 3) / 6), 3),
    "Mish": ("Mish", lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), 5),
    "Selu": (
        f"Selu <alpha = {ALPHA}, gamma = {GAMMA}>",
        lambda x: GAMMA * x if x > 0 else GAMMA * mp.mpf(ALPHA) * mp.expm1(x),
        3,
    ),
    "Sigmoid": ("Sigmoid", _sigmoid, 2),
    "Softplus": ("Softplus", lambda x: mp.log1p(mp.exp(x)), 2),
    "Softsign": ("Softsign", lambda x: x / (1 + abs(x)), 2),
    "Swish": ("Swish", lambda x: x * _sigmoid(x), 3),
}

# Where a sum cancels, or a factor is subnormal, an absolute error is allowed: in units of epsilon, and of
# the smallest subnormal.
CANCELS = {"HardSigmoid": 1}
SMALL_FACTOR = {"Mish": 800, "Swish": 800}


def rounded(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number of mpmath rounded once (float32 by way of a float64 that is odd where it is inexact)."""
    near = float(value)
    if dtype == np.float64 or not math.isfinite(near):
        return dtype.type(near)
    if near != value and not np.float64(near).view(np.int64) & 1:
        near = math.nextafter(near, math.inf if value > near else -math.inf)
    with np.errstate(all="ignore"):
        return dtype.type(near)


def points(dtype: str) -> Array:
    """Both tails, all scales down to subnormals, and the middle."""
    tail = 110 if dtype == "float32" else 760
    scales = 10.0 ** np.arange(-44 if dtype == "float32" else -320, 2, 1 if dtype == "float32" else 9)
    middle = np.random.default_rng(3).normal(scale=3, size=120)
    return np.concatenate([np.linspace(-tail, tail, 97), scales, -scales, middle, [0.0]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
@each_engine
def test_digits(name: str, dtype: str, engine: str) -> None:
    node, exact, ulp = FUNCTIONS[name]
    x = points(dtype)
    want = np.array([rounded(exact(mp.mpf(float(v))), x.dtype) for v in x], x.dtype)
    (y,) = run_model(make_model(f"y = {node} (x)", {"x": x}, opset=28), [x], engine)
    info = np.finfo(dtype)
    atol = CANCELS.get(name, 0) * float(info.eps) + SMALL_FACTOR.get(name, 0) * float(info.smallest_subnormal)
    check(y, want, ulp=ulp, atol=atol, zero_signs=False)


@each_engine
def test_digits_of_the_approximate_gelu(engine: str) -> None:
    """The rounding error of the sigmoid's argument counts in proportion to its size."""
    x = points("float32")
    want = np.array([rounded(_tanh_gelu(mp.mpf(float(v))), x.dtype) for v in x], x.dtype)
    (y,) = run_model(make_model('y = Gelu <approximate = "tanh"> (x)', {"x": x}), [x], engine)
    near = np.abs(x) < 1.5
    check(y[near], want[near], ulp=4, zero_signs=False)
    check(y, want, rtol=3e-5, atol=3e-44, zero_signs=False)


def float64_function(name: str) -> Callable[[Array], Array]:
    """The function of an activation in float64, which has digits enough for 16 bits."""
    erfc = np.vectorize(math.erfc)
    functions: dict[str, Callable[[Array], Array]] = {
        "Celu": lambda x: np.where(x >= 0, x, np.expm1(x)),
        "Elu": lambda x: np.where(x >= 0, x, np.expm1(x)),
        "Gelu": lambda x: np.where(np.isinf(x) & (x < 0), np.nan, x * 0.5 * erfc(-x / math.sqrt(2))),
        "HardSigmoid": lambda x: np.clip(float(np.float32(0.2)) * x + 0.5, 0, 1),
        "HardSwish": lambda x: x * np.clip((x + 3) / 6, 0, 1),
        "LeakyRelu": lambda x: np.where(x < 0, float(np.float32(0.01)) * x, x),
        "Mish": lambda x: x * np.tanh(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
        "Selu": lambda x: 1.0507010221481323 * np.where(x > 0, x, 1.6732631921768188 * np.expm1(x)),
        "Softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
        "Softsign": lambda x: x / (1 + np.abs(x)),
        "Swish": lambda x: x / (1 + np.exp(-x)),
        "ThresholdedRelu": lambda x: np.where(x > 1, x, np.where(np.isnan(x), x, 0)),
    }
    return functions[name]


ACTIVATIONS = [
    *("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu", "Softplus", "Softsign"),
    *("Swish", "ThresholdedRelu"),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ACTIVATIONS)
@each_engine
def test_16_bits_are_rounded_once(name: str, dtype: str, engine: str) -> None:
    """All values: never more than the neighbour, nearly always the nearest."""
    x = np.arange(1 << 16, dtype=np.uint16).view(numpy_type(dtype))
    with np.errstate(all="ignore"):
        exact = float64_function(name)(x.astype(np.float64))
        want = exact.astype(np.float32).astype(x.dtype)
    (y,) = run_model(make_model(f"y = {name} (x)", {"x": x}, opset=28), [x], engine)
    check(y, want, ulp=1, zero_signs=False)
    same = (y == want) | np.isnan(want.astype(np.float32))
    assert np.count_nonzero(~same) < 200


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "name", [*ACTIVATIONS, "Relu", "Sigmoid", "Tanh", "Shrink", "Erf", "Exp", "Abs", "Sign"]
)
@each_engine
def test_nan_comes_out_as_nan(name: str, dtype: str, engine: str) -> None:
    if (name, dtype) == ("Shrink", "bfloat16"):
        pytest.skip("no version of Shrink takes it")
    x = tensor(dtype, [math.nan, 1.0, -math.nan, -1.0, math.nan])
    (y,) = run_model(make_model(f"y = {name} (x)", {"x": x}, opset=28), [x], engine)
    assert np.isnan(y.astype(np.float32)).tolist() == [True, False, True, False, True]


@each_engine
def test_nothing_overflows_on_the_way(engine: str) -> None:
    x = tensor("float32", [-3e38, -1e20, -200, 200, 1e20, 3e38])
    for name in [
        "Celu",
        "Elu",
        "Gelu",
        "HardSwish",
        "Mish",
        "Selu",
        "Softplus",
        "Softsign",
        "Swish",
        "Sigmoid",
    ]:
        run = prepare(make_model(f"y = {name} (x)", {"x": x}, opset=28), engine)
        assert np.isfinite(run([x])[0]).all() or name == "Selu", name
    run = prepare(make_model('y = Gelu <approximate = "tanh"> (x)', {"x": x}), engine)
    check(run([x])[0], np.maximum(x, 0), zero_signs=False)
