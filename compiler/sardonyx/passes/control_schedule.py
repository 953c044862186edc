"""Schedules control flow: where carried tensors, branch results and stacked elements live.

A carried tensor has one place; a pass computes its next value elsewhere and then copies it there.  A
tensor whose size changes owns an arena chunk, made larger when it has to be.  Stacked elements are
copied to their offset of the result; where the number of passes is not known, its chunk grows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import BufferType, TensorType
from sardonyx_runtime.dims import DimLike, symbol, symbols_of

if TYPE_CHECKING:
    from sardonyx.passes.schedule import _Scheduler

__all__ = ["choice", "repetition"]


class _Owned:
    """A chunk of its own: negative numbers until the memory plan knows how many others there are."""

    def __init__(self, scheduler: _Scheduler, kind: TensorType) -> None:
        self.scheduler = scheduler
        self.kind = kind
        scheduler.program.owned += 1
        self.chunk = -scheduler.program.owned

    def reserve(self, size: DimLike) -> None:
        self.scheduler.effect("arena", (), chunk=self.chunk, size=size)

    def place(self, offset: DimLike = 0) -> Value:
        dtype = self.kind.dtype
        return self.scheduler.emit(
            "place", (), BufferType(dtype), chunk=self.chunk, offset=offset, dtype=dtype
        )

    def keep(self, source: Value, size: DimLike) -> Value:
        """Copy a tensor of this size here."""
        self.reserve(size)
        target = self.place()
        self.scheduler.effect("copy", [target, source, self.scheduler.dim(size)])
        return target


def _depends(kind: TensorType, names: set[str]) -> bool:
    return any(symbols_of(d) & names for d in kind.shape)


def choice(s: _Scheduler, op: Op) -> None:
    """Schedule a ``core.if``."""
    names = set(op.attributes["symbols"])
    owned: dict[int, _Owned] = {}
    for number, result in enumerate(op.results):
        if _depends(result.type, names):
            owned[number] = _Owned(s, result.type)
        else:
            s.buffer(result)
    condition = s.buffer(op.operands[0])
    blocks = [Block(), Block()]
    branch = Op("loop.branch", [condition], (), {"symbols": op.attributes["symbols"]}, blocks, op.location)
    s.block.append(branch)
    for source, target in zip(op.regions, blocks, strict=True):
        with s.inside(target):
            yields = source.terminator.operands
            for number, value in enumerate(yields):
                root = s.root(value)
                made_here = root.op is not None and root.op.block is source and root.op.name == "core.fused"
                if made_here and number not in owned and root not in s.buffers:
                    s.buffers[root] = s.buffers[op.results[number]]
            s.ops(source.ops)
            for number, value in enumerate(yields):
                size = s.bytes_of(value.type)
                here = s.buffer(value)
                if number in owned:
                    owned[number].keep(here, size)
                elif here is not s.buffers[op.results[number]]:
                    s.effect("copy", [s.buffers[op.results[number]], here, s.dim(size)])
            s.effect("next", (), values=_bound(source))
    for number, one in owned.items():
        s.buffers[op.results[number]] = one.place()


def _bound(block: Block) -> tuple[DimLike, ...]:
    (bind,) = [op for op in block.ops if op.name == "core.bind_result"]
    return tuple(bind.attributes["values"])


def repetition(s: _Scheduler, op: Op) -> None:
    """Schedule a ``core.loop``."""
    a = op.attributes
    skip, carried = int(a["conditional"]), a["carried"]
    source = op.regions[0]
    changing = set(a["symbols"])
    initial = op.operands[skip:]
    stacked = op.results[carried:]
    elements = source.terminator.operands[skip + carried :]
    condition = [s.buffer(op.operands[0])] if skip else []
    places: list[Value | _Owned] = []
    for argument, value in zip(source.arguments, initial, strict=True):
        size = s.bytes_of(value.type)
        if _depends(argument.type, changing):
            own = _Owned(s, argument.type)
            own.keep(s.buffer(value), size)
            places.append(own)
        else:
            dtype = argument.type.dtype
            place = s.emit("allocate", (), BufferType(dtype), size=s.bytes_of(argument.type), dtype=dtype)
            place.name = argument.name
            s.effect("copy", [place, s.buffer(value), s.dim(size)])
            places.append(place)
    known = not skip and a["trip"] != -1
    stacks: list[_Owned | None] = []
    for result in stacked:
        if known and not _depends(result.type, set(a["results"])):
            s.buffer(result)
            stacks.append(None)
        else:
            stacks.append(_Owned(s, result.type))
    block = Block()
    kept = ("index", "trip", "symbols", "first", "results", "count", "conditional")
    s.block.append(Op("loop.repeat", condition, (), {k: a[k] for k in kept}, [block], op.location))
    with s.inside(block):
        for argument, held in zip(source.arguments, places, strict=True):
            s.buffers[argument] = held.place() if isinstance(held, _Owned) else held
        s.ops(source.ops)
        following = source.terminator.operands[skip : skip + carried]
        _stack(s, symbol(a["index"]), elements, stacked, stacks)
        _carry(s, source, following, places)
        after = [s.buffer(source.terminator.operands[0])] if skip else []
        s.effect("next", after, values=_bound(source))
    for result, held in zip(op.results[:carried], places, strict=True):
        s.buffers[result] = held.place() if isinstance(held, _Owned) else held
    for result, stack in zip(stacked, stacks, strict=True):
        if stack is not None:
            if known or a["count"] is not None:
                stack.reserve(0)  # a chunk exists even if no pass was made
            s.buffers[result] = stack.place()


def _stack(
    s: _Scheduler,
    index: DimLike,
    elements: tuple[Value, ...],
    stacked: list[Value],
    stacks: list[_Owned | None],
) -> None:
    for element, result, stack in zip(elements, stacked, stacks, strict=True):
        size = s.bytes_of(element.type)
        source = s.buffer(element)
        if stack is None:
            kind = BufferType(element.type.dtype)
            target = s.emit("view", [s.buffers[result]], kind, offset=index * size)
        else:
            s.effect("grow", (), chunk=stack.chunk, size=(index + 1) * size)
            target = stack.place(index * size)
        s.effect("copy", [target, source, s.dim(size)])


def _carry(s: _Scheduler, source: Block, following: tuple[Value, ...], places: list[Value | _Owned]) -> None:
    """Copy the next values to their places; one that is read from another's place goes by way of a temporary."""
    ready: list[Value | None] = []
    for argument, value in zip(source.arguments, following, strict=True):
        root = s.root(value)
        if root is argument:
            ready.append(None)
        elif root in source.arguments:
            kind = BufferType(value.type.dtype)
            size = s.bytes_of(value.type)
            temporary = s.emit("allocate", (), kind, size=size, dtype=value.type.dtype)
            s.effect("copy", [temporary, s.buffer(value), s.dim(size)])
            ready.append(temporary)
        else:
            ready.append(s.buffer(value))
    for value, held, here in zip(following, places, ready, strict=True):
        if here is None:
            continue
        size = s.bytes_of(value.type)
        if isinstance(held, _Owned):
            held.keep(here, size)
        else:
            s.effect("copy", [held, here, s.dim(size)])
