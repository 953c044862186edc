"""Conversions between element types."""

from __future__ import annotations

from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.core.small_floats import ROUND_MODES
from sardonyx.core.text_numbers import NUMBER
from sardonyx.errors import CompileError
from sardonyx.frontend import schemas
from sardonyx.ir.graph import Value
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["convert", "target_type"]

_FLOAT8 = (dtypes.f8e4m3fn, dtypes.f8e4m3fnuz, dtypes.f8e5m2, dtypes.f8e5m2fnuz)
_UNSIGNED_ZERO = (dtypes.f8e4m3fnuz, dtypes.f8e5m2fnuz)


def target_type(op_type: str, opset: int, number: int) -> DType:
    """The type that an attribute gives by its number; CompileError if the operator does not give it."""
    try:
        dtype = dtypes.by_onnx(number)
    except KeyError:
        raise CompileError(f"{number} is no element type of ONNX") from None
    allowed = schemas.find(op_type, "", opset).outputs[0].types
    if f"tensor({dtype.onnx_name})" not in allowed:
        names = ", ".join(sorted(t.removeprefix("tensor(").removesuffix(")") for t in allowed))
        raise CompileError(
            f"{op_type} in opset {opset} does not give {dtype.onnx_name}", hint=f"it gives {names}"
        )
    return dtype


def convert(b: Builder, x: Value, to: DType, *, saturate: int = 1, round_mode: str = "up") -> Value:
    """x in another type by the tables of Cast; those of the model's opset where they differ."""
    if x.type.dtype is to:
        return x
    if to is dtypes.string:
        return b.format(b.convert(x, dtypes.f32) if x.type.dtype.is_small_float else x)
    if x.type.dtype is dtypes.string:
        return _from_text(b, x, to)
    attributes: dict[str, Any] = {}
    if to is dtypes.f8e8m0:
        attributes["round_mode"] = round_mode
    elif to in _UNSIGNED_ZERO and saturate and b.opset < 24:
        attributes["infinity"] = "nan"
    if (to is dtypes.f8e8m0 or to in _FLOAT8) and not saturate:
        attributes["saturate"] = False
    return b.convert(x, to, **attributes)


def _from_text(b: Builder, x: Value, to: DType) -> Value:
    if to in NUMBER:
        return b.parse(x, to=to)
    if to.kind == "complex":
        raise CompileError(f"the conversion from string to {to.onnx_name} is not supported")
    # Types of 8 bits and fewer are narrow enough for a second rounding not to show only by way of float64.
    return b.convert(b.parse(x, to=dtypes.f64 if to.is_float else dtypes.i64), to)


def _check_round_mode(round_mode: str) -> None:
    if round_mode not in ROUND_MODES:
        raise CompileError(f"round_mode is {round_mode!r}; it has to be one of {', '.join(ROUND_MODES)}")


@onnx_op("Cast", since=24)
def cast(b: Builder, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    _check_round_mode(round_mode)
    return convert(b, x, target_type("Cast", b.opset, to), saturate=saturate, round_mode=round_mode)


@onnx_op("Cast", since=19, until=23)
def cast_19(b: Builder, x: Value, *, to: int, saturate: int = 1) -> Value:
    return cast(b, x, to=to, saturate=saturate)


@onnx_op("Cast", since=6, until=18)
def cast_6(b: Builder, x: Value, *, to: int) -> Value:
    return cast(b, x, to=to)


@onnx_op("Cast", until=5)
def cast_1(b: Builder, x: Value, *, to: str) -> Value:
    try:
        dtype = dtypes.by_name(to.lower())
    except KeyError:
        raise CompileError(f"{to!r} is no element type of ONNX") from None
    return cast(b, x, to=dtype.onnx)


@onnx_op("CastLike", since=24)
def cast_like(b: Builder, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    _check_round_mode(round_mode)
    return convert(b, x, like.type.dtype, saturate=saturate, round_mode=round_mode)


@onnx_op("CastLike", since=19, until=23)
def cast_like_19(b: Builder, x: Value, like: Value, *, saturate: int = 1) -> Value:
    return cast_like(b, x, like, saturate=saturate)


@onnx_op("CastLike", since=15, until=18)
def cast_like_15(b: Builder, x: Value, like: Value) -> Value:
    return cast_like(b, x, like)
