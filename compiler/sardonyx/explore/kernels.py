"""The code of one kernel at every stage from loops to assembly, with the lines that belong together."""

from __future__ import annotations

from typing import Any

from sardonyx.codegen.compile import kernel_text
from sardonyx.codegen.objects import assembly, optimise
from sardonyx.explore.graph import Graph
from sardonyx.explore.lines import Text, located_lines
from sardonyx.ir.graph import Function
from sardonyx.kernels.target import Target

__all__ = ["KERNEL_STAGES", "kernel_data"]

KERNEL_STAGES = ("loop", "llvm", "llvm-opt", "asm")


def kernel_data(function: Function, symbol: str, target: Target, graph: Graph, nodes: int) -> dict[str, Any]:
    """Texts by stage; ``nodes`` is the set of nodes of lines that tell none themselves."""
    loop = Text()
    for line, location in located_lines(function):
        loop.add(line, graph.node_set(location) or nodes)
    llvm = kernel_text(function, symbol, target)
    code = {"llvm": llvm, "llvm-opt": str(optimise(llvm, target)), "asm": assembly(llvm, target)}
    data: dict[str, Any] = {"loop": loop.data()}
    for stage, text in code.items():
        plain = Text()
        for line in text.strip("\n").split("\n"):
            plain.add(line, nodes)
        data[stage] = plain.data()
    return data
