"""plan_memory: what shares memory is never needed at the same time.

The lives are found anew by stepping through the program, loops and branches included, with numbers for
all dims; nothing of the pass's own reasoning is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from sardonyx.frontend import import_model
from sardonyx.ir.graph import Block, Op, Value, walk
from sardonyx.pass_manager import run_steps
from sardonyx.passes.plan_memory import MemoryPlan, memory_plan
from sardonyx.passes.program import Program
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target
from sardonyx_runtime.dims import Dim, evaluate, symbols_of

from ..helpers import make_model
from .random_graphs import CONSTANTS, FEEDS, Graphs


def planned(nodes: Any, feeds: Any, **options: Any) -> tuple[Program, MemoryPlan]:
    module = import_model(make_model(nodes, feeds, **options))
    run_steps(module, pipeline(host_target()))
    program = Program.from_module(module)
    return program, memory_plan(program)


@dataclass
class Instance:
    """Memory given out once: where it is, and the first and last step that uses it."""

    name: str
    chunk: int
    start: int
    stop: int
    first: int = -1
    last: int = -1


@dataclass
class Trace:
    """A run without its arithmetic."""

    plan: MemoryPlan
    symbols: dict[str, int]
    branch: int
    passes: int
    step: int = 0
    instances: list[Instance] = field(default_factory=list)
    reserved: dict[int, int] = field(default_factory=dict)
    moves: list[tuple[int, int]] = field(default_factory=list)  # (step, chunk) of memory that was made larger
    of: dict[Value, Instance] = field(default_factory=dict)

    def number(self, dim: int | Dim) -> int:
        for name in symbols_of(dim):
            self.symbols.setdefault(name, 3)  # bound by data
        return evaluate(dim, self.symbols)

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        self.step += 1
        for operand in op.operands:
            self.use(operand)
        match op.name:
            case "loop.place":
                self.place(op)
            case "loop.view":
                if op.operands[0] in self.of:
                    self.of[op.result] = self.of[op.operands[0]]
            case "loop.arena" | "loop.grow":
                self.reserve(op.attributes["chunk"], self.number(op.attributes["size"]))
            case "loop.branch":
                self.block(op.regions[self.branch])
                self.symbols.update(dict.fromkeys(op.attributes["symbols"], 3))
            case "loop.repeat":
                self.repeat(op)

    def use(self, value: Value) -> None:
        instance = self.of.get(value)
        if instance is not None:
            instance.first = self.step if instance.first < 0 else instance.first
            instance.last = self.step

    def place(self, op: Op) -> None:
        chunk, offset = op.attributes["chunk"], self.number(op.attributes["offset"])
        sizes = [a.size for a in self.plan.allocations if a.value is op.result]
        if not sizes:  # memory of its own, which grows
            assert chunk >= len({a.chunk for a in self.plan.allocations})
            return
        size = self.number(sizes[0])
        assert offset >= 0 and offset + size <= self.reserved[chunk], "a place beyond its chunk"
        self.of[op.result] = Instance(op.result.name, chunk, offset, offset + size)
        self.instances.append(self.of[op.result])

    def reserve(self, chunk: int, size: int) -> None:
        if size > self.reserved.get(chunk, -1):
            self.moves.append((self.step, chunk))
            self.reserved[chunk] = size

    def repeat(self, op: Op) -> None:
        for name, first in zip(op.attributes["symbols"], op.attributes["first"], strict=True):
            self.symbols[name] = self.number(first)
        for index in range(self.passes):
            self.symbols[op.attributes["index"]] = index
            self.block(op.regions[0])
            values = [self.number(v) for v in op.regions[0].terminator.attributes["values"]]
            self.symbols.update(zip(op.attributes["symbols"], values, strict=True))
        for name, last in zip(op.attributes["results"], op.attributes["symbols"], strict=True):
            self.symbols[name] = self.symbols[last]
        for name in symbols_of(op.attributes["count"]):
            self.symbols.setdefault(name, self.passes)

    def clashes(self) -> Iterator[str]:
        """What is needed at the same time in the same memory, or across a move of its chunk."""
        used = [i for i in self.instances if i.first >= 0 and i.start < i.stop]
        for number, one in enumerate(used):
            for other in used[number + 1 :]:
                together = one.first <= other.last and other.first <= one.last
                if (
                    together
                    and one.chunk == other.chunk
                    and one.start < other.stop
                    and other.start < one.stop
                ):
                    yield f"{one} and {other}"
            for step, chunk in self.moves:
                if chunk == one.chunk and one.first < step <= one.last:
                    yield f"{one} is moved at {step}"


def step_through(
    program: Program, plan: MemoryPlan, *, size: int = 5, branch: int = 0, passes: int = 2
) -> Trace:
    symbols = {s: size for port in program.inputs for d in port.shape for s in symbols_of(d)}
    trace = Trace(plan, symbols, branch, passes)
    trace.block(program.main.body)
    return trace


def check_plan(program: Program, plan: MemoryPlan) -> None:
    assert not any(op.name == "loop.allocate" for op in walk(program.main))
    for size in (1, 5, 17):
        for branch in (0, 1):
            for passes in (0, 1, 3):
                trace = step_through(program, plan, size=size, branch=branch, passes=passes)
                clashes = list(trace.clashes())
                assert not clashes, clashes[0]


def random_plan(seed: int, *, symbolic: bool, depth: int) -> tuple[Program, MemoryPlan]:
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 10, depth)
    dims = {"x": ["n", 4], "z": ["n", 4]} if symbolic else None
    outputs = [values[-1], values[len(values) // 2 + 1]]
    return planned(nodes, FEEDS, dims=dims, constants=CONSTANTS, outputs=outputs)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_no_memory_is_needed_twice_at_a_time(seed: int, depth: int, symbolic: bool) -> None:
    check_plan(*random_plan(seed, symbolic=symbolic, depth=depth))


@pytest.mark.slow
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", range(100, 200))
def test_no_memory_is_needed_twice_at_a_time_in_many_graphs(seed: int, symbolic: bool) -> None:
    check_plan(*random_plan(seed, symbolic=symbolic, depth=2))


def test_the_check_finds_a_clash() -> None:
    program, plan = random_plan(1, symbolic=False, depth=1)
    for op in walk(program.main):
        if op.name == "loop.place":
            op.attributes["offset"] = 0
    assert list(step_through(program, plan).clashes())


CHAIN = [
    "a = MatMul (x, w)",
    "b = MatMul (a, w)",
    "c = MatMul (b, w)",
    "d = MatMul (c, w)",
    "y = MatMul (d, w)",
]


@pytest.mark.parametrize("rows", [5, "n"])
def test_a_chain_needs_the_memory_of_two_values(rows: Any) -> None:
    program, plan = planned(CHAIN, {"x": FEEDS["x"]}, dims={"x": [rows, 4]}, constants={"w": CONSTANTS["w"]})
    check_plan(program, plan)
    total = sum(evaluate(c, {"n": 8}) for c in plan.chunks)
    assert 0 < total <= 2 * 128 + 4096  # and the scratch of a product


def test_a_value_used_in_a_loop_lives_to_its_end() -> None:
    nodes = [
        "a = MatMul (x, w)",
        """y = Loop (trips, "", x) <body = b (int64 i, bool ok, float[n, 4] s) => (ok, t) {
            u = MatMul (s, w) v = Mul (u, a) r = MatMul (v, w) t = Add (r, s) }>""",
    ]
    feeds = {"x": FEEDS["x"], "trips": FEEDS["trips"]}
    program, plan = planned(nodes, feeds, constants={"w": CONSTANTS["w"]}, outputs=["y"])
    check_plan(program, plan)
    (kept,) = [a for a in plan.allocations if a.name == "a"]
    inside = [a for a in plan.allocations if a.name in ("u", "v", "r")]
    assert inside
    assert all(kept.start < a.start and a.end < kept.end for a in inside)


def test_sizes_bound_during_the_run_stand_in_a_chunk_of_their_own() -> None:
    nodes = ["p = NonZero (x)", "q = Cast <to = 1> (p)", "r = CumSum (q, one)", "y = CumSum (r, one)"]
    program, plan = planned(nodes, {"x": FEEDS["x"]}, constants={"one": np.array(1)})
    check_plan(program, plan)
    arenas = [op for op in walk(program.main) if op.name == "loop.arena"]
    assert [op.attributes["size"] for op in arenas] == plan.chunks[: len(arenas)]
