"""The frame of a kernel: its arguments, and how dims and faults reach it.

A kernel knows its extents as arguments rather than as constants (small ones excepted), so that layers
of unlike sizes share one piece of machine code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import UNKNOWN, Function, Location, Value
from sardonyx.ir.types import BufferType
from sardonyx.kernels.faults import FaultKind
from sardonyx.kernels.lane_index import LaneIndex, multiply
from sardonyx.loop.builder import INDEX, Index, LoopBuilder
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.dtypes import DType

__all__ = [
    "Kernel",
    "KernelArgument",
    "KernelBuilder",
    "Scratch",
    "StringHeap",
    "compute_type",
    "memory_type",
]

_BAKED = 32


def memory_type(dtype: DType) -> DType:
    """The type of elements in memory: a string is the address of its record."""
    return dtypes.i64 if dtype is dtypes.string else dtype


def compute_type(dtype: DType) -> DType:
    """The type a machine value has while it is computed with."""
    if dtype is dtypes.string:
        return dtypes.i64
    if dtype.kind == "float" and dtype.bits < 32:
        return dtypes.f32
    return dtype


@dataclass(frozen=True, eq=False)
class Scratch:
    """Temporary memory of ``size`` elements; kernels of one group that name the same object share it."""

    dtype: DType
    size: DimLike


class StringHeap:
    """Stands for the memory of a run's strings among a kernel's arguments."""


KernelArgument = StringHeap | Value | Dense | Scratch | DimLike | Location | None


@dataclass(frozen=True)
class Kernel:
    """A finished kernel: the function, what to pass for each argument, and its parallel range.

    ``arguments`` is parallel to the function's arguments without the last two (begin and end): a core
    Value (its buffer), a Dense (a constant prepared at compile time, placed among the weights), a Scratch
    (temporary memory), a dim, a Location (the node to blame for a fault) or None (the status buffer).
    """

    function: Function
    arguments: tuple[KernelArgument, ...]
    range: DimLike
    cost: (
        DimLike  # of the whole range, in hundredths of a nanosecond: a multiply-add in a matrix product is 1
    )
    schedule: tuple[str, ...] = ()  # which schedule was taken: its name, and what was chosen within it


@dataclass
class KernelBuilder:
    """Collects the arguments of a kernel while its body is built."""

    name: str
    location: Location = UNKNOWN
    b: LoopBuilder = field(init=False)
    arguments: list[KernelArgument] = field(default_factory=list)
    baked: int = _BAKED  # extents up to this are constants of the code
    chosen: list[str] = field(default_factory=list)
    all_equal: bool = False  # the variant being built is that without any axis that is broadcast at run time

    def __post_init__(self) -> None:
        self.b = LoopBuilder(self.name, self.location)
        self._dims: dict[DimLike, Value] = {}
        self._parameters: dict[tuple[object, DimLike], Value] = {}
        self.maybe: dict[tuple[DimLike, DimLike], None] = {}
        self._status: Value | None = None
        self._heap: Value | None = None
        self.begin = Value(INDEX, self.b.function.body, 0, "begin")
        self.end = Value(INDEX, self.b.function.body, 0, "end")

    def note(self, choice: str) -> None:
        """Record a choice within the schedule, in words for people who ask what was done (`explain`)."""
        self.chosen.append(choice)

    def buffer(self, tensor: Value, dtype: DType | None = None, name: str = "") -> Value:
        """An argument for the memory of a tensor."""
        self.arguments.append(tensor)
        return self.b.argument(BufferType(memory_type(dtype or tensor.type.dtype)), name or tensor.name)

    def dim(self, dim: DimLike) -> Index:
        """The value of a dim: small constants as they are, else an argument."""
        if isinstance(dim, int) and -self.baked <= dim <= self.baked:
            return dim
        found = self._dims.get(dim)
        if found is None:
            self.arguments.append(dim)
            found = self._dims[dim] = self.b.argument(INDEX, f"n{len(self._dims)}")
        return found

    def parameter(self, dim: DimLike, role: object) -> Index:
        """The value of a dim in a role: 0 and 1 as they are, else an argument of that role alone.

        Kernels that differ only in which of their extents happen to be equal or small stay one piece of code.
        """
        if isinstance(dim, int) and 0 <= dim <= 1:
            return dim
        found = self._parameters.get((role, dim))
        if found is None:
            self.arguments.append(dim)
            found = self._parameters[role, dim] = self.b.argument(INDEX, f"p{len(self._parameters)}")
        return found

    def maybe_broadcast(self, index: LaneIndex, have: DimLike, want: DimLike, lanes: int) -> LaneIndex:
        """The index along an operand's axis whose extent may turn out to be 1.

        The index is multiplied by 0 or 1; it stays as it is in the variant of a kernel for the runs where no
        extent is 1 (see `map`).
        """
        self.maybe[have, want] = None
        if self.all_equal:
            return index
        factor = self.b.truth(self.b.icmp("ne", self.dim(have), 1))
        return multiply(self.b, index, factor, lanes)

    def fault(self, location: Location, condition: Value, value: Value, kind: FaultKind) -> None:
        if self._status is None:
            self.arguments.append(None)
            self._status = self.b.argument(BufferType(dtypes.i64), "status")
        self.arguments.append(location)
        node = self.b.argument(INDEX, "node")
        self.b.emit("fault", (self._status, condition, value, node), code=int(kind))

    def constant(self, dense: Dense, name: str = "weights") -> Value:
        """An argument for a constant prepared at compile time (packed weights)."""
        self.arguments.append(dense)
        return self.b.argument(BufferType(dense.dtype), name)

    def scratch(self, scratch: Scratch, name: str = "scratch") -> Value:
        """An argument for temporary memory."""
        self.arguments.append(scratch)
        return self.b.argument(BufferType(scratch.dtype), name)

    def heap(self) -> Value:
        """The argument for the memory of strings; a kernel that has it runs in one piece."""
        if self._heap is None:
            self.arguments.append(StringHeap())
            self._heap = self.b.argument(BufferType(dtypes.i64), "heap")
        return self._heap

    def offset_buffer(self, buffer: Value, offset: DimLike, role: object) -> Value:
        """A buffer from an element on."""
        return buffer if offset == 0 else self.b.offset(buffer, self.parameter(offset, role))

    def finish(self, range: DimLike, cost: DimLike) -> Kernel:
        """Close the function: begin and end become its last arguments."""
        arguments = self.b.function.body.arguments
        for value in (self.begin, self.end):
            value.index = len(arguments)
            arguments.append(value)
        schedule = (self.name, *self.chosen)
        return Kernel(self.b.finish(), tuple(self.arguments), range, cost, schedule)
