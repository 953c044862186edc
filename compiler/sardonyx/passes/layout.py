"""layout: lets tensors stay channels last from one convolution to the next.

Lowering puts a transpose in front of and behind every channels-last op.  Here transposes move down, past
the ops that can as well work on the untransposed operand, until they meet their inverse and both vanish,
or reach a use that needs the order.  Every rule is exact; each moves a transpose behind at least one op,
so the pass ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.ir.attributes import Dense
from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Module, Op, Value, blocks
from sardonyx.ir.types import Shape
from sardonyx.passes.budget import allowed

__all__ = ["Layout"]

Permutation = tuple[int, ...]
Rule = Callable[[Builder, Op, "Turned"], "Value | None"]


@dataclass(frozen=True)
class Layout:
    """Requires: core level, simplified.  Ensures: the same values; transposes as late as they can be."""

    name: str = field(default="layout", init=False)

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in blocks(function):
                changed |= _run(block)
        return changed


class Turned:
    """An op's operands without the transpose in front: ``operand = transpose(inner, permutation)``."""

    def __init__(self, permutation: Permutation, inner: Sequence[Value]) -> None:
        self.permutation = permutation
        self.inner = inner

    @property
    def inverse(self) -> Permutation:
        return inverse(self.permutation)


def inverse(permutation: Sequence[int]) -> Permutation:
    """The permutation that undoes this one."""
    return tuple(int(i) for i in np.argsort(permutation))


def _run(body: Block) -> bool:
    changed = False
    # Rules see operands that were already rewritten: one walk carries a transpose all the way.
    for op in body.ops.copy():
        b = Builder(Block(), location=op.location)
        value = _rewritten(b, op)
        if value is None:
            continue
        if not allowed("layout", "work on the untransposed operand", op):
            for one in reversed(b.block.ops):
                one.drop_uses()
            continue
        changed = True
        if not value.name:
            value.name = op.result.name
        position = body.ops.index(op)
        op.result.replace_by(value)
        op.drop_uses()
        op.block = None
        for one in b.block.ops:
            one.block = body
        body.ops[position : position + 1] = b.block.ops
    return changed


def _rewritten(b: Builder, op: Op) -> Value | None:
    if op.name == "core.transpose":
        return _transpose(b, op)
    rule = _RULES.get(op.name) or (_elementwise if has_trait(op, Trait.ELEMENTWISE) else None)
    if rule is None:
        return None
    permutation = _leading(op)
    if permutation is None:
        return None
    inner: list[Value] = []
    for operand in op.operands:
        if op.name in _SCALAR_SECOND and inner:
            inner.append(operand)
            continue
        found = _without(b, operand, permutation)
        if found is None:
            return None
        inner.append(found)
    return rule(b, op, Turned(permutation, inner))


def _transpose(b: Builder, op: Op) -> Value | None:
    """Two in a row are one; one that moves only axes of extent 1 is a reshape."""
    (x,) = op.operands
    permutation: Permutation = tuple(op.attributes["permutation"])
    if x.op is not None and x.op.name == "core.transpose":
        before = x.op.attributes["permutation"]
        return b.transpose(x.op.operands[0], [before[p] for p in permutation])
    moved = [p for p in permutation if x.type.shape[p] != 1]
    if moved == sorted(moved):
        return b.reshape(x, op.result.type.shape)
    return None


def _leading(op: Op) -> Permutation | None:
    """The permutation of the transposes among the operands."""
    for operand in op.operands:
        if operand.op is not None and operand.op.name == "core.transpose":
            return tuple(operand.op.attributes["permutation"])
    return None


def _without(b: Builder, value: Value, permutation: Permutation) -> Value | None:
    """The value whose transpose by the permutation is the operand, where it costs nothing to have it."""
    op = value.op
    if op is None or value.type.rank != len(permutation):
        return None
    back = inverse(permutation)
    if op.name == "core.transpose":
        return op.operands[0] if tuple(op.attributes["permutation"]) == permutation else None
    if op.name == "core.constant":
        dense = op.attributes["value"]
        return b.constant(Dense(np.ascontiguousarray(dense.array.transpose(back)), dense.dtype))
    if op.name == "core.broadcast":
        return _broadcast_without(b, op, permutation, back)
    return None


