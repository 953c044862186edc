"""Affine views: a value that is only another tensor's memory under other strides.

Transposes, broadcasts, slices and many reshapes move no element: element ``i`` of the value lies at
``offset + sum(strides[a] * i[a])`` of the memory of ``root``.  Products read their operands this way,
so such movement in front of them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sardonyx.ir.graph import Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.index_maps import reshape_groups
from sardonyx_runtime.dims import DimLike, product

__all__ = ["View", "row_major", "view_of"]


@dataclass(frozen=True)
class View:
    """Elements of ``root``'s memory: offset and strides in elements, one stride per axis of the value."""

    root: Value
    offset: DimLike
    strides: Shape


def row_major(shape: Shape) -> Shape:
    """The strides of a tensor that lies in memory as it is."""
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))


def view_of(value: Value, stop: Callable[[Value], bool] = lambda value: False) -> View:
    """The value as a view of the value farthest up that it is one of; itself at least.

    ``stop`` says which values have memory of their own and are not looked through.
    """
    op = value.op
    rule = None if op is None or stop(value) else _RULES.get(op.kind)
    if op is not None and rule is not None:
        found = rule(op, view_of(op.operands[0], stop))
        if found is not None:
            return found
    return View(value, 0, row_major(value.type.shape))


def _transpose(op: Op, x: View) -> View:
    return View(x.root, x.offset, tuple(x.strides[p] for p in op.attributes["permutation"]))


def _broadcast(op: Op, x: View) -> View | None:
    have, want = op.operands[0].type.shape, op.result.type.shape
    strides: list[DimLike] = [0] * (len(want) - len(have))
    for a, b, stride in zip(have, want[len(strides) :], x.strides, strict=True):
        if a != b and a != 1:
            return None  # a symbol that may be 1
        strides.append(stride if a == b else 0)
    return View(x.root, x.offset, tuple(strides))


def _assume(op: Op, x: View) -> View:
    return x


def _slice(op: Op, x: View) -> View:
    offset = x.offset
    strides: list[DimLike] = []
    for start, step, stride in zip(op.attributes["starts"], op.attributes["steps"], x.strides, strict=True):
        offset = offset + start * stride
        strides.append(stride * step)
    return View(x.root, offset, tuple(strides))


def _reshape(op: Op, x: View) -> View | None:
    """Axes of the operand that are split or merged have to be evenly spaced."""
    source, target = op.operands[0].type.shape, op.result.type.shape
    strides: list[DimLike] = [0] * len(target)
    for have, want in reshape_groups(source, target):
        axes = [a for a in have if source[a] != 1]
        step: DimLike = x.strides[axes[-1]] if axes else 0
        for outer, inner in pairwise(axes):
            if x.strides[outer] != x.strides[inner] * source[inner]:
                return None
        for axis in reversed(want):
            strides[axis] = step
            step = step * target[axis]
    return View(x.root, x.offset, tuple(strides))


def _unfold(op: Op, x: View) -> View:
    axis = op.attributes["axis"]
    stride = x.strides[axis]
    inner = (stride * op.attributes["step"], stride * op.attributes["dilation"])
    return View(x.root, x.offset, (*x.strides[:axis], *inner, *x.strides[axis + 1 :]))


_RULES: Mapping[str, Callable[[Op, View], View | None]] = {
    "transpose": _transpose,
    "broadcast": _broadcast,
    "assume": _assume,
    "slice": _slice,
    "reshape": _reshape,
    "unfold": _unfold,
}
