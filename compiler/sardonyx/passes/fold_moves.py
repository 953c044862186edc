"""fold moves: constants in the order in which they are read.

Building core ops folds small transposes only: whether a tensor is a constant must not decide in which
layout a group computes, or a model with its inputs made constants would sum in another order and round
otherwise.  Once layouts are settled, transposed constants are written down in their new order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Module, Op, blocks
from sardonyx.passes.budget import allowed
from sardonyx.passes.simplify import remove_unused

__all__ = ["FoldMoves"]


@dataclass(frozen=True)
class FoldMoves:
    """Requires: core level.  Ensures: no transpose of a constant is left."""

    name: str = field(default="fold-moves", init=False)

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in blocks(function):
                changed |= _fold(block)
        return changed


def _fold(block: Block) -> bool:
    changed = False
    for op in block.ops.copy():
        if op.name != "core.transpose":
            continue
        source = op.operands[0].op
        if source is None or source.name != "core.constant":
            continue
        if not allowed("fold-moves", "transpose a constant", op):
            continue
        dense: Dense = source.attributes["value"]
        turned = np.ascontiguousarray(dense.array.transpose(op.attributes["permutation"]))
        made = Dense(turned, dense.dtype)
        constant = Op("core.constant", (), [made.type], {"value": made}, location=op.location)
        constant.block = block
        constant.result.name = op.result.name
        block.ops.insert(block.ops.index(op), constant)
        op.result.replace_by(constant.result)
        changed = True
    if changed:
        remove_unused(block)
    return changed
