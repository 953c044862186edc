"""From what a caller feeds to one array per input: right type, contiguous, aligned, right shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, evaluate
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.signature import Argument

__all__ = ["Array", "Feeds", "accept", "arrange", "bind"]

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any] | Sequence[Any]


def arrange(feeds: Feeds, inputs: Sequence[Argument]) -> list[Any]:
    """The fed values in the order of the inputs; RuntimeFault for unknown and missing ones."""
    names = [a.name for a in inputs]
    if isinstance(feeds, Mapping):
        unknown = [n for n in feeds if n not in names]
        if unknown:
            raise RuntimeFault(f"there is no input {unknown[0]!r}; {_the_inputs(inputs)}")
        return [feeds[a.name] if a.name in feeds else _default(a) for a in inputs]
    if isinstance(feeds, (np.ndarray, np.generic, str, bytes)) or not isinstance(feeds, Sequence):
        raise RuntimeFault(
            f"the feeds are {_kind(feeds)}, but a dict by name or a list in input order is expected; "
            f"{_the_inputs(inputs)}"
        )
    if len(feeds) == len(inputs):
        return list(feeds)
    required = [a for a in inputs if a.default is None]
    if len(feeds) == len(required):
        given = iter(feeds)
        return [next(given) if a.default is None else a.default for a in inputs]
    raise RuntimeFault(f"{len(feeds)} feeds for {len(inputs)} inputs; {_the_inputs(inputs)}")


def _default(argument: Argument) -> Array:
    if argument.default is None:
        raise RuntimeFault(f"the input {argument.name!r} ({argument.describe()}) is missing from the feeds")
    return argument.default


def _the_inputs(inputs: Sequence[Argument]) -> str:
    if not inputs:
        return "the model has no inputs"
    return "the inputs are " + ", ".join(f"{a.name!r} ({a.describe()})" for a in inputs)


def _kind(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype}{list(value.shape)}"
    return f"of the Python type {type(value).__name__}"


def accept(value: Any, argument: Argument) -> Array:
    """The array of a feed, copied only if it has to be: contiguous, aligned, of native byte order.

    Values that are no arrays have no type of their own; they take that of the input if it holds each of
    them exactly.
    """
    if argument.dtype is dtypes.string:
        return _texts(value, argument)
    dtype = argument.dtype.numpy
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.newbyteorder("=") != dtype:
            raise RuntimeFault(
                f"the input {argument.name!r} is {_kind(value)}, but the model takes {argument.describe()}; "
                f"convert it with .astype({dtype.name!r}) if that is meant"
            )
    else:
        array = _from_python(value, argument)
    # (np.ascontiguousarray would give a scalar an axis.)
    return np.require(array.astype(dtype, copy=False), requirements=["C", "A"])


def _texts(value: Any, argument: Argument) -> Array:
    """An object array of strings, from one, from NumPy's text arrays, or from nested lists."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise RuntimeFault(f"the input {argument.name!r} is no array: {error}") from error
    if array.dtype.kind not in "OUST" and array.size:
        raise RuntimeFault(
            f"the input {argument.name!r} is {_kind(value)}, but the model takes {argument.describe()}"
        )
    return np.require(array.astype(object), requirements=["C"])


def _from_python(value: Any, argument: Argument) -> Array:
    """The array of Python numbers, or of something that NumPy can make an array of."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise RuntimeFault(
            f"the input {argument.name!r} is no array: {error}; the model takes {argument.describe()}"
        ) from error
    dtype = argument.dtype.numpy
    if array.dtype.newbyteorder("=") == dtype:
        return array
    numbers = (
        not hasattr(value, "dtype")
        and array.dtype.kind in "biuf"
        and (array.dtype.kind == "b") == (dtype == np.bool_)
    )
    if numbers:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
            same = (cast.astype(array.dtype) == array) | (array != array)
        if (argument.dtype.is_float and array.dtype.kind in "iuf") or bool(np.all(same)):
            return cast
    raise RuntimeFault(
        f"the input {argument.name!r} is {_kind(value)} ({array.dtype}{list(array.shape)} as an array), "
        f"but the model takes {argument.describe()}"
    )


def bind(arrays: Sequence[Array], inputs: Sequence[Argument]) -> dict[str, int]:
    """The sizes of the symbols in the inputs' shapes; RuntimeFault names the axis that does not fit."""
    symbols: dict[str, int] = {}
    sources: dict[str, str] = {}
    for array, argument in zip(arrays, inputs, strict=True):
        if len(array.shape) != len(argument.shape):
            raise RuntimeFault(
                f"the input {argument.name!r} has the shape {list(array.shape)} of rank {array.ndim}, "
                f"but the model takes {argument.describe()}"
            )
        for have, want in zip(array.shape, argument.shape, strict=True):
            name = plain_symbol(want)
            if name is not None and name not in symbols:
                symbols[name], sources[name] = have, argument.name
    for array, argument in zip(arrays, inputs, strict=True):
        for axis, (have, want) in enumerate(zip(array.shape, argument.shape, strict=True)):
            expected = evaluate(want, symbols)
            if have != expected:
                name = plain_symbol(want)
                why = f"; {name} is {expected} by the input {sources[name]!r}" if name else ""
                raise RuntimeFault(
                    f"the input {argument.name!r} has the shape {list(array.shape)}, but the model takes "
                    f"{argument.describe()}: axis {axis} is {have}, expected {expected}{why}"
                )
    return symbols


def plain_symbol(dim: DimLike) -> str | None:
    """The name of a dim that is one symbol alone."""
    if isinstance(dim, Dim) and len(dim.terms) == 1:
        (monomial, coefficient) = dim.terms[0]
        if coefficient == 1 and len(monomial) == 1 and not monomial[0].args:
            return monomial[0].name
    return None
