"""Runs a function of the core level with the NumPy meanings of its ops.

Slow and plain: the reference that compiled code is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.binding import BindingError, reshape_target, slice_span
from sardonyx.ir.declare import lookup
from sardonyx.ir.graph import Block, Function, Op, Value
from sardonyx.ir.types import TensorType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimError, evaluate, symbol, symbols_of
from sardonyx_runtime.errors import RuntimeFault

__all__ = ["interpret"]

Array = np.ndarray[Any, Any]


def interpret(function: Function, feeds: Sequence[Any]) -> list[Any]:
    """The results for the given arguments, in their order.

    RuntimeFault for arguments that do not fit the signature, a broken `core.require`, an integer
    division by zero, or an index out of range; it names the node.
    """
    if len(feeds) != len(function.arguments):
        raise RuntimeFault(f"{len(function.arguments)} inputs are needed, {len(feeds)} are given")
    run = _Run()
    for argument, feed in zip(function.arguments, feeds, strict=True):
        run.values[argument] = run.argument(argument, feed)
    for argument in function.arguments:
        run.check_shape(argument)
    return [_owned(v) for v in run.block(function.body)]


def _owned(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else value


class _Run:
    """One run: the arrays of the values so far, and what the symbols of dims stand for."""

    def __init__(self) -> None:
        self.values: dict[Value, Any] = {}
        self.symbols: dict[str, int] = {}
        self.bound: tuple[int, ...] = ()  # what the last `core.bind_result` said

    def argument(self, argument: Value, feed: Any) -> Any:
        """The array of an argument, in native byte order; binds the symbols of its shape."""
        kind = argument.type
        if not isinstance(kind, TensorType):
            return feed
        array = np.asarray(feed)
        dtype = dtypes.by_numpy(array.dtype)
        if dtype is not kind.dtype or array.ndim != kind.rank:
            got = f"{dtype.onnx_name}[{', '.join(map(str, array.shape))}]"
            raise RuntimeFault(f"the input {argument.name!r} has to be {kind.describe()}, it is {got}")
        for dim, size in zip(kind.shape, array.shape, strict=True):
            for name in symbols_of(dim):
                if dim == symbol(name):
                    self.symbols.setdefault(name, size)
        return array.astype(kind.dtype.numpy, copy=False)

    def check_shape(self, argument: Value) -> None:
        if not isinstance(argument.type, TensorType):
            return
        array = self.values[argument]
        for axis, (dim, size) in enumerate(zip(argument.type.shape, array.shape, strict=True)):
            if self.dim(dim) != size:
                known = "" if isinstance(dim, int) else f", which is {self.dim(dim)}"
                raise RuntimeFault(
                    f"the input {argument.name!r} is of shape {list(array.shape)}, "
                    f"but axis {axis} has to be {dim}{known}"
                )

    def dim(self, dim: int | Dim) -> int:
        return evaluate(dim, self.symbols)

    def block(self, block: Block) -> list[Any]:
        """The values that the block's last op returns or yields."""
        for op in block.ops[:-1]:
            for result, value in zip(op.results, self.op(op), strict=True):
                self.values[result] = value
        return [self.values[v] for v in block.terminator.operands]

    def op(self, op: Op) -> Iterable[Any]:
        operands = [self.values[o] for o in op.operands]
        special = _SPECIAL.get(op.name)
        if special is not None:
            return special(self, op, operands)
        if (check := _FAULTS.get(op.name)) is not None:
            check(op, operands)
        decl = lookup(op.name)
        if decl is None or decl.evaluate is None:
            raise NotImplementedError(f"{op.name} has no NumPy meaning")
        attributes = self.attributes(op)
        if decl.fault is not None and (wrong := decl.fault(attributes, *operands)):
            raise _fault(op, wrong)
        value = decl.evaluate(attributes, *operands)
        results = value if isinstance(value, tuple) else (value,)
        for result, array in zip(op.results, results, strict=True):
            self.check_result(op, result, array)
        return results

    def attributes(self, op: Op) -> Mapping[str, Any]:
        return {name: self.resolve(value) for name, value in op.attributes.items()}

    def resolve(self, value: Any) -> Any:
        """An attribute with its dims as numbers."""
        if isinstance(value, Dim):
            return self.dim(value)
        if isinstance(value, tuple):
            return tuple(self.resolve(v) for v in value)
        return value

    def under_type(self, value: Value, array: Array) -> Array:
        """The elements under the shape of a value's type; a single one stands for all."""
        shape = tuple(self.dim(d) for d in value.type.shape)
        if array.shape == shape:
            return array
        return array.reshape(shape) if array.size == math.prod(shape) else np.broadcast_to(array, shape)

    def check_result(self, op: Op, result: Value, array: Array) -> None:
        """A meaning that disagrees with its type rule is a mistake of ours."""
        shape = tuple(self.dim(d) for d in result.type.shape)
        if array.shape != shape or dtypes.by_numpy(array.dtype) is not result.type.dtype:
            raise AssertionError(
                f"{op!r} gave {array.dtype}{list(array.shape)}, its type is {result.type} {shape}"
            )


def _fault(op: Op, message: str) -> RuntimeFault:
    nodes = ", ".join(f"{o.name!r} ({o.op_type})" for o in op.location.origins)
    return RuntimeFault(f"node {nodes}: {message}" if nodes else message, node=op.location.names)


