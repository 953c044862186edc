"""The program: what the passes behind `fuse` work on and code generation reads.

A module of the loop level says the same: its kernels are functions, and what else a program knows (ports,
constants, the nodes and messages of faults) stands in the attributes of ``main``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sardonyx.errors import CompileError
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Origin
from sardonyx.kernels.kernel import Kernel
from sardonyx.loop.fingerprint import fingerprint
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = ["Port", "Program", "Weights", "identifier"]

_LONGEST = 48  # characters of an identifier


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    dtype: DType
    shape: tuple[DimLike, ...]
    default: Dense | None = None

    def to_attributes(self) -> dict[str, Any]:
        fields = {"name": self.name, "dtype": self.dtype, "shape": self.shape}
        return fields if self.default is None else {**fields, "default": self.default}


@dataclass
class Weights:
    """The constant blob: every tensor once, aligned to 64 bytes."""

    items: list[tuple[int, Dense]] = field(default_factory=list)
    size: int = 0
    _places: dict[str, int] = field(default_factory=dict)

    def place(self, dense: Dense) -> int:
        """The offset of a tensor in bytes; equal tensors share one."""
        key = dense.key
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self.size
            self.items.append((found, dense))
            self.size += -(-dense.array.nbytes // 64) * 64
        return found

    def put(self, offset: int, dense: Dense) -> None:
        """Note a tensor that has its place already."""
        self._places[dense.key] = offset
        self.items.append((offset, dense))
        self.size = max(self.size, offset + -(-dense.array.nbytes // 64) * 64)


@dataclass
class Program:
    """A scheduled model: ``main`` of the loop level, its kernels by symbol, the weights and the ports."""

    name: str
    main: Function = field(default_factory=lambda: Function("main", Block()))
    kernels: dict[str, Function] = field(default_factory=dict)
    weights: Weights = field(default_factory=Weights)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    locations: list[Location] = field(default_factory=list)  # by the node number of a fault
    tensors: list[str] = field(default_factory=list)  # what a fault says of them, beside the node's name
    messages: list[str] = field(default_factory=list)  # by the number of a `require`
    externals: dict[str, str] = field(default_factory=dict)  # functions of users: symbol -> key
    structure: tuple[Any, ...] | None = None  # of outputs that are sequences or optionals
    owned: int = 0  # arena chunks that belong to one tensor of control flow each
    chunks: list[DimLike] = field(default_factory=list)  # bytes of each arena chunk, once memory is planned
    planned: bool = False
    node_of_kernel: dict[str, Location] = field(default_factory=dict)
    group_of_kernel: dict[str, Op] = field(
        default_factory=dict
    )  # the core op it computes, the first of equal ones
    launched: dict[Op, tuple[Op, Kernel]] = field(default_factory=dict)  # by launch: its group, what it runs
    on_kernel: Callable[[str, Function], None] | None = None  # told of each new kernel at once
    named: bool = False  # whether symbols name the nodes; equal kernels of different nodes are two then

    def symbol(self, function: Function, location: Location) -> str:
        """The symbol of a kernel: equal code has equal symbols."""
        symbol = f"k_{fingerprint(function)}"
        return f"{identifier(location)}__{symbol}" if self.named and location.origins else symbol

    def add_kernel(self, symbol: str, function: Function, location: Location) -> None:
        """Take a kernel that is not there yet."""
        function.name = symbol
        self.kernels[symbol] = function
        self.node_of_kernel[symbol] = location
        if self.on_kernel is not None:
            self.on_kernel(symbol, function)

    def node_number(self, location: Location, tensors: str = "") -> int:
        """The number that a fault of this location reports, and what it says of the node's tensors."""
        if location not in self.locations:
            self.locations.append(location)
            self.tensors.append("")
        number = self.locations.index(location)
        self.tensors[number] = self.tensors[number] or tensors
        return number

    def follow(self, other: Program) -> None:
        """Begin with the constants, nodes and messages of a program of the same model for another target.

        What stands in both then has the same place, and the same number.
        """
        for offset, dense in other.weights.items:
            self.weights.put(offset, dense)
        self.locations, self.messages = list(other.locations), list(other.messages)
        self.tensors = list(other.tensors)

    def to_module(self) -> Module:
        """The program as a module of the loop level; its functions are the program's own."""
        self.main.attributes = {
            "program": self.name,
            "inputs": tuple(p.to_attributes() for p in self.inputs),
            "outputs": tuple(p.to_attributes() for p in self.outputs),
            "nodes": tuple(tuple(map(str, location.origins)) for location in self.locations),
            "tensors": tuple(self.tensors),
            "messages": tuple(self.messages),
            "weights": tuple({"offset": offset, "value": dense} for offset, dense in self.weights.items),
            "externals": dict(self.externals),
            "owned": self.owned,
        }
        if self.planned:
            self.main.attributes["chunks"] = tuple(self.chunks)
        if self.structure is not None:
            self.main.attributes["structure"] = self.structure
        for symbol, location in self.node_of_kernel.items():
            self.kernels[symbol].location = location
        return Module({"main": self.main, **self.kernels})

    @classmethod
    def from_module(cls, module: Module) -> Program:
        """The inverse of `to_module`.  CompileError for a module that does not say what a program needs."""
        main, a = module.main, module.main.attributes
        try:
            program = cls(
                a["program"],
                main,
                externals=dict(a["externals"]),
                structure=a.get("structure"),
                owned=a["owned"],
            )
            program.inputs = [Port(**p) for p in a["inputs"]]
            program.outputs = [Port(**p) for p in a["outputs"]]
            program.locations = [Location(tuple(map(Origin.parse, n))) for n in a["nodes"]]
            program.tensors = list(a.get("tensors", [""] * len(program.locations)))
            program.messages, program.chunks = list(a["messages"]), list(a.get("chunks", ()))
            program.planned = "chunks" in a
            for item in a["weights"]:
                program.weights.put(item["offset"], item["value"])
        except (KeyError, TypeError) as error:
            raise CompileError(
                f"@main of the loop level lacks what a program needs, or has it in a wrong form: {error}",
                hint="dump the stage `loop` or `planned` whole: its @main has these attributes",
            ) from error
        for symbol, function in module.functions.items():
            if function is not main:
                program.kernels[symbol] = function
                program.node_of_kernel[symbol] = function.location
        return program


def identifier(location: Location) -> str:
    """The names of nodes as letters, digits and underscores; a digest stands for what is too long."""
    names = [o.name for o in location.origins]
    text = re.sub(r"[\W_]+", "_", "_".join(names), flags=re.ASCII).strip("_") or "node"
    if len(text) > _LONGEST:
        digest = hashlib.blake2b("\0".join(names).encode(), digest_size=4).hexdigest()
        text = f"{text[: _LONGEST - 9].rstrip('_')}_{digest}"
    return f"n{text}" if text[0].isdigit() else text
