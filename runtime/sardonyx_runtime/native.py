"""Runs a native entry point on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Self

import numpy as np

from sardonyx_runtime import dtypes
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.faults import explain
from sardonyx_runtime.feeds import Array, Feeds, accept, arrange, bind
from sardonyx_runtime.frame import FEEDS, RESULTS, Code, Context, Plan
from sardonyx_runtime.results import Out, fresh, given, release_late, take_late
from sardonyx_runtime.signature import Argument, Signature
from sardonyx_runtime.strings import decode, encode

__all__ = ["NativeModel"]

_PLANS = 256  # shape combinations remembered per model
_DIFFERENT = -1  # the gate's answer when the arrays are not what the frame expects

_empty = np.empty


class _Closed(list[Context]):
    """The contexts of a closed model: there are none, and those that come back from a run go."""

    def append(self, context: Context) -> None:
        pass


class NativeModel:
    """A compiled model: an entry point, its weights and its signature.

    ``entry`` is the address of the entry point (docs/abi.md), ``weights`` of its constants, ``gate`` of
    ``sdx_gate`` (0: do without); ``keep`` holds whatever owns code and weights.  Runs may overlap in
    several threads; the interpreter's lock is released while native code runs.
    """

    def __init__(
        self,
        entry: int,
        weights: int,
        signature: Signature,
        *,
        threads: int = 1,
        gate: int = 0,
        keep: Any = None,
    ) -> None:
        self.signature = signature
        self._threads = threads
        self._code: Code | None = Code(entry, weights, gate, keep)
        self._contexts: list[Context] = []
        self._plans: dict[tuple[tuple[int, ...], ...], Plan] = {}
        self._dtypes = [a.memory for a in signature.inputs]
        self._output_dtypes = [a.memory for a in signature.outputs]
        self._texts = any(a.dtype is dtypes.string for a in (*signature.inputs, *signature.outputs))
        self._output_numbers = {a.name: i for i, a in enumerate(signature.outputs)}
        names = [a.name for a in signature.inputs]
        self._count = len(names)
        self._pick: Any = itemgetter(*names) if len(names) > 1 else lambda feeds: ()
        self._only = names[0] if len(names) == 1 else None

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs: name, dtype, shape."""
        return self.signature.inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs: name, dtype, shape."""
        return self.signature.outputs

    @property
    def threads(self) -> int:
        """How many threads a run may use."""
        return self._threads

    def close(self) -> None:
        """Free the code and all memory of the runs; a library is unloaded.  Arrays that the model gave stay.

        Runs under way in other threads end as they would; later ones are refused with a RuntimeFault.
        """
        self._code = None
        self._contexts = _Closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, feeds: Feeds, outputs: Sequence[str] | None = None, *, out: Out | None = None
    ) -> list[Array]:
        """Run the model once.

        ``feeds`` maps input names to arrays, or lists arrays in the inputs' order; ``outputs`` names
        the outputs wanted (default: all); ``out`` gives arrays to write into (C-contiguous, of the
        right type and shape), by name or in order.  RuntimeFault names what does not fit.
        """
        # The way of a run that is like the one before.  Everything else, faults included, is below it.
        kind = type(feeds)
        if out is None and (kind is dict or kind is list or kind is tuple) and len(feeds) == self._count:
            arrays: Any
            if kind is not dict:
                arrays = tuple(feeds)
            elif self._only is not None:
                arrays = (feeds.get(self._only),)  # type: ignore[union-attr]
            else:
                try:
                    arrays = self._pick(feeds)
                except KeyError:
                    return self._run(feeds, outputs, None)
            try:
                context = self._contexts.pop()
            except IndexError:
                return self._run(feeds, outputs, None)
            if context.fresh is None:
                self._contexts.append(context)
                return self._run(feeds, outputs, None)
            try:
                results = [_empty(shape, dtype) for shape, dtype in context.fresh]
            except MemoryError:
                return self._run(feeds, outputs, None)
            frame = context.frame
            frame[FEEDS] = id(arrays)
            frame[RESULTS] = id(results)
            code = context.gate(context.argument)  # a context has `fresh` only with a gate
            if code == 0:
                self._contexts.append(context)
                return results if outputs is None else self._choose(results, outputs)
            if code != _DIFFERENT:
                raise self._fault(context, results)
            self._contexts.append(context)
        return self._run(feeds, outputs, out)

    def _run(self, feeds: Feeds, outputs: Sequence[str] | None, out: Out | None) -> list[Array]:
        """A run from the beginning: everything is checked, the shapes' plan is looked up or made."""
        code = self._code
        if code is None:
            raise RuntimeFault("the model is closed; load or compile it again to run it")
        values = arrange(feeds, self.inputs)
        arrays = tuple([accept(v, a) for v, a in zip(values, self.inputs, strict=True)])
        owners: list[Any] = []  # of the memory of strings
        if self._texts:
            arrays = tuple(
                [self._native(a, v, owners, code.gate) for a, v in zip(self.inputs, arrays, strict=True)]
            )
        if outputs is not None:
            self._check_names(outputs)
        key = tuple([a.shape for a in arrays])
        plan = self._plans.get(key) or self._plan(arrays, key)
        results: list[Array | None]
        copies: list[tuple[Array, Array]] = []
        if out is None:
            results = [
                None if s is None else fresh(a, s) for a, s in zip(self.outputs, plan.shapes, strict=True)
            ]
        else:
            results, copies = given(out, self.outputs, plan, arrays)
        try:
            context = self._contexts.pop()
        except IndexError:
            context = Context(code, self._threads, self.signature, self._dtypes)
        context.expect(plan, fast=context.gate is not None and not self._texts)
        if self._call(context, arrays, results):
            raise self._fault(context, results)
        finished = take_late(results, self.outputs, context)
        if self._texts:  # their memory is that of the context or the inputs
            finished = [
                decode(x, code.gate) if a.dtype is dtypes.string else x
                for a, x in zip(self.outputs, finished, strict=True)
            ]
        self._contexts.append(context)
        for target, source in copies:
            target[...] = source
            finished = [target if x is source else x for x in finished]
        return finished if outputs is None else self._choose(finished, outputs)

    def _native(self, argument: Argument, array: Array, owners: list[Any], gate: Any) -> Array:
        """An input as native code reads it."""
        if argument.dtype is not dtypes.string:
            return array
        addresses, owner = encode(array, argument.name, gate)
        owners.append(owner)
        return addresses

    def _call(self, context: Context, arrays: tuple[Array, ...], results: list[Array | None]) -> int:
        if context.gate is not None:
            context.frame[FEEDS] = id(arrays)
            context.frame[RESULTS] = id(results)
            code: int = context.gate(context.argument)
            if code != _DIFFERENT:
                return code
        # Element types may be equal without being the same object, and not every interpreter has a gate.
        addresses = [a.__array_interface__["data"][0] for a in arrays]
        addresses += [0 if r is None else r.__array_interface__["data"][0] for r in results]
        context.set_pointers(addresses)
        inputs, outputs = ctypes.addressof(context.pointers), len(arrays) * 8
        status: int = context.entry(
            context.address,
            inputs,
            ctypes.addressof(context.dims),
            inputs + outputs,
            ctypes.addressof(context.sizes),
        )
        return status

    def _plan(self, arrays: Sequence[Array], key: tuple[tuple[int, ...], ...]) -> Plan:
        shapes = self.signature.output_shapes(bind(arrays, self.inputs))
        plan = Plan([d for shape in key for d in shape], shapes, self._output_dtypes)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    # -- outputs

    def _check_names(self, outputs: Sequence[str]) -> None:
        unknown = [n for n in outputs if n not in self._output_numbers]
        if unknown:
            names = ", ".join(self._output_numbers)
            raise RuntimeFault(f"there is no output {unknown[0]!r}; the outputs are {names}")

    def _choose(self, results: list[Array], outputs: Sequence[str]) -> list[Array]:
        self._check_names(outputs)
        return [results[self._output_numbers[n]] for n in outputs]

    # -- faults

    def _fault(self, context: Context, results: Sequence[Array | None]) -> RuntimeFault:
        """The error that a status stands for; gives the context back."""
        release_late(results, context)
        status = context.fault()
        self._contexts.append(context)
        text, node = explain(self.signature, *status)
        return RuntimeFault(text, code=status[0], node=node)
