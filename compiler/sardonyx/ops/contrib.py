"""Operators of the domain com.microsoft that exporters and onnxruntime's optimiser leave in models.

The definitions are those of onnxruntime's documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from sardonyx.core.builder import Builder
from sardonyx.ir.graph import Value
from sardonyx.ops.extension import define_operator
from sardonyx.ops.matmul import matrix_product
from sardonyx.ops.precision import one_rounding

__all__ = ["fused_matmul"]

_FLOATS = {"T": ("float16", "float", "double", "bfloat16")}


@one_rounding
def fused_matmul(
    b: Builder,
    x: Value,
    y: Value,
    *,
    alpha: float,
    transA: int,
    transB: int,
    transBatchA: int,
    transBatchB: int,
) -> Value:
    """alpha * x y.  transA swaps the last two axes, transBatchA moves the first axis behind the other batch axes."""

    def turned(value: Value, swap: int, batch: int) -> Value:
        """A vector is turned into nothing else; with both the matrix axes come from (1 .. rank - 2) and 0, -1."""
        rank = value.type.rank
        if rank < 2:
            return value
        axes = [*range(1, rank - 1), 0, rank - 1] if batch else list(range(rank))
        if swap:
            axes[-2:] = axes[-1], axes[-2]
        return b.transpose(value, axes)

    product = matrix_product(b, turned(x, transA, transBatchA), turned(y, transB, transBatchB))
    return product if alpha == 1.0 else b.mul(product, b.full(alpha, product))


define_operator(
    fused_matmul,
    name="FusedMatMul",
    domain="com.microsoft",
    inputs=["A: T", "B: T"],
    outputs=["Y: T"],
    attributes={"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0},
    types=_FLOATS,
)
