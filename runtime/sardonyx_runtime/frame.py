"""The native state of one run at a time: the context of the entry point and the frame of the gate.

The words of a frame (64 bits each), as ``sdx_gate`` reads them:

=====  =====================================================================
word   meaning
=====  =====================================================================
0, 1   entry point, context
2, 3   the tuple of the inputs' arrays, the list of the outputs' arrays
4 - 6  offsets: items of a tuple, items of a list, fields of an array
7, 8   ``numpy.ndarray``, ``None``
9, 10  functions that release and take the interpreter's lock
11,12  how many inputs, outputs
13     records of the inputs: element type and rank
14     room for the pointers of the inputs and outputs
15     dims of the inputs, one input behind the other
16     room for the dims of the outputs
=====  =====================================================================
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx_runtime.layout import LAYOUT
from sardonyx_runtime.recycled import LARGE
from sardonyx_runtime.signature import Signature

__all__ = ["FEEDS", "RESULTS", "Code", "Context", "Plan", "free", "function_address"]

FEEDS, RESULTS = 2, 3  # the words that every run sets
_FRAME_WORDS = 17
_CONTEXT_WORDS = 16  # before the chunks, see docs/abi.md
_STATUS = 2
_ENTROPY, _STRINGS = 8, 9

free = ctypes.CDLL(None).free
free.argtypes = [ctypes.c_void_p]
free.restype = None


_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5)  # releases the interpreter's lock
_GATE = ctypes.PYFUNCTYPE(ctypes.c_int32)  # keeps it; no argument types: a c_void_p passes as it is


def function_address(name: str) -> int:
    """The address of a function of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class Plan:
    """What runs with one combination of input shapes need.

    ``dims`` are the inputs' dims one behind the other; ``shapes`` the outputs' shapes, None where a shape
    is known only after the run; ``fresh`` pairs of (shape, dtype) of the outputs where NumPy makes all of
    them (None if any shape is late, or large enough for recycled memory).
    """

    __slots__ = ("dims", "fresh", "shapes")

    def __init__(self, dims: list[int], shapes: list[tuple[int, ...] | None], dtypes: list[Any]) -> None:
        self.dims = dims
        self.shapes = shapes
        pairs = [(s, d) for s, d in zip(shapes, dtypes, strict=True) if s is not None]
        small = all(math.prod(s) * d.itemsize < LARGE for s, d in pairs)
        self.fresh = pairs if small and len(pairs) == len(shapes) else None


class Code:
    """A model's native code: entry point, constants, gate (None: do without), and what owns them."""

    __slots__ = ("address", "entry", "gate", "keep", "weights")

    def __init__(self, entry: int, weights: int, gate: int, keep: Any) -> None:
        self.address = entry
        self.entry: Any = _ENTRY(entry)
        self.gate: Any = _GATE(gate) if gate and LAYOUT is not None else None
        self.weights = weights
        self.keep = keep


class Context:
    """The words of a context and of its frame; used by one run at a time.

    It keeps the code: a run that is under way when its model is closed ends as it would.
    """

    __slots__ = (
        "_keep",
        "_words",
        "address",
        "argument",
        "dims",
        "entry",
        "frame",
        "fresh",
        "gate",
        "plan",
        "pointers",
        "sizes",
    )

    def __init__(self, code: Code, threads: int, signature: Signature, dtypes: list[Any]) -> None:
        inputs, outputs = signature.inputs, signature.outputs
        self._words = (ctypes.c_int64 * (_CONTEXT_WORDS + 2 * signature.chunks))()
        self._words[0] = code.weights
        self._words[1] = threads
        self._words[6] = signature.chunks
        self._words[_ENTROPY] = int.from_bytes(os.urandom(8), "little") >> 1
        self.address = ctypes.addressof(self._words)
        self.plan: Plan | None = None
        self.fresh: list[tuple[tuple[int, ...], Any]] | None = None
        self.pointers = (ctypes.c_int64 * max(1, len(inputs) + len(outputs)))()
        self.dims = (ctypes.c_int64 * max(1, sum(len(a.shape) for a in inputs)))()
        self.sizes = (ctypes.c_int64 * max(1, sum(len(a.shape) for a in outputs)))()
        records = (ctypes.c_int64 * max(1, 2 * len(inputs)))()
        for i, (argument, dtype) in enumerate(zip(inputs, dtypes, strict=True)):
            records[2 * i : 2 * i + 2] = [id(dtype), len(argument.shape)]
        self._keep = (records, dtypes, code)
        self.entry, self.gate = code.entry, code.gate
        self.frame = (ctypes.c_int64 * _FRAME_WORDS)()
        self.argument = ctypes.c_void_p(ctypes.addressof(self.frame))
        if LAYOUT is not None:
            self.frame[:] = [
                code.address, self.address, 0, 0, LAYOUT.items, LAYOUT.cells, LAYOUT.head, id(np.ndarray), id(None),
                function_address("PyEval_SaveThread"), function_address("PyEval_RestoreThread"), len(inputs), len(outputs),
                *(ctypes.addressof(a) for a in (records, self.pointers, self.dims, self.sizes)),
            ]  # fmt: skip

    def expect(self, plan: Plan, *, fast: bool) -> None:
        """Make the next runs expect the shapes of a plan; ``fast``: they may go to the gate unchecked."""
        if self.plan is not plan:
            for i, dim in enumerate(plan.dims):
                self.dims[i] = dim
            self.plan = plan
            self.fresh = plan.fresh if fast else None

    def set_pointers(self, addresses: Sequence[int]) -> None:
        """The pointers of inputs and outputs, for a call past the gate."""
        for i, address in enumerate(addresses):
            self.pointers[i] = address

    def fault(self) -> tuple[int, int, int, int]:
        """Code, number, and two values that explain it."""
        code, number, value, second = self._words[_STATUS : _STATUS + 4]
        return code, number, value, second

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if ending():  # this module's names may be gone, and the memory is soon
            return
        block = self._words[_STRINGS + 2]
        while block:  # each names the one before it
            before = ctypes.c_int64.from_address(block).value
            free(block)
            block = before
        for i in range(_CONTEXT_WORDS, len(self._words), 2):
            if self._words[i]:
                free(self._words[i])
                self._words[i] = 0
