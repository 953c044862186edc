"""Calls of functions that are not ours: a symbol of a library, or an address in this process."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.errors import CompileError
from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes
from sardonyx_runtime.errors import RuntimeFault

__all__ = ["ExternalFunction", "add_function", "address_of", "link_symbol"]

Array = np.ndarray[Any, Any]
_WORDS = ctypes.POINTER(ctypes.c_int64)
_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_TABLE = ctypes.POINTER(_WORDS)
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTERS, _TABLE, _POINTERS, _TABLE)


@dataclass(frozen=True)
class ExternalFunction:
    """A function with the C signature of docs/extending.md: by its address, or a symbol of a shared library."""

    library: str = ""
    symbol: str = ""
    address: int = 0


_FUNCTIONS: dict[str, ExternalFunction] = {}
_LIBRARIES: dict[str, ctypes.CDLL] = {}


def add_function(key: str, function: ExternalFunction) -> None:
    """Make a function known under a key; CompileError if the library or the symbol is not there."""
    _FUNCTIONS[key] = function
    try:
        address_of(key)
    except (OSError, AttributeError) as error:
        del _FUNCTIONS[key]
        raise CompileError(
            f"the function {function.symbol!r} of {function.library!r} cannot be loaded: {error}"
        ) from error


def address_of(key: str) -> int:
    """Where the function is in this process."""
    function = _FUNCTIONS[key]
    if function.address:
        return function.address
    library = _LIBRARIES.get(function.library)
    if library is None:
        library = _LIBRARIES[function.library] = ctypes.CDLL(function.library)
    return ctypes.cast(getattr(library, function.symbol), ctypes.c_void_p).value or 0


def link_symbol(key: str) -> str:
    """The symbol by which native code calls the function."""
    return f"sdx_external_{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"


def _rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The attributes `dtypes` and `shapes`, as the function's registration gave them."""
    results = [TensorType(d, s) for d, s in zip(attributes["dtypes"], attributes["shapes"], strict=True)]
    for kind in (*types, *results):
        if not isinstance(kind, TensorType) or kind.dtype is dtypes.string:
            raise TypeRuleError(f"external_call: {kind}; tensors of numbers are needed")
    if attributes["function"] not in _FUNCTIONS:
        raise TypeRuleError(f"external_call: no function is registered for {attributes['function']!r}")
    return list(results)


def _evaluate(attributes: Mapping[str, Any], *arrays: Array) -> tuple[Array, ...]:
    """The function itself, called from here."""
    inputs = [np.require(a, requirements=["C", "A"]) for a in arrays]
    outputs = [np.empty(s, d.numpy) for d, s in zip(attributes["dtypes"], attributes["shapes"], strict=True)]
    code = _FUNCTION(address_of(attributes["function"]))(*_tables(inputs), *_tables(outputs))
    if code:
        raise RuntimeFault(f"the external function {attributes['function']} returned {code}", code=18)
    return tuple(outputs)


def _tables(arrays: Sequence[Array]) -> tuple[Any, Any]:
    """The C arrays of the arrays' addresses and dims."""
    pointers = (ctypes.c_void_p * max(1, len(arrays)))(*[a.__array_interface__["data"][0] for a in arrays])
    shapes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in arrays]
    dims = (_WORDS * max(1, len(arrays)))(*[ctypes.cast(s, _WORDS) for s in shapes])
    dims.shapes = shapes  # type: ignore[attr-defined]  # they live as long as the table
    return pointers, dims


declare(
    "core.external_call",
    "*inputs",
    "function dtypes shapes",
    infer=_rule,
    evaluate=_evaluate,
    doc="a function that a user registered, which fills results of the given `dtypes` and `shapes` (docs/extending.md)",
    example=(
        '%y = core.external_call %x {function = "my.domain::Op", dtypes = [f32], shapes = [[4]]}'
        " : (tensor<4xf32>) -> tensor<4xf32>"
    ),
)
