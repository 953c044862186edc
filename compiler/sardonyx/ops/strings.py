"""Operators of strings: joining, splitting, case and stop words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.core.regex import RegexError, automaton
from sardonyx.core.text import change_case
from sardonyx.errors import CompileError
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.ops.order import nonzero
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import maximum

__all__ = ["as_text"]


def as_text(word: str | bytes) -> str:
    """An attribute's string; bytes that are no UTF-8 become lone surrogates, as in tensors."""
    return word if isinstance(word, str) else word.decode("utf-8", "surrogateescape")


@onnx_op("StringConcat", since=20)
def string_concat(b: Builder, x: Value, y: Value) -> Value:
    return b.string_concat(*b.broadcast(x, y))


@onnx_op("StringSplit", since=20)
def string_split(
    b: Builder, x: Value, *, delimiter: str | bytes = "", maxsplit: int | None = None
) -> tuple[Value, Value]:
    """The parts along a new last axis, as many as any string has; and how many each has."""
    attributes = {"delimiter": as_text(delimiter), "most": -1 if maxsplit is None else maxsplit}
    counts = b.count_parts(x, **attributes)
    most = b.reduce("max", counts, range(counts.type.rank))
    (width,) = b.dims_of(b.max(most, b.full(0, most)))
    shape = (*x.type.shape, width)
    number = b.op("core.iota", shape=shape, axis=len(shape) - 1, dtype=dtypes.i64)
    spread = b.broadcast_to(b.reshape(x, (*x.type.shape, 1)), shape)
    return b.string_part(spread, number, **attributes), counts


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(b: Builder, x: Value, *, pattern: str | bytes) -> Value:
    """RE2's syntax; the pattern becomes an automaton at compile time."""
    try:
        found = automaton(as_text(pattern))
    except RegexError as error:
        raise CompileError(str(error)) from error
    tables = (found.table, found.classes, found.accepting)
    return b.string_matches(
        x, **dict(zip(("table", "classes", "accepting"), map(Dense, tables), strict=True))
    )


@onnx_op("StringNormalizer", since=10)
def string_normalizer(
    b: Builder,
    x: Value,
    *,
    case_change_action: str,
    is_case_sensitive: int,
    locale: str | None = None,
    stopwords: Sequence[str | bytes] | None = None,
) -> Value:
    """Without stop words, in another case.  The locale is not looked at: case is Unicode's everywhere.

    If nothing is left there is one empty string.  Unless the case matters, words are compared in lower case.
    """
    if case_change_action not in ("NONE", "LOWER", "UPPER"):
        raise CompileError(f"case_change_action is {case_change_action!r}; known are NONE, LOWER, UPPER")
    message = f"StringNormalizer takes [C] or [1, C], not {x.type.describe()}"
    if x.type.rank not in (1, 2):
        raise CompileError(message)
    if x.type.rank == 2:
        x = b.expect_shape(x, (1, x.type.shape[1]), message)
    lead = x.type.shape[:-1]
    line = b.reshape(x, x.type.shape[-1:])
    if stopwords:
        given = list(map(as_text, stopwords))
        words = given if is_case_sensitive else [change_case(w, "lower") for w in given]
        compared = line if is_case_sensitive else b.change_case(line, kind="lower")
        keys = Dense(np.array(words, object), dtypes.string)
        place = b.find_string(compared, keys=keys)
        line = _without(b, line, b.eq(place, b.full(len(words), place)))
    if case_change_action != "NONE":
        line = b.change_case(line, kind=case_change_action.lower())
    return b.reshape(line, (*lead, *line.type.shape))


def _without(b: Builder, line: Value, kept: Value) -> Value:
    """The elements that are kept, in their order; one empty string if there are none."""
    places = nonzero(b, kept)
    found = b.reshape(places, places.type.shape[1:])
    count = found.type.shape[0]
    width = maximum(count, 1)
    closed = b.op("core.pad", found, b.constant(0, found.type.dtype), low=(0,), high=(1,))
    first = b.op("core.slice", closed, starts=(0,), sizes=(width,), steps=(1,))
    # Nothing is read from an empty line: it gets one more element, which is the empty string.
    line = b.op("core.pad", line, b.constant(np.array("", object), dtypes.string), low=(0,), high=(1,))
    empty = line.type.shape[0] - 1
    none = b.eq(
        b.broadcast_to(b.dims([count], scalar=True), (width,)), b.broadcast_to(b.constant(0), (width,))
    )
    last = b.broadcast_to(b.dims([empty], scalar=True), (width,))
    return b.op("core.gather", line, b.select(none, last, first), axis=0)
