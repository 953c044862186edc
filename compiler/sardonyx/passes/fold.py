"""fold: computes what depends on constants only.

Building core ops folds as well (this pass asks the same builder), so that a model that comes through `lower`
has little left.  What is left are transposes of weights: whether a tensor is a constant must not decide in
which layout a group computes, or a model with its inputs made constants would sum in another order and round
otherwise.  Once layouts are settled, `fold{moves=true}` writes transposed constants down in their new order.
The whole pass is for modules that were read from text, or in which a rewrite made more operands constant.
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
    """Requires: core level.  Ensures: no exact op is left that has constant operands and a small result.

    With ``moves``: no transpose of a constant is left, however large; nothing else is folded.
    """

    moves: bool = False
    name: str = field(default="fold", init=False)

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in blocks(function):
                changed |= self._fold(block)
        return changed

    def _fold(self, block: Block) -> bool:
        changed = False
        for op in block.ops.copy():
            constant = self._constant(op)
            if constant is None or not allowed(self.name, "compute a constant", op):
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

    def _constant(self, op: Op) -> Op | None:
        """The constant that an op always gives."""
        if not has_trait(op, Trait.EXACT) or not op.operands or len(op.results) != 1:
            return None
        if not all(o.op is not None and o.op.name == "core.constant" for o in op.operands):
            return None
        if self.moves and op.name != "core.transpose":
            return None
        builder = Builder(Block(), location=op.location)
        if self.moves:
            with builder.folding():
                made = builder.op(op.name, *op.operands, **op.attributes).op
        else:
            made = builder.op(op.name, *op.operands, **op.attributes).op
        if made is not None and made.name == "core.constant" and made.block is builder.block:
            return made
        for one in builder.block.ops:
            one.drop_uses()
        return None
