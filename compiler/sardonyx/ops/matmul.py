"""Matrix products: MatMul and Gemm."""

from __future__ import annotations

from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.broadcasting import to_shape_of
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime.dims import Dim, product
from sardonyx_runtime.dtypes import DType

__all__ = ["matrix_product"]


def matrix_product(
    b: Builder, x: Value, y: Value, *, dtype: DType | None = None, words: bool = False
) -> Value:
    """NumPy's matmul of any ranks of at least 1; ``dtype``: the type to accumulate integers in.

    ``words``: x is of bytes, y of words of four bytes, as `core.contract` has it.

    A matrix on the right folds the batch axes of the left operand into its rows: one large product.
    """
    if not x.type.rank or not y.type.rank:
        raise CompileError("a matrix product takes operands of rank 1 or more, not scalars")
    left, right = x.type.rank == 1, y.type.rank == 1
    if left:
        x = b.reshape(x, (1, *x.type.shape))
    if right:
        y = b.reshape(y, (*y.type.shape, 1))
    inner_x, inner_y = x.type.shape[-1], y.type.shape[-2] * (4 if words else 1)
    if inner_x != inner_y:
        message = (
            f"the inner dims of {x.type.describe()} and {y.type.describe()} differ: {inner_x} and {inner_y}"
        )
        if not isinstance(inner_x, Dim) and not isinstance(inner_y, Dim):
            raise CompileError(message)
        b.require("equal", inner_x, inner_y, message)
        x = b.assume_shape(x, (*x.type.shape[:-1], inner_y))
    rows, columns = x.type.shape[:-1], y.type.shape[-1]
    attributes: dict[str, Any] = {"words": True} if words else {} if dtype is None else {"dtype": dtype}
    if y.type.rank == 2:
        flat = b.reshape(x, (product(rows), inner_y))
        result = b.reshape(b.op("core.contract", flat, y, **attributes), (*rows, columns))
    else:
        batch = b.joint_shape(x.type.shape[:-2], y.type.shape[:-2], [x, y])
        result = b.op(
            "core.contract",
            b.broadcast_to(x, (*batch, *x.type.shape[-2:])),
            b.broadcast_to(y, (*batch, *y.type.shape[-2:])),
            **attributes,
        )
    shape = list(result.type.shape)
    if left:
        del shape[-2]
    if right:
        del shape[-1]
    return b.reshape(result, shape)


@onnx_op("MatMul")
def matmul(b: Builder, x: Value, y: Value) -> Value:
    return matrix_product(b, x, y)


@onnx_op("Gemm")
def gemm(
    b: Builder,
    x: Value,
    y: Value,
    addend: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 1,
) -> Value:
    """alpha * op(x) @ op(y) + beta * addend, which is repeated to fit (before opset 7: if asked for)."""
    for name, value in (("A", x), ("B", y)):
        if value.type.rank != 2:
            raise CompileError(f"the input {name} of Gemm is {value.type.describe()}, it has to be a matrix")
    if transA:
        x = b.transpose(x, (1, 0))
    if transB:
        y = b.transpose(y, (1, 0))
    result = _scaled(b, matrix_product(b, x, y), alpha)
    if addend is None or beta == 0:
        return result
    if b.opset < 7 and not broadcast and addend.type.shape != result.type.shape:
        raise CompileError(
            f"the input C of Gemm is {addend.type.describe()}, the product is {result.type.describe()}",
            hint="before opset 7 only `broadcast=1` lets C have another shape",
        )
    return b.add(result, to_shape_of(b, result, _scaled(b, addend, beta)))


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    """factor * x; the factor of an integer product is truncated to an integer, as NumPy's cast does."""
    if factor == 1:
        return x
    number: Any = factor if x.type.dtype.is_float else int(factor)
    return b.mul(b.full(number, x), x)
