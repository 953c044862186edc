"""Strings among constant ones: a hash table made at compile time (FNV-1a, G. Fowler, L. C. Noll, K.-P. Vo)."""

from __future__ import annotations

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.text_builder import Element, TextBuilder
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.strings import records

__all__ = ["find_string"]

_START, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_MASK = (1 << 64) - 1
_SHIFT = 29  # the low bits alone are weak


def _hash(data: bytes) -> int:
    state = _START
    for byte in data:
        state = (state ^ byte) * _PRIME & _MASK
    return state ^ (state >> _SHIFT)


def _table(keys: list[str]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], int]:
    """(key or -1 of each slot, the most slots looked at): open addressing, at most half full; a power of two."""
    size = 4
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, np.int32)
    longest = 1
    for number, key in enumerate(keys):
        slot = _hash(key.encode("utf-8", "surrogateescape")) % size
        probes = 1
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) % size
            probes += 1
        slots[slot] = number  # of equal keys the last counts
        longest = max(longest, probes)
    return slots, longest


def find_string(t: TextBuilder, op: Op) -> Element:
    """The place of the string among ``keys``; their number if it is none of them."""
    b, kernel = t.b, t.kernel
    keys = op.attributes["keys"].array.tolist()
    slots, longest = _table(keys)
    data, starts = records(keys)
    table = kernel.constant(Dense(slots), "slots")
    memory = kernel.constant(Dense(np.append(data, np.zeros(8, np.uint8))), "keys")
    offsets = kernel.constant(Dense(np.append(starts, 0)), "offsets")
    missing = kernel.parameter(len(keys) + 2, "keys")  # 0 and 1 would be constants of the code
    mask = kernel.parameter(len(slots) - 1, "mask")
    most = kernel.parameter(longest + 1, "probes")

    def make(values: list[Value], index: Index) -> Value:
        text = t.text(values[0])
        with b.loop(0, text.length, 1, [b.const(_START, dtypes.u64)]) as loop:
            byte = b.convert(b.load(text.data, loop.index), dtypes.u64)
            b.yield_(t.op("mul", t.op("xor", loop.carried[0], byte), _PRIME))
        state = loop.results[0]
        state = t.op("xor", state, t.op("shr", state, _SHIFT))
        hashed = b.convert(state, dtypes.i64)
        wrap = b.from_index(mask, dtypes.i64)
        nothing = b.from_index(b.isub(missing, 2), dtypes.i64)
        with b.loop(0, b.isub(most, 1), 1, [nothing]) as probe:
            slot = t.op("and", t.op("add", hashed, b.from_index(probe.index, dtypes.i64)), wrap)
            key = b.convert(b.load(table, b.to_index(slot)), dtypes.i64)
            there = t.test("ge", key, 0)
            place = t.select(there, key, 0)
            record = b.address(memory, b.to_index(b.load(offsets, b.to_index(place))))
            other = t.text(record)
            same = t.both(there, b.icmp("eq", other.length, text.length))
            hit = t.equal_bytes(text.data, other.data, text.length, same)
            b.yield_(t.select(hit, key, probe.carried[0]))
        return probe.results[0]

    return make
