"""Modules, functions and operations as text.

One text form after MLIR, in two styles.  The short one is for people:

    %0 = core.broadcast %y {shape = #sdx.dims<"batch", 3>} : (tensor<f32>) -> tensor<...> loc("main|n:Op(y)")

The generic one is read by MLIR itself (``--allow-unregistered-dialect``) and by xDSL.  ``parser.py`` reads
both, and nothing of a module is lost: odd names, bytes, NaN payloads, the ONNX nodes in locations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sardonyx.ir.attributes import Dense
from sardonyx.ir.dense_text import blob_of, dense_text
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Value, walk
from sardonyx.ir.lexical import float_text, key_text, name_meant, name_text, quote, quote_bytes, resource_text
from sardonyx.ir.types import Type, VectorType, dim_text, dims_suffix
from sardonyx_runtime.dims import Dim
from sardonyx_runtime.dtypes import DType

__all__ = [
    "function_lines",
    "location_text",
    "neighbourhood",
    "print_block",
    "print_function",
    "print_module",
    "print_op",
    "value_names",
]


def print_module(
    module: Module,
    *,
    generic: bool = False,
    elide: int | None = 16,
    locations: bool = True,
    resources: bool = False,
) -> str:
    """The text of a module.

    ``generic`` writes MLIR's generic form.  A constant of more than ``elide`` elements is written as a key;
    ``resources`` adds a section with the data of all keys; ``elide=None`` writes every constant in place.
    """
    printer = _Printer(generic, elide, locations)
    attributes = module.attributes
    wrapped = generic or bool(attributes)
    if wrapped:
        head = {"sdx.attributes": attributes} if generic and attributes else attributes
        text = f"attributes {printer.dictionary(head)} " if head else ""
        printer.lines.append(f"module {text}{{")
    for i, function in enumerate(module.functions.values()):
        if i:
            printer.lines.append("")
        printer.function(function, "  " if wrapped else "")
    if wrapped:
        printer.lines.append("}")
    if resources and printer.needed:
        blobs = ",\n".join(f'      {resource_text(k)}: "{blob_of(d)}"' for k, d in printer.needed.items())
        printer.lines += ["", "{-#", "  dialect_resources: {", "    builtin: {", blobs, "    }", "  }", "#-}"]
    return "\n".join(printer.lines) + "\n"


def print_function(
    function: Function, *, generic: bool = False, elide: int | None = 16, locations: bool = True
) -> str:
    """The text of one function."""
    printer = _Printer(generic, elide, locations)
    printer.function(function, "")
    return "\n".join(printer.lines) + "\n"


def function_lines(
    function: Function, *, elide: int | None = 16, locations: bool = True
) -> tuple[list[str], dict[Op, range]]:
    """The lines of one function in the short form, and the numbers (from 0) of each op's lines.

    Outer ops come before the ones inside them, whose lines are among theirs.
    """
    printer = _Printer(False, elide, locations)
    printer.function(function, "")
    return printer.lines, {op: range(start, printer.ends[op]) for op, start in printer.starts.items()}


def value_names(function: Function) -> dict[Value, str]:
    """The names of a function's values in its text, without the ``%``."""
    return {value: text[1:] for value, text in _Names(function).texts.items()}


def print_block(
    block: Block, *, generic: bool = False, elide: int | None = 16, locations: bool = False
) -> str:
    """The operations of a block, named as in the function they stand in."""
    printer = _Printer(generic, elide, locations, _names_around(block))
    for op in block.ops:
        printer.op(op, "")
    return "\n".join(printer.lines) + "\n"


def print_op(op: Op, *, generic: bool = False, elide: int | None = 16, locations: bool = False) -> str:
    """One operation, regions included, named as in the function it stands in; no newline at the end."""
    printer = _Printer(generic, elide, locations, _names_around(op))
    printer.op(op, "")
    return "\n".join(printer.lines)


