"""Passes of a user's own, one wrong and two that break; loaded by `--load`."""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx import register_pass
from sardonyx.ir.graph import Module, walk
from sardonyx.passes.budget import allowed


@register_pass
@dataclass(frozen=True)
class FloorToCeil:
    """Floors become ceils, which is wrong."""

    most: int = 99
    name = "floor-to-ceil"

    def run(self, module: Module) -> bool:
        changed = 0
        for op in walk(module):
            if op.name == "core.floor" and changed < self.most and allowed(self.name, "floor to ceil", op):
                op.name = "core.ceil"
                changed += 1
        return changed > 0


@register_pass
@dataclass(frozen=True)
class BreaksAtFloor:
    """Breaks down where it sees a floor."""

    name = "breaks-at-floor"

    def run(self, module: Module) -> bool:
        for op in walk(module):
            if op.name == "core.floor":
                raise KeyError(op.attributes["nothing"])
        return False


@register_pass
@dataclass(frozen=True)
class LosesAnOperand:
    """Leaves a module that does not verify."""

    name = "loses-an-operand"

    def run(self, module: Module) -> bool:
        for op in walk(module):
            if op.name == "core.ge":
                op.set_operands(op.operands[:1])
                return True
        return False
