"""Groups around reductions: what one kernel can do row by row.

A group starts at a reduction over some axes of a shape and grows forward over elementwise ops on that
shape or on the reduced one, broadcasts back, and further reductions over the same axes: softmax and
the normalisations become one group each.  Producers are pulled in afterwards, as for elementwise groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import HasBody, Op, Value, users_in, walk
from sardonyx.ir.types import Shape, TensorType
from sardonyx.passes.budget import allowed
from sardonyx.passes.decisions import UNRECORDED, Decisions
from sardonyx.passes.order import bound_symbols, mentioned_symbols

__all__ = ["rows_groups"]

_MOST = 64
_GATHERS = frozenset({"core.gather", "core.gather_elements", "core.gather_nd"})


def rows_groups(
    function: HasBody,
    grouped: Mapping[Op, object],
    most: int = _MOST,
    decisions: Decisions = UNRECORDED,
) -> list[list[Op]]:
    """One list of at most some ``most`` ops (in program order) per group; what is in ``grouped`` is left alone."""
    most = min(most, _MOST)
    taken: set[Op] = set(grouped)
    groups = []
    order = {op: i for i, op in enumerate(function.body.ops)}
    for op in function.body.ops:
        if op.name == "core.reduce" and op not in taken:
            members = _grow(op, function.body.ops[order[op] + 1 :], taken, most, decisions)
            _pull(members, taken, 2 * most if most > 1 else 1, decisions)
            taken |= members
            groups.append(sorted(members, key=order.__getitem__))
    return groups


def _grow(seed: Op, later: list[Op], taken: set[Op], most: int, decisions: Decisions) -> set[Op]:
    shape: Shape = seed.operands[0].type.shape
    axes = tuple(seed.attributes["axes"])
    kept = tuple(d for i, d in enumerate(shape) if i not in axes)
    with_ones = tuple(1 if i in axes else d for i, d in enumerate(shape))
    shapes = {shape, kept, with_ones}
    members = {seed}
    inside: set[Value] = set(seed.results)
    tainted: set[Value] = set()  # depends on the group by way of an op outside
    bound: set[str] = set()  # and so do these symbols

    def objection(op: Op) -> str:
        """Why the op cannot be done row by row; empty if it can."""
        if len(members) >= most:
            return f"the kernel has {most} operations already"
        if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
            return f"{op.name} has not one tensor as its result"
        if op in taken:
            return "the consumer is a part of another kernel already"
        to = op.result.type.shape
        if op.name == "core.reduce":
            if op.operands[0].type.shape != shape or tuple(op.attributes["axes"]) != axes:
                return "the consumer reduces other axes, or another shape"
        elif has_trait(op, Trait.ELEMENTWISE):
            if to not in shapes:
                return f"the consumer's shape is neither that of the rows, {seed.operands[0].type.describe()}, nor of their results"
        elif op.name == "core.broadcast":
            if to != shape or op.operands[0].type.shape != with_ones:
                return "the broadcast does not repeat a row's result along the row"
        elif op.name != "core.reshape":
            return f"{op.name} cannot be done row by row"
        elif not {op.operands[0].type.shape, to} <= {kept, with_ones}:
            return "the reshape does more than add or drop the reduced axes"
        return (
            ""
            if allowed("fuse", "grow around a reduction", op)
            else "the budget of optimisation steps is used up"
        )

    assert seed.block is not None
    waiting = users_in(seed.block, seed.results)  # once all of them are decided, nothing can join
    for op in later:
        if not waiting:
            break
        waiting.discard(op)
        needed = [o for one in walk(op) for o in one.operands]  # control flow needs what its bodies use
        depends = any(o in inside for o in needed)
        spoiled = any(o in tainted for o in needed) or (
            bool(bound) and not bound.isdisjoint(mentioned_symbols(op))
        )
        if not depends and not spoiled:
            continue
        reason = (
            objection(op)
            if not spoiled
            else "the consumer needs the rows by way of something outside as well"
        )
        for operand in op.operands:
            if operand in inside:
                tell = decisions.refuse if reason else decisions.join
                tell(operand.op, op, reason or "both are done in one pass over the rows of a reduction")
        if reason:
            tainted.update(op.results)
            bound.update(bound_symbols(op))
        else:
            members.add(op)
            inside.update(op.results)
            waiting |= users_in(seed.block, op.results)
    return members


def _pull(members: set[Op], taken: set[Op], most: int, decisions: Decisions) -> None:
    """Add elementwise ops and movement that only the group uses."""
    pending = list(members)
    while pending:
        op = pending.pop()
        for operand in op.operands:
            producer = operand.op
            if producer is None or producer in members:
                continue
            reason = f"the kernel has {most} operations already" if len(members) >= most else ""
            reason = reason or _objection(producer, operand, op, members, taken)
            if reason:
                decisions.refuse(producer, op, reason)
                continue
            members.add(producer)
            pending.append(producer)
            decisions.join(
                producer, op, "nothing outside of the reduction's kernel reads the producer's result"
            )


def _objection(producer: Op, operand: Value, op: Op, members: set[Op], taken: set[Op]) -> str:
    """Why a producer is not computed in the kernel of a reduction; empty if it is to be."""
    moves = has_trait(producer, Trait.MOVEMENT) or producer.name in _GATHERS
    if producer in taken:
        return "the producer is a part of another kernel already"
    if producer.block is not op.block:
        return "the producer stands outside of the loop or branch"
    if not (has_trait(producer, Trait.ELEMENTWISE) or moves):
        return f"{producer.name} is neither elementwise nor movement"
    if op.name in _GATHERS and operand is op.operands[0] and not has_trait(producer, Trait.MOVEMENT):
        return "an element that is gathered often would be computed as often"
    if producer.name == "core.concat":
        return "a concatenation is made in memory"
    if any(user not in members for user in operand.uses):
        return "something outside of the kernel reads the producer's result too"
    expands = op.name == "core.broadcast" and operand.type.size != op.result.type.size
    if expands and not has_trait(producer, Trait.MOVEMENT) and len(producer.operands) > 1:
        return "the broadcast would compute the producer again for every repetition"
    if not allowed("fuse", "pull into the group of a reduction", producer):
        return "the budget of optimisation steps is used up"
    return ""
