"""Moves what does not change in a loop in front of it, loads of memory the loop does not write included.

LLVM's own pass cannot move those loads, for it must fear that a store changes them.
"""

from __future__ import annotations

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Function, Op, Value, walk

__all__ = ["hoist"]

_FIXED = frozenset({"loop.local", "loop.for", "loop.if", "loop.while"})


def hoist(function: Function) -> bool:
    """Hoist in all loops of a function, inner ones first; whether anything moved."""
    return _in_block(function.body)


def _in_block(block: Block) -> bool:
    changed = False
    position = 0
    while position < len(block.ops):
        op = block.ops[position]
        for region in op.regions:
            changed |= _in_block(region)
        if op.name == "loop.for":
            moved = _movable(op)
            if moved:
                changed = True
                chosen = set(moved)
                body = op.regions[0]
                body.ops = [o for o in body.ops if o not in chosen]
                for one in moved:
                    one.block = block
                block.ops[position:position] = moved
                position += len(moved)
        position += 1
    return changed


def _movable(loop: Op) -> list[Op]:
    body = loop.regions[0]
    written: set[Value] = set()
    for op in walk(body):
        if op.name in ("loop.store", "loop.scatter", "loop.compress"):
            written.add(_root(op.operands[1]))
    inside: set[Value] = set(body.arguments)
    moved: list[Op] = []
    for op in body.ops:
        fixed = (
            op.name in _FIXED
            or has_trait(op, Trait.EFFECT)
            or has_trait(op, Trait.TERMINATOR)
            or any(o in inside for o in op.operands)
            or (op.name in ("loop.load", "loop.gather") and _root(op.operands[0]) in written)
        )
        if fixed:
            inside.update(op.results)
        else:
            moved.append(op)
    return moved


def _root(buffer: Value) -> Value:
    """The buffer an offset was taken from."""
    while buffer.op is not None and buffer.op.name == "loop.offset":
        buffer = buffer.op.operands[0]
    return buffer
