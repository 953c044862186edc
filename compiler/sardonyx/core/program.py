"""Core ops that say what the program does around the tensors: results, dims bound at run time, fusion."""

from __future__ import annotations

from sardonyx.ir.declare import Trait, declare

__all__: list[str] = []

declare("core.return", "*values", traits=[Trait.TERMINATOR], doc="the results of a function")
declare("core.yield", "*values", traits=[Trait.TERMINATOR], doc="the results of a region")
declare(
    "core.require",
    "",
    "relation left right message",
    traits=[Trait.EFFECT, Trait.CAN_FAULT],
    doc="a fact about dims checked at run time: relation `equal`, `broadcast`, `at_least`; `message` names both tensors",
)
declare(
    "core.bind_dims",
    "*tensors",
    "symbols minimum? rule? dims? steps? allowzero?",
    traits=[Trait.EFFECT, Trait.CAN_FAULT],
    doc=(
        "read integer tensors at run time and bind symbols. Without a `rule` the elements are the values, each at least "
        "`minimum`. Rule `reshape`: the elements are the target of a Reshape of `dims` (0 copies by position unless "
        "`allowzero`, -1 takes the rest). Rule `slice`: starts and ends of a Slice along axes of the extents `dims` by "
        "`steps`; per axis a symbol for the first index and one for the number of elements"
    ),
)
declare(
    "core.fused",
    "*inputs",
    "kind",
    regions=1,
    doc="a group of core ops computed by one kernel; the region's arguments stand for the operands",
)
