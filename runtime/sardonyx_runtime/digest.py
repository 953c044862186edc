"""A fast checksum of a file of constants: 64 bits, as quick as memory is read, in eight independent sums.

The file is a multiple of 64 bytes long: rows of eight words w (64 bits, lowest byte first).  Each column is a
polynomial modulo 2**64, ``h = h * m + w`` from row to row, with an odd multiplier m; then the columns are
added up in the same way, beginning with the number of bytes.  A change of one word always shows; what an
attacker has thought out may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LANES", "MULTIPLIER", "digest"]

LANES = 8
MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio, odd
_BLOCK = 4096  # rows at once
_MASK = (1 << 64) - 1


def digest(*pieces: memoryview | bytes) -> int:
    """The checksum of pieces of bytes, one behind the other; the bytes of each are a multiple of 64."""
    sums = np.zeros(LANES, np.uint64)
    total = 0
    for piece in pieces:
        rows = np.frombuffer(piece, "<u8").reshape(-1, LANES)
        total += rows.nbytes
        powers = _powers(min(_BLOCK, len(rows)))
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            scale = np.uint64(pow(MULTIPLIER, len(block), 1 << 64))
            terms = block * powers[len(powers) - len(block) :, None]
            sums = sums * scale + terms.sum(axis=0, dtype=np.uint64)
    for one in sums.tolist():
        total = (total * MULTIPLIER + one) & _MASK
    return total


def _powers(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The multiplier to the powers count - 1 down to 0."""
    powers = np.ones(count, np.uint64)
    for i in range(count - 2, -1, -1):
        powers[i] = int(powers[i + 1]) * MULTIPLIER & _MASK
    return powers
