"""Exponentials, logarithms, trigonometric and hyperbolic functions, the error function."""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.arithmetic import unary, unary_1
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes

__all__: list[str] = []

for _op_type, _since in {
    "Acos": 7,
    "Acosh": 9,
    "Asin": 7,
    "Asinh": 9,
    "Atan": 7,
    "Atanh": 9,
    "Cos": 7,
    "Cosh": 9,
    "Sin": 7,
    "Sinh": 9,
    "Tan": 7,
}.items():
    onnx_op(_op_type, since=_since)(unary(_op_type.lower()))

for _op_type in ("Exp", "Log"):
    onnx_op(_op_type, until=5)(unary_1(_op_type.lower()))
    onnx_op(_op_type, since=6)(unary(_op_type.lower()))


@onnx_op("Erf", since=9)
def erf(b: Builder, x: Value) -> Value:
    if x.type.dtype.is_integer:  # allowed up to opset 12: the result is truncated
        return b.convert(b.erf(b.convert(x, dtypes.f64)), x.type.dtype)
    return b.erf(x)
