"""What follows a product before it is stored: the elementwise ops of its group, on registers.

The product's result has the shape (batch..., rows, columns); a row is the same in all lanes, columns
run along them.  The last op of the group may be a transpose that leaves the columns innermost: the
store then goes to other strides.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.evaluator import Evaluator, Place, Source, compute_type
from sardonyx.kernels.kernel import KernelBuilder
from sardonyx.kernels.lane_index import LaneIndex
from sardonyx.kernels.views import row_major
from sardonyx.loop.builder import Index
from sardonyx_runtime.dtypes import DType

__all__ = ["Epilogue", "output_strides"]


def output_strides(result: Value, product: Value) -> tuple[Value, Shape] | None:
    """The value in front of the movement that ends a group, and its strides in the result's memory.

    None where the columns would not lie next to each other.
    """
    value = result
    while value is not product and value.op is not None and value.op.kind in ("reshape", "assume"):
        value = value.op.operands[0]
    strides = row_major(value.type.shape)
    if value is not product and value.op is not None and value.op.kind == "transpose":
        inner: list[object] = [0] * len(strides)
        for stride, axis in zip(strides, value.op.attributes["permutation"], strict=True):
            inner[axis] = stride
        value = value.op.operands[0]
        strides = tuple(inner)  # type: ignore[arg-type]
    if value.type.shape != product.type.shape or (strides and strides[-1] != 1 and value.type.shape[-1] != 1):
        return None
    return value, strides


class Epilogue:
    """Evaluates and stores one group's result from the accumulators of ``product``."""

    def __init__(
        self, kernel: KernelBuilder, region: Block, sources: dict[Value, Source], product: Value, out: Value, lanes: int
    ) -> None:
        self.kernel = kernel
        self.b = kernel.b
        self.product = product
        self.out = out
        found = output_strides(region.terminator.operands[0], product)
        assert found is not None, "the group's result is no affine store"
        self.root, self.strides = found
        self.evaluator = Evaluator(kernel, sources, lanes)
        self.is_plain = self.root is product  # nothing but the product is stored

    @property
    def can_hold_sums(self) -> bool:
        """Whether the result's memory can hold the product's partial sums."""
        return bool(self.root.type.dtype is compute_type(self.product.type.dtype))

    def forget(self) -> None:
        """Start a tile: nothing evaluated before may be used again."""
        self.evaluator.forget()

    def row_address(self, batch: Sequence[Index], row: Index) -> Index:
        """Where the first column of a row lies in the result's memory."""
        address: Index = 0
        for index, stride in zip((*batch, row), self.strides, strict=False):
            address = self.b.iadd(address, self.b.imul(index, self.kernel.dim(stride)))
        return address

    def store(self, total: Value, place: Place, address: Index, mask: Value | None) -> None:
        """Round the sum to the product's type, evaluate the group and store one vector of a row.

        ``address`` is the row's; the columns are the last index of the place.
        """
        e = self.evaluator
        e.mask = mask
        dtype: DType = self.product.type.dtype
        if dtype.is_float and dtype.bits == 16:
            total = e.round(total, dtype)
        e.known[self.product] = total
        value = e.raw(self.root, place)
        column = place[-1]
        e.store(value, self.out, LaneIndex(self.b.iadd(address, column.base), 1))
        e.mask = None
