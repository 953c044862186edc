"""Attribute values of operations, and :class:`Dense`, a constant tensor.

Attributes are plain immutable Python values: bool, int, float, str, bytes, DType, Type, Dim, Dense,
tuples of these, and dicts from str to these.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from sardonyx.ir.types import TensorType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["Dense"]


class Dense:
    """An immutable constant tensor.

    The array may be a memory map of a file of many GB: nothing here copies it.  Equality and hash are
    by content; the content's digest is computed once, on demand.
    """

    __slots__ = ("__dict__", "array", "dtype")

    def __init__(self, array: Any, dtype: DType | None = None) -> None:
        array = np.asarray(array)
        self.dtype = dtype or dtypes.by_numpy(array.dtype)
        if array.dtype != self.dtype.numpy:
            array = array.astype(self.dtype.numpy)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.array: np.ndarray[Any, Any] = array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(d) for d in self.array.shape)

    @cached_property
    def type(self) -> TensorType:
        return TensorType(self.dtype, tuple(int(d) for d in self.array.shape))

    @cached_property
    def key(self) -> str:
        """A digest of type and content: 16 hexadecimal digits."""
        digest = hashlib.blake2b(str(self.type).encode(), digest_size=8)
        if self.dtype is dtypes.string:
            digest.update(repr(self.array.tolist()).encode())
        else:
            digest.update(np.ascontiguousarray(self.array).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Dense) and self.type == other.type and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Dense({self.type}, {self.key})"
