"""Where kernel positions of convolutions and windows fall: shared arithmetic of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Op
from sardonyx.ir.types import Shape
from sardonyx.kernels.kernel import KernelBuilder
from sardonyx.kernels.views import row_major
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime.dims import DimLike

__all__ = ["Geometry", "clipped_range", "geometry_of", "unravel"]


@dataclass(frozen=True)
class Geometry:
    """A window over spatial axes: sizes of input and output, extents, strides, dilations and low pads."""

    sizes: Shape
    outputs: Shape
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    lows: tuple[DimLike, ...]
    channels: DimLike  # of the input

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel)

    @property
    def steps(self) -> Shape:
        """Elements of the input from one place to the next along each spatial axis."""
        return tuple(s * self.channels for s in row_major(self.sizes))


def geometry_of(op: Op, kernel: Sequence[int]) -> Geometry:
    """The geometry of a ``core.convolve`` or ``core.window_reduce``."""
    shape, attributes = op.operands[0].type.shape, op.attributes
    rank = len(kernel)
    return Geometry(
        shape[1:-1],
        op.result.type.shape[1:-1],
        tuple(kernel),
        tuple(attributes["strides"]),
        tuple(attributes["dilations"]),
        tuple(attributes["pads"][:rank]),
        shape[-1],
    )


def unravel(kernel: KernelBuilder, index: Index, shape: Shape) -> list[Index]:
    """A linear index as one index per axis, row-major."""
    b = kernel.b
    result: list[Index] = []
    for axis in reversed(range(len(shape))):
        extent = kernel.dim(shape[axis])
        result.insert(0, b.imod(index, extent) if axis else index)
        if axis:
            index = b.idiv(index, extent)
    return result


def clipped_range(
    b: LoopBuilder, start: Index, size: Index, extent: int, dilation: int
) -> tuple[Index, Index]:
    """The kernel positions k with ``0 <= start + k * dilation < size``: the first, and behind the last."""
    before = b.imax(b.isub(0, start), 0)
    low = b.idiv(b.iadd(before, dilation - 1), dilation)
    room = b.imax(b.isub(size, start), 0)
    high = b.imin(b.idiv(b.iadd(room, dilation - 1), dilation), extent)
    return low, high
