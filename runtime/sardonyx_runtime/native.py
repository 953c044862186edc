"""Runs a native entry point on NumPy arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


from sardonyx_runtime.dims import Dim, evaluate
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["NativeModel"]

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any] | Sequence[Any]

_CONTEXT_WORDS = 8  # before the chunks; see docs/abi.md
_STATUS = 2
_PLANS = 256  # shape combinations remembered per model

_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class _Context:
    """The native state of one run at a time: arena chunks, status."""

    __slots__ = ("_words", "address", "status")

    def __init__(self, chunks: int, weights: int, threads: int) -> None:
        self._words = (ctypes.c_int64 * (_CONTEXT_WORDS + 2 * chunks))()
        self._words[0] = weights
        self._words[1] = threads
        self._words[6] = chunks
        self.address = ctypes.addressof(self._words)

    def fault(self) -> tuple[int, int, int, int]:
        code, number, value, second = self._words[_STATUS : _STATUS + 4]
        return code, number, value, second

    def __del__(self) -> None:
        for i in range(_CONTEXT_WORDS, len(self._words), 2):
            if self._words[i]:
                _free(self._words[i])


class _Plan:
    """What a run with these input shapes needs: the dims as the entry point wants them, the output shapes."""

    __slots__ = ("dims", "shapes")

    def __init__(self, dims: Any, shapes: list[tuple[int, ...] | None]) -> None:
        self.dims = dims
        self.shapes = shapes


class NativeModel:
    """A compiled model: an entry point, its weights and its signature.

    ``entry`` is the address of the function (docs/abi.md); ``keep`` holds whatever owns code and weights.
    Runs may overlap in several threads; the GIL is released inside.
    """

    def __init__(self, entry: int, weights: int, signature: Signature, *, threads: int = 1, keep: Any = None) -> None:
        self.signature = signature
        self._keep = keep
        self._weights = weights
        self._threads = threads
        pointers = ctypes.c_void_p
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, pointers, pointers, pointers, pointers, pointers)
        self._entry = prototype(entry)
        self._contexts: list[_Context] = []
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}
        self._names = [a.name for a in signature.inputs]
        self._dtypes = [a.dtype.numpy for a in signature.inputs]
        self._output_dtypes = [a.dtype.numpy for a in signature.outputs]
        self._rank_total = sum(len(a.shape) for a in signature.outputs)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs: name, dtype, shape."""
        return self.signature.inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs: name, dtype, shape."""
        return self.signature.outputs

    def run(
        self,
        feeds: Feeds,
        outputs: Sequence[str] | None = None,
        *,
        out: Mapping[str, Array] | Sequence[Array | None] | None = None,
    ) -> list[Array]:
        """Run the model once.

        ``feeds`` maps input names to arrays, or lists arrays in the inputs' order; ``outputs`` names
        the outputs wanted (default: all); ``out`` gives arrays to write into (C-contiguous, of the
        right type and shape).  RuntimeFault names what does not fit.
        """
        arrays = self._feeds(feeds)
        key = tuple([a.shape for a in arrays])
        plan = self._plans.get(key) or self._plan(arrays, key)
        results = self._results(plan, out)
        count = len(arrays)
        pointers = (ctypes.c_void_p * (count + len(results) + self._rank_total))(
            *[_address(a) for a in arrays], *[0 if r is None else _address(r) for r in results]
        )
        context = self._contexts.pop() if self._contexts else self._new_context()
        base = ctypes.addressof(pointers)
        into = base + 8 * count
        code = self._entry(context.address, base, plan.dims, into, into + 8 * len(results))
        if code:
            fault = self._fault(context, arrays)
            self._contexts.append(context)
            raise fault
        self._contexts.append(context)
        if None in plan.shapes:
            results = self._late(plan, results, pointers, count)
        return self._choose(results, outputs)

    # -- inputs

    def _feeds(self, feeds: Feeds) -> list[Array]:
        if isinstance(feeds, Mapping):
            if len(feeds) != len(self._names) or any(n not in feeds for n in self._names):
                feeds = self._complete(feeds)
            values = [feeds[n] for n in self._names]
        else:
            values = list(feeds)
            if len(values) != len(self._names):
                values = self._complete_sequence(values)
        return [
            v
            if type(v) is np.ndarray and v.dtype is d and v.flags.carray
            else self._accept(v, number)
            for number, (v, d) in enumerate(zip(values, self._dtypes, strict=True))
        ]

    def _complete(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        unknown = [n for n in feeds if n not in self._names]
        if unknown:
            raise RuntimeFault(f"there is no input {unknown[0]!r}; the inputs are {', '.join(self._names)}")
        complete = dict(feeds)
        for argument in self.inputs:
            if argument.name not in complete:
                if argument.default is None:
                    raise RuntimeFault(f"the input {argument.name!r} ({argument.describe()}) is missing from the feeds")
                complete[argument.name] = argument.default
        return complete

    def _complete_sequence(self, values: list[Any]) -> list[Any]:
        required = [a for a in self.inputs if a.default is None]
        if len(values) == len(required):
            given = iter(values)
            return [next(given) if a.default is None else a.default for a in self.inputs]
        raise RuntimeFault(f"{len(values)} feeds for {len(self.inputs)} inputs ({', '.join(self._names)})")

    def _accept(self, value: Any, number: int) -> Array:
        """The array of a feed, copied only if it has to be: contiguous, aligned, of native byte order."""
        argument = self.inputs[number]
        array = np.asarray(value)
        if array.dtype.newbyteorder("=") != argument.dtype.numpy:
            raise RuntimeFault(
                f"the input {argument.name!r} is {array.dtype}{list(array.shape)}, but the model takes {argument.describe()}"
            )
        return np.require(array.astype(argument.dtype.numpy, copy=False), requirements=["C", "A"])

    def _plan(self, arrays: list[Array], key: tuple[tuple[int, ...], ...]) -> _Plan:
        symbols: dict[str, int] = {}
        sources: dict[str, str] = {}
        for array, argument in zip(arrays, self.inputs, strict=True):
            if len(array.shape) != len(argument.shape):
                raise RuntimeFault(
                    f"the input {argument.name!r} has the shape {list(array.shape)}, but the model takes {argument.describe()}"
                )
            for have, want in zip(array.shape, argument.shape, strict=True):
                name = _plain_symbol(want)
                if name is not None and name not in symbols:
                    symbols[name], sources[name] = have, argument.name
        for array, argument in zip(arrays, self.inputs, strict=True):
            for axis, (have, want) in enumerate(zip(array.shape, argument.shape, strict=True)):
                expected = evaluate(want, symbols)
                if have != expected:
                    name = _plain_symbol(want)
                    why = f" ({name} is {expected} by the input {sources[name]!r})" if name else ""
                    raise RuntimeFault(
                        f"axis {axis} of the input {argument.name!r} is {have}, but the model takes "
                        f"{argument.describe()}{why}"
                    )
        flat = [d for shape in key for d in shape]
        plan = _Plan((ctypes.c_int64 * max(1, len(flat)))(*flat), self.signature.output_shapes(symbols))
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    # -- outputs

    def _results(self, plan: _Plan, out: Any) -> list[Array | None]:
        if out is None:
            return [
                None if s is None else np.empty(s, d) for s, d in zip(plan.shapes, self._output_dtypes, strict=True)
            ]
        given = [out.get(a.name) for a in self.outputs] if isinstance(out, Mapping) else list(out)
        if len(given) != len(self.outputs):
            raise RuntimeFault(f"{len(given)} out arrays for {len(self.outputs)} outputs")
        results: list[Array | None] = []
        for array, argument, shape in zip(given, self.outputs, plan.shapes, strict=True):
            if array is None:
                results.append(None if shape is None else np.empty(shape, argument.dtype.numpy))
                continue
            if shape is None:
                raise RuntimeFault(f"the size of the output {argument.name!r} is known only after the run; give no out array")
            fits = isinstance(array, np.ndarray) and array.dtype == argument.dtype.numpy and array.shape == shape
            if not fits or not array.flags.c_contiguous or not array.flags.writeable:
                raise RuntimeFault(
                    f"the out array of {argument.name!r} has to be a writeable C-contiguous "
                    f"{argument.dtype.numpy} array of the shape {list(shape)}"
                )
            results.append(array)
        return results

    def _late(self, plan: _Plan, results: list[Array | None], pointers: Any, count: int) -> list[Array | None]:
        """Copy the outputs that the run allocated itself."""
        words = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_int64))
        position = count + len(results)
        finished: list[Array | None] = []
        for number, (result, argument) in enumerate(zip(results, self.outputs, strict=True)):
            rank = len(argument.shape)
            shape = tuple(words[position + i] for i in range(rank))
            position += rank
            if result is None:
                address = pointers[count + number]
                size = math.prod(shape) * argument.dtype.itemsize
                held = (ctypes.c_uint8 * size).from_address(address) if size else b""
                result = np.frombuffer(bytearray(held), argument.dtype.numpy, math.prod(shape)).reshape(shape)
                _free(address)
            finished.append(result)
        return finished

    def _choose(self, results: list[Any], outputs: Sequence[str] | None) -> list[Array]:
        if outputs is None:
            return results
        position = {a.name: i for i, a in enumerate(self.outputs)}
        unknown = [n for n in outputs if n not in position]
        if unknown:
            raise RuntimeFault(f"there is no output {unknown[0]!r}; the outputs are {', '.join(position)}")
        return [results[position[n]] for n in outputs]

    # -- faults

    def _new_context(self) -> _Context:
        return _Context(self.signature.chunks, self._weights, self._threads)

    def _fault(self, context: _Context, arrays: list[Array]) -> RuntimeFault:
        code, number, value, second = context.fault()
        if code >= 16:
            node = self.signature.nodes[number]
            return RuntimeFault(_KERNEL_FAULTS[code].format(node=node, value=value), code=code, node=node)
        text = _FAULTS[code].format(
            value=value,
            second=second,
            message=self.signature.messages[number] if code == 2 else "",
            node=self.signature.nodes[number] if code == 3 else "",
        )
        return RuntimeFault(text, code=code, node=self.signature.nodes[number] if code == 3 else "")


_FAULTS = {
    1: "an input does not have the size the model takes: {value} instead of {second}",
    2: "{message}: {value} and {second}",
    3: "node {node}: a dim computed from the data is {value}",
    4: "there is no memory for {value} bytes",
    5: "the sizes overflow: a tensor would be larger than memory can be",
}

_KERNEL_FAULTS = {
    16: "node {node}: integer division by zero",
    17: "node {node}: the index {value} is out of range",
}


def _plain_symbol(dim: Any) -> str | None:
    if isinstance(dim, Dim) and len(dim.terms) == 1:
        (monomial, coefficient) = dim.terms[0]
        if coefficient == 1 and len(monomial) == 1 and not monomial[0].args:
            return monomial[0].name
    return None


