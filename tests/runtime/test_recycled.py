"""Large outputs: their memory is used again, but only once nobody looks at it."""

import numpy as np

from sardonyx_runtime import recycled


def test_memory_is_used_again_when_the_array_is_gone() -> None:
    size = recycled.LARGE
    first = recycled.array((size,), np.dtype(np.uint8), size)
    address = first.__array_interface__["data"][0]
    assert address % 64 == 0
    view = first[10:20]
    del first
    second = recycled.array((size,), np.dtype(np.uint8), size)
    assert second.__array_interface__["data"][0] != address, "a view still looks at the memory"
    del view
    third = recycled.array((size // 4,), np.dtype(np.float32), size)
    assert third.__array_interface__["data"][0] == address
    assert third.dtype == np.float32 and third.flags.writeable and third.flags.c_contiguous


def test_what_is_kept_is_bounded() -> None:
    size = recycled._KEPT
    arrays = [recycled.array((size,), np.dtype(np.uint8), size) for _ in range(3)]
    del arrays
    assert recycled._store.size <= recycled._KEPT
    recycled._store.waiting.clear()
    recycled._store.size = 0
