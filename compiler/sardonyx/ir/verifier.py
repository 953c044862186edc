"""The verifier: what holds of every module between two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sardonyx.ir.attributes import Dense
from sardonyx.ir.declare import OpDecl, Trait, VerifyError
from sardonyx.ir.declare import lookup as declared
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Value
from sardonyx.ir.printer import neighbourhood
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime.dims import Dim
from sardonyx_runtime.dtypes import DType

__all__ = ["VerifyError", "verify"]

Lookup = Callable[[str], OpDecl | None]

_TERMINATORS = frozenset({"return", "yield"})  # kinds that end a block where no declaration says so


def verify(module: Module, *, lookup: Lookup = declared, pass_name: str = "") -> None:
    """Check a module; VerifyError shows the op at fault in its neighbourhood and names the pass.

    1. Functions are listed under their own names; blocks and ops know what they stand in, and each stands in
       one place only.
    2. Results and arguments know their owner and their place, have a ``Type``, and sizes in it are not
       negative.
    3. A value is defined before it is used, in the same block or in one around it, of the same function.
    4. The uses that a value counts are the operands that exist.
    5. Names of ops are ``level.kind``; attributes have names and legal kinds; locations are ``Location``.
    6. The body of a function, and every region, ends with a terminator, which stands nowhere else.
    7. Every op keeps to its declaration, where there is one.
    """
    _Verifier(lookup, pass_name).module(module)


def _legal(value: Any) -> bool:
    """Whether an attribute's value is of a legal kind, to the bottom."""
    kind = type(value)
    if kind in _LEGAL:
        return True
    if kind is tuple:
        return all(map(_legal, value))
    if kind is dict:
        return all(isinstance(k, str) and k != "" and _legal(v) for k, v in value.items())
    return isinstance(value, Type | Dense)


_LEGAL = frozenset({bool, int, float, str, bytes, DType, Dim})


class _Verifier:
    """Walks the module once; ``scope`` holds the values in sight, ``seen`` all ops met so far."""

    def __init__(self, lookup: Lookup, pass_name: str) -> None:
        self.lookup = lookup
        self.pass_name = pass_name
        self.scope: set[Value] = set()
        self.seen: set[Op] = set()
        self.blocks: set[Block] = set()
        self.values: list[tuple[Value, Op | None]] = []

    def fail(self, message: str, op: Op | None = None) -> NoReturn:
        after = f"after the pass {self.pass_name}: " if self.pass_name else ""
        shown = f"\n{neighbourhood(op)}" if op is not None else ""
        origin = f"\n  from {op.location.names}" if op is not None and _origins(op) else ""
        raise VerifyError(f"{after}{message}{shown}{origin}")

    def module(self, module: Module) -> None:
        self.attributes(module.attributes, "the module", None)
        for key, function in module.functions.items():
            if key != function.name:
                self.fail(f"the function {function.name!r} is listed as {key!r}")
            self.scope = set()
            self.values = []
            self.attributes(function.attributes, f"function {key}", None)
            self.block(function.body, function, f"function {key}", None)
            self.uses()

    def block(self, block: Block, parent: Op | Function, where: str, op: Op | None) -> None:
        if block.parent is not parent:
            self.fail(f"{where}: the block's parent is {block.parent!r}", op)
        if block in self.blocks:
            self.fail(f"{where}: the block stands in two places", op)
        self.blocks.add(block)
        added = list(self.defined(block.arguments, block, f"{where}, argument", op))
        self.scope.update(added)
        for inner in block.ops:
            if inner.block is not block:
                self.fail(f"{inner.name}: the op's block is not the one it stands in", inner)
            if inner in self.seen:
                self.fail(f"{inner.name}: the op stands in two places", inner)
            self.seen.add(inner)
            self.op(inner, last=inner is block.ops[-1])
            added += inner.results
        if not block.ops:
            self.fail(f"{where}: the block is empty, it has no terminator", op)
        self.scope.difference_update(added)

    def op(self, op: Op, *, last: bool) -> None:
        level, _, kind = op.name.partition(".")
        if not level or not kind:
            self.fail(f"{op.name!r}: the name of an op is level.kind", op)
        if not isinstance(op.location, Location):
            self.fail(f"{op.name}: the location is {op.location!r}", op)
        for i, value in enumerate(op.operands):
            if value not in self.scope:
                self.fail(f"{op.name}: operand {i} {self.value_text(value)}", op)
            if op not in value.uses:
                self.fail(f"{op.name}: operand {i} does not count this use", op)
        self.attributes(op.attributes, op.name, op)
        for i, region in enumerate(op.regions):
            self.block(region, op, f"{op.name}, region {i}", op)
        self.scope.update(self.defined(op.results, op, f"{op.name}: result", op))
        decl = self.lookup(op.name)
        if last != (kind in _TERMINATORS if decl is None else Trait.TERMINATOR in decl.traits):
            what = "no terminator, but the last op" if last else "a terminator, but not the last op"
            self.fail(f"{op.name}: {what} of its block", op)
        if decl is not None:
            try:
                decl.verify(op)
            except VerifyError as error:
                self.fail(str(error), op)

    def value_text(self, value: Any) -> str:
        if not isinstance(value, Value):
            return f"is no value but {value!r}"
        if any(value is known for known, _ in self.values):
            return f"({value!r}) is out of sight: it is defined in a region that has ended"
        return f"({value!r}) is not defined before its use"

    def defined(self, values: list[Value], owner: Op | Block, where: str, op: Op | None) -> Iterator[Value]:
        """The values, checked one by one."""
        for i, value in enumerate(values):
            if value.owner is not owner or value.index != i:
                self.fail(f"{where} {i} does not know its owner and place", op)
            if value in self.scope:
                self.fail(f"{where} {i} is defined twice", op)
            self.check_type(value.type, f"{where} {i}", op)
            self.values.append((value, op))
            yield value

    def check_type(self, kind: Any, where: str, op: Op | None) -> None:
        if not isinstance(kind, Type):
            self.fail(f"{where} has the type {kind!r}, which is no Type", op)
        if isinstance(kind, TensorType) and not all(type(d) in (int, Dim) for d in kind.shape):
            self.fail(f"{where} has the shape {kind.shape!r}: dims are int or Dim", op)
        if isinstance(kind, TensorType) and any(isinstance(d, int) and d < 0 for d in kind.shape):
            self.fail(f"{where} has a negative dim: {kind}", op)

    def attributes(self, attributes: dict[str, Any], where: str, op: Op | None) -> None:
        for key, value in attributes.items():
            if not isinstance(key, str) or not key or not _legal(value):
                self.fail(f"{where}: the attribute {key!r} is {value!r}, of no legal kind", op)

    def uses(self) -> None:
        """The uses that the values of a function count are exactly the operands that exist."""
        for value, op in self.values:
            for user, count in value.uses.items():
                if user not in self.seen:
                    self.fail(
                        f"{value!r} counts a use by {user!r}, which is not in this function", op or user
                    )
                if user.operands.count(value) != count:
                    found = user.operands.count(value)
                    self.fail(f"{value!r} counts {count} uses by {user.name}, which has {found}", user)


def _origins(op: Op) -> bool:
    return isinstance(op.location, Location) and bool(op.location.origins)
