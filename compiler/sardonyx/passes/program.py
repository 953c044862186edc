"""The program: what the passes behind `fuse` work on and code generation reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Function, Location, Op, Value
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = ["Port", "Program", "Weights"]


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    dtype: DType
    shape: tuple[DimLike, ...]
    default: Dense | None = None


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
    messages: list[str] = field(default_factory=list)  # by the number of a `require`
    externals: dict[str, str] = field(default_factory=dict)  # functions of users: symbol -> key
    owned: int = 0  # arena chunks that belong to one tensor of control flow each
    sizes: dict[Value, DimLike] = field(default_factory=dict)  # bytes of each allocation
    node_of_kernel: dict[str, Location] = field(default_factory=dict)
    group_of_kernel: dict[str, Op] = field(
        default_factory=dict
    )  # the core op it computes, the first of equal ones
    on_kernel: Callable[[str, Function], None] | None = None  # told of each new kernel at once

    def add_kernel(self, symbol: str, function: Function, location: Location) -> None:
        """Take a kernel that is not there yet."""
        function.name = symbol
        self.kernels[symbol] = function
        self.node_of_kernel[symbol] = location
        if self.on_kernel is not None:
            self.on_kernel(symbol, function)

    def node_number(self, location: Location) -> int:
        """The number that a fault of this location reports."""
        if location not in self.locations:
            self.locations.append(location)
        return self.locations.index(location)
