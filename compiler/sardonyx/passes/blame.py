"""What a fault says of the node it is blamed on: its tensors with their types."""

from __future__ import annotations

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Location, Op, Value, walk
from sardonyx.ir.types import describe

__all__ = ["tensors_of"]

_CARRIERS = frozenset({"broadcast", "reshape", "transpose", "assume", "convert"})


def tensors_of(location: Location, op: Op) -> str:
    """`` in c = Div(a: int64[n], b: int64[n])`` for a node that ``op`` computes, alone or in its group.

    The operands are those of the core op that may fault; a tensor that the model does not name is told by
    its type.
    """
    inside = [o for o in walk(op) if o.location == location and has_trait(o, Trait.CAN_FAULT)]
    one = inside[0] if inside else op
    operands = ", ".join(_shown(value) for value in one.operands)
    if len(location.origins) != 1:
        return f" in {one.kind}({operands})"
    origin = location.origins[0]
    outputs = ", ".join(o for o in origin.outputs if o)
    return f" in {f'{outputs} = ' if outputs else ''}{origin.op_type}({operands})"


def _shown(value: Value) -> str:
    named = value
    while not named.name and named.op is not None and named.op.kind in _CARRIERS:
        named = named.op.operands[0]
    if not named.name:
        return describe(value.type)
    return f"{named.name}: {describe(named.type)}"