def neighbourhood(op: Op, context: int = 3, width: int = 160) -> str:
    """The first line of an op, marked, between the lines around it.  Works on broken modules too."""
    root = _root(op)
    printer = _Printer(False, 4, False, _Names(root) if root else _Names())
    if isinstance(root, Function):
        printer.function(root, "")
    elif root is not None:
        for other in root.ops:
            printer.op(other, "")
    if op not in printer.starts:
        printer = _Printer(False, 4, False, printer.names)
        printer.op(op, "")
    at = printer.starts[op]
    shown = range(max(0, at - context), min(len(printer.lines), at + context + 1))
    lines = [f"{'>' if i == at else ' '} {printer.lines[i]}" for i in shown]
    return "\n".join(line if len(line) <= width else line[: width - 3] + "..." for line in lines)


def location_text(location: Location) -> str:
    """``loc("..")``, ``loc(fused["..", ".."])`` or ``loc(unknown)``."""
    texts = [quote(str(origin)) for origin in location.origins]
    if not texts:
        return "loc(unknown)"
    return f"loc({texts[0]})" if len(texts) == 1 else f"loc(fused[{', '.join(texts)}])"


def _root(op: Op | Block) -> Function | Block | None:
    """The function around an op, or the outermost block if it stands in none."""
    block = op.block if isinstance(op, Op) else op
    for _ in range(1000):  # a broken module may have a cycle
        if block is None:
            return None
        parent = block.parent
        if isinstance(parent, Function):
            return parent
        if parent is None or parent.block is None:
            return block
        block = parent.block
    return None


def _names_around(op: Op | Block) -> _Names:
    root = _root(op)
    return _Names(root) if root else _Names()


class _Names:
    """Identifiers of the values of one function: unique, after their names, numbers for those without."""

    def __init__(self, root: Function | Block | None = None) -> None:
        self.texts: dict[Value, str] = {}
        self.others: dict[str, str] = {}  # identifiers that do not tell the name, with the name
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        if root is not None:
            body = root.body if isinstance(root, Function) else root
            self._define(body.arguments)
            for op in walk(body):
                self._define(op.results)
                for region in op.regions:
                    self._define(region.arguments)

    def _define(self, values: list[Value]) -> None:
        for value in values:
            self[value]

    def __getitem__(self, value: Value) -> str:
        text = self.texts.get(value)
        if text is None:
            name = value.name if isinstance(value, Value) else repr(value)
            text = self.texts[value] = self._unique(name)
        return text

    def _unique(self, name: str) -> str:
        if not name:
            number = self._next.get("", 0)
            self._next[""] = number + 1
            return f"%{number}"
        text = base = name_text(name)
        while text in self._taken:
            number = self._next.get(base, 0) + 1
            self._next[base] = number
            text = f"{base}_{number}"
        self._taken.add(text)
        if name_meant(text) != name:
            self.others[text] = name
        return f"%{text}"


