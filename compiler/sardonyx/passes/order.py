"""Orders the ops of a block so that every value is defined before it is used."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from sardonyx.ir.graph import Block, Op, walk
from sardonyx.ir.types import TensorType
from sardonyx_runtime.dims import Dim, symbols_of

__all__ = ["sort_block"]


def sort_block(block: Block) -> bool:
    """Sort by dependence, otherwise keeping the order; whether anything moved.

    An op that mentions a symbol bound during the run depends on the op that binds it.
    """
    number = {op: i for i, op in enumerate(block.ops)}
    binder = {s: op for op in block.ops if op.name == "core.bind_dims" for s in op.attributes["symbols"]}
    waits: dict[Op, int] = {}
    followers: dict[Op, list[Op]] = {op: [] for op in block.ops}
    for op in block.ops:
        needed = {o.op for inner in walk(op) for o in inner.operands if o.op in number}
        if binder:
            needed |= {binder[s] for s in _symbols(op) if s in binder}
        needed.discard(op)
        waits[op] = len(needed)
        for one in needed:
            if one is not None:
                followers[one].append(op)
    ready = [number[op] for op, count in waits.items() if not count]
    heapq.heapify(ready)
    old = block.ops
    ordered: list[Op] = []
    while ready:
        op = old[heapq.heappop(ready)]
        ordered.append(op)
        for follower in followers[op]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready, number[follower])
    if len(ordered) != len(old):
        raise ValueError("the groups depend on each other in a circle")
    # The terminator stays last whatever its number.
    changed = ordered != old
    block.ops = ordered
    return changed


def _symbols(op: Op) -> Iterator[str]:
    for inner in walk(op):
        for result in inner.results:
            if isinstance(result.type, TensorType):
                for dim in result.type.shape:
                    yield from symbols_of(dim)
        for value in inner.attributes.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Dim):
                    yield from symbols_of(item)
