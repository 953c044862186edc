"""Types of values: tensors with symbolic shapes, sequences, optionals, maps, and the loop level's own.

The text of each type is MLIR syntax.  A tensor with symbolic dims is printed as
``tensor<?x3xf32, #sdx.dims<"batch", 3>>``: MLIR's own shape, and the expressions as its encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sardonyx_runtime.dims import Dim, DimLike, product
from sardonyx_runtime.dtypes import DType

__all__ = [
    "BufferType",
    "IndexType",
    "MapType",
    "NoneType",
    "OptionalType",
    "SequenceType",
    "Shape",
    "TensorType",
    "Type",
    "UnrankedType",
    "VectorType",
]

Shape = tuple[DimLike, ...]


class Type:
    """Base of all types.  Types are immutable values; equal types are equal objects."""

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class TensorType(Type):
    """A tensor: element type and shape, a tuple of dims (ints and symbolic expressions)."""

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def size(self) -> DimLike:
        """The number of elements."""
        return product(self.shape)

    @property
    def is_static(self) -> bool:
        return not any(isinstance(d, Dim) for d in self.shape)

    @cached_property
    def _text(self) -> str:
        dims = "".join(f"{d if isinstance(d, int) else '?'}x" for d in self.shape)
        return f"tensor<{dims}{self.dtype.name}{dims_suffix(self.shape)}>"

    def __str__(self) -> str:
        return self._text

    def describe(self) -> str:
        """The type as a user knows it: ``float32[batch, 3]``."""
        return f"{self.dtype.onnx_name}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class UnrankedType(Type):
    """A tensor of which the model does not tell the shape, maybe not even the element type."""

    dtype: DType | None

    def __str__(self) -> str:
        return f"tensor<*x{self.dtype}>" if self.dtype else "!sdx.unknown"

    def describe(self) -> str:
        return f"{self.dtype.onnx_name if self.dtype else 'unknown'}[?]"


@dataclass(frozen=True)
class SequenceType(Type):
    """A sequence of values of one type (shapes may differ where the element type is unranked)."""

    element: Type

    def __str__(self) -> str:
        return f"!sdx.seq<{self.element}>"

    def describe(self) -> str:
        return f"sequence of {describe(self.element)}"


@dataclass(frozen=True)
class OptionalType(Type):
    """A value of the element type, or nothing."""

    element: Type

    def __str__(self) -> str:
        return f"!sdx.optional<{self.element}>"

    def describe(self) -> str:
        return f"optional {describe(self.element)}"


@dataclass(frozen=True)
class MapType(Type):
    """A map from keys of an element type to values."""

    key: DType
    element: Type

    def __str__(self) -> str:
        return f"!sdx.map<{self.key}, {self.element}>"

    def describe(self) -> str:
        return f"map from {self.key.onnx_name} to {describe(self.element)}"


@dataclass(frozen=True)
class NoneType(Type):
    """The type of an optional input that is left out."""

    def __str__(self) -> str:
        return "none"

    def describe(self) -> str:
        return "nothing"


@dataclass(frozen=True)
class IndexType(Type):
    """A 64-bit signed index or size of the loop level."""

    def __str__(self) -> str:
        return "index"


@dataclass(frozen=True)
class VectorType(Type):
    """A machine value of the loop level: one element (``lanes`` 1, printed as the bare element type) or more."""

    dtype: DType
    lanes: int = 1

    @cached_property
    def _text(self) -> str:
        return self.dtype.name if self.lanes == 1 else f"vector<{self.lanes}x{self.dtype.name}>"

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class BufferType(Type):
    """Memory of the loop level: a pointer to elements of one type."""

    dtype: DType

    def __str__(self) -> str:
        return f"!sdx.buffer<{self.dtype}>"


def dims_suffix(shape: Shape) -> str:
    """The encoding that carries symbolic dims in a tensor's text; empty for static shapes."""
    if not any(isinstance(d, Dim) for d in shape):
        return ""
    return f", #sdx.dims<{', '.join(dim_text(d) for d in shape)}>"


def dim_text(dim: DimLike) -> str:
    """A dim inside ``#sdx.dims<...>``: an integer, or its expression as a string."""
    if isinstance(dim, int):
        return str(dim)
    escaped = str(dim).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def describe(kind: Any) -> str:
    """A type in a user's words, for messages."""
    return str(kind.describe()) if hasattr(kind, "describe") else str(kind)
