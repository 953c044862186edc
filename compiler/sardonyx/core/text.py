"""Strings: element by element.  Case and white space are Unicode's, as Python has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.regex import Automaton
from sardonyx.core.rules import one_dtype, one_shape, tensors
from sardonyx.core.text_numbers import NUMBER, format_number, is_number, parse_float, parse_integer
from sardonyx.ir.declare import Trait, TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["change_case", "split"]

Array = np.ndarray[Any, Any]
Rule = Callable[[Sequence[Any], Mapping[str, Any]], list[Type]]


def _rule(what: str, operands: Sequence[DType], result: DType) -> Rule:
    def infer(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
        given = tensors(types, what)
        one_shape(given, what)
        for kind, wanted in zip(given, operands, strict=True):
            one_dtype([kind, TensorType(wanted, kind.shape)], what)
        return [TensorType(result, given[0].shape)]

    infer.__doc__ = (
        f"{'Strings' if result is dtypes.string else result}, the shape of x, which all operands have."
    )
    return infer


def _each(fn: Callable[..., Any], dtype: DType) -> Callable[..., Array]:
    """A function of single elements and the attributes."""

    def evaluate(attributes: Mapping[str, Any], *arrays: Array) -> Array:
        result = np.empty(arrays[0].shape, dtype.numpy)
        flat = [a.ravel().tolist() for a in arrays]
        result.reshape(-1)[:] = [fn(attributes, *items) for items in zip(*flat, strict=True)]
        return result

    return evaluate


def change_case(text: str, kind: str) -> str:
    """Upper or lower case, code point by code point: a sigma at the end of a word is like any other."""
    return "".join(c.upper() if kind == "upper" else c.lower() for c in text)


def split(text: str, delimiter: str, most: int) -> list[str]:
    """The parts between delimiters, at most ``most`` splits (-1: all); an empty delimiter is any white space."""
    return text.split(delimiter or None, most)


def _part(attributes: Mapping[str, Any], text: str, number: int) -> str:
    parts = split(text, attributes["delimiter"], attributes["most"])
    return parts[number] if 0 <= number < len(parts) else ""


def _matches(attributes: Mapping[str, Any], *arrays: Array) -> Array:
    table, classes, accepting = (attributes[k].array for k in ("table", "classes", "accepting"))
    machine = Automaton(table, classes, accepting)
    return _each(lambda _, text: machine.matches(text.encode("utf-8", "surrogateescape")), dtypes.boolean)(
        {}, *arrays
    )


def _find(attributes: Mapping[str, Any], *arrays: Array) -> Array:
    keys = attributes["keys"].array.tolist()
    places = {key: i for i, key in enumerate(keys)}
    return _each(lambda _, text: places.get(text, len(keys)), dtypes.i64)(attributes, *arrays)


S, B, I = dtypes.string, dtypes.boolean, dtypes.i64  # noqa: E741

# kind: (operands, result, attributes, meaning, what it is)
_OPS: dict[str, tuple[tuple[DType, ...], DType, str, Callable[..., Array], str]] = {
    "string_equal": ((S, S), B, "", _each(lambda _, x, y: x == y, B), "whether two strings have the same bytes"),
    "string_concat": ((S, S), S, "", _each(lambda _, x, y: x + y, S), "y behind x"),
    "find_string": ((S,), I, "keys", _find, "the place of the last of the `keys` equal to x; their number if none is"),
    "string_matches": (
        (S,), B, "table classes accepting", _matches,
        "whether an automaton accepts the bytes: the state `table[state, classes[byte]]` follows; 0 is the first",
    ),
    "change_case": (
        (S,), S, "kind", _each(lambda a, x: change_case(x, a["kind"]), S),
        "`upper` or `lower` case by Unicode's table, each code point for itself",
    ),
    "count_parts": (
        (S,), I, "delimiter most", _each(lambda a, x: len(split(x, a["delimiter"], a["most"])), I),
        "how many parts x has between delimiters, of which the first `most` (-1: all) split; empty: white space",
    ),
    "string_part": (
        (S, I), S, "delimiter most", _each(_part, S), "one of these parts by its number; empty if there is none"
    ),
}  # fmt: skip

# kind: the attributes of its example
_GIVEN = {
    "find_string": ' {keys = dense<["a", "b"]> : tensor<2x!sdx.string>}',
    "string_matches": (
        " {table = dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>, classes = dense<0> : tensor<256xi64>, "
        "accepting = dense<[false, true]> : tensor<2xi1>}"
    ),
    "change_case": ' {kind = "upper"}',
    "count_parts": ' {delimiter = ",", most = -1}',
    "string_part": ' {delimiter = ",", most = -1}',
}

for _kind, (_operands, _result, _attributes, _meaning, _doc) in _OPS.items():
    _values = ", ".join(f"%{name}" for name in "xy"[: len(_operands)])
    _taken = ", ".join(f"tensor<4x{t}>" for t in _operands)
    declare(
        f"core.{_kind}",
        " ".join("xy"[: len(_operands)]),
        _attributes,
        infer=_rule(_kind, _operands, _result),
        evaluate=_meaning,
        traits=[Trait.EXACT],
        doc=_doc,
        example=f"%r = core.{_kind} {_values}{_GIVEN.get(_kind, '')} : ({_taken}) -> tensor<4x{_result}>",
    )


def _format_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """Strings, the shape of x."""
    (x,) = tensors(types, "format")
    if x.dtype.kind in ("string", "complex") or x.dtype.is_small_float:
        raise TypeRuleError(f"format: {x.describe()} has no text")
    return [TensorType(dtypes.string, x.shape)]


def _format(attributes: Mapping[str, Any], x: Array) -> Array:
    result = np.empty(x.shape, object)
    result.reshape(-1)[:] = [format_number(v) for v in x.ravel()]
    return result


declare(
    "core.format",
    "x",
    infer=_format_rule,
    evaluate=_format,
    traits=[Trait.EXACT],
    doc="numbers as text: integers exactly, floats by the fewest digits that read back, `True` and `False`",
    example="%y = core.format %x : (tensor<2xf32>) -> tensor<2x!sdx.string>",
)


def _parse_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype `to`, the shape of x, which holds strings."""
    (x,) = tensors(types, "parse")
    to = attributes["to"]
    if x.dtype is not dtypes.string or to not in NUMBER:
        raise TypeRuleError(f"parse: {x.describe()} does not become {to.onnx_name}")
    return [TensorType(to, x.shape)]


def _parse(attributes: Mapping[str, Any], x: Array) -> Array:
    to: DType = attributes["to"]
    texts = x.ravel().tolist()
    if to.is_float:
        return np.array([parse_float(text, to) for text in texts], to.numpy).reshape(x.shape)
    return np.array([parse_integer(text, to) for text in texts], to.numpy).reshape(x.shape)


def _no_number(attributes: Mapping[str, Any], x: Array) -> str:
    wrong = [(i, text) for i, text in enumerate(x.ravel().tolist()) if not is_number(text)]
    return f"element {wrong[0][0]} of its input is no number: {wrong[0][1]!r}" if wrong else ""


declare(
    "core.parse",
    "x",
    "to",
    infer=_parse_rule,
    evaluate=_parse,
    fault=_no_number,
    traits=[Trait.CAN_FAULT],
    doc="numbers read from text, rounded once; a fault if the text is no number",
    example="%y = core.parse %x {to = f32} : (tensor<2x!sdx.string>) -> tensor<2xf32>",
)
