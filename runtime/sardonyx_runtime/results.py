"""The outputs' arrays: made before a run, given by the caller, or taken over from the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx_runtime import dtypes, recycled
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.feeds import Array
from sardonyx_runtime.frame import Context, Plan, free
from sardonyx_runtime.signature import Argument

__all__ = ["Out", "fresh", "given", "release_late", "take_late"]

Out = Mapping[str, Array] | Sequence[Array | None]


_WORTH = recycled.LARGE
_MOST = 1 << 40  # what is larger is left to NumPy to refuse


def fresh(argument: Argument, shape: tuple[int, ...]) -> Array:
    """An array for an output."""
    size = math.prod(shape) * argument.memory.itemsize
    try:
        if _WORTH <= size < _MOST:
            return recycled.array(shape, argument.memory, size)
        return np.empty(shape, argument.memory)
    except MemoryError:
        raise RuntimeFault(
            f"there is no memory for the output {argument.name!r}: {size:,} bytes, shape {list(shape)}",
            code=4,
        ) from None
    except ValueError:
        raise RuntimeFault(
            f"the output {argument.name!r} would be larger than memory can be: its shape is {list(shape)}",
            code=5,
        ) from None


def given(
    out: Out, outputs: Sequence[Argument], plan: Plan, arrays: Sequence[Array]
) -> tuple[list[Array | None], list[tuple[Array, Array]]]:
    """One array per output, as ``out`` says, and the copies to do after the run.

    An out array that shares memory with an input is written after the run, from an array of our own: the
    run may read an input after it wrote an output.
    """
    chosen = _arranged(out, outputs)
    results: list[Array | None] = []
    copies: list[tuple[Array, Array]] = []
    taken: list[Array] = []
    for array, argument, shape in zip(chosen, outputs, plan.shapes, strict=True):
        if array is None:
            results.append(None if shape is None else fresh(argument, shape))
            continue
        if shape is None:
            raise RuntimeFault(
                f"the size of the output {argument.name!r} is known only after the run; it takes no out array"
            )
        _check(array, argument, shape)
        if any(np.may_share_memory(array, other) for other in taken):
            raise RuntimeFault(
                f"the out array of {argument.name!r} shares memory with that of another output"
            )
        taken.append(array)
        if any(np.may_share_memory(array, x) for x in arrays):
            copies.append((array, fresh(argument, shape)))
            results.append(copies[-1][1])
        else:
            results.append(array)
    return results, copies


def _arranged(out: Out, outputs: Sequence[Argument]) -> list[Array | None]:
    if isinstance(out, Mapping):
        names = [a.name for a in outputs]
        unknown = [n for n in out if n not in names]
        if unknown:
            raise RuntimeFault(f"there is no output {unknown[0]!r}; the outputs are {', '.join(names)}")
        return [out.get(n) for n in names]
    if isinstance(out, np.ndarray) or not isinstance(out, Sequence):
        raise RuntimeFault(
            f"out is of the type {type(out).__name__}; expected a dict by name or a list in output order"
        )
    if len(out) != len(outputs):
        raise RuntimeFault(f"{len(out)} out arrays for {len(outputs)} outputs")
    return list(out)


def _check(array: Any, argument: Argument, shape: tuple[int, ...]) -> None:
    if argument.dtype is dtypes.string:
        raise RuntimeFault(f"the output {argument.name!r} is of strings; it takes no out array")
    want = f"a writeable, C-contiguous and aligned {argument.dtype.numpy} array of the shape {list(shape)}"
    if not isinstance(array, np.ndarray):
        have = f"of the type {type(array).__name__}"
    elif array.dtype != argument.dtype.numpy or array.shape != shape:
        have = f"{array.dtype}{list(array.shape)}"
    else:
        flags = array.flags
        wrong = {
            "read-only": not flags.writeable,
            "not contiguous": not flags.c_contiguous,
            "not aligned": not flags.aligned,
        }
        have = " and ".join(k for k, v in wrong.items() if v)
    if have:
        raise RuntimeFault(f"the out array of {argument.name!r} is {have}, but has to be {want}")


class _Owner:
    """Memory that a run allocated: freed once, when the last array that looks at it is gone."""

    __slots__ = ("__array_interface__", "_address")

    def __init__(self, address: int, size: int) -> None:
        self._address = address
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self) -> None:
        free(self._address)


def take_late(results: list[Array | None], outputs: Sequence[Argument], context: Context) -> list[Array]:
    """The arrays of a run, those included whose memory the run allocated (they are not copied)."""
    first = len(context.pointers) - len(outputs)
    position = 0
    finished: list[Array] = []
    for number, (result, argument) in enumerate(zip(results, outputs, strict=True)):
        rank = len(argument.shape)
        if result is None:
            shape = tuple(context.sizes[position : position + rank])
            address = context.pointers[first + number]
            context.pointers[first + number] = 0
            size = math.prod(shape) * argument.dtype.itemsize
            result = np.asarray(_Owner(address, size)).view(argument.memory).reshape(shape)
        finished.append(result)
        position += rank
    return finished


def release_late(results: Sequence[Array | None], context: Context) -> None:
    """Free what a run that failed had allocated for its outputs."""
    first = len(context.pointers) - len(results)
    for number, result in enumerate(results):
        if result is None and context.pointers[first + number]:
            free(context.pointers[first + number])
            context.pointers[first + number] = 0
