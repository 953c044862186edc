"""plan memory: gives every allocation a place in an arena chunk.

An allocation lives from the op that writes it to the last op that reads it; one that a loop uses but
did not make lives to the loop's end.  Where all sizes are constants, places are packed by offset
(largest first, lowest free offset).  Sizes with symbols go to slots: allocations whose lives do not
overlap share one, its size is the largest of theirs.  Sizes that depend on dims bound during the run
stand in a chunk made where the last of them is bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.ir.graph import Block, Module, Op, Value, walk
from sardonyx.passes.order import loop_symbols
from sardonyx.passes.program import Program
from sardonyx_runtime.dims import DimLike, floordiv, maximum, symbols_of

__all__ = ["Allocation", "MemoryPlan", "PlanMemory", "memory_plan", "plan_memory"]

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
    """All allocations with their places, and the size of each arena chunk (owned chunks: 0, they grow)."""

    allocations: list[Allocation] = field(default_factory=list)
    chunks: list[DimLike] = field(default_factory=list)


@dataclass(frozen=True)
class PlanMemory:
    """Requires: the loop level.  Ensures: every allocation is a ``loop.place`` in an arena chunk."""

    name: str = field(default="plan-memory", init=False)

    def run(self, module: Module) -> bool:
        program = Program.from_module(module)
        if program.planned:
            return False
        plan_memory(program)
        program.to_module()
        return True


@dataclass
class _Binder:
    """Where symbols become known: behind an op of a block, or (None) at the block's start."""

    position: int
    block: Block
    op: Op | None


class _Positions:
    """A number for every op in the order of the text, and where each loop ends."""

    def __init__(self, body: Block) -> None:
        self.of: dict[Op, int] = {}
        self.loop_of: dict[Block, Op] = {}
        self.end: dict[Op, int] = {}
        self.binders: dict[str, _Binder] = {}
        self._count = 0
        self._visit(body, None)

    def _visit(self, block: Block, loop: Op | None) -> None:
        if loop is not None:
            self.loop_of[block] = loop
        for op in block.ops:
            position = self.of[op] = self._next()
            if op.name == "loop.repeat":
                at_start = _Binder(self._next(), op.regions[0], None)
                self.binders.update(
                    dict.fromkeys((op.attributes["index"], *op.attributes["symbols"]), at_start)
                )
            for region in op.regions:
                self._visit(region, op if op.name == "loop.repeat" else loop)
            self.end[op] = position = self._next() if op.regions else position
            for name in _bound(op):
                self.binders[name] = _Binder(position, block, op)

    def _next(self) -> int:
        self._count += 1
        return self._count

    def life(self, value: Value) -> tuple[int, int] | None:
        """First and last position of use; a use in a loop that does not contain the allocation takes all of it."""
        assert value.op is not None and value.op.block is not None
        home = self._loops(value.op.block)
        spans = []
        users = list(value.uses)
        while parts := [u for u in users if u.name == "loop.part"]:
            users = [u for u in users if u not in parts] + [u for part in parts for u in part.result.uses]
        for user in users:
            assert user.block is not None
            foreign = [loop for loop in self._loops(user.block) if loop not in home]
            outermost = foreign[-1] if foreign else user
            spans.append((self.of[outermost], self.end[outermost]))
        return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None

    def _loops(self, block: Block) -> list[Op]:
        """The loops around a block, innermost first."""
        found: list[Op] = []
        while block in self.loop_of:
            loop = self.loop_of[block]
            found.append(loop)
            assert loop.block is not None
            block = loop.block
        return found


def _bound(op: Op) -> tuple[str, ...]:
    if op.name in ("loop.read_dims", "loop.branch"):
        return tuple(op.attributes["symbols"])
    if op.name == "loop.repeat":
        return loop_symbols(op)
    return ()


def plan_memory(program: Program) -> MemoryPlan:
    """Replace every ``loop.allocate`` by a ``loop.place``; add a ``loop.arena`` per chunk."""
    body = program.main.body
    positions = _Positions(body)
    plan = MemoryPlan()
    entry = _Binder(-1, body, None)
    groups: dict[int, tuple[_Binder, list[Allocation]]] = {}
    unused: list[Op] = []
    for op in walk(body):
        if op.name != "loop.allocate":
            continue
        life = positions.life(op.result)
        if life is None:
            unused.append(op)
            continue
        size = _aligned(op.attributes["size"])
        known = [positions.binders[s] for s in symbols_of(size) if s in positions.binders]
        binder = max(known, key=lambda one: one.position, default=entry)
        one = Allocation(op.result, size, *life, name=op.result.name)
        groups.setdefault(binder.position, (binder, []))[1].append(one)
    for op in unused:
        op.erase()
    for number, position in enumerate(sorted(groups)):
        binder, group = groups[position]
        total = _pack_static(group) if all(isinstance(a.size, int) for a in group) else _pack_slots(group)
        for one in group:
            one.chunk = number
            owner = one.value.op
            assert owner is not None
            owner.name = "loop.place"
            dtype = owner.attributes["dtype"]
            owner.attributes = {"chunk": number, "offset": one.offset, "size": one.size, "dtype": dtype}
        plan.allocations += group
        plan.chunks.append(total)
        arena = Op("loop.arena", (), (), {"chunk": number, "size": total})
        arena.block = binder.block
        binder.block.ops.insert(0 if binder.op is None else binder.block.ops.index(binder.op) + 1, arena)
    _number_owned(body, len(plan.chunks))
    plan.chunks += [0] * program.owned
    program.chunks, program.planned = plan.chunks, True
    return plan


def memory_plan(program: Program) -> MemoryPlan:
    """The plan of a program whose memory is planned already, read off its ops."""
    positions = _Positions(program.main.body)
    plan = MemoryPlan(chunks=list(program.chunks))
    for op in walk(program.main):
        if op.name != "loop.place" or "size" not in op.attributes:
            continue
        life = positions.life(op.result) or (positions.of[op], positions.of[op])
        a = op.attributes
        plan.allocations.append(
            Allocation(op.result, a["size"], *life, a["chunk"], a["offset"], op.result.name)
        )
    return plan


def _number_owned(body: Block, first: int) -> None:
    """Chunks that belong to one tensor come behind the others."""
    for op in walk(body):
        chunk = op.attributes.get("chunk", 0)
        if chunk < 0:
            op.attributes["chunk"] = first - 1 - chunk


def _aligned(size: DimLike) -> DimLike:
    if isinstance(size, int):
        return -(-size // _ALIGN) * _ALIGN
    if all(c % _ALIGN == 0 for _, c in size.terms):
        return size
    return floordiv(size + _ALIGN - 1, _ALIGN) * _ALIGN


def _pack_static(group: list[Allocation]) -> int:
    """Largest first, each at the lowest offset free during its life."""
    placed: list[tuple[int, int, Allocation]] = []  # offset, end of the place
    total = 0
    sized = [(one.size, one) for one in group if isinstance(one.size, int)]
    for size, one in sorted(sized, key=lambda pair: (-pair[0], pair[1].start)):
        offset = 0
        taken = [(low, high) for low, high, p in placed if p.start <= one.end and one.start <= p.end]
        for low, high in sorted(taken):
            if offset + size <= low:
                break
            offset = max(offset, high)
        one.offset = offset
        placed.append((offset, offset + size, one))
        total = max(total, offset + size)
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
