"""A radix sort of entries by their keys, byte by byte from the lowest on.

Each pass is stable, so entries of equal keys keep their order.  A pass in which all keys have the same
byte moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sardonyx.ir.graph import Value
from sardonyx.kernels.keys import Entries, Entry
from sardonyx.loop.builder import Index, LoopBuilder
from sardonyx_runtime import dtypes

__all__ = ["digit_counts", "radix_sort"]

_BYTE = 256


def digit_counts(b: LoopBuilder) -> Value:
    """Memory that the sort counts in, to be made once at the head of a kernel."""
    return b.local(dtypes.i64, _BYTE)


def radix_sort(entries: Entries, size: Index, counts: Value) -> Entries:
    """Sort the first ``size`` entries (at least one); there has to be room for as many behind them.

    Gives where the sorted entries stand: in either half.
    """
    b = entries.b
    narrow = len(entries.buffers) == 1
    first = b.index(entries.base)
    second = b.index(b.iadd(first, size))
    with b.loop(0, 4 if narrow else 8, carried=[first, second]) as loop:
        source, target = (replace(entries, base=base) for base in loop.carried)
        shift = b.from_index(b.iadd(b.imul(loop.index, 8), 32 if narrow else 0), dtypes.u64)

        def digit(entry: Entry, shift: Value = shift) -> Value:
            low = b.scalar_op("and", b.scalar_op("shr", entry[0], shift), b.const(_BYTE - 1, dtypes.u64))
            return b.to_index(low)

        def bump(place: Value) -> Value:
            """Count one more of a byte; how many there were."""
            have = b.load(counts, place)
            b.store(b.scalar_op("add", have, b.const(1, dtypes.i64)), counts, place)
            return b.to_index(have)

        with b.loop(0, _BYTE) as clear:
            b.store(b.const(0, dtypes.i64), counts, clear.index)
        with b.loop(0, size) as each:
            bump(digit(source.load(each.index)))

        def move(source: Entries = source, target: Entries = target) -> Sequence[Value]:
            with b.loop(0, _BYTE, carried=[b.const(0, dtypes.i64)]) as total:
                have = b.load(counts, total.index)
                b.store(total.carried[0], counts, total.index)
                b.yield_(b.scalar_op("add", total.carried[0], have))
            with b.loop(0, size) as each:
                entry = source.load(each.index)
                target.store(entry, bump(digit(entry)))
            return [b.index(target.base), b.index(source.base)]

        same = b.icmp("eq", b.to_index(b.load(counts, digit(source.load(0)))), size)
        stay = [b.index(source.base), b.index(target.base)]
        b.yield_(*b.if_(same, lambda stay=stay: stay, move))  # type: ignore[misc]
    return replace(entries, base=loop.results[0])
