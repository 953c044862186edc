"""fold: computes what depends on constants only.

Building core ops folds as well (this pass asks the same builder), so a model that comes through `lower` has
nothing left to fold; the pass is for modules that were read from text, or in which a rewrite made more
operands constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.core.builder import Builder
from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Module, Op, blocks
from sardonyx.passes.budget import allowed
from sardonyx.passes.simplify import remove_unused

__all__ = ["Fold"]


@dataclass(frozen=True)
class Fold:
    """Requires: core level.  Ensures: no exact op is left that has constant operands and a small result."""

    name: str = field(default="fold", init=False)

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in blocks(function):
                changed |= _fold(block)
        return changed


def _fold(block: Block) -> bool:
    changed = False
    for op in block.ops.copy():
        constant = _folded(op)
        if constant is None or not allowed("fold", "compute a constant", op):
            continue
        constant.block = block
        constant.result.name = op.result.name
        block.ops[block.ops.index(op)] = constant
        op.result.replace_by(constant.result)
        op.drop_uses()
        op.block = None
        changed = True
    if changed:
        remove_unused(block)
    return changed


def _folded(op: Op) -> Op | None:
    """The constant that an op always gives."""
    if not has_trait(op, Trait.EXACT) or not op.operands or len(op.results) != 1:
        return None
    if not all(o.op is not None and o.op.name == "core.constant" for o in op.operands):
        return None
    builder = Builder(Block(), location=op.location)
    made = builder.op(op.name, *op.operands, **op.attributes).op
    if made is not None and made.name == "core.constant" and made.block is builder.block:
        return made
    for one in builder.block.ops:
        one.drop_uses()
    return None
