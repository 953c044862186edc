"""A binary heap of entries, built and taken down in place (J. W. J. Williams and R. W. Floyd, 1964)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.ir.graph import Value
from sardonyx.kernels.keys import Entries, Entry
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes

__all__ = ["Heap"]


@dataclass
class Heap:
    """The first ``size`` entries as a heap: the root is ``above`` all others."""

    entries: Entries
    above: Callable[[Entry, Entry], Value]

    def build(self, size: Index) -> None:
        """Make the entries a heap."""
        b = self.entries.b
        half = b.idiv(size, 2)
        with b.loop(0, half) as loop:
            place = b.isub(b.isub(half, 1), loop.index)
            self.sift(place, size, self.entries.load(place))

    def sift(self, start: Index, size: Index, entry: Entry) -> None:
        """Put an entry into the place ``start``, or below what is above it there."""
        b, entries = self.entries.b, self.entries
        with b.repeat([b.index(start)]) as loop:
            (hole,) = loop.carried
            child = b.iadd(b.imul(hole, 2), 1)

            def stay() -> Sequence[Value]:
                return [b.const(0, dtypes.boolean), hole]

            def descend() -> Sequence[Value]:
                sibling = b.imin(b.iadd(child, 1), b.isub(size, 1))
                better = self.above(entries.load(sibling), entries.load(child))
                chosen = b.index(b.iadd(child, b.imul(b.truth(better), b.isub(sibling, child))))
                moved = entries.load(chosen)

                def move() -> Sequence[Value]:
                    entries.store(moved, hole)
                    return [b.const(1, dtypes.boolean), chosen]

                return b.if_(self.above(moved, entry), move, stay)

            b.yield_(*b.if_(b.icmp("lt", child, size), descend, stay))
        entries.store(entry, loop.results[0])

    def pop(self, size: Index) -> Entry:
        """Take the root out of a heap of this size; it is one smaller from here on."""
        b = self.entries.b
        top, last = self.entries.load(0), b.isub(size, 1)
        self.sift(0, last, self.entries.load(last))
        return top

    def sort(self, size: Index) -> None:
        """Order a heap: its root becomes the last entry."""
        b = self.entries.b
        with b.loop(1, size) as loop:
            rest = b.isub(size, loop.index)
            top = self.entries.load(0)
            self.sift(0, rest, self.entries.load(rest))
            self.entries.store(top, rest)
