"""What dims bound at run time are: the rules of `core.bind_dims` on plain numbers.

The native code of the same rules stands in `codegen/binding.py`; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["BindingError", "reshape_target", "slice_span"]


class BindingError(ValueError):
    """The values do not make a shape; the message says why."""


def reshape_target(target: Sequence[int], source: Sequence[int], *, allowzero: bool) -> list[int]:
    """The dims of a Reshape to ``target`` of a tensor with the dims ``source``."""
    if sum(t == -1 for t in target) > 1 or any(t < -1 for t in target):
        raise BindingError(f"{list(target)} is no shape: at most one dim is -1 and none is below")
    wanted = []
    for i, value in enumerate(target):
        if value == 0 and not allowzero:
            if i >= len(source):
                raise BindingError(f"the 0 at position {i} of {list(target)} copies no dim of the input")
            value = source[i]
        wanted.append(value)
    rest = math.prod(v for v in wanted if v != -1)
    return [(math.prod(source) // rest if rest else 0) if v == -1 else v for v in wanted]


def slice_span(start: int, end: int, extent: int, step: int) -> tuple[int, int]:
    """First index and number of elements of a Slice along one axis."""
    start = start + extent if start < 0 else start
    end = end + extent if end < 0 else end
    if step > 0:
        start, end = min(max(start, 0), extent), min(max(end, 0), extent)
        return start, max(0, -(-(end - start) // step))
    start, end = min(max(start, 0), extent - 1), min(max(end, -1), extent - 1)
    return max(start, 0), max(0, -(-(start - end) // -step))
