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
    "x",
    "symbols minimum?",
    traits=[Trait.EFFECT, Trait.CAN_FAULT],
    doc="read an integer tensor at run time; its elements become the values of the symbols, each at least `minimum`",
)
declare(
    "core.fused",
    "*inputs",
    "kind",
    regions=1,
    doc="a group of core ops computed by one kernel; the region's arguments stand for the operands",
)
