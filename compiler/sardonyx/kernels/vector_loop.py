"""Loops over vectors: unrolled main part, single vectors, masked tail."""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.ir.graph import Value
from sardonyx.loop.builder import Index, LoopBuilder

__all__ = ["vector_loop"]

Body = Callable[[Index, Value | None], None]


def vector_loop(
    b: LoopBuilder, low: Index, high: Index, lanes: int, unroll: int, multiple: int, body: Body
) -> None:
    """Call ``body(index, mask)`` for every vector of [low, high); low is a multiple of ``lanes``.

    ``multiple``: what high - low is known to be a multiple of; no tail is made where it needs none.
    The mask is None for whole vectors.
    """
    if lanes == 1:
        with b.loop(low, high) as loop:
            body(loop.index, None)
        return
    done: Index = low
    if unroll > 1 and _worth(low, high, lanes * unroll):
        end = b.iadd(low, b.round_down(b.isub(high, low), lanes * unroll))
        with b.loop(done, end, lanes * unroll) as loop:
            for i in range(unroll):
                body(b.iadd(loop.index, i * lanes), None)
        done = end
    if multiple % (lanes * unroll) == 0 and unroll > 1 and done is not low:
        return
    if _worth(low, high, lanes):
        end = b.iadd(low, b.round_down(b.isub(high, low), lanes))
        with b.loop(done, end, lanes) as loop:
            body(loop.index, None)
        done = end
    if multiple % lanes == 0:
        return
    rest = b.isub(high, done)
    if isinstance(rest, int):
        if rest > 0:
            body(done, b.mask(rest, lanes))
        return
    with b.loop(done, high, lanes) as loop:  # runs once or not at all
        body(loop.index, b.mask(b.isub(high, loop.index), lanes))


def _worth(low: Index, high: Index, step: int) -> bool:
    """Whether a loop of this step can run at all."""
    return not (isinstance(low, int) and isinstance(high, int)) or high - low >= step
