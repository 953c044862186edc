"""schedule: from fused groups to kernels and the program that launches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sardonyx.core.external import link_symbol
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Value, walk
from sardonyx.ir.types import BufferType, TensorType
from sardonyx.kernels.kernel import Kernel, Scratch, StringHeap
from sardonyx.kernels.map import copy_kernel
from sardonyx.kernels.select import kernels_of
from sardonyx.kernels.target import Target
from sardonyx.kernels.text import address_kernel
from sardonyx.loop.builder import INDEX
from sardonyx.loop.hoist import hoist
from sardonyx.passes import control_schedule
from sardonyx.passes.blame import tensors_of
from sardonyx.passes.fuse import VIEWS
from sardonyx.passes.order import bound_symbols
from sardonyx.passes.parts import Placement, is_concatenation, parts_of, placements
from sardonyx.passes.program import Port, Program
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, product, symbols_of
from sardonyx_runtime.strings import records

__all__ = ["Schedule", "schedule"]


@dataclass(frozen=True)
class Schedule:
    """Requires: a fused module.  Ensures: the loop level (see `Program.to_module`).

    ``on_kernel(symbol, kernel)`` is told of each kernel as soon as it is made; ``after`` is a program of the
    same model for another target, whose tables are taken on (see `Program.follow`); ``named``
    puts the nodes' names into the symbols, so that equal kernels of different nodes are two.
    """

    target: Target
    on_kernel: Callable[[str, Function], None] | None = None
    after: Program | None = None
    named: bool = False
    name: str = field(default="schedule", init=False)

    def run(self, module: Module) -> bool:
        program = schedule(module.main, self.target, "model", self.on_kernel, self.after, self.named)
        module.functions = program.to_module().functions
        return True


def schedule(
    function: Function,
    target: Target,
    name: str,
    on_kernel: Callable[[str, Function], None] | None = None,
    after: Program | None = None,
    named: bool = False,
) -> Program:
    """The program of a fused core function; the options are those of `Schedule`."""
    program = Program(name, on_kernel=on_kernel, named=named)
    if after is not None:
        program.follow(after)
    return _Scheduler(function, target, program).run()


@dataclass
class _Scheduler:
    function: Function
    target: Target
    program: Program
    buffers: dict[Value, Value] = field(default_factory=dict)
    dims: dict[DimLike, Value] = field(default_factory=dict)
    scratches: dict[Scratch, Value] = field(default_factory=dict)
    outputs: dict[Value, int] = field(default_factory=dict)  # values computed straight into an output
    texts: dict[str, Value] = field(default_factory=dict)  # constant strings by their digest
    prologue: list[Op] = field(default_factory=list)  # what is the same everywhere, before all else

    placed: dict[Value, Placement] = field(
        default_factory=dict
    )  # parts computed straight into a concatenation

    def run(self) -> Program:
        function, program = self.function, self.program
        self.late = {s for op in walk(function) for s in bound_symbols(op)}
        self.block = program.main.body
        defaults = function.attributes.get("defaults", {})
        program.structure = function.attributes.get("structure")
        names = function.attributes.get("outputs", ())
        for number, argument in enumerate(function.arguments):
            kind: TensorType = argument.type
            program.inputs.append(Port(argument.name, kind.dtype, kind.shape, defaults.get(argument.name)))
            self.buffers[argument] = self.emit(
                "input", (), BufferType(kind.dtype), number=number, dtype=kind.dtype
            )
        results = function.results
        for number, result in enumerate(results):
            kind = result.type
            program.outputs.append(Port(names[number] if names else result.name, kind.dtype, kind.shape))
            root = self.root(result)
            if root.op is not None and root.op.name != "core.constant":
                self.outputs.setdefault(root, number)
        self.ops(function.body.ops)
        for number, result in enumerate(results):
            source = self.buffer(result)
            made = source.op
            if made is None or made.name != "loop.output" or made.attributes["number"] != number:
                self.effect(
                    "copy", [self.output(number, result.type), source, self.dim(self.bytes_of(result.type))]
                )
        self.effect("return", ())
        body = program.main.body
        for one in self.prologue:
            one.block = body
        body.ops[:0] = self.prologue
        return program

    def ops(self, ops: Sequence[Op]) -> None:
        self.placed.update(placements(ops, self.root, self.outputs, self.late))
        for op in ops:
            _OPS[op.name](self, op)

    # -- emission

    def emit(self, kind: str, operands: Any, type_: Any, **attributes: Any) -> Value:
        op = Op(f"loop.{kind}", operands, [type_], attributes)
        if kind in _EVERYWHERE:
            self.prologue.append(op)
            return op.result
        return self.block.append(op).result

    def effect(self, kind: str, operands: Any, location: Location | None = None, **attributes: Any) -> Op:
        return self.block.append(
            Op(f"loop.{kind}", operands, (), attributes, location=location or Location())
        )

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Schedule into a body of control flow; what is made there is not known outside."""
        outer = self.block, self.buffers, self.dims, self.scratches
        self.block, self.buffers, self.dims, self.scratches = block, dict(self.buffers), dict(self.dims), {}
        try:
            yield
        finally:
            self.block, self.buffers, self.dims, self.scratches = outer

    def dim(self, dim: DimLike) -> Value:
        found = self.dims.get(dim)
        if found is None:
            found = self.dims[dim] = self.emit("dim", (), INDEX, value=dim)
        return found

    # -- memory

    def root(self, value: Value) -> Value:
        """The value whose memory a chain of views names."""
        while value.op is not None and value.op.name in VIEWS:
            value = value.op.operands[0]
        return value

    def bytes_of(self, kind: TensorType) -> DimLike:
        return product(kind.shape) * kind.dtype.itemsize

    def buffer(self, value: Value) -> Value:
        root = self.root(value)
        found = self.buffers.get(root)
        if found is not None:
            return found
        op = root.op
        if root in self.placed:
            found = self.part(self.placed[root])
        elif op is not None and op.name == "core.constant":
            found = self.weights(op.attributes["value"])
        elif op is not None and op.name == "core.dims":
            found = self.allocate(root)
            self.effect("write_dims", [found], values=op.attributes["values"], dtype=op.attributes["dtype"])
        else:
            found = self.allocate(root)
        self.buffers[root] = found
        return found

    def text_constant(self, dense: Dense) -> Value:
        """The addresses of constant strings, made once at the beginning of a run: where their bytes are is known then."""
        found = self.texts.get(dense.key)
        if found is None:
            data, starts = records(dense.array.ravel().tolist())
            offsets, memory = Dense(starts), Dense(data)
            kernel = address_kernel()
            symbol = self.program.symbol(kernel, Location())
            if symbol not in self.program.kernels:
                self.program.add_kernel(symbol, kernel, Location())
            size = {"size": 8 * len(starts), "dtype": dtypes.i64}
            place = Op("loop.allocate", (), [BufferType(dtypes.i64)], size)
            count = self.emit("const", (), INDEX, value=len(starts))
            operands = [self.weights(offsets), self.weights(memory), place.result, count]
            launch = {"kernel": symbol, "range": 1, "cost": 100 * len(starts)}
            self.prologue += [place, Op("loop.launch", operands, (), launch)]
            found = self.texts[dense.key] = place.result
        return found

    def weights(self, dense: Dense) -> Value:
        if dense.dtype is dtypes.string:
            return self.text_constant(dense)
        offset = self.program.weights.place(dense)
        return self.emit("weights", (), BufferType(dense.dtype), offset=offset, dtype=dense.dtype)

    def allocate(self, value: Value) -> Value:
        if value in self.outputs:
            return self.output(self.outputs[value], value.type)
        kind: TensorType = value.type
        place = self.emit("allocate", (), BufferType(kind.dtype), size=self.bytes_of(kind), dtype=kind.dtype)
        place.name = value.name
        return place

    def part(self, place: Placement) -> Value:
        """The memory of a part of a larger tensor, from the part's first element on."""
        whole, dtype = self.buffer(place.whole), place.whole.type.dtype
        return self.emit("part", [whole], BufferType(dtype), offset=place.start * dtype.itemsize, dtype=dtype)

    def scratch(self, scratch: Scratch) -> Value:
        found = self.scratches.get(scratch)
        if found is None:
            size = scratch.size * scratch.dtype.itemsize
            found = self.emit("allocate", (), BufferType(scratch.dtype), size=size, dtype=scratch.dtype)
            self.scratches[scratch] = found
        return found

    def output(self, number: int, kind: TensorType) -> Value:
        """The memory of an output.  The caller cannot give it where a dim of its shape is bound during the run."""
        size = self.bytes_of(kind)
        late = any(symbols_of(d) & self.late for d in self.function.results[number].type.shape)
        return self.emit(
            "output", (), BufferType(kind.dtype), number=number, dtype=kind.dtype, size=size, late=late
        )

    # -- ops of the core function

    def nothing(self, op: Op) -> None:
        """Constants, dims and views exist when something asks for their memory."""

    def fused(self, op: Op) -> None:
        if is_concatenation(op):
            self.concatenate(op)
            return
        place = self.placed.get(op.results[0])
        slot = None if place is None or place.slot.is_dense else place.slot
        for kernel in kernels_of(op, self.target, slot):
            self.launch(kernel, op)

    def concatenate(self, op: Op) -> None:
        """Copy the parts that were not computed in their places."""
        region = op.regions[0]
        outer = dict(zip(region.arguments, op.operands, strict=True))
        for part, place in parts_of(op):
            if self.placed.get(self.root(outer.get(part, part))) == place:
                continue
            there = Block([part.type]).arguments[0]
            self.buffers[there] = self.part(place)
            self.launch(copy_kernel(region, op.operands, part, there, place.slot, self.target), op)

    def launch(self, kernel: Kernel, op: Op) -> None:
        hoist(kernel.function)
        symbol = self.program.symbol(kernel.function, op.location)
        if symbol not in self.program.kernels:
            self.program.group_of_kernel[symbol] = op
            self.program.add_kernel(symbol, kernel.function, op.location)
        operands = [self.argument(a, op) for a in kernel.arguments]
        attributes = {"kernel": symbol, "range": kernel.range, "cost": kernel.cost}
        launch = self.effect("launch", operands, op.location, **attributes)
        # Of equal kernels one function is kept: a model may launch the same one hundreds of times.
        self.program.launched[launch] = op, replace(kernel, function=self.program.kernels[symbol])

    def argument(self, argument: Any, op: Op) -> Value:
        if argument is None:
            return self.emit("status", (), BufferType(dtypes.i64))
        if isinstance(argument, StringHeap):
            return self.emit("heap", (), BufferType(dtypes.i64))
        if isinstance(argument, Location):
            number = self.program.node_number(argument, tensors_of(argument, op))
            return self.emit("const", (), INDEX, value=number)
        if isinstance(argument, Value):
            return self.buffer(argument)
        if isinstance(argument, Dense):
            return self.weights(argument)
        if isinstance(argument, Scratch):
            return self.scratch(argument)
        return self.dim(argument)

    def require(self, op: Op) -> None:
        number = len(self.program.messages)
        self.program.messages.append(op.attributes["message"])
        self.effect(
            "require",
            (),
            op.location,
            relation=op.attributes["relation"],
            left=op.attributes["left"],
            right=op.attributes["right"],
            message=number,
            node=self.program.node_number(op.location),
        )

    def external_call(self, op: Op) -> None:
        key = op.attributes["function"]
        symbol = link_symbol(key)
        self.program.externals[symbol] = key
        values = [*op.operands, *op.results]
        self.effect(
            "external",
            [self.buffer(v) for v in values],
            op.location,
            symbol=symbol,
            inputs=len(op.operands),
            shapes=tuple(v.type.shape for v in values),
            node=self.program.node_number(op.location, tensors_of(op.location, op)),
        )

    def entropy(self, op: Op) -> None:
        self.effect("entropy", [self.buffer(op.result)], op.location, number=op.attributes["number"])

    def bind_dims(self, op: Op) -> None:
        attributes = {
            **op.attributes,
            "dtypes": tuple(x.type.dtype for x in op.operands),
            "counts": tuple(x.type.size for x in op.operands),
            "minimum": op.attributes.get("minimum", 0),
            "node": self.program.node_number(op.location, tensors_of(op.location, op)),
        }
        self.effect("read_dims", [self.buffer(x) for x in op.operands], op.location, **attributes)


_EVERYWHERE = frozenset({"input", "weights", "heap", "status", "const"})

_OPS = {
    "core.if": lambda scheduler, op: control_schedule.choice(scheduler, op),
    "core.loop": lambda scheduler, op: control_schedule.repetition(scheduler, op),
    "core.bind_result": _Scheduler.nothing,
    "core.yield": _Scheduler.nothing,
    "core.constant": _Scheduler.nothing,
    "core.dims": _Scheduler.nothing,
    "core.iota": _Scheduler.nothing,
    "core.reshape": _Scheduler.nothing,
    "core.assume": _Scheduler.nothing,
    "core.return": _Scheduler.nothing,
    "core.fused": _Scheduler.fused,
    "core.entropy": _Scheduler.entropy,
    "core.external_call": _Scheduler.external_call,
    "core.require": _Scheduler.require,
    "core.bind_dims": _Scheduler.bind_dims,
}
