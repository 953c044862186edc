"""How floats lie in memory: widths of their fields, and machine values as bits."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.ir.types import VectorType
from sardonyx.loop.builder import LoopBuilder
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["FloatFormat"]

_UNSIGNED = {16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64}


@dataclass(frozen=True)
class FloatFormat:
    """A float type of 16, 32 or 64 bits."""

    dtype: DType

    @property
    def mantissa(self) -> int:
        """Stored bits of the significand."""
        return self.dtype.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.dtype.bits - 2 - self.mantissa)) - 1

    @property
    def infinity(self) -> int:
        """The bits of infinity: all ones in the exponent."""
        return ((1 << (self.dtype.bits - 1 - self.mantissa)) - 1) << self.mantissa

    def bits(self, b: LoopBuilder, stored: Value) -> Value:
        """The bits of a stored element as a u64."""
        kind = _UNSIGNED[self.dtype.bits]
        return b.convert(b.value("bitcast", (stored,), VectorType(kind), to=kind), dtypes.u64)

    def stored(self, b: LoopBuilder, bits: Value) -> Value:
        """The element with these bits, a u64."""
        narrow = b.convert(bits, _UNSIGNED[self.dtype.bits])
        return b.value("bitcast", (narrow,), VectorType(self.dtype), to=self.dtype)
