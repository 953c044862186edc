"""The one data structure of all levels: values, operations, blocks, functions and modules.

An operation has operands, attributes, regions (each one block here) and results.  Which names,
operands and attributes are allowed is for the declarations of a level (``declare.py``) to say; this
module knows only the structure.  Def-use chains are kept up to date by the setters below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

from sardonyx.ir.types import Type

__all__ = ["UNKNOWN", "Block", "Function", "Location", "Module", "Op", "Value", "walk"]


@dataclass(frozen=True, slots=True)
class Origin:
    """One ONNX node: path of graphs from the root, its name (or a stable invented one), operator, outputs."""

    path: str
    name: str
    op_type: str
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``path|name:Op(outputs)``, separators inside percent-encoded; ``parse`` is the inverse."""
        place = _encode(self.name, "|")
        if self.path:
            place = f"{_encode(self.path, '|')}|{place}"
        if not self.op_type and not self.outputs and not place.endswith(")"):
            return place
        outputs = ["%"] if self.outputs == ("",) else [_encode(o, ",()") for o in self.outputs]
        return f"{place}:{_encode(self.op_type, ':(')}({','.join(outputs)})"

    @classmethod
    def parse(cls, text: str) -> Origin:
        """The inverse of ``str``; a text of another form is a name."""
        place, outputs, op_type = text, "", ""
        if text.endswith(")") and "(" in text:
            head, _, tail = text.rpartition("(")
            before, colon, after = head.rpartition(":")
            if colon:
                place, op_type, outputs = before, after, tail[:-1]
        path, bar, name = place.partition("|")
        if not bar:
            path, name = "", place
        outs = tuple(unquote(o) if o != "%" else "" for o in outputs.split(",")) if outputs else ()
        return cls(unquote(path), unquote(name), unquote(op_type), outs)


def _encode(text: str, separators: str) -> str:
    for char in "%" + separators:
        if char in text:
            text = text.replace(char, f"%{ord(char):02X}")
    return text


@dataclass(frozen=True, slots=True)
class Location:
    """The set of ONNX nodes an operation stems from, in the order of the model."""

    origins: tuple[Origin, ...] = ()

    def __or__(self, other: Location) -> Location:
        if self is other or not other.origins:
            return self
        return Location(tuple(dict.fromkeys(self.origins + other.origins)))

    @property
    def names(self) -> str:
        """The nodes' names, for messages."""
        return ", ".join(o.name for o in self.origins) or "<unknown>"


UNKNOWN = Location()


class Value:
    """A result of an operation or an argument of a block, with its type and its uses."""

    __slots__ = ("index", "name", "owner", "type", "uses")

    def __init__(self, type: Type, owner: Op | Block, index: int, name: str = "") -> None:
        self.type: Any = type
        self.owner = owner
        self.index = index
        self.name = name
        self.uses: dict[Op, int] = {}  # how many operands of the op this value is

    @property
    def op(self) -> Op | None:
        """The operation this is a result of; None for a block argument."""
        return self.owner if isinstance(self.owner, Op) else None

    def replace_by(self, other: Value) -> None:
        """Let every user use the other value instead."""
        if other is self:
            return
        for user in list(self.uses):
            user.set_operands([other if o is self else o for o in user.operands])

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"


