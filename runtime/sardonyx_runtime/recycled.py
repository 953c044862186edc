"""Large output arrays in memory that is used again.

Fresh memory costs more than the computation where a result is large: the system clears every page of it
at the first touch.  So memory of arrays that nobody looks at any more is kept for the next run, up to a
bound, and arrays start at a cache line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LARGE", "array"]

LARGE = 16 << 20  # bytes from which on memory is kept: malloc itself keeps smaller pieces
_KEPT = 512 << 20  # bytes kept at most, over all models of the process
_CLASS = 1 << 20  # sizes are rounded up to a multiple of this, so that similar ones share
_LINE = 64

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class _Store:
    """The memory that waits to be used again, by its size."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[Bytes]] = {}
        self.size = 0

    def take(self, size: int) -> Bytes:
        rounded = -(-size // _CLASS) * _CLASS
        try:
            memory = self.waiting[rounded].pop()
        except (KeyError, IndexError):
            return np.empty(rounded + _LINE, np.uint8)
        self.size -= rounded
        return memory

    def give(self, memory: Bytes) -> None:
        rounded = memory.size - _LINE
        if self.size + rounded <= _KEPT:
            self.size += rounded
            self.waiting.setdefault(rounded, []).append(memory)


_store = _Store()


class _Lease:
    """Memory while an array looks at it."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory: Bytes, size: int) -> None:
        self._memory = memory
        address = memory.__array_interface__["data"][0]
        self.__array_interface__ = {
            "data": (address + -address % _LINE, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self, store: _Store = _store) -> None:
        store.give(self._memory)


def array(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> np.ndarray[Any, Any]:
    """An array of undefined values that takes ``size`` bytes; MemoryError if there is no memory."""
    return np.asarray(_Lease(_store.take(size), size)).view(dtype).reshape(shape)
