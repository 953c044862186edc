"""``TensorProto`` and ``SparseTensorProto`` to :class:`Dense`.

The decoding is our own: it checks every size before it touches the data, keeps ``raw_data`` and external
data as views, and unpacks elements of less than a byte to one byte each, as ml_dtypes has them.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import numpy as np
import onnx

from sardonyx.errors import CompileError
from sardonyx.frontend.external import ExternalFiles
from sardonyx.ir.attributes import Dense
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["TensorReader"]

Array = np.ndarray[Any, Any]

_TYPED_FIELD = {
    dtypes.f32: ("float_data", np.float32),
    dtypes.c64: ("float_data", np.float32),
    dtypes.f64: ("double_data", np.float64),
    dtypes.c128: ("double_data", np.float64),
    dtypes.i64: ("int64_data", np.int64),
    dtypes.u32: ("uint64_data", np.uint64),
    dtypes.u64: ("uint64_data", np.uint64),
}  # every other type is in int32_data, bit for bit
_FIELDS = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")
_WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32}


class TensorReader:
    """Decodes the tensors of one model."""

    def __init__(self, base_dir: str | os.PathLike[str] | None = None) -> None:
        self._files = ExternalFiles(base_dir)

    def read(self, tensor: onnx.TensorProto, what: str = "") -> Dense:
        """The tensor's value.

        ``what`` names it in messages; by default ``tensor 'NAME'``.  CompileError for an unknown element
        type and for data that does not fit the dims.
        """
        what = what or f"tensor {tensor.name!r}"
        try:
            dtype = dtypes.by_onnx(tensor.data_type)
        except KeyError:
            raise CompileError(f"{what} has {_unknown_type(tensor.data_type)}") from None
        shape = tuple(tensor.dims)
        if shape and min(shape) < 0:
            raise CompileError(f"{what} has a negative dim: {list(shape)}")
        if tensor.HasField("segment"):
            raise CompileError(f"{what} is stored in segments, which are not supported")
        count = math.prod(shape)
        if dtype is dtypes.string:
            return Dense(_strings(tensor, count, what).reshape(shape), dtype)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            array = _from_bytes(self._files.read(tensor, _packed_size(dtype, count), what), dtype, count)
        elif tensor.HasField("raw_data"):
            array = _from_raw(tensor, dtype, count, what)
        else:
            array = _from_field(tensor, dtype, count, what)
        return Dense(array.reshape(shape), dtype)

    def read_sparse(self, tensor: onnx.SparseTensorProto, what: str = "") -> Dense:
        """The tensor as a dense one; elements that are not given are 0 (or empty strings)."""
        what = what or f"sparse tensor {tensor.values.name!r}"
        values = self.read(tensor.values, f"the values of {what}")
        indices = self.read(tensor.indices, f"the indices of {what}")
        shape = tuple(tensor.dims)
        if shape and min(shape) < 0:
            raise CompileError(f"{what} has a negative dim: {list(shape)}")
        count = values.array.size
        fits = values.shape == (count,) and indices.shape in ((count,), (count, len(shape)))
        if not fits or indices.dtype is not dtypes.i64:
            raise CompileError(
                f"{what} needs values [N] and int64 indices [N] or [N, {len(shape)}], but has values "
                f"{list(values.shape)} and {indices.dtype.onnx_name} indices {list(indices.shape)}"
            )
        where = indices.array
        extents = np.asarray(shape if where.ndim == 2 else (math.prod(shape),), np.int64)
        if ((where < 0) | (where >= extents)).any():
            raise CompileError(f"{what} has an index outside of its dims {list(shape)}")
        try:
            dense = np.full(shape, "" if values.dtype is dtypes.string else 0, values.dtype.numpy)
        except (MemoryError, ValueError) as error:
            raise CompileError(f"{what} with dims {list(shape)} is too large to be made dense") from error
        if where.ndim == 2:
            dense[tuple(where.T)] = values.array
        else:
            dense.reshape(-1)[where] = values.array
        return Dense(dense, values.dtype)


def _unknown_type(number: int) -> str:
    if number == onnx.TensorProto.UNDEFINED:
        return "no element type"
    return f"the element type {number}, which this version does not know"


def _packed_size(dtype: DType, count: int) -> int:
    """Bytes of the elements as ONNX stores them: 2, 4 and 6 bit types packed."""
    bits = dtype.bits if dtype.bits in (2, 4, 6) else 8 * dtype.itemsize
    return (count * bits + 7) // 8


def _from_raw(tensor: onnx.TensorProto, dtype: DType, count: int, what: str) -> Array:
    data = tensor.raw_data  # protobuf makes a bytes object at each access: take it once
    expected = _packed_size(dtype, count)
    if not data and expected and any(len(getattr(tensor, f)) for f in _FIELDS):
        return _from_field(tensor, dtype, count, what)
    padded = (count + 3) // 4 * 3  # six-bit elements may come in whole groups of four
    if len(data) != expected and not (dtype.bits == 6 and len(data) == padded):
        raise CompileError(
            f"{what} of type {dtype.onnx_name}{list(tensor.dims)} needs {expected} bytes, "
            f"but its raw_data has {len(data)}"
        )
    return _from_bytes(np.frombuffer(data, np.uint8), dtype, count)


def _from_bytes(data: Array, dtype: DType, count: int) -> Array:
    """Elements from little-endian, maybe packed bytes; a view where that is possible."""
    array: Array
    if dtype.bits in (2, 4, 6):
        return _unpack(data, dtype.bits, count).view(dtype.numpy)
    if dtype is dtypes.boolean:
        return data.view(np.bool_) if not count or data.max() <= 1 else data != 0
    if data.__array_interface__["data"][0] % dtype.numpy.alignment:
        data = data.copy()
    array = data.view(dtype.numpy)
    if sys.byteorder == "big" and dtype.itemsize > 1:
        array = array.byteswap()
    return array


def _unpack(data: Array, bits: int, count: int) -> Array:
    """One byte per element from elements packed from the least significant bit on."""
    if bits == 6:
        groups = np.zeros(((count + 3) // 4, 3), np.uint8)
        groups.reshape(-1)[: len(data)] = data
        a, b, c = groups.T
        parts: tuple[Array, ...] = (a, (a >> 6) | (b << 2), (b >> 4) | (c << 4), c >> 2)
    else:
        parts = tuple(data >> shift for shift in range(0, 8, bits))
    return (np.stack(parts, axis=-1) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]


def _from_field(tensor: onnx.TensorProto, dtype: DType, count: int, what: str) -> Array:
    name, stored = _TYPED_FIELD.get(dtype, ("int32_data", np.int32))
    values = getattr(tensor, name)
    expected = _packed_size(dtype, count) if dtype.bits in (2, 4) else count
    if dtype.kind == "complex":
        expected *= 2
    if len(values) != expected:
        others = [f for f in _FIELDS if f != name and len(getattr(tensor, f))]
        found = f"; it has {', '.join(others)}" if others else ""
        raise CompileError(
            f"{what} of type {dtype.onnx_name}{list(tensor.dims)} needs {expected} values in {name}, "
            f"but there are {len(values)}{found}"
        )
    data: Array = np.fromiter(values, stored, len(values))
    if dtype in _TYPED_FIELD:
        return data.view(dtype.numpy) if dtype.kind == "complex" else data.astype(dtype.numpy, copy=False)
    if dtype is dtypes.boolean:
        return np.asarray(data != 0)
    if dtype.bits in (2, 4):
        return _unpack(data.astype(np.uint8), dtype.bits, count).view(dtype.numpy)
    if dtype.bits == 6:
        return (data.astype(np.uint8) & np.uint8(0x3F)).view(dtype.numpy)
    return data.astype(_WORD[dtype.itemsize]).view(dtype.numpy)


def _strings(tensor: onnx.TensorProto, count: int, what: str) -> Array:
    """Strings as an object array of str; bytes that are no UTF-8 become lone surrogates."""
    if len(tensor.string_data) != count or tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise CompileError(
            f"{what} of type string{list(tensor.dims)} needs {count} values in string_data, "
            f"but there are {len(tensor.string_data)}",
        )
    array = np.empty(count, object)
    array[:] = [s.decode("utf-8", "surrogateescape") for s in tensor.string_data]
    return array
