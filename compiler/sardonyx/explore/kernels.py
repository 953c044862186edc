"""The code of one kernel at every stage from loops to assembly, with the lines that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.explore.graph import Graph
from sardonyx.explore.lines import Text, located_lines
from sardonyx.ir.graph import Function
from sardonyx.listing import KernelListing

__all__ = ["KERNEL_STAGES", "emitted", "kernel_data"]

KERNEL_STAGES = ("loop", "llvm", "llvm-opt", "asm")


def emitted(llvm: str, nodes: int) -> Text:
    """LLVM IR as it is emitted; its lines do not tell where they come from."""
    text = Text()
    for line in llvm.strip("\n").split("\n"):
        text.add(line, nodes)
    return text


def kernel_data(
    function: Function, listing: KernelListing, llvm: Text, graph: Graph, nodes: int
) -> dict[str, Any]:
    """Texts by stage, and as ``links`` the loop line that each line stems from (-1: none is known).

    ``nodes`` is the set of nodes of lines that tell none themselves.
    """
    loop = Text()
    for line, location in located_lines(function):
        loop.add(line, graph.node_set(location) or nodes)
    links = {"llvm-opt": _numbers(listing.llvm_to_loop), "asm": _numbers(listing.asm_to_loop)}
    texts = {
        "loop": loop,
        "llvm": llvm,
        "llvm-opt": _linked(listing.llvm, links["llvm-opt"], loop, nodes),
        "asm": _linked(listing.asm, links["asm"], loop, nodes),
    }
    return {**{stage: text.data() for stage, text in texts.items()}, "links": links}


def _numbers(places: Sequence[int | None]) -> list[int]:
    return [-1 if place is None else place for place in places]


def _linked(lines: Sequence[str], places: Sequence[int], loop: Text, nodes: int) -> Text:
    text = Text()
    for line, place in zip(lines, places, strict=True):
        text.add(line, loop.sets[place] if place >= 0 else nodes)
    return text