class Op:
    """One operation.  ``name`` is ``level.kind``, e.g. ``core.ge``."""

    __slots__ = ("attributes", "block", "location", "name", "operands", "regions", "results")

    def __init__(
        self,
        name: str,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Block] = (),
        location: Location = UNKNOWN,
    ) -> None:
        self.name = name
        self.operands: tuple[Value, ...] = ()
        self.attributes = attributes or {}
        self.regions = list(regions)
        self.location = location
        self.block: Block | None = None
        self.results = [Value(t, self, i) for i, t in enumerate(result_types)]
        for region in self.regions:
            region.parent = self
        self.set_operands(operands)

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def level(self) -> str:
        return self.name.partition(".")[0]

    @property
    def kind(self) -> str:
        return self.name.partition(".")[2]

    def set_operands(self, operands: Iterable[Value]) -> None:
        for old in self.operands:
            count = old.uses[self] - 1
            if count:
                old.uses[self] = count
            else:
                del old.uses[self]
        self.operands = tuple(operands)
        for new in self.operands:
            new.uses[self] = new.uses.get(self, 0) + 1

    def erase(self) -> None:
        """Take the operation out of its block; its results must be unused."""
        for result in self.results:
            if result.uses:
                users = ", ".join(u.name for u in result.uses)
                raise ValueError(f"cannot erase {self.name}: its result is used by {users}")
        if self.block is not None:
            self.block.ops.remove(self)
            self.block = None
        self.drop_uses()

    def drop_uses(self) -> None:
        """Give up all operands, those of nested operations too."""
        self.set_operands(())
        for region in self.regions:
            for op in region.ops:
                op.drop_uses()

    def __repr__(self) -> str:
        return f"<{self.name} at {self.location.names}>"


class Block:
    """A list of operations with arguments: the body of a function or of a region."""

    __slots__ = ("arguments", "ops", "parent")

    def __init__(self, argument_types: Sequence[Type] = (), names: Sequence[str] = ()) -> None:
        self.arguments: list[Value] = []
        self.ops: list[Op] = []
        self.parent: Op | Function | None = None
        for i, kind in enumerate(argument_types):
            self.add_argument(kind, names[i] if i < len(names) else "")

    def add_argument(self, type: Type, name: str = "") -> Value:
        value = Value(type, self, len(self.arguments), name)
        self.arguments.append(value)
        return value

    def append(self, op: Op) -> Op:
        op.block = self
        self.ops.append(op)
        return op

    @property
    def terminator(self) -> Op:
        return self.ops[-1]

    def __iter__(self) -> Iterator[Op]:
        return iter(list(self.ops))


@dataclass(eq=False)
class Function:
    """A named body.  The operands of its last operation are its results."""

    name: str
    body: Block
    attributes: dict[str, Any] = field(default_factory=dict)
    location: Location = UNKNOWN

    def __post_init__(self) -> None:
        self.body.parent = self

    @property
    def arguments(self) -> list[Value]:
        return self.body.arguments

    @property
    def results(self) -> tuple[Value, ...]:
        return self.body.terminator.operands


@dataclass(eq=False)
class Module:
    """All functions of a model; ``main`` is the graph itself."""

    functions: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def add(self, function: Function) -> Function:
        if function.name in self.functions:
            raise ValueError(f"there is a function {function.name!r} already")
        self.functions[function.name] = function
        return function

    @property
    def main(self) -> Function:
        return self.functions["main"]


def walk(root: Module | Function | Block | Op) -> Iterator[Op]:
    """Every operation below, outer before inner."""
    if isinstance(root, Module):
        for function in root.functions.values():
            yield from walk(function.body)
    elif isinstance(root, Function):
        yield from walk(root.body)
    elif isinstance(root, Block):
        for op in list(root.ops):
            yield op
            for region in op.regions:
                yield from walk(region)
    else:
        yield root
        for region in root.regions:
            yield from walk(region)


def blocks(function: Function) -> list[Block]:
    """The function's body and the bodies of its control flow, outer before inner; not what is fused."""
    found = [function.body]
    for block in found:  # grows while it is read
        for op in block.ops:
            if op.name != "core.fused":
                found.extend(op.regions)
    return found


def users_in(block: Block, values: Iterable[Value]) -> set[Op]:
    """The operations of a block that use any of the values, be it in their regions."""
    users: set[Op] = set()
    for value in values:
        for user in value.uses:
            place: Op | None = user
            while place is not None and place.block is not block:
                parent = None if place.block is None else place.block.parent
                place = parent if isinstance(parent, Op) else None
            if place is not None:
                users.add(place)
    return users


class HasBody(Protocol):
    """What a pass over one block is given: a function, or a region by itself."""

    @property
    def body(self) -> Block: ...


@dataclass(frozen=True)
class Region:
    """A block of control flow, to be worked on as a function's body is."""

    body: Block
