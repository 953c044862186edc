"""Builds loops and choices whose bodies are given as Python functions.

Types of carried tensors are found by trying: a dim that a pass changes becomes a symbol, and the body
is built again, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.core.aggregates import is_plain
from sardonyx.core.builder import Builder, constant_of
from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import TensorType
from sardonyx_runtime.dims import DimLike, maximum, plain_symbol, symbol, symbols_of
from sardonyx_runtime.dtypes import boolean

__all__ = ["LoopBody", "build_if", "build_loop", "discard"]


@dataclass
class LoopBody:
    """What one pass gives: the next condition (None: goes on), the carried tensors, elements to stack."""

    condition: Value | None
    carried: Sequence[Value]
    stacked: Sequence[Value] = ()


MakeBody = Callable[[Builder, DimLike, Sequence[Value]], LoopBody]


def build_loop(
    b: Builder, trip: DimLike | None, condition: Value | None, initial: Sequence[Value], body: MakeBody
) -> tuple[list[Value], list[Value]]:
    """A loop; gives the final carried tensors and the stacked results.

    ``body(builder, index, carried)`` builds one pass.  ``trip`` bounds the passes, ``condition`` (a bool
    tensor of one element) decides on the first.
    """
    known = None if condition is None else constant_of(condition)
    if known is not None:
        if not known.reshape(-1)[0]:
            trip = 0
        condition = None
    index = symbol(b.fresh_symbol("i"))
    types: list[TensorType] = [v.type for v in initial]
    changing: dict[str, DimLike] = {}  # the symbol of a dim that changes, and its first value
    while True:
        block = Block(types, [v.name for v in initial])
        inner = b.child(block)
        try:
            made = body(inner, index, block.arguments)
        except CompileError:
            discard(block)
            raise
        widened = _widen(b, initial, types, made.carried, changing)
        if widened is None:
            break
        discard(block)
        types = widened
    return _finish(b, trip, condition, initial, made, inner, index, changing)


def discard(block: Block) -> None:
    """Give up a body that was built to see what it gives: what it used is used no more."""
    for op in block.ops:
        op.drop_uses()


def _widen(
    b: Builder,
    initial: Sequence[Value],
    types: Sequence[TensorType],
    after: Sequence[Value],
    changing: dict[str, DimLike],
) -> list[TensorType] | None:
    """The types with a symbol for each dim that a pass changes; None if none does."""
    result: list[TensorType] = []
    changed = False
    for start, kind, value in zip(initial, types, after, strict=True):
        to = value.type
        if to.dtype is not kind.dtype or to.rank != kind.rank:
            raise CompileError(
                f"the loop carries {kind.describe()} in and {to.describe()} out; the element type and the rank have to stay"
            )
        shape = list(kind.shape)
        for axis, (have, new) in enumerate(zip(kind.shape, to.shape, strict=True)):
            if have != new and not (symbols_of(have) & changing.keys()):
                name = b.fresh_symbol(f"{start.name or 'carried'}.d{axis}")
                changing[name] = start.type.shape[axis]
                shape[axis] = symbol(name)
                changed = True
        result.append(TensorType(kind.dtype, tuple(shape)))
    return result if changed else None


def _finish(
    b: Builder,
    trip: DimLike | None,
    condition: Value | None,
    initial: Sequence[Value],
    made: LoopBody,
    inner: Builder,
    index: DimLike,
    changing: dict[str, DimLike],
) -> tuple[list[Value], list[Value]]:
    block = inner.block
    next_condition = made.condition
    if next_condition is not None:
        goes_on = constant_of(next_condition)
        if goes_on is not None and goes_on.reshape(-1)[0]:
            next_condition = None
    conditional = condition is not None or next_condition is not None
    after: dict[str, str] = {name: b.fresh_symbol(name) for name in changing}
    following: list[DimLike] = []
    for name in changing:
        for argument, value in zip(block.arguments, made.carried, strict=True):
            axes = [a for a, d in enumerate(argument.type.shape) if d == symbol(name)]
            if axes:
                following.append(value.type.shape[axes[0]])
                break
    count: DimLike = symbol(b.fresh_symbol("passes"))
    if not conditional and trip is not None:
        count = maximum(trip, 0)
    # Dims of stacked elements that only the body knows are bound by it as well.
    local = _local_symbols(block) | symbols_of(index) | set(changing)
    stacked_types: list[TensorType] = []
    for element in made.stacked:
        shape: list[DimLike] = [count]
        for dim in element.type.shape:
            if symbols_of(dim) & local:
                name, behind = b.fresh_symbol("element"), b.fresh_symbol("element")
                changing[name], after[name] = 0, behind
                following.append(dim)
                shape.append(symbol(behind))
            else:
                shape.append(dim)
        stacked_types.append(TensorType(element.type.dtype, tuple(shape)))
    inner.emit("core.bind_result", (), (), {"values": tuple(following)})
    one = inner.constant(True, boolean) if conditional and next_condition is None else next_condition
    head = [one] if conditional and one is not None else []
    inner.emit("core.yield", [*head, *made.carried, *made.stacked], (), {})
    names = {old: symbol(new) for old, new in after.items()}
    carried_types = [
        TensorType(a.type.dtype, tuple(names.get(plain_symbol(d), d) for d in a.type.shape))
        for a in block.arguments
    ]
    first = b.constant(True, boolean) if conditional and condition is None else condition
    op = Op(
        "core.loop",
        [*([first] if conditional and first is not None else []), *initial],
        [*carried_types, *stacked_types],
        {
            "index": plain_symbol(index),
            "trip": -1 if trip is None else trip,
            "carried": len(initial),
            "conditional": conditional,
            "symbols": tuple(changing),
            "first": tuple(changing.values()),
            "results": tuple(after[name] for name in changing),
            "count": count,
        },
        [block],
        location=b.location,
    )
    b.block.append(op)
    return op.results[: len(initial)], op.results[len(initial) :]


def _local_symbols(block: Block) -> set[str]:
    """Symbols that ops of a body bind."""
    found: set[str] = set()
    for op in block.ops:
        if op.name == "core.bind_dims" or op.name == "core.if":
            found.update(op.attributes["symbols"])
        elif op.name == "core.loop":
            found.update(op.attributes["results"])
            if op.attributes["conditional"] or op.attributes["trip"] == -1:
                found |= symbols_of(op.attributes["count"])
    return found


def _symbols_behind(value: Value) -> set[str]:
    """The symbols of dims that a value is computed from, if it is computed from nothing else."""
    found: set[str] = set()
    todo = [value]
    while todo:
        op = todo.pop().op
        if op is None:
            return set()
        if op.name == "core.dims":
            found.update(*(symbols_of(d) for d in op.attributes["values"]))
        todo.extend(op.operands)
    return found


def _branches(
    condition: Value, inner: list[Builder], makers: Sequence[Callable[[Builder], Sequence[Value]]]
) -> list[list[Value]]:
    """What both branches yield.  A branch that cannot be built is a fault of the run that takes it: models
    hold branches that fit only other sizes than those they are fed with."""
    yields: list[list[Value] | None] = [None, None]
    errors: list[CompileError | None] = [None, None]
    for number, make in enumerate(makers):
        try:
            yields[number] = list(make(inner[number]))
        except NeedsConstant:
            raise
        except CompileError as error:
            errors[number] = error
    if not all(is_plain(y) for y in yields if y is not None):
        raise NeedsConstant("the branches give sequences, so the condition has to be known", condition.name)
    for number, refused in enumerate(errors):
        other = yields[1 - number]
        if refused is None:
            continue
        if other is None:
            raise refused
        discard(inner[number].block)
        one = inner[number] = inner[number].child(Block())
        one.require("equal", 0, 1, f"this branch cannot be run: {refused.reason}")
        local = _local_symbols(inner[1 - number].block)
        shapes = [tuple(0 if symbols_of(d) & local else d for d in v.type.shape) for v in other]
        yields[number] = [
            one.broadcast_to(one.constant(0, v.type.dtype), shape)
            for v, shape in zip(other, shapes, strict=True)
        ]
    return [y for y in yields if y is not None]


def build_if(
    b: Builder,
    condition: Value,
    then: Callable[[Builder], Sequence[Value]],
    otherwise: Callable[[Builder], Sequence[Value]],
) -> list[Value]:
    """A choice; a known condition takes its branch at once."""
    known = constant_of(condition)
    if known is not None:
        return list((then if known.reshape(-1)[0] else otherwise)(b))
    blocks = [Block(), Block()]
    inner = [b.child(block) for block in blocks]
    yields = _branches(condition, inner, (then, otherwise))
    blocks = [one.block for one in inner]
    if len(yields[0]) != len(yields[1]):
        raise CompileError(f"the branches give {len(yields[0])} and {len(yields[1])} values")
    local = [_local_symbols(block) for block in blocks]
    names: list[str] = []
    bound: list[list[DimLike]] = [[], []]
    types: list[TensorType] = []
    for left, right in zip(*yields, strict=True):
        if left.type.dtype is not right.type.dtype or left.type.rank != right.type.rank:
            reason = f"the branches give {left.type.describe()} and {right.type.describe()}; element type and rank have to agree"
            deciding = _symbols_behind(condition)
            if deciding:
                raise NeedsConstant(reason, condition.name, frozenset(deciding))
            raise CompileError(reason)
        shape: list[DimLike] = []
        for x, y in zip(left.type.shape, right.type.shape, strict=True):
            if x == y and not symbols_of(x) & (local[0] | local[1]):
                shape.append(x)
            else:
                names.append(b.fresh_symbol("branch"))
                bound[0].append(x)
                bound[1].append(y)
                shape.append(symbol(names[-1]))
        types.append(TensorType(left.type.dtype, tuple(shape)))
    for one, values, dims in zip(inner, yields, bound, strict=True):
        one.emit("core.bind_result", (), (), {"values": tuple(dims)})
        one.emit("core.yield", values, (), {})
    op = Op("core.if", [condition], types, {"symbols": tuple(names)}, blocks, location=b.location)
    b.block.append(op)
    return op.results
