"""Facts on the kernels of a scheduled program with its memory planned: what each launch does, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sardonyx.explanations.explanation import BufferFact, KernelFact
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Function, Op, Origin, Value, walk
from sardonyx.ir.types import BufferType, TensorType, VectorType
from sardonyx.kernels.kernel import Kernel, Scratch
from sardonyx.passes.plan_memory import Allocation, memory_plan
from sardonyx.passes.program import Program
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, product

__all__ = ["KernelFacts"]


class KernelFacts:
    """Answers for one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.allocations: dict[Value, Allocation] = {a.value: a for a in memory_plan(program).allocations}
        self._launches: dict[Origin, list[Op]] = {}
        for op in walk(program.main):
            for origin in op.location.origins if op.name == "loop.launch" else ():
                self._launches.setdefault(origin, []).append(op)
        self._facts: dict[Op, KernelFact] = {}

    def launches(self, origin: Origin) -> list[Op]:
        """The launches that do work of a node, in the order of the program."""
        return self._launches.get(origin, [])

    def of(self, origin: Origin) -> Iterator[KernelFact]:
        """What is to be said of each of them."""
        for launch in self.launches(origin):
            if launch not in self._facts:
                self._facts[launch] = self._fact(launch, *self.program.launched[launch])
            yield self._facts[launch]

    def _fact(self, launch: Op, group: Op, kernel: Kernel) -> KernelFact:
        buffers: list[BufferFact] = []
        total: dict[str, DimLike] = {"read": 0, "written": 0}
        written = _written(kernel.function)
        for argument, operand, formal in zip(
            kernel.arguments, launch.operands, kernel.function.arguments, strict=False
        ):
            size = _size(argument)
            if size is None:
                continue
            use = "written" if argument in group.results or formal in written else "read"
            total[use] = total[use] + size
            place, life = self._place(operand)
            name = _name(argument, formal)
            buffers.append(BufferFact(name, use, place, str(size), life))
        return KernelFact(
            symbol=launch.attributes["kernel"],
            kind=group.attributes["kind"],
            schedule=kernel.schedule,
            vector=_vector(kernel.function),
            nodes=tuple(o.name for o in launch.location.origins),
            operations=len(group.regions[0].ops) - 1,
            units=str(launch.attributes["range"]),
            cost=str(launch.attributes["cost"]),
            read=str(total["read"]),
            written=str(total["written"]),
            buffers=tuple(buffers),
        )

    def _place(self, value: Value) -> tuple[str, tuple[int, ...]]:
        """Where a buffer of the program lies, and when an arena place is in use."""
        op = value.op
        if op is None:
            return "an argument of the program", ()
        a = op.attributes
        if op.kind in ("input", "output"):
            ports = self.program.inputs if op.kind == "input" else self.program.outputs
            return f"{op.kind} {ports[a['number']].name}", ()
        if op.kind == "weights":
            return f"weights at {a['offset']}", ()
        if op.kind == "part":
            place, life = self._place(op.operands[0])
            return f"{place}, from {a['offset']} on", life
        if op.kind == "place":
            found = self.allocations.get(value)
            life = (found.start, found.end) if found is not None else ()
            return f"arena {a['chunk']} at {a['offset']}", life
        return op.kind, ()


def _size(argument: Any) -> DimLike | None:
    """Bytes of a kernel's argument that is memory."""
    if isinstance(argument, Value) and isinstance(argument.type, TensorType):
        return product(argument.type.shape) * argument.type.dtype.itemsize
    if isinstance(argument, Dense):
        return int(argument.array.nbytes)
    return argument.size * argument.dtype.itemsize if isinstance(argument, Scratch) else None


def _name(argument: Any, formal: Value) -> str:
    name = argument.name if isinstance(argument, Value) else ""
    return name or formal.name or "(unnamed)"


_STORES = frozenset({"loop.store", "loop.scatter", "loop.compress"})


def _written(kernel: Function) -> set[Value]:
    """The buffers that a kernel stores to."""
    written: set[Value] = set()
    for op in walk(kernel):
        if op.name in _STORES:
            buffer = op.operands[1]
            while buffer.op is not None and buffer.op.name == "loop.offset":
                buffer = buffer.op.operands[0]
            written.add(buffer)
    return written


def _vector(kernel: Function) -> str:
    """The widest vectors that a kernel loads or stores."""
    widest: VectorType | None = None
    for op in walk(kernel):
        for value in (*op.results, *op.operands[:1]) if op.name in ("loop.load", *_STORES) else ():
            kind = value.type
            if (
                isinstance(kind, BufferType)
                or not isinstance(kind, VectorType)
                or kind.dtype is dtypes.boolean
            ):
                continue
            if widest is None or kind.lanes * kind.dtype.bits > widest.lanes * widest.dtype.bits:
                widest = kind
    if widest is None or widest.lanes == 1:
        return "none, one element at a time"
    return f"{widest.lanes} lanes of {widest.dtype}, {widest.lanes * widest.dtype.bits} bits"
