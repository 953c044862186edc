"""Vector transcendental functions emitted as LLVM IR, for f32 and f64 at any width.

`MATH[name](emitter, *operands)` appends the instructions that compute the function lane by lane and
returns the value. Code is branch-free but for sin, cos and tan, which end the block to reach a cold
path for huge arguments (see `Emitter.block`). Denormal arguments and results are kept, -0.0 where
the function is odd; NaN gives NaN. f16 and bf16 go through f32. Bounds in units in the last place:
tests/codegen/test_math.py.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen.emitter import V
from sardonyx.codegen.math import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    trigonometric,
)

MATH: dict[str, Callable[..., V]] = {
    "acos": inverse_trigonometric.acos,
    "acosh": hyperbolic.acosh,
    "asin": inverse_trigonometric.asin,
    "asinh": hyperbolic.asinh,
    "atan": inverse_trigonometric.atan,
    "atanh": hyperbolic.atanh,
    "cos": trigonometric.cos,
    "cosh": hyperbolic.cosh,
    "erf": error_function.erf,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": logarithm.log,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "normal_cdf": error_function.normal_cdf,
    "pow": power.pow,
    "sigmoid": exponential.sigmoid,
    "sin": trigonometric.sin,
    "sinh": hyperbolic.sinh,
    "softplus": logarithm.softplus,
    "tan": trigonometric.tan,
    "tanh": hyperbolic.tanh,
}
