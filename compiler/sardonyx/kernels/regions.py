"""Parts of a group's region as regions of their own, for groups that several kernels compute."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Op, Value

__all__ = ["only_op", "region_of"]


def only_op(region: Block, name: str) -> Op:
    """The one op of this name in a region."""
    (found,) = [op for op in region.ops if op.name == name]
    return found


def region_of(region: Block, operands: Sequence[Value], value: Value) -> tuple[Block, list[Value]]:
    """A region that computes one value of a region, and the operands it needs."""
    needed: set[Value] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if one not in needed:
            needed.add(one)
            todo.extend(one.op.operands if one.op is not None and one.op.block is region else ())
    pairs = [(a, o) for a, o in zip(region.arguments, operands, strict=True) if a in needed]
    part = Block([a.type for a, _ in pairs], [a.name for a, _ in pairs])
    copies: dict[Value, Value] = dict(zip((a for a, _ in pairs), part.arguments, strict=True))
    for op in region.ops[:-1]:
        if any(r in needed for r in op.results):
            types = [r.type for r in op.results]
            copy = Op(
                op.name, [copies[o] for o in op.operands], types, dict(op.attributes), location=op.location
            )
            part.append(copy)
            copies.update(zip(op.results, copy.results, strict=True))
    part.append(Op("core.yield", [copies[value]]))
    return part, [o for _, o in pairs]
