"""Core ops that say what the program does around the tensors: results, dims bound at run time, fusion."""

from __future__ import annotations

from sardonyx.ir.declare import Trait, declare

__all__: list[str] = []

declare(
    "core.return",
    "*values",
    traits=[Trait.TERMINATOR],
    doc="the results of a function",
    example="core.return %x : (tensor<4xf32>) -> ()",
)
declare(
    "core.yield",
    "*values",
    traits=[Trait.TERMINATOR],
    doc="the results of a region",
    example="core.yield %x : (tensor<4xf32>) -> ()",
)
declare(
    "core.require",
    "",
    "relation left right message",
    traits=[Trait.EFFECT, Trait.CAN_FAULT],
    doc="a fact about dims checked at run time: relation `equal`, `broadcast`, `at_least`; `message` names both tensors",
    example=(
        'core.require {relation = "equal", left = #sdx.dim<"n">, right = #sdx.dim<"m">, message = "n and m differ"}'
        " : () -> ()"
    ),
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
    example='core.bind_dims %x {symbols = ["k"], minimum = 0} : (tensor<i64>) -> ()',
)
declare(
    "core.fused",
    "*inputs",
    "kind",
    regions=1,
    doc="a group of core ops computed by one kernel; the region's arguments stand for the operands",
    example=(
        '%y = core.fused %x {kind = "map"} ({\n'
        "^bb0(%a: tensor<4xf32>):\n"
        "  %b = core.floor %a : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  core.yield %b : (tensor<4xf32>) -> ()\n"
        "}) : (tensor<4xf32>) -> tensor<4xf32>"
    ),
)
