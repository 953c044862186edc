"""collapse: merges neighbouring axes inside elementwise groups, so that loops are few and long.

Two axes merge when every value of the group either has both whole or neither (extent 1).  The
region's arguments get the merged shapes; the operands outside keep theirs (the same elements in the
same order).
"""

from __future__ import annotations

from collections.abc import Collection

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Value
from sardonyx.ir.types import Shape, TensorType
from sardonyx_runtime.dims import DimLike, product

__all__ = ["collapse_region"]

_PATTERN_OPS = frozenset({"core.broadcast", "core.assume"})
_INDEXED = frozenset(
    f"core.{k}"
    for k in "reshape transpose slice repeat unfold pad concat gather gather_elements gather_nd iota".split()
)


def collapse_region(region: Block, apart: Collection[int] = ()) -> bool:
    """Merge axes of a region of elementwise ops, broadcasts and scalar constants; whether any merged.

    Axes of ``apart`` are not merged with those in front: what follows them is a row of a larger tensor.

    Regions with other movement are left alone: their axes have a meaning of their own.
    """
    roots = region.terminator.operands
    shape: Shape = roots[0].type.shape
    rank = len(shape)
    if any(v.type.shape != shape for v in roots):
        return False
    values: list[Value] = [*region.arguments, *(r for op in region.ops for r in op.results)]
    for op in region.ops:
        if op.name in _INDEXED:
            return False
        if op.name == "core.dims" and op.result.type.rank:
            return False
    if any(v.type.rank > rank for v in values):
        return False
    # Per value: the set of axes (of the full rank) along which it is whole.
    patterns = {v: _whole_axes(v.type.shape, shape) for v in values}
    if any(p is None for p in patterns.values()):
        return False
    groups: list[list[int]] = []
    begins = True
    for axis in range(rank):
        begins = begins or axis in apart
        if shape[axis] == 1:
            continue
        first, begins = begins, False
        if (
            groups
            and not first
            and all((groups[-1][-1] in p) == (axis in p) for p in patterns.values() if p is not None)
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) == rank and all(v.type.rank in (0, rank) for v in values):
        return False
    for value in values:
        pattern = patterns[value]
        assert pattern is not None
        if not pattern:
            merged: tuple[DimLike, ...] = ()
        else:
            merged = tuple(product(shape[a] for a in g) if g[0] in pattern else 1 for g in groups)
        value.type = TensorType(value.type.dtype, merged)
        if value.op is not None and value.op.name == "core.constant":
            dense: Dense = value.op.attributes["value"]
            value.op.attributes = {"value": Dense(dense.array.reshape(value.type.shape), dense.dtype)}
    full = tuple(product(shape[a] for a in g) for g in groups)
    for op in list(region.ops):
        if op.name in _PATTERN_OPS:
            if op.operands[0].type == op.result.type:
                op.result.replace_by(op.operands[0])
                op.erase()
            else:
                op.attributes = {"shape": op.result.type.shape}
    for root in region.terminator.operands:
        if root.type.shape != full:  # a result the same everywhere
            root.type = TensorType(root.type.dtype, full)
    return True


def _whole_axes(have: Shape, shape: Shape) -> set[int] | None:
    """The axes along which a value is whole; None if a dim may or may not be 1."""
    whole: set[int] = set()
    lead = len(shape) - len(have)
    for i, dim in enumerate(have):
        if dim == shape[lead + i]:
            if dim != 1:
                whole.add(lead + i)
        elif dim != 1:
            return None
    return whole
