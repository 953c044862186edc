"""Slots: where the rows of a tensor lie inside a larger one, in which it is computed at once."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.ir.types import Shape
from sardonyx.kernels.views import row_major
from sardonyx_runtime.dims import DimLike, product

__all__ = ["Slot", "strides_in"]


@dataclass(frozen=True)
class Slot:
    """``rows`` pieces of ``width`` elements, whose first elements are ``stride`` elements apart."""

    rows: DimLike
    width: DimLike
    stride: DimLike

    @property
    def is_dense(self) -> bool:
        """One piece: memory of the tensor's own, as far as a kernel can see."""
        return self.rows == 1 or self.stride == self.width


def strides_in(shape: Shape, slot: Slot) -> Shape | None:
    """The strides of a tensor in its slot; None if no axis begins where a row does."""
    for split in range(len(shape) + 1):
        if product(shape[:split]) == slot.rows and product(shape[split:]) == slot.width:
            outer = tuple(product(shape[i + 1 : split]) * slot.stride for i in range(split))
            return (*outer, *row_major(shape[split:]))
    return None
