"""Sequences and optionals while a model is lowered: Python values that hold tensors.

The core level has tensors only.  A sequence has a known length there, an optional is known to be there or
not; a model that is fed such values, or gives them, is compiled for their structure (see
``sardonyx.specialised``).

A structure is ``("tensor", element type, shape)``, ``("sequence", structures)`` or
``("optional", structure)``, the latter ``()`` for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.ir.graph import Value
from sardonyx.ir.types import OptionalType, SequenceType, Type, UnrankedType

__all__ = [
    "Aggregate",
    "OptionalValue",
    "SequenceValue",
    "assemble",
    "flatten",
    "is_plain",
    "rebuild",
    "structure_of",
]

_ANYTHING = UnrankedType(None)


@dataclass(frozen=True, eq=False)
class SequenceValue:
    """A sequence of tensors (or of sequences)."""

    elements: tuple[Any, ...]
    element_type: Type = _ANYTHING
    name: str = ""
    op: None = None

    @property
    def type(self) -> SequenceType:
        return SequenceType(self.elements[0].type if self.elements else self.element_type)


@dataclass(frozen=True, eq=False)
class OptionalValue:
    """A value, or nothing."""

    value: Any | None
    element_type: Type = _ANYTHING
    name: str = ""
    op: None = None

    @property
    def type(self) -> OptionalType:
        return OptionalType(self.value.type if self.value is not None else self.element_type)


Aggregate = SequenceValue | OptionalValue
Structure = tuple[Any, ...]


def is_plain(values: Sequence[Any]) -> bool:
    """Whether all values are tensors."""
    return all(isinstance(v, Value) for v in values)


def flatten(value: Any) -> list[Value]:
    """The tensors inside, in order."""
    if isinstance(value, SequenceValue):
        return [leaf for element in value.elements for leaf in flatten(element)]
    if isinstance(value, OptionalValue):
        return [] if value.value is None else flatten(value.value)
    return [value]


def structure_of(value: Any) -> Structure:
    if isinstance(value, SequenceValue):
        return ("sequence", tuple(structure_of(e) for e in value.elements))
    if isinstance(value, OptionalValue):
        return ("optional", () if value.value is None else structure_of(value.value))
    return ("tensor", value.type.dtype, value.type.shape)


def rebuild(structure: Structure, kind: Type, leaf: Callable[[Structure], Any]) -> Any:
    """The value of a structure, its tensors made by ``leaf``; ``kind`` is the declared type."""
    what, inside = structure[0], structure[1]
    if isinstance(kind, OptionalType) and what != "optional":
        return OptionalValue(rebuild(structure, kind.element, leaf), kind.element)
    if what == "sequence":
        element = kind.element if isinstance(kind, SequenceType) else UnrankedType(None)
        return SequenceValue(tuple(rebuild(s, element, leaf) for s in inside), element)
    if what == "optional":
        element = kind.element if isinstance(kind, OptionalType) else UnrankedType(None)
        return OptionalValue(None if inside == () else rebuild(inside, element, leaf), element)
    return leaf(structure)


def assemble(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The Python value a caller sees: arrays, lists, None."""
    what, inside = structure[0], structure[1]
    if what == "sequence":
        return [assemble(s, leaves) for s in inside]
    if what == "optional":
        return None if inside == () else assemble(inside, leaves)
    return next(leaves)
