"""Control flow of the core level: a choice of two bodies, and a loop that carries tensors.

Bodies are regions without isolation: they use values of the enclosing blocks.  A dim that differs from
pass to pass (or from branch to branch) is a symbol of its own, bound anew by the op; the op's
``bindings`` say by what.
"""

from __future__ import annotations

from sardonyx.ir.declare import Trait, declare

__all__: list[str] = []

declare(
    "core.if",
    "condition",
    "symbols",
    regions=2,
    traits=[Trait.CAN_FAULT],
    doc=(
        "one of two regions, by the first element of a bool tensor; their yields are the results. `symbols` name the "
        "dims of the results that the taken branch decides, in the order of its `core.bind_result`"
    ),
    example=(
        "%y = core.if %c {symbols = []} ({\n"
        "  core.bind_result {values = []} : () -> ()\n"
        "  core.yield %x : (tensor<4xf32>) -> ()\n"
        "}, {\n"
        "  %0 = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  core.bind_result {values = []} : () -> ()\n"
        "  core.yield %0 : (tensor<4xf32>) -> ()\n"
        "}) : (tensor<i1>) -> tensor<4xf32>"
    ),
)
declare(
    "core.loop",
    "*operands",
    "index trip carried conditional symbols first results count",
    regions=1,
    traits=[Trait.CAN_FAULT],
    doc=(
        "repeats its region. Operands: the first condition (with `conditional`), then the initial values of the "
        "`carried` tensors, which are the region's arguments. `index` is the symbol that counts the passes, `trip` "
        "their greatest number (a dim; none: no bound). The region yields the next condition (with `conditional`), the "
        "carried values, then one element of each stacked result. `symbols` are dims that change from pass to pass, "
        "`first` their values at first; the region's `core.bind_result` gives the next ones. `results` are their names "
        "behind the loop, `count` the symbol (or dim) that tells how many passes there were"
    ),
    example=(
        '%y = core.loop %x {index = "i", trip = 3, carried = 1, conditional = false, symbols = [], first = [], results = [], count = 3} ({\n'
        "^bb0(%now: tensor<4xf32>):\n"
        "  %next = core.exp %now : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  core.bind_result {values = []} : () -> ()\n"
        "  core.yield %next : (tensor<4xf32>) -> ()\n"
        "}) : (tensor<4xf32>) -> tensor<4xf32>"
    ),
)
declare(
    "core.bind_result",
    "",
    "values",
    traits=[Trait.EFFECT],
    doc="stands before the yield of a region: what the symbols of the enclosing op are bound to",
    example='core.bind_result {values = #sdx.dims<"n+1">} : () -> ()',
)
