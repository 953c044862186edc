"""The memory plan as data: lives and places of all allocations, sizes as formulas of the symbols."""

from __future__ import annotations

from typing import Any

from sardonyx.explore.graph import Graph
from sardonyx.ir.graph import Op, Value, walk
from sardonyx.passes.plan_memory import MemoryPlan
from sardonyx.passes.program import Program
from sardonyx_runtime.dims import DimLike, symbols_of

__all__ = ["formula", "memory_data"]


def formula(dim: DimLike) -> Any:
    """A dim for the page: a number, or a list of terms [coefficient, atom ...].

    An atom is a symbol's name, or a list [function, formula, formula].
    """
    if isinstance(dim, int):
        return dim
    return [
        [coefficient, *([a.name, *map(formula, a.args)] if a.args else a.name for a in monomial)]
        for monomial, coefficient in dim.terms
    ]


def memory_data(program: Program, plan: MemoryPlan, graph: Graph) -> dict[str, Any]:
    """The plan: chunks with their sizes, allocations, the nodes of each step of the program, the weights."""
    steps = {op: number for number, op in enumerate(walk(program.main))}
    symbols = {s for a in plan.allocations for d in (a.size, a.offset) for s in symbols_of(d)}
    symbols |= {s for size in plan.chunks for s in symbols_of(size)}
    return {
        "symbols": sorted(symbols),
        "chunks": [formula(size) for size in plan.chunks],
        "allocations": [
            {
                "name": one.name,
                "size": formula(one.size),
                "sizeText": str(one.size),
                "offset": formula(one.offset),
                "chunk": one.chunk,
                "start": one.start,
                "end": one.end,
                "nodes": graph.node_set(writer.location) if (writer := _writer(one.value, steps)) else 0,
            }
            for one in plan.allocations
        ],
        "weights": {"bytes": program.weights.size, "tensors": len(program.weights.items)},
    }


def _writer(value: Value, steps: dict[Op, int]) -> Op | None:
    """The first op that uses an allocation: it is the one that fills it."""
    users = list(value.uses)
    for user in users:  # grows while it is read
        if user.name == "loop.part":
            users += user.result.uses
    return min((u for u in users if u.location.origins), key=lambda u: steps.get(u, 0), default=None)
