"""Groups around reductions: what one kernel can do row by row.

A group starts at a reduction over some axes of a shape and grows forward over elementwise ops on that
shape or on the reduced one, broadcasts back, and further reductions over the same axes: softmax and
the normalisations become one group each.  Producers are pulled in afterwards, as for elementwise groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import HasBody, Op, Value, walk
from sardonyx.ir.types import Shape, TensorType
from sardonyx.passes.budget import allowed
from sardonyx.passes.order import bound_symbols, mentioned_symbols

__all__ = ["rows_groups"]

_MOST = 64
_GATHERS = frozenset({"core.gather", "core.gather_elements", "core.gather_nd"})


def rows_groups(function: HasBody, grouped: Mapping[Op, object], most: int = _MOST) -> list[list[Op]]:
    """One list of at most some ``most`` ops (in program order) per group; what is in ``grouped`` is left alone."""
    most = min(most, _MOST)
    taken: set[Op] = set(grouped)
    groups = []
    order = {op: i for i, op in enumerate(function.body.ops)}
    for op in function.body.ops:
        if op.name == "core.reduce" and op not in taken:
            members = _grow(op, function.body.ops[order[op] + 1 :], taken, most)
            _pull(members, taken, 2 * most if most > 1 else 1)
            taken |= members
            groups.append(sorted(members, key=order.__getitem__))
    return groups


def _grow(seed: Op, later: list[Op], taken: set[Op], most: int) -> set[Op]:
    shape: Shape = seed.operands[0].type.shape
    axes = tuple(seed.attributes["axes"])
    kept = tuple(d for i, d in enumerate(shape) if i not in axes)
    with_ones = tuple(1 if i in axes else d for i, d in enumerate(shape))
    shapes = {shape, kept, with_ones}
    members = {seed}
    inside: set[Value] = set(seed.results)
    tainted: set[Value] = set()  # depends on the group by way of an op outside
    bound: set[str] = set()  # and so do these symbols

    def fits(op: Op) -> bool:
        if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType) or op in taken:
            return False
        to = op.result.type.shape
        if op.name == "core.reduce":
            return bool(op.operands[0].type.shape == shape and tuple(op.attributes["axes"]) == axes)
        if has_trait(op, Trait.ELEMENTWISE):
            return to in shapes
        if op.name == "core.broadcast":
            return bool(to == shape and op.operands[0].type.shape == with_ones)
        return op.name == "core.reshape" and bool({op.operands[0].type.shape, to} <= {kept, with_ones})

    for op in later:
        needed = [o for one in walk(op) for o in one.operands]  # control flow needs what its bodies use
        depends = any(o in inside for o in needed)
        spoiled = any(o in tainted for o in needed) or (
            bool(bound) and not bound.isdisjoint(mentioned_symbols(op))
        )
        if (
            depends
            and not spoiled
            and len(members) < most
            and fits(op)
            and allowed("fuse", "grow around a reduction", op)
        ):
            members.add(op)
            inside.update(op.results)
        elif depends or spoiled:
            tainted.update(op.results)
            bound.update(bound_symbols(op))
    return members


def _pull(members: set[Op], taken: set[Op], most: int) -> None:
    """Add elementwise ops and movement that only the group uses."""
    pending = list(members)
    while pending and len(members) < most:
        op = pending.pop()
        for operand in op.operands:
            producer = operand.op
            if producer is None or producer in members or producer in taken or producer.block is not op.block:
                continue
            moves = has_trait(producer, Trait.MOVEMENT) or producer.name in _GATHERS
            if not (has_trait(producer, Trait.ELEMENTWISE) or moves):
                continue
            if op.name in _GATHERS and operand is op.operands[0] and not has_trait(producer, Trait.MOVEMENT):
                continue  # an element that is read often would be computed as often
            if producer.name == "core.concat" or any(user not in members for user in operand.uses):
                continue
            expands = op.name == "core.broadcast" and operand.type.size != op.result.type.size
            if expands and not has_trait(producer, Trait.MOVEMENT) and len(producer.operands) > 1:
                continue
            if not allowed("fuse", "pull into the group of a reduction", producer):
                continue
            members.add(producer)
            pending.append(producer)
