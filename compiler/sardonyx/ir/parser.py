"""The text form read back: the inverse of ``printer.py``, for both styles.

A recursive descent over the token lists of ``lexical.tokenize``.  What MLIR itself prints for a module in
generic form is read as well: properties, ``%0:2`` result packs, names used anew in sibling regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sardonyx.ir.attribute_parser import AttributeParser, FunctionType
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import UNKNOWN, Block, Function, Location, Module, Op, Origin, Value
from sardonyx.ir.lexical import IRSyntaxError, name_meant, resource_meant, unquote
from sardonyx.ir.types import Type

__all__ = ["IRSyntaxError", "parse_module", "parse_type"]


def parse_module(text: str, *, resources: Mapping[str, Dense] | None = None) -> Module:
    """The module written as text.

    A constant of which the text gives only the key is looked for in the text's own resource section, then in
    ``resources``; if it is in neither, the module can be read, compared and printed, and using the constant's
    data raises :class:`IRSyntaxError`.
    """
    return _Parser(text, resources or {}).module()


def parse_type(text: str) -> Type:
    """The type written as text."""
    parser = _Parser(text, {})
    kind = parser.type()
    parser.expect_end()
    return kind


class _Parser(AttributeParser):
    """Modules, functions and operations; ``scope`` holds the values in sight by their identifiers."""

    def __init__(self, text: str, resources: Mapping[str, Dense]) -> None:
        super().__init__(text, resources)
        self.scope: dict[str, Value] = {}
        self.others: Mapping[str, str] = {}  # identifiers with a name that they do not tell

    # --- modules and functions

    def module(self) -> Module:
        if "{-#" in self.texts:
            start = self.texts.index("{-#")
            self.resource_section(start)
            del self.kinds[start:-1], self.texts[start:-1], self.starts[start:-1]
            self.at = 0
        module = Module()
        wrapped = self.texts[self.at] == "module"
        if self.accept('"builtin.module"'):
            self.expect("(")
            self.expect(")")
            self.expect("(")
            self.expect("{")
            while not self.accept("}"):
                self.function(module)
            self.expect(")")
            module.attributes = self.unwrapped(self.dictionary() if self.texts[self.at] == "{" else {})
            self.signature()
            self.location()
        elif wrapped:
            self.at += 1
            if self.accept("attributes"):
                module.attributes = self.unwrapped(self.dictionary())
            self.expect("{")
            while not self.accept("}"):
                self.function(module)
            self.location()
        else:
            while self.kinds[self.at] != "end":
                self.function(module)
        self.expect_end()
        return module

    def resource_section(self, at: int) -> None:
        self.at = at
        for text in ("{-#", "dialect_resources", ":", "{", "builtin", ":", "{"):
            self.expect(text)
        while not self.accept("}"):
            if self.blobs:
                self.expect(",")
            key = resource_meant(self.key())
            self.expect(":")
            self.blobs[key] = unquote(self.take("string", "the data of a resource"))
        self.expect("}")
        self.expect("#-}")

    @staticmethod
    def unwrapped(attributes: dict[str, Any]) -> dict[str, Any]:
        wrapped = attributes.get("sdx.attributes")
        return wrapped if isinstance(wrapped, dict) else attributes

    def function(self, module: Module) -> None:
        at = self.at
        self.scope = {}
        self.others = {}
        function = self.generic_function() if self.accept('"func.func"') else self.short_function()
        if function.name in module.functions:
            self.fail(f"there is a function {function.name!r} already", at)
        module.add(function)

    def short_function(self) -> Function:
        if not self.accept("func") and not self.accept("func.func"):
            self.fail(f"expected a function, {self.found()}")
        at = self.at
        symbol = self.take("symbol", "the function's name (@name)")[1:]
        name = unquote(symbol) if symbol.startswith('"') else symbol
        body = Block()
        self.expect("(")
        arguments: list[tuple[int, Type]] = self.listed(")", self.argument)
        results = self.results() if self.accept("->") else ()
        if self.accept("names"):
            self.others = self.dictionary()
        attributes = self.dictionary() if self.accept("attributes") else {}
        self.define_arguments(body, arguments)
        self.expect("{")
        while not self.accept("}"):
            self.op(body)
        function = Function(name, body, attributes, self.location())
        self.check_types(function, None, results, at)
        return function

    def generic_function(self) -> Function:
        at = self.at - 1
        self.others = self.names_ahead()
        for text in ("(", ")"):
            self.expect(text)
        attributes = self.properties()
        self.expect("(")
        body = self.region()
        self.expect(")")
        if self.texts[self.at] == "{":
            attributes |= self.dictionary()
        self.signature()
        name, kind = attributes.pop("sym_name", None), attributes.pop("function_type", None)
        if not isinstance(name, str) or not isinstance(kind, FunctionType):
            self.fail("a func.func needs sym_name and function_type", at)
        attributes.pop("sdx.names", None)
        function = Function(name, body, self.unwrapped(attributes), self.location())
        self.check_types(function, kind.arguments, kind.results, at)
        return function

    def names_ahead(self) -> Mapping[str, str]:
        """The table of names of a generic function, which stands behind the body that needs it."""
        start = self.at
        depth = 0
        for i in range(start, len(self.texts)):
            text = self.texts[i]
            if text in ("{", "}"):
                depth += 1 if text == "{" else -1
            elif depth == 1 and text == "sdx.names":
                self.at = i + 2
                names = self.dictionary()
                self.at = start
                return names
            elif depth == 0 and text == ":":
                break
        return {}

    def check_types(
        self, function: Function, arguments: tuple[Type, ...] | None, results: tuple[Type, ...], at: int
    ) -> None:
        ops = function.body.ops
        found = tuple(o.type for o in ops[-1].operands) if ops else ()
        if results != found:
            self.fail(f"results declared {_listing(results)}, the body ends with {_listing(found)}", at)
        if arguments is not None and arguments != tuple(a.type for a in function.arguments):
            self.fail(f"the arguments are declared {_listing(arguments)}, the body's are others", at)

    def argument(self) -> tuple[int, Type]:
        """A value's token and its type."""
        at = self.at
        self.take("value", "an argument (%name)")
        self.expect(":")
        kind = self.type()
        self.location()
        return at, kind

    def define_arguments(self, block: Block, arguments: list[tuple[int, Type]]) -> None:
        for at, kind in arguments:
            text = self.texts[at]
            self.define(text, block.add_argument(kind, self.name(text)), at)

    # --- values, regions and operations

    def name(self, text: str) -> str:
        text = text[1:]
        other = self.others.get(text)
        return name_meant(text) if other is None else other

    def define(self, text: str, value: Value, at: int) -> None:
        if text in self.scope:
            self.fail(f"{text} is defined already", at)
        self.scope[text] = value

    def operand(self) -> Value:
        text = self.take("value", "an operand (%name)")
        value = self.scope.get(text)
        if value is None:
            self.fail(f"{text} is not defined here", self.at - 1)
        return value

    def region(self) -> Block:
        outer = self.scope
        self.scope = outer.copy()
        block = Block()
        self.expect("{")
        if self.kinds[self.at] == "label":
            self.at += 1
            if self.accept("("):
                self.define_arguments(block, self.listed(")", self.argument))
            self.expect(":")
        while not self.accept("}"):
            if self.kinds[self.at] == "label":
                self.fail("a region has one block here")
            self.op(block)
        self.scope = outer
        return block

    def op(self, block: Block) -> None:
        start = self.at
        kinds, texts = self.kinds, self.texts
        defined: list[str] = []
        if kinds[start] == "value":
            while True:
                text = self.take("value", "a result (%name)")
                if self.accept(":"):
                    count = self.take("number", "a number of results")
                    defined += [f"{text}#{i}" for i in range(int(count))]
                else:
                    defined.append(text)
                if not self.accept(","):
                    break
            self.expect("=")
        at = self.at
        kind = kinds[at]
        operands: list[Value] = []
        if kind == "word":
            name = texts[at]
            self.at += 1
            while kinds[self.at] == "value":
                operands.append(self.operand())
                if not self.accept(","):
                    break
        elif kind == "string":
            name = unquote(texts[at])
            self.at += 1
            self.expect("(")
            operands = self.listed(")", self.operand)
        else:
            self.fail(f"expected an operation, {self.found()}")
        attributes = self.properties()
        regions: list[Block] = []
        while texts[self.at] != ":":
            if texts[self.at] == "{":
                attributes |= self.dictionary()
            elif self.accept("("):
                regions += self.listed(")", self.region)
            else:
                self.fail(f"expected attributes, regions or ':', {self.found()}")
        takes, gives = self.signature()
        if takes != tuple([o.type for o in operands]):
            types = _listing(tuple(o.type for o in operands))
            self.fail(f"{name}: the operands are {types}, written as {_listing(takes)}", at)
        if defined and len(defined) != len(gives):
            self.fail(f"{name}: {len(defined)} results named, {len(gives)} types given", at)
        op = Op(name, operands, gives, attributes, regions, self.location())
        for text, value in zip(defined, op.results, strict=False):
            value.name = self.name(text)
            self.define(text, value, start)
        block.append(op)

    def signature(self) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """``: (types) -> types``."""
        self.expect(":")
        self.expect("(")
        takes = tuple(self.listed(")", self.type))
        self.expect("->")
        return takes, self.results()

    def location(self) -> Location:
        """``loc(...)`` if there is one."""
        if not self.accept("loc"):
            return UNKNOWN
        self.expect("(")
        origins: list[str]
        if self.accept("unknown"):
            origins = []
        elif self.accept("fused"):
            self.expect("[")
            origins = self.listed("]", lambda: self.take("string", "a location"))
        else:
            origins = [self.take("string", "a location")]
            if self.texts[self.at] == ":":  # a line and a column of a text that MLIR has read
                self.at += 4
                origins = []
        self.expect(")")
        return Location(tuple([_origin(o) for o in origins])) if origins else UNKNOWN


def _listing(types: tuple[Type, ...]) -> str:
    return f"({', '.join(map(str, types))})"


@lru_cache(maxsize=4096)
def _origin(literal: str) -> Origin:
    return Origin.parse(unquote(literal))