def _broadcast_without(b: Builder, op: Op, permutation: Permutation, back: Permutation) -> Value | None:
    (x,) = op.operands
    shape: Shape = tuple(op.result.type.shape[p] for p in back)
    if x.type.size == 1:
        return b.broadcast_to(b.reshape(x, ()), shape)
    full = (1,) * (len(shape) - x.type.rank) + tuple(x.type.shape)
    moved = [p for p in back if full[p] != 1]
    if moved == sorted(moved):  # only axes of extent 1 change places
        return b.broadcast_to(b.reshape(x, [full[p] for p in back]), shape)
    inner = _without(b, x, permutation)
    return None if inner is None else b.broadcast_to(inner, shape)


# -- rules: op(transpose(x)) = transpose(op'(x))


def _elementwise(b: Builder, op: Op, turned: Turned) -> Value:
    """f(transpose(x), transpose(y)) = transpose(f(x, y))."""
    return b.transpose(b.op(op.name, *turned.inner, **op.attributes), turned.permutation)


def _axes_moved(name: str) -> Rule:
    """Ops with one attribute entry per axis: the entries move with the axes."""

    def rule(b: Builder, op: Op, turned: Turned) -> Value:
        attributes = dict(op.attributes)
        for key in _PER_AXIS[name]:
            attributes[key] = tuple(op.attributes[key][p] for p in turned.inverse)
        return b.transpose(b.op(name, *turned.inner, **attributes), turned.permutation)

    return rule


def _broadcast(b: Builder, op: Op, turned: Turned) -> Value | None:
    """broadcast(transpose(x)) of the same rank = transpose(broadcast(x))."""
    shape: Shape = op.attributes["shape"]
    if len(shape) != len(turned.permutation):
        return None
    return b.transpose(
        b.broadcast_to(turned.inner[0], tuple(shape[p] for p in turned.inverse)), turned.permutation
    )


def _concat(b: Builder, op: Op, turned: Turned) -> Value:
    """concat(transpose(x), transpose(y)) = transpose(concat(x, y)) along the axis it was."""
    axis = turned.permutation[op.attributes["axis"]]
    return b.transpose(b.op("core.concat", *turned.inner, axis=axis), turned.permutation)


def _repeat(b: Builder, op: Op, turned: Turned) -> Value:
    """repeat(transpose(x)) = transpose(repeat(x)) along the axis it was."""
    axis = turned.permutation[op.attributes["axis"]]
    return b.transpose(b.op(op.name, *turned.inner, **{**op.attributes, "axis": axis}), turned.permutation)


def _gather(b: Builder, op: Op, turned: Turned) -> Value | None:
    """gather(transpose(x), one-dimensional indices) = transpose(gather(x)) along the axis it was."""
    return _repeat(b, op, turned) if op.operands[1].type.rank == 1 else None


def _reduce(b: Builder, op: Op, turned: Turned) -> Value:
    """reduce(transpose(x)) = transpose(reduce(x)) over the axes they were."""
    axes = tuple(sorted(turned.permutation[a] for a in op.attributes["axes"]))
    kept = [p for i, p in enumerate(turned.permutation) if i not in op.attributes["axes"]]
    order = sorted(kept)
    attributes = {**op.attributes, "axes": axes}
    return b.transpose(b.op("core.reduce", turned.inner[0], **attributes), [order.index(p) for p in kept])


def _reshape(b: Builder, op: Op, turned: Turned) -> Value | None:
    """A reshape that only adds or drops axes of extent 1 keeps the order of the others."""
    have, want = op.operands[0].type.shape, op.result.type.shape
    whole = [i for i, d in enumerate(have) if d != 1]
    into = [i for i, d in enumerate(want) if d != 1]
    if [have[i] for i in whole] != [want[i] for i in into]:
        return None
    # The axes of the result in the order in which the operand's lie in memory; those of extent 1 in front.
    source = {turned.permutation[i]: j for i, j in zip(whole, into, strict=True)}
    memory = [source[axis] for axis in sorted(source)]
    order = [j for j in range(len(want)) if want[j] == 1] + memory
    inner = b.reshape(turned.inner[0], [want[j] for j in order])
    return b.transpose(inner, [order.index(j) for j in range(len(want))])


_PER_AXIS: Mapping[str, tuple[str, ...]] = {
    "core.pad": ("low", "high"),
    "core.slice": ("starts", "sizes", "steps"),
    "core.assume": ("shape",),
}
_SCALAR_SECOND = frozenset({"core.pad", "core.gather"})  # the second operand is no tensor of the axes

_RULES: Mapping[str, Rule] = {
    "core.broadcast": _broadcast,
    "core.concat": _concat,
    "core.gather": _gather,
    "core.repeat": _repeat,
    "core.reduce": _reduce,
    "core.reshape": _reshape,
    **{name: _axes_moved(name) for name in _PER_AXIS},
}
