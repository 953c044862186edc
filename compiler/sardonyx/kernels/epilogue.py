"""What follows a product before it is stored: the elementwise ops of its group, on registers.

The product's result has the shape (batch..., rows, columns); a row is the same in all lanes, columns
run along them.  The last op of the group may be a transpose that leaves the columns innermost: the
store then goes to other strides.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.kernel import KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, Place, uniform
from sardonyx.kernels.map import HEAVY
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


# What an op adds to the code of an epilogue, in instructions; 1 where it is not listed.
_WEIGHTS = {"max": 7, "min": 7, "div": 2, "constant": 0, "broadcast": 0, "reshape": 0, "transpose": 0}
_INLINE = 12  # instructions up to which the epilogue is repeated for every accumulator


class Epilogue:
    """Evaluates and stores one group's result from the accumulators of ``product``.

    A short epilogue is repeated for every accumulator of a tile.  A long one stands once in a loop, which
    the accumulators reach by way of a small buffer: code size is compile time.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        region: Block,
        sources: dict[Value, Source],
        product: Value,
        out: Value,
        lanes: int,
        accumulators: int,
    ) -> None:
        self.kernel = kernel
        self.b = kernel.b
        self.product = product
        if (
            product.op is not None
        ):  # the kernel's own work is the product's; the others are evaluated as theirs
            self.b.location = product.op.location
        self.out = out
        found = output_strides(region.terminator.operands[0], product)
        assert found is not None, "the group's result is no affine store"
        self.root, strides = found
        self.strides = [kernel.parameter(s, ("out", i)) for i, s in enumerate(strides[:-1])]
        self.evaluator = Evaluator(kernel, sources, lanes)
        self.lanes = lanes
        self.is_plain = self.root is product  # nothing but the product is stored
        self.sum_dtype: DType = compute_type(product.type.dtype)
        weight = sum(_weight(op) for op in region.ops if has_trait(op, Trait.ELEMENTWISE))
        self.buffer: Value | None = None
        if weight > _INLINE and accumulators > 1:
            self.buffer = self.b.local(self.sum_dtype, accumulators * lanes)

    @property
    def can_hold_sums(self) -> bool:
        """Whether the result's memory can hold the product's partial sums."""
        return bool(self.root.type.dtype is compute_type(self.product.type.dtype))

    def row_address(self, batch: Sequence[Index], row: Index) -> Index:
        """Where the first column of a row lies in the result's memory."""
        address: Index = 0
        for index, stride in zip((*batch, row), self.strides, strict=True):
            address = self.b.iadd(address, self.b.imul(index, stride))
        return address

    def store_tile(
        self,
        sums: Sequence[Value],
        batch: Sequence[Index],
        rows: Sequence[Index],
        last: Index | None,
        column: Index,
        end: Index,
        masks: Sequence[Value | None],
        *,
        multiple: int,
    ) -> None:
        """Store a tile of accumulators: ``rows`` are consecutive, those beyond ``last`` repeat it.

        ``column`` is the first of the tile's, a multiple of ``multiple``; columns end before ``end``, which
        ``masks`` (one per vector) say as well where they are needed.
        """
        b, lanes, vectors = self.b, self.lanes, len(masks)
        self.evaluator.forget()
        lead = [uniform(i) for i in batch]
        if self.buffer is None or len(sums) == 1:
            addresses = [self.row_address(batch, row) for row in rows]
            for j, mask in enumerate(masks):
                lane = LaneIndex(b.iadd(column, j * lanes), 1, multiple=multiple)
                for r, row in enumerate(rows):
                    self._store(sums[r * vectors + j], (*lead, uniform(row), lane), addresses[r], mask)
            return
        for i, total in enumerate(sums):
            b.store(total, self.buffer, i * lanes)
        with b.loop(0, len(rows), at_least_once=True) as down:
            row = b.iadd(rows[0], down.index)
            if last is not None:
                row = b.imin(row, last)
            address = self.row_address(batch, row)
            with b.loop(0, vectors, at_least_once=True) as along:
                self.evaluator.forget()
                place = b.iadd(column, b.imul(along.index, lanes))
                index = b.iadd(b.imul(down.index, vectors * lanes), b.imul(along.index, lanes))
                total = b.load(self.buffer, index, lanes)
                needed = any(m is not None for m in masks)
                mask_ = b.mask(b.imax(b.isub(end, place), 0), lanes) if needed else None
                lane = LaneIndex(place, 1, multiple=multiple)
                self._store(total, (*lead, uniform(row), lane), address, mask_)
        self.evaluator.forget()

    def _store(self, total: Value, place: Place, address: Index, mask: Value | None) -> None:
        """Round the sum to the product's type, evaluate the group and store one vector of a row."""
        e = self.evaluator
        e.mask = mask
        e.known[self.product] = e.round(total, self.product.type.dtype)
        value = e.raw(self.root, place)
        e.store(value, self.out, LaneIndex(self.b.iadd(address, place[-1].base), 1))
        e.mask = None


def _weight(op: Op) -> int:
    return _INLINE + 1 if op.kind in HEAVY else _WEIGHTS.get(op.kind, 1)
