"""plan memory: gives every allocation a place in an arena chunk.

An allocation lives from the op that writes it to the last op that reads it.  Where all sizes are
constants, places are packed by offset (largest first, lowest free offset).  Sizes with symbols go to
slots: allocations whose lives do not overlap share one, its size is the largest of theirs.  Sizes that
depend on dims bound during the run stand in a chunk made when the last of them is bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.ir.graph import Op, Value
from sardonyx.passes.program import Program
from sardonyx_runtime.dims import DimLike, floordiv, maximum, symbols_of

__all__ = ["MemoryPlan", "plan_memory"]

_ALIGN = 64


@dataclass
class Allocation:
    """One allocation: size in bytes, life as positions in the program, and the place it was given."""

    value: Value
    size: DimLike
    start: int
    end: int
    chunk: int = 0
    offset: DimLike = 0
    name: str = ""


@dataclass
class MemoryPlan:
    """All allocations with their places, and what sharing saved."""

    allocations: list[Allocation] = field(default_factory=list)
    chunks: list[DimLike] = field(default_factory=list)


def plan_memory(program: Program) -> MemoryPlan:
    """Replace every ``loop.allocate`` by a ``loop.place``; add a ``loop.arena`` per chunk."""
    body = program.main.body
    bound_at = _binding_positions(body.ops)
    plan = MemoryPlan()
    by_chunk: dict[int, list[Allocation]] = {}
    for op in body.ops:
        if op.name != "loop.allocate":
            continue
        positions = [i for i, user in enumerate(body.ops) if user in op.result.uses]
        if not positions:
            continue
        size = _aligned(op.attributes["size"])
        chunk = max((bound_at.get(s, -1) for s in symbols_of(size)), default=-1)
        one = Allocation(op.result, size, positions[0], positions[-1], name=op.result.name)
        by_chunk.setdefault(chunk, []).append(one)
    arenas: dict[int, list[Op]] = {}
    for number, position in enumerate(sorted(by_chunk)):
        group = by_chunk[position]
        total = _pack_static(group) if all(isinstance(a.size, int) for a in group) else _pack_slots(group)
        for one in group:
            one.chunk = number
        plan.allocations += group
        plan.chunks.append(total)
        arenas.setdefault(position, []).append(Op("loop.arena", (), (), {"chunk": number, "size": total}))
    _rewrite(program, plan, arenas)
    return plan


def _binding_positions(ops: list[Op]) -> dict[str, int]:
    return {s: i for i, op in enumerate(ops) if op.name == "loop.read_dims" for s in op.attributes["symbols"]}


def _aligned(size: DimLike) -> DimLike:
    if isinstance(size, int):
        return -(-size // _ALIGN) * _ALIGN
    if all(c % _ALIGN == 0 for _, c in size.terms):
        return size
    return floordiv(size + _ALIGN - 1, _ALIGN) * _ALIGN


def _pack_static(group: list[Allocation]) -> int:
    """Largest first, each at the lowest offset free during its life."""
    placed: list[Allocation] = []
    total = 0
    for one in sorted(group, key=lambda a: (-a.size, a.start)):  # type: ignore[operator]
        offset = 0
        overlapping = [p for p in placed if p.start <= one.end and one.start <= p.end]
        for other in sorted(overlapping, key=lambda p: p.offset):  # type: ignore[arg-type,return-value]
            if offset + one.size <= other.offset:  # type: ignore[operator]
                break
            offset = max(offset, other.offset + other.size)  # type: ignore[call-overload]
        one.offset = offset
        placed.append(one)
        total = max(total, offset + one.size)  # type: ignore[call-overload]
    return total


def _pack_slots(group: list[Allocation]) -> DimLike:
    """In order of their starts, each in the free slot that fits best: the same size before any other."""
    slots: list[tuple[int, DimLike, list[Allocation]]] = []
    for one in sorted(group, key=lambda a: a.start):
        free = [i for i, (end, _, _) in enumerate(slots) if end < one.start]
        best = next((i for i in free if slots[i][1] == one.size), None)
        if best is None:
            # Growing a slot by max() of unlike expressions costs little; prefer one that stays simple.
            best = next((i for i in free if not _is_max(maximum(slots[i][1], one.size))), None)
        if best is None:
            slots.append((one.end, one.size, [one]))
        else:
            _, size, members = slots[best]
            slots[best] = (one.end, maximum(size, one.size), [*members, one])
    offset: DimLike = 0
    for _, size, members in slots:
        for one in members:
            one.offset = offset
        offset = offset + size
    return offset


def _is_max(size: DimLike) -> bool:
    return not isinstance(size, int) and any(a.name == "max" for m, _ in size.terms for a in m)


def _rewrite(program: Program, plan: MemoryPlan, arenas: dict[int, list[Op]]) -> None:
    body = program.main.body
    places = {a.value: a for a in plan.allocations}
    ops: list[Op] = list(arenas.get(-1, []))
    # A place of a later chunk stands behind the arena op that makes it.
    for position, op in enumerate(body.ops):
        if op.name == "loop.allocate":
            one = places.get(op.result)
            if one is None:
                continue
            op.name = "loop.place"
            op.attributes = {"chunk": one.chunk, "offset": one.offset, "dtype": op.attributes["dtype"]}
        ops.append(op)
        ops.extend(arenas.get(position, []))
    body.ops = ops
    for op in ops:
        op.block = body
