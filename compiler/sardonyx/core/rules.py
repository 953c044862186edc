"""Checks that the type rules of the core ops share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.ir.declare import TypeRuleError
from sardonyx.ir.types import TensorType

__all__ = ["axes_of", "one_dtype", "one_shape", "tensors"]


def tensors(types: Sequence[Any], what: str) -> list[TensorType]:
    """The operand types, all of which have to be ranked tensors."""
    for i, kind in enumerate(types):
        if not isinstance(kind, TensorType):
            raise TypeRuleError(f"{what}: operand {i} is {kind}, a tensor of known rank is needed")
    return list(types)


def one_dtype(types: Sequence[TensorType], what: str) -> None:
    """All element types have to be equal."""
    if any(t.dtype is not types[0].dtype for t in types):
        raise TypeRuleError(f"{what}: element types differ: {', '.join(t.dtype.onnx_name for t in types)}")


def one_shape(types: Sequence[TensorType], what: str) -> None:
    """All shapes have to be equal."""
    if any(t.shape != types[0].shape for t in types):
        raise TypeRuleError(f"{what}: shapes differ: {', '.join(t.describe() for t in types)}")


def axes_of(attributes: Mapping[str, Any], rank: int, what: str) -> tuple[int, ...]:
    """The attribute ``axes``: sorted, unlike, within the rank."""
    axes = tuple(attributes["axes"])
    if any(not 0 <= a < rank for a in axes) or list(axes) != sorted(set(axes)):
        raise TypeRuleError(f"{what}: axes {list(axes)} are not ascending axes of rank {rank}")
    return axes
