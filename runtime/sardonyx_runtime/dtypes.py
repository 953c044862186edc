"""Element types: every TensorProto type, with its name in the IR, its NumPy type and its number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["ALL", "DType", "by_name", "by_numpy", "by_onnx"]


@dataclass(frozen=True, eq=False)
class DType:
    """One element type.  Instances are singletons: compare them with ``is``.

    ``kind`` is one of ``float``, ``signed``, ``unsigned``, ``bool``, ``complex``, ``string``;
    ``bits`` the width of one element (of two floats for complex, 0 for string); ``onnx`` the number
    in ``TensorProto.DataType``; ``mantissa`` the stored bits of a float's significand.  Elements of
    fewer than 8 bits take one byte each in memory, as in NumPy.
    """

    name: str
    onnx: int
    onnx_name: str
    _numpy: Any  # a type of NumPy's, or the name of one of ml_dtypes
    kind: str
    bits: int
    mantissa: int = 0

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of elements.  ml_dtypes is loaded when one of its types is asked for, not before."""
        kind = self._numpy
        if isinstance(kind, str):
            kind = getattr(import_module("ml_dtypes"), kind)
        found: np.dtype[Any] = np.dtype(kind)
        return found

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("signed", "unsigned")

    @property
    def is_small_float(self) -> bool:
        """A float of 8 bits or fewer: stored and converted, never computed with."""
        return self.kind == "float" and self.bits <= 8


def _t(name: str, onnx: int, onnx_name: str, numpy: Any, kind: str, bits: int, mantissa: int = 0) -> DType:
    return DType(name, onnx, onnx_name, numpy, kind, bits, mantissa)


f32 = _t("f32", 1, "float", np.float32, "float", 32, 23)
u8 = _t("ui8", 2, "uint8", np.uint8, "unsigned", 8)
i8 = _t("i8", 3, "int8", np.int8, "signed", 8)
u16 = _t("ui16", 4, "uint16", np.uint16, "unsigned", 16)
i16 = _t("i16", 5, "int16", np.int16, "signed", 16)
i32 = _t("i32", 6, "int32", np.int32, "signed", 32)
i64 = _t("i64", 7, "int64", np.int64, "signed", 64)
string = _t("!sdx.string", 8, "string", object, "string", 0)
boolean = _t("i1", 9, "bool", np.bool_, "bool", 1)
f16 = _t("f16", 10, "float16", np.float16, "float", 16, 10)
f64 = _t("f64", 11, "double", np.float64, "float", 64, 52)
u32 = _t("ui32", 12, "uint32", np.uint32, "unsigned", 32)
u64 = _t("ui64", 13, "uint64", np.uint64, "unsigned", 64)
c64 = _t("complex<f32>", 14, "complex64", np.complex64, "complex", 64, 23)
c128 = _t("complex<f64>", 15, "complex128", np.complex128, "complex", 128, 52)
bf16 = _t("bf16", 16, "bfloat16", "bfloat16", "float", 16, 7)
f8e4m3fn = _t("f8E4M3FN", 17, "float8e4m3fn", "float8_e4m3fn", "float", 8, 3)
f8e4m3fnuz = _t("f8E4M3FNUZ", 18, "float8e4m3fnuz", "float8_e4m3fnuz", "float", 8, 3)
f8e5m2 = _t("f8E5M2", 19, "float8e5m2", "float8_e5m2", "float", 8, 2)
f8e5m2fnuz = _t("f8E5M2FNUZ", 20, "float8e5m2fnuz", "float8_e5m2fnuz", "float", 8, 2)
u4 = _t("ui4", 21, "uint4", "uint4", "unsigned", 4)
i4 = _t("i4", 22, "int4", "int4", "signed", 4)
f4e2m1 = _t("f4E2M1FN", 23, "float4e2m1", "float4_e2m1fn", "float", 4, 1)
f8e8m0 = _t("f8E8M0FNU", 24, "float8e8m0", "float8_e8m0fnu", "float", 8, 0)
u2 = _t("ui2", 25, "uint2", "uint2", "unsigned", 2)
i2 = _t("i2", 26, "int2", "int2", "signed", 2)
f6e2m3 = _t("f6E2M3FN", 27, "float6e2m3", "float6_e2m3fn", "float", 6, 3)
f6e3m2 = _t("f6E3M2FN", 28, "float6e3m2", "float6_e3m2fn", "float", 6, 2)

ALL: tuple[DType, ...] = tuple(v for v in list(globals().values()) if isinstance(v, DType))
_BY_NAME = {t.name: t for t in ALL}
_BY_ONNX = {t.onnx: t for t in ALL}
_BY_ONNX_NAME = {t.onnx_name: t for t in ALL}
_PLAIN = {t.numpy: t for t in ALL if t is not string and not isinstance(t._numpy, str)}


def by_name(name: str) -> DType:
    """The type with this IR name (``f32``) or ONNX name (``float``); KeyError if there is none."""
    found = _BY_NAME.get(name) or _BY_ONNX_NAME.get(name)
    if found is None:
        raise KeyError(name)
    return found


def by_onnx(number: int) -> DType:
    """The type with this number in ``TensorProto.DataType``; KeyError if there is none."""
    return _BY_ONNX[number]


def by_numpy(dtype: Any) -> DType:
    """The type of a NumPy dtype, byte order ignored; object and text dtypes are strings."""
    dtype = np.dtype(dtype)
    if dtype.kind in "OUST":
        return string
    dtype = dtype.newbyteorder("=")
    found = _PLAIN.get(dtype) or _all_by_numpy().get(dtype)
    if found is None:
        raise KeyError(str(dtype))
    return found


@cache
def _all_by_numpy() -> dict[np.dtype[Any], DType]:
    return {t.numpy: t for t in ALL if t is not string}
