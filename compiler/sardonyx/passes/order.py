"""Orders the ops of a block so that every value is defined before it is used."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from sardonyx.ir.graph import Block, Op, walk
from sardonyx.ir.types import TensorType
from sardonyx_runtime.dims import Dim, symbols_of

__all__ = ["bound_symbols", "loop_symbols", "mentioned_symbols", "sort_block"]


def sort_block(block: Block) -> bool:
    """Sort by dependence, otherwise keeping the order; whether anything moved.

    An op that mentions a symbol bound during the run depends on the op that binds it.
    """
    number = {op: i for i, op in enumerate(block.ops)}
    binder = {s: op for op in block.ops for s in bound_symbols(op)}
    last = [op for op in block.ops if op.name in _LAST]
    waits: dict[Op, int] = {}
    followers: dict[Op, list[Op]] = {op: [] for op in block.ops}
    for op in block.ops:
        if op in last:
            continue
        needed = {o.op for inner in walk(op) for o in inner.operands if o.op in number}
        if binder:
            needed |= {binder[s] for s in mentioned_symbols(op) if s in binder}
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
    if len(ordered) != len(old) - len(last):
        raise ValueError("the groups depend on each other in a circle")
    ordered += last
    changed = ordered != old
    block.ops = ordered
    return changed


_LAST = frozenset({"core.bind_result", "core.yield", "core.return"})


def bound_symbols(op: Op) -> tuple[str, ...]:
    """The symbols that are known only behind this op."""
    if op.name == "core.bind_dims" or op.name == "core.if":
        return tuple(op.attributes["symbols"])
    if op.name == "core.loop":
        return loop_symbols(op)
    return ()


def loop_symbols(op: Op) -> tuple[str, ...]:
    """The symbols that a loop binds for what follows: the number of passes only where it is not known before."""
    attributes = op.attributes
    counted = attributes["conditional"] or attributes["trip"] == -1
    return (*attributes["results"], *(symbols_of(attributes["count"]) if counted else ()))


def mentioned_symbols(op: Op) -> Iterator[str]:
    """The symbols of dims that an op, or one inside of it, needs or has in its types."""
    for inner in walk(op):
        for result in inner.results:
            if isinstance(result.type, TensorType):
                for dim in result.type.shape:
                    yield from symbols_of(dim)
        for value in inner.attributes.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Dim):
                    yield from symbols_of(item)
