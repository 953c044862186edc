"""Parts of concatenations that are computed straight into their places.

A concatenation that is a group of its own needs no code where its parts are made by kernels that can
write into the larger tensor: any kernel where a part is one piece of it, elementwise ones where it is
strided.  Everything else is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from sardonyx.ir.graph import Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.slots import Slot, strides_in
from sardonyx_runtime.dims import DimLike, product, symbols_of

__all__ = ["Placement", "is_concatenation", "parts_of", "placements"]


@dataclass(frozen=True)
class Placement:
    """A part's place: the tensor it is a part of, the first element, and how its rows lie there."""

    whole: Value
    start: DimLike
    slot: Slot


def is_concatenation(op: Op) -> bool:
    return op.name == "core.fused" and op.attributes["kind"] == "concat"


def parts_of(op: Op) -> Iterator[tuple[Value, Placement]]:
    """The parts of a concatenation group, as values of its region, and their places."""
    inner = next(one for one in op.regions[0].ops if one.name == "core.concat")
    axis: int = inner.attributes["axis"]
    shape: Shape = inner.result.type.shape
    rows, within = product(shape[:axis]), product(shape[axis + 1 :])
    start: DimLike = 0
    for part in inner.operands:
        width = part.type.shape[axis] * within
        yield part, Placement(op.results[0], start, Slot(rows, width, shape[axis] * within))
        start = start + width


def placements(
    ops: Iterable[Op], root: Callable[[Value], Value], taken: Container[Value], late: set[str]
) -> dict[Value, Placement]:
    """Where values of a block are computed straight into a concatenation.

    ``taken`` have memory of another kind; a tensor whose size depends on ``late`` symbols may not exist yet
    when its parts are made.
    """
    found: dict[Value, Placement] = {}
    for op in ops:
        if not is_concatenation(op) or any(symbols_of(d) & late for d in op.results[0].type.shape):
            continue
        outer = dict(zip(op.regions[0].arguments, op.operands, strict=True))
        parts = list(parts_of(op))
        for part, place in parts:
            value = outer.get(part)
            made = None if value is None else root(value)
            if (
                made is None
                or made in found
                or made in taken
                or made.op is None
                or made.op.block is not op.block
            ):
                continue
            once = sum(p is part for p, _ in parts) == 1
            if made.op.name == "core.fused" and (
                place.slot.is_dense or (once and _can_be_strided(made, value, place.slot))
            ):
                found[made] = place
    return found


def _can_be_strided(made: Value, value: Value | None, slot: Slot) -> bool:
    """Whether an elementwise kernel can leave room between its rows, and nobody else reads them."""
    op = made.op
    assert op is not None
    alone = value is made and len(made.uses) == 1 and len(op.results) == 1
    if not alone or op.attributes["kind"] != "map":
        return False
    (result,) = op.regions[0].terminator.operands
    return strides_in(result.type.shape, slot) is not None