def _dims(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    values = np.array([run.dim(v) for v in op.attributes["values"]], op.attributes["dtype"].numpy)
    return [values.reshape(()) if op.attributes.get("scalar", False) else values]


_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda left, right: left == right,
    "broadcast": lambda left, right: left == right or 1 in (left, right),
    "at_least": lambda left, right: left >= right,
}


def _require(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    sides = [op.attributes[k] for k in ("left", "right")]
    try:
        left, right = map(run.dim, sides)
    except DimError as error:
        raise _fault(op, f"{op.attributes['message']}: {error}") from error
    if not _RELATIONS[op.attributes["relation"]](left, right):
        values = " and ".join(
            f"{s} is {v}" for s, v in zip(sides, (left, right), strict=True) if isinstance(s, Dim)
        )
        raise _fault(op, f"{op.attributes['message']}" + (f"; {values}" if values else ""))
    return []


def _bind_dims(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    rule = op.attributes.get("rule")
    if rule is not None:
        run.symbols.update(zip(op.attributes["symbols"], _RULES[rule](run, op, operands), strict=True))
        return []
    least = op.attributes.get("minimum", 0)
    for name, value in zip(op.attributes["symbols"], operands[0].ravel().tolist(), strict=True):
        if value < least:
            raise _fault(
                op, f"{op.operands[0].name or 'the input'} gives the dim {value}; at least {least} is needed"
            )
        run.symbols[name] = value
    return []


def _reshape_rule(run: _Run, op: Op, operands: list[Any]) -> list[int]:
    source = run.resolve(op.attributes["dims"])
    try:
        return reshape_target(operands[0].ravel().tolist(), source, allowzero=op.attributes["allowzero"])
    except BindingError as error:
        raise _fault(op, str(error)) from error


def _slice_rule(run: _Run, op: Op, operands: list[Any]) -> list[int]:
    starts, ends = (o.ravel().tolist() for o in operands)
    extents = run.resolve(op.attributes["dims"])
    spans = zip(starts, ends, extents, op.attributes["steps"], strict=True)
    return [v for span in spans for v in slice_span(*span)]


_RULES: dict[str, Callable[[_Run, Op, list[Any]], list[int]]] = {
    "reshape": _reshape_rule,
    "slice": _slice_rule,
}


def _bind_result(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    run.bound = run.resolve(op.attributes["values"])
    return []


def _if(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    results = run.block(op.regions[0 if bool(operands[0].reshape(-1)[0]) else 1])
    run.symbols.update(zip(op.attributes["symbols"], run.bound, strict=True))
    return results


def _loop(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    a, (region,) = op.attributes, op.regions
    skip, count = int(a["conditional"]), a["carried"]
    trip = run.dim(a["trip"]) if a["trip"] != -1 else None
    going = bool(operands[0].reshape(-1)[0]) if skip else True
    carried = operands[skip:]
    dims = run.resolve(a["first"])
    stacks: list[list[Any]] = [[] for _ in op.results[count:]]
    passes = 0
    while going and (trip is None or passes < trip):
        run.symbols.update(zip(a["symbols"], dims, strict=True))
        run.symbols[a["index"]] = passes
        run.values.update(zip(region.arguments, carried, strict=True))
        results = run.block(region)
        dims = run.bound
        going = bool(results[0].reshape(-1)[0]) if skip else True
        carried = results[skip : skip + count]
        for stack, element in zip(stacks, results[skip + count :], strict=True):
            stack.append(element)
        passes += 1
    run.symbols.update(zip(a["results"], dims, strict=True))
    if skip or trip is None:
        run.symbols.update(dict.fromkeys(symbols_of(a["count"]), passes))
    stacked = [
        np.stack(stack) if stack else np.empty(run.resolve(result.type.shape), result.type.dtype.numpy)
        for stack, result in zip(stacks, op.results[count:], strict=True)
    ]
    return [*carried, *stacked]


def _constant(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    return [run.under_type(op.result, op.attributes["value"].array)]


def _fused(run: _Run, op: Op, operands: list[Any]) -> Iterable[Any]:
    """Neighbouring axes may be one axis inside of the region: the same elements in the same order."""
    (region,) = op.regions
    for argument, operand in zip(region.arguments, operands, strict=True):
        run.values[argument] = run.under_type(argument, operand)
    inner = zip(op.results, run.block(region), strict=True)
    return [run.under_type(result, value) for result, value in inner]


_SPECIAL: dict[str, Callable[[_Run, Op, list[Any]], Iterable[Any]]] = {
    "core.constant": _constant,
    "core.dims": _dims,
    "core.require": _require,
    "core.bind_dims": _bind_dims,
    "core.fused": _fused,
    "core.bind_result": _bind_result,
    "core.if": _if,
    "core.loop": _loop,
}


def _division(op: Op, operands: list[Any]) -> None:
    divisor = operands[1]
    if divisor.dtype.kind in "iu" and (divisor == 0).any():
        raise _fault(op, "integer division by zero")


_FAULTS: dict[str, Callable[[Op, list[Any]], None]] = {
    "core.div": _division,
    "core.rem": _division,
    "core.mod": _division,
}
