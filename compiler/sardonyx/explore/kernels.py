"""The code of one kernel at every stage from loops to assembly, with the lines that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.explore.graph import Graph
from sardonyx.explore.lines import Text, located_lines
from sardonyx.ir.graph import Function
from sardonyx.listings.listing import KernelListing

__all__ = ["KERNEL_STAGES", "kernel_data"]

KERNEL_STAGES = ("loop", "llvm", "llvm-opt", "asm")


def kernel_data(function: Function, listing: KernelListing, graph: Graph, nodes: int) -> dict[str, Any]:
    """Texts by stage, and as ``links`` the loop line that each line stems from (-1: none is known).

    ``nodes`` is the set of nodes of lines that tell none themselves.
    """
    loop = Text()
    for line, location in located_lines(function):
        loop.add(line, graph.node_set(location) or nodes)
    code = {
        "llvm": (listing.emitted, listing.emitted_to_loop),
        "llvm-opt": (listing.llvm, listing.llvm_to_loop),
        "asm": (listing.asm, listing.asm_to_loop),
    }
    links = {stage: _numbers(places) for stage, (_, places) in code.items()}
    texts = {"loop": loop, **{s: _linked(lines, links[s], loop, nodes) for s, (lines, _) in code.items()}}
    return {**{stage: text.data() for stage, text in texts.items()}, "links": links}


def _numbers(places: Sequence[int | None]) -> list[int]:
    return [-1 if place is None else place for place in places]


def _linked(lines: Sequence[str], places: Sequence[int], loop: Text, nodes: int) -> Text:
    text = Text()
    for line, place in zip(lines, places, strict=True):
        text.add(line, loop.sets[place] if place >= 0 else nodes)
    return text
