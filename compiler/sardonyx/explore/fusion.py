"""Why operations share a kernel or do not, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sardonyx.explore.graph import Graph
from sardonyx.passes.decisions import Decision

__all__ = ["fusion_data"]


def fusion_data(decisions: Sequence[Decision], graph: Graph) -> dict[str, Any]:
    """Each pair once, as [producer, its nodes, consumer, its nodes, whether fused, number of the reason]."""
    reasons: dict[str, int] = {}
    pairs = {
        (
            one.producer,
            graph.node_set(one.producer_nodes),
            one.consumer,
            graph.node_set(one.consumer_nodes),
            one.fused,
            reasons.setdefault(one.reason, len(reasons)),
        ): None
        for one in decisions
    }
    return {"reasons": list(reasons), "pairs": list(pairs)}
