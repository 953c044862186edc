"""Where the fields of NumPy arrays, tuples and lists lie in memory, for the native gate.

NumPy's array fields are part of its binary interface.  Nothing is taken on trust all the same: the offsets
are tried on a few arrays when this module is imported, and if one does not agree with what NumPy says in
Python (another interpreter, another build), `LAYOUT` is None and runs go the slower way.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LAYOUT", "Layout"]

_WORD = 8
_PLAIN = 0x101  # C-contiguous and aligned


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes: of the items in a tuple, of the items' address in a list, of an array's fields."""

    items: int
    cells: int
    head: int

    def words(self, address: int, offset: int = 0, count: int = 1) -> list[int]:
        """The 64-bit words at an address."""
        return list((ctypes.c_int64 * count).from_address(address + offset))

    def agrees(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the fields read from memory are what NumPy says of the array."""
        at, head, rank = id(array), self.head, array.ndim
        shape_at = self.words(at, head + 2 * _WORD)[0]
        (flags,) = (ctypes.c_int32 * 1).from_address(at + head + 6 * _WORD)
        plain = array.flags.c_contiguous and array.flags.aligned
        return (
            self.words(at, head - _WORD)[0] == id(type(array))
            and self.words(at, head)[0] == array.__array_interface__["data"][0]
            and (ctypes.c_int32 * 1).from_address(at + head + _WORD)[0] == rank
            and (rank == 0 or tuple(self.words(shape_at, count=rank)) == array.shape)
            and self.words(at, head + 5 * _WORD)[0] == id(array.dtype)
            and (flags & _PLAIN == _PLAIN) == plain
        )


def _measure() -> Layout | None:
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return None
    layout = Layout(tuple.__basicsize__, list.__basicsize__ - 2 * _WORD, object.__basicsize__)
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    shifted = np.zeros(33, np.uint8)[1:].view(np.float32)
    arrays = [base, base.T, base[:, ::2], base[0, 0, :0], np.array(1.5), np.ones(3, np.int64), shifted]
    for array in arrays:
        if not layout.agrees(array):
            return None
    pair, several = (base, shifted), [base, shifted, None]
    if layout.words(id(pair), layout.items, 2) != [id(x) for x in pair]:
        return None
    if layout.words(layout.words(id(several), layout.cells)[0], count=3) != [id(x) for x in several]:
        return None
    return layout


LAYOUT = _measure()