class _Printer:
    """Writes lines; remembers on which each op starts and which constants it left to the resources."""

    def __init__(
        self, generic: bool, elide: int | None, locations: bool, names: _Names | None = None
    ) -> None:
        self.generic = generic
        self.elide = elide
        self.locations = locations
        self.names = names or _Names()
        self.lines: list[str] = []
        self.starts: dict[Op, int] = {}
        self.ends: dict[Op, int] = {}
        self.needed: dict[str, Dense] = {}

    def location(self, location: Location) -> str:
        if not self.locations or (not location.origins and not self.generic):
            return ""
        return " " + location_text(location)

    def function(self, function: Function, indent: str) -> None:
        self.names = _Names(function)
        arguments = [(self.names[a], str(a.type)) for a in function.arguments]
        types = _types(function.body.ops[-1].operands) if function.body.ops else []
        inner = indent + "  "
        if self.generic:
            extra = {"sdx.names": self.names.others, "sdx.attributes": function.attributes}
            listed = {"sym_name": function.name} | {k: v for k, v in extra.items() if v}
            kind = f"({', '.join(t for _, t in arguments)}) -> ({', '.join(types)})"
            attributes = f"{self.dictionary(listed)[:-1]}, function_type = {kind}}}"
            self.lines.append(f'{indent}"func.func"() ({{')
            if arguments or not function.body.ops:
                self.lines.append(f"{indent}^bb0{self._arguments(function.body)}:")
            tail = f"{indent}}}) {attributes} : () -> (){self.location(function.location)}"
        else:
            head = f"func @{key_text(function.name)}({', '.join(f'{n}: {t}' for n, t in arguments)})"
            if types:
                head += f" -> ({', '.join(types)})" if len(types) > 1 else f" -> {types[0]}"
            if self.names.others:
                head += f" names {self.dictionary(self.names.others)}"
            if function.attributes:
                head += f" attributes {self.dictionary(function.attributes)}"
            self.lines.append(f"{indent}{head} {{")
            tail = f"{indent}}}{self.location(function.location)}"
        for op in function.body.ops:
            self.op(op, inner)
        self.lines.append(tail)

    def op(self, op: Op, indent: str) -> None:
        names, generic = self.names, self.generic
        self.starts[op] = len(self.lines)
        line = f"{indent}{', '.join([names[r] for r in op.results])} = " if op.results else indent
        operands = ", ".join([names[o] for o in op.operands])
        if generic:
            line += f"{quote(op.name)}({operands})"
        else:
            line += f"{op.name} {operands}" if operands else op.name
            if op.attributes:
                line += f" {self.dictionary(op.attributes)}"
        for i, region in enumerate(op.regions):
            line += ", {" if i else " ({"
            self.lines.append(line)
            if region.arguments or not region.ops:
                self.lines.append(f"{indent}^bb0{self._arguments(region)}:")
            for inner in region.ops:
                self.op(inner, indent + "  ")
            line = f"{indent}}}"
        if op.regions:
            line += ")"
        if generic and op.attributes:
            line += f" {self.dictionary(op.attributes)}"
        results = _types(op.results)
        signature = results[0] if len(results) == 1 else f"({', '.join(results)})"
        takes = ", ".join(_types(op.operands))
        self.lines.append(f"{line} : ({takes}) -> {signature}{self.location(op.location)}")
        self.ends[op] = len(self.lines)

    def _arguments(self, block: Block) -> str:
        if not block.arguments:
            return ""
        return f"({', '.join(f'{self.names[a]}: {a.type}' for a in block.arguments)})"

    def dictionary(self, values: Mapping[str, Any]) -> str:
        return f"{{{', '.join([f'{key_text(str(k))} = {self.attribute(v)}' for k, v in values.items()])}}}"

    def attribute(self, value: Any) -> str:
        """An attribute's value as text.  An illegal one is shown all the same; the parser will refuse it."""
        write = _ATTRIBUTES.get(type(value))
        if write is None:
            if isinstance(value, Type):
                return str(value)
            if isinstance(value, Dense):
                return dense_text(value, self.elide, self.needed, generic=self.generic)
            return f"#sdx.illegal<{quote(repr(value))}>"
        return write(self, value)


def _types(values: Iterable[Value]) -> list[str]:
    try:
        return [str(v.type) for v in values]
    except AttributeError:  # a broken module, shown by the verifier
        return [str(getattr(v, "type", "?")) for v in values]


def _int(printer: _Printer, value: int) -> str:
    if not printer.generic:
        return str(value)
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return f"{value} : i{64 if bits <= 64 else bits}"


def _float(printer: _Printer, value: float) -> str:
    text = float_text(value)
    return f"{text} : f64" if printer.generic or text.startswith("0x") else text


def _tuple(printer: _Printer, value: tuple[Any, ...]) -> str:
    kinds = set(map(type, value))
    if Dim in kinds and kinds <= {int, Dim}:
        return dims_suffix(value)[2:]
    return f"[{', '.join([printer.attribute(v) for v in value])}]"


def _vector(_: _Printer, value: VectorType) -> str:
    # As an attribute `f32` is the element type; the scalar of the loop level is a vector of one.
    return f"vector<1x{value.dtype}>" if value.lanes == 1 else str(value)


_ATTRIBUTES: dict[type, Callable[[_Printer, Any], str]] = {
    bool: lambda _, value: "true" if value else "false",
    int: _int,
    float: _float,
    str: lambda _, value: quote(value),
    bytes: lambda _, value: f"#sdx.bytes<{quote_bytes(value)}>",
    DType: lambda _, value: str(value),
    Dim: lambda _, value: f"#sdx.dim<{dim_text(value)}>",
    tuple: _tuple,
    dict: lambda printer, value: printer.dictionary(value),
    VectorType: _vector,
}
