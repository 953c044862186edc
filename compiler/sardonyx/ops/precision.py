"""In which type a node computes, and the limits of integer types."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["integer_limits", "one_rounding", "saturated"]

Operator = Callable[..., Value]


def one_rounding(function: Operator) -> Operator:
    """Have an operator of several core ops compute float16 and bfloat16 in float32 and round once.

    The result has the type of the first operand.
    """

    @functools.wraps(function)
    def compute(b: Builder, *operands: Value, **attributes: Any) -> Value:
        dtype = operands[0].type.dtype
        if dtype not in (dtypes.f16, dtypes.bf16):
            return function(b, *operands, **attributes)
        wide = [b.convert(o, dtypes.f32) for o in operands]
        return b.convert(function(b, *wide, **attributes), dtype)

    return compute


def saturated(b: Builder, x: Value, dtype: DType) -> Value:
    """Whole floats as integers, those beyond the type's limits moved to them; a NaN becomes the lowest."""
    low, high = (b.full(limit, x) for limit in integer_limits(dtype))
    x = b.select(b.gt(x, low), x, low)
    return b.convert(b.select(b.lt(x, high), x, high), dtype)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The lowest and the highest value of an integer type."""
    span = 1 << dtype.bits
    return (-span // 2, span // 2 - 1) if dtype.kind == "signed" else (0, span - 1)
