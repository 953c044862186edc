"""Operators on the bits of integers, and bits seen as another type."""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.arithmetic import binary, unary
from sardonyx.ops.cast import target_type
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes

__all__: list[str] = []

for _op_type, _kind in {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}.items():
    onnx_op(_op_type, since=18)(binary(_kind))
onnx_op("BitwiseNot", since=18)(unary("not"))


@onnx_op("BitShift", since=11)
def bit_shift(b: Builder, x: Value, y: Value, *, direction: str) -> Value:
    if direction not in ("LEFT", "RIGHT"):
        raise CompileError(f"direction is {direction!r}; it has to be 'LEFT' or 'RIGHT'")
    x, y = b.broadcast(x, y)
    return b.shl(x, y) if direction == "LEFT" else b.shr(x, y)


@onnx_op("BitCast", since=26)
def bit_cast(b: Builder, x: Value, *, to: int) -> Value:
    """A bool is a byte of 0 or 1; another byte seen as bool is made 1."""
    source, target = x.type.dtype, target_type("BitCast", b.opset, to)
    widths = [8 if t is dtypes.boolean else t.bits for t in (source, target)]
    if widths[0] != widths[1]:
        raise CompileError(
            f"BitCast from {source.onnx_name} ({widths[0]} bits) to {target.onnx_name} ({widths[1]} bits)",
            hint="both types have to have the same width",
        )
    if source is target:
        return x
    if source is dtypes.boolean:
        return b.bitcast(b.convert(x, dtypes.u8), to=target)
    if target is dtypes.boolean:
        return b.convert(b.bitcast(x, to=dtypes.u8), target)
    return b.bitcast(x, to=target)
