"""Structural equality of modules, with the first difference in words."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from sardonyx.ir.graph import Block, Function, Module, Op, Value

__all__ = ["same", "same_attribute"]


def same(a: Module, b: Module, *, names: bool = True, locations: bool = True) -> str | None:
    """None if both modules say the same, else the first difference.

    Functions are compared in their order, attributes by kind and value (floats by their bits), values by
    where they are defined.  ``names`` and ``locations`` tell whether those of values and operations count.
    """
    return next(_Comparison(names, locations).modules(a, b), None)


def same_attribute(a: Any, b: Any) -> bool:
    """Whether two attribute values are the same: of one kind, floats bit for bit."""
    if type(a) is not type(b) and not (hasattr(a, "key") and hasattr(b, "key")):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_attribute, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_attribute(v, b[k]) for k, v in a.items())
    return bool(a == b)


class _Comparison:
    """Yields differences; ``values`` maps the values of the first module to those of the second."""

    def __init__(self, names: bool, locations: bool) -> None:
        self.names = names
        self.locations = locations
        self.values: dict[Value, Value] = {}

    def modules(self, a: Module, b: Module) -> Iterator[str]:
        yield from self.attributes("the module", a.attributes, b.attributes)
        if list(a.functions) != list(b.functions):
            yield f"functions {list(a.functions)} and {list(b.functions)}"
            return
        for key, function in a.functions.items():
            yield from self.functions(f"function {key}", function, b.functions[key])

    def functions(self, where: str, a: Function, b: Function) -> Iterator[str]:
        if a.name != b.name:
            yield f"{where}: names {a.name!r} and {b.name!r}"
        if self.locations and a.location != b.location:
            yield f"{where}: locations {a.location} and {b.location}"
        yield from self.attributes(where, a.attributes, b.attributes)
        yield from self.blocks(where, a.body, b.body)

    def blocks(self, where: str, a: Block, b: Block) -> Iterator[str]:
        yield from self.defined(f"{where}, argument", a.arguments, b.arguments)
        for i, (x, y) in enumerate(zip(a.ops, b.ops, strict=False)):
            yield from self.ops(f"{where}, op {i} ({x.name})", x, y)
        if len(a.ops) != len(b.ops):
            yield f"{where}: {len(a.ops)} and {len(b.ops)} ops"

    def ops(self, where: str, a: Op, b: Op) -> Iterator[str]:
        if a.name != b.name:
            yield f"{where}: {a.name} and {b.name}"
            return
        if len(a.operands) != len(b.operands):
            yield f"{where}: {len(a.operands)} and {len(b.operands)} operands"
        for i, (x, y) in enumerate(zip(a.operands, b.operands, strict=False)):
            if self.values.get(x) is not y:
                yield f"{where}, operand {i}: {x!r} and {y!r} are not the same value"
        yield from self.attributes(where, a.attributes, b.attributes)
        if self.locations and a.location != b.location:
            yield f"{where}: locations {a.location} and {b.location}"
        if len(a.regions) != len(b.regions):
            yield f"{where}: {len(a.regions)} and {len(b.regions)} regions"
        for i, (p, q) in enumerate(zip(a.regions, b.regions, strict=False)):
            yield from self.blocks(f"{where}, region {i}", p, q)
        yield from self.defined(f"{where}, result", a.results, b.results)

    def defined(self, where: str, a: list[Value], b: list[Value]) -> Iterator[str]:
        if len(a) != len(b):
            yield f"{where}s: {len(a)} and {len(b)}"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            self.values[x] = y
            if x.type != y.type:
                yield f"{where} {i}: types {x.type} and {y.type}"
            if self.names and x.name != y.name:
                yield f"{where} {i}: names {x.name!r} and {y.name!r}"

    def attributes(self, where: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
        for key in dict.fromkeys([*a, *b]):
            if key not in a or key not in b:
                yield f"{where}: only one has the attribute {key!r}"
            elif not same_attribute(a[key], b[key]):
                yield f"{where}: attribute {key!r} is {a[key]!r} and {b[key]!r}"
