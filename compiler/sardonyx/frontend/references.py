"""Attributes in the body of a function that stand for the function's own attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx.ir.graph import Block, walk

__all__ = ["AttributeReference", "bind_references"]


@dataclass(frozen=True)
class AttributeReference:
    """Stands for the value of an attribute of the enclosing function (``ref_attr_name``).

    ``name`` is the function's attribute, ``kind`` what the operator expects, in ONNX's words: ``float``,
    ``ints``, ``graph`` ...  :func:`bind_references` replaces it when the function is inlined.
    """

    name: str
    kind: str

    def __str__(self) -> str:
        return f"@{self.name}"


def bind_references(body: Block, values: Mapping[str, Any]) -> None:
    """Replace every reference in the block and below by its value, in place.

    An attribute that refers to a function attribute without a value is left out, as ONNX says.  (A
    reference to a graph cannot be replaced by a plain value; the caller has to give the op a region.)
    """
    for op in walk(body):
        if any(isinstance(v, AttributeReference) for v in op.attributes.values()):
            op.attributes = {
                key: values[value.name] if isinstance(value, AttributeReference) else value
                for key, value in op.attributes.items()
                if not isinstance(value, AttributeReference) or value.name in values
            }
