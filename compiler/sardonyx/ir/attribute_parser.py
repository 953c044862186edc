"""Types, attributes and constants read from tokens: the part of the parser below operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from sardonyx.ir.attributes import Dense
from sardonyx.ir.dense_text import ElidedDense, from_blob, from_literals, from_memory
from sardonyx.ir.lexical import IRSyntaxError, parse_float, resource_meant, tokenize, unquote, unquote_bytes
from sardonyx.ir.types import (
    BufferType,
    IndexType,
    MapType,
    NoneType,
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
    UnrankedType,
    VectorType,
)
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, parse_dim
from sardonyx_runtime.dtypes import DType

__all__ = ["AttributeParser", "FunctionType"]


@dataclass(frozen=True)
class FunctionType:
    """What ``function_type`` holds in the generic form; the body says the same."""

    arguments: tuple[Type, ...]
    results: tuple[Type, ...]


# --- types -------------------------------------------------------------------------------------------

_SHAPED = re.compile(
    r"(tensor|vector)<\s*((?:(?:\d+|\?)x)*)(\*x)?([!\w.]+(?:<\w+>)?)\s*(?:,\s*#sdx\.dims<(.*)>\s*)?>\Z"
)
_DIM = re.compile(r'\s*(?:(-?\d+)|("(?:[^"\\]|\\.)*"))\s*(?:,|\Z)')
_WORD_TYPES: dict[str, Type] = {
    "none": NoneType(),
    "index": IndexType(),
} | {t.name: VectorType(t) for t in dtypes.ALL}


def _dims(text: str) -> Shape:
    dims: list[DimLike] = []
    at = 0
    while at < len(text):
        match = _DIM.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} is no list of dims")
        dims.append(int(match[1]) if match[1] else parse_dim(unquote(match[2])))
        at = match.end()
    return tuple(dims)


@lru_cache(maxsize=4096)
def _shaped_type(text: str) -> Type:
    """A whole ``tensor<...>`` or ``vector<...>``; ValueError says what is wrong with it."""
    match = _SHAPED.match(text)
    if match is None:
        raise ValueError(f"malformed type {text}")
    kind, extents, unranked, element, encoding = match.groups()
    dtype = _dtype(element)
    shape = tuple(None if e == "?" else int(e) for e in extents.split("x")[:-1])
    if kind == "vector":
        if len(shape) != 1 or shape[0] is None or encoding or unranked:
            raise ValueError(f"{text}: a vector has one constant extent")
        return VectorType(dtype, shape[0])
    if unranked:
        return UnrankedType(dtype)
    dims = _dims(encoding) if encoding is not None else shape
    if shape != tuple(d if isinstance(d, int) else None for d in dims):
        raise ValueError(f"{text}: the shape and its dims differ")
    if encoding is None and None in shape:
        raise ValueError(f"{text}: a dim written as ? needs its expression in #sdx.dims<...>")
    return TensorType(dtype, tuple(d for d in dims if d is not None))


def _dtype(name: str) -> DType:
    kind = _WORD_TYPES.get(name)
    if not isinstance(kind, VectorType):
        raise ValueError(f"{name!r} is no element type")
    return kind.dtype


class AttributeParser:
    """One text and the position in its tokens."""

    def __init__(self, text: str, resources: Mapping[str, Dense]) -> None:
        tokens = tokenize(text)
        self.text, self.kinds, self.texts, self.starts = text, tokens.kinds, tokens.texts, tokens.starts
        self.at = 0
        self.resources = resources
        self.blobs: dict[str, str] = {}
        self.dense: dict[tuple[str, Type], Dense] = {}

    # --- tokens

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise IRSyntaxError(message, self.text, self.starts[self.at if at is None else at])

    def found(self) -> str:
        text = self.texts[self.at]
        return f"found {text if len(text) < 40 else text[:37] + '...'!r}" if text else "the text ends"

    def accept(self, text: str) -> bool:
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if self.texts[self.at] != text:
            self.fail(f"expected {text!r}, {self.found()}")
        self.at += 1

    def expect_end(self) -> None:
        if self.kinds[self.at] != "end":
            self.fail(f"expected the end, {self.found()}")

    def take(self, kind: str, what: str) -> str:
        if self.kinds[self.at] != kind:
            self.fail(f"expected {what}, {self.found()}")
        self.at += 1
        return self.texts[self.at - 1]

    def listed(self, close: str, item: Callable[[], Any]) -> list[Any]:
        """Items separated by commas up to the closing bracket, which is taken too."""
        items: list[Any] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(item())
        return items

    def checked(self, make: Callable[..., Any], *args: Any, at: int) -> Any:
        """What ``make`` gives; its ValueError becomes a syntax error at the token."""
        try:
            return make(*args)
        except (ValueError, KeyError) as error:
            self.fail(str(error), at)

    # --- types

    def type(self) -> Type:
        at = self.at
        kind, text = self.kinds[at], self.texts[at]
        self.at += 1
        if kind == "shaped":
            try:
                return _shaped_type(text)
            except ValueError as error:
                self.fail(str(error), at)
        if text == "complex":
            return VectorType(self.complex())
        found = _WORD_TYPES.get(text)
        if found is not None:
            return found
        make = _DIALECT_TYPES.get(text)
        if make is None:
            self.at = at
            self.fail(f"expected a type, {self.found()}")
        return make(self)

    def results(self) -> tuple[Type, ...]:
        """One type, or several in parentheses."""
        return tuple(self.listed(")", self.type)) if self.accept("(") else (self.type(),)

    def complex(self) -> DType:
        self.expect("<")
        at = self.at
        found: DType = self.checked(_dtype, f"complex<{self.take('word', 'an element type')}>", at=at)
        self.expect(">")
        return found

    def dtype(self) -> DType:
        at = self.at
        kind = self.type()
        if not isinstance(kind, VectorType) or kind.lanes != 1:
            self.fail("expected an element type", at)
        return kind.dtype

    def inside(self, item: Callable[[], Any]) -> Any:
        self.expect("<")
        found = item()
        self.expect(">")
        return found

    def map_type(self) -> Type:
        self.expect("<")
        key = self.dtype()
        self.expect(",")
        kind = MapType(key, self.type())
        self.expect(">")
        return kind

    # --- attributes

    def key(self) -> str:
        if self.kinds[self.at] == "string":
            self.at += 1
            return unquote(self.texts[self.at - 1])
        return self.take("word", "a name")

    def dictionary(self) -> dict[str, Any]:
        """``{key = value, ...}``."""
        self.expect("{")
        values: dict[str, Any] = {}
        first = True
        while not self.accept("}"):
            if not first:
                self.expect(",")
            first = False
            at = self.at
            key = self.key()
            if key in values:
                self.fail(f"{key!r} is given twice", at)
            self.expect("=")
            values[key] = self.attribute()
        return values

    def properties(self) -> dict[str, Any]:
        """``<{...}>`` if there is one."""
        if not self.accept("<"):
            return {}
        values = self.dictionary()
        self.expect(">")
        return values

    def attribute(self) -> Any:
        at = self.at
        read = _ATTRIBUTES.get(self.texts[at]) or _ATTRIBUTE_KINDS.get(self.kinds[at])
        if read is not None:
            self.at += 1
            return read(self)
        kind = self.type()
        if isinstance(kind, VectorType) and kind.lanes == 1 and self.kinds[at] != "shaped":
            return kind.dtype
        return kind

    def number(self) -> int | float:
        text = self.texts[self.at - 1]
        kind = ""
        if self.accept(":"):
            kind = self.take("word", "a number's type")
        if "." in text or kind.startswith("f"):
            return parse_float(text)
        return int(text, 0)

    def function_type(self) -> FunctionType:
        takes = tuple(self.listed(")", self.type))
        self.expect("->")
        return FunctionType(takes, self.results())

    def dims(self) -> Shape:
        self.expect("<")
        return tuple(self.listed(">", self.dim))

    def dim(self) -> DimLike:
        at = self.at
        if self.kinds[at] == "number":
            self.at += 1
            return int(self.texts[at])
        dim: DimLike = self.checked(parse_dim, unquote(self.take("string", "a dim")), at=at)
        return dim

    # --- constants

    def elements(self) -> list[str]:
        """The literals of a nested list, flat; the two of a complex number one after the other."""
        for opening, closing in (("[", "]"), ("(", ")")):
            if self.accept(opening):
                return [t for part in self.listed(closing, self.elements) for t in part]
        if self.kinds[self.at] not in ("number", "string", "word"):
            self.fail(f"expected an element, {self.found()}")
        self.at += 1
        return [self.texts[self.at - 1]]

    def tensor_type(self) -> TensorType:
        at = self.at
        kind = self.type()
        if not isinstance(kind, TensorType):
            self.fail("expected the constant's tensor type", at)
        return kind

    def dense_literal(self) -> Dense:
        at = self.at
        self.expect("<")
        literals = [] if self.texts[self.at] == ">" else self.elements()
        self.expect(">")
        self.expect(":")
        kind = self.tensor_type()
        found: Dense
        if kind.dtype is dtypes.string:
            found = self.checked(lambda: from_literals([unquote(t) for t in literals], kind), at=at)
        elif len(literals) == 1 and literals[0].startswith('"0x'):
            found = self.checked(lambda: from_memory(bytes.fromhex(literals[0][3:-1]), kind), at=at)
        else:
            found = self.checked(from_literals, literals, kind, at=at)
        return found

    def strings_literal(self) -> Dense:
        at = self.at
        self.expect("<")
        kind = self.tensor_type()
        self.expect(",")
        self.expect("[")
        items = self.listed("]", self.attribute)
        self.expect(">")
        found: Dense = self.checked(from_literals, items, kind, at=at)
        return found

    def resource(self) -> Dense:
        at = self.at
        self.expect("<")
        key = resource_meant(self.key())
        self.expect(">")
        self.expect(":")
        kind = self.tensor_type()
        found = self.dense.get((key, kind))
        if found is None:
            found = self.dense[key, kind] = self.find_resource(key, kind, at)
        return found

    def find_resource(self, key: str, kind: TensorType, at: int) -> Dense:
        if key in self.blobs:
            found: Dense = self.checked(from_blob, self.blobs[key], kind, at=at)
            return found
        known = self.resources.get(key)
        if known is not None:
            if known.type != kind:
                self.fail(f"the resource {key!r} is a {known.type}, not a {kind}", at)
            return known
        text, position = self.text, self.starts[at]
        message = (
            f"the data of the constant {key!r} are not in this text: write it with them (`dump --full`, "
            "resources=True), or give them to parse_module"
        )
        return ElidedDense(kind, key, lambda: IRSyntaxError(message, text, position))


_DIALECT_TYPES: dict[str, Callable[[AttributeParser], Type]] = {
    "!sdx.unknown": lambda p: UnrankedType(None),
    "!sdx.seq": lambda p: SequenceType(p.inside(p.type)),
    "!sdx.optional": lambda p: OptionalType(p.inside(p.type)),
    "!sdx.map": AttributeParser.map_type,
    "!sdx.buffer": lambda p: BufferType(p.inside(p.dtype)),
}

_ATTRIBUTES: dict[str, Callable[[AttributeParser], Any]] = {
    "true": lambda p: True,
    "false": lambda p: False,
    "[": lambda p: tuple(p.listed("]", p.attribute)),
    "(": AttributeParser.function_type,
    "dense": AttributeParser.dense_literal,
    "dense_resource": AttributeParser.resource,
    "#sdx.dims": AttributeParser.dims,
    "#sdx.dim": lambda p: p.inside(p.dim),
    "#sdx.bytes": lambda p: unquote_bytes(p.inside(lambda: p.take("string", "bytes in quotes"))),
    "#sdx.strings": AttributeParser.strings_literal,
}


def _braced(parser: AttributeParser) -> dict[str, Any]:
    parser.at -= 1
    return parser.dictionary()


_ATTRIBUTES["{"] = _braced
_ATTRIBUTE_KINDS: dict[str, Callable[[AttributeParser], Any]] = {
    "number": AttributeParser.number,
    "string": lambda p: unquote(p.texts[p.at - 1]),
}
