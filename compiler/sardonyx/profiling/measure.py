"""Measures a compiled model: its kernels as they are, launched by an entry point that looks at the clock."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sardonyx.build import lower, signature_of
from sardonyx.build_options import BuildOptions
from sardonyx.codegen.compile import timed_program_text
from sardonyx.codegen.objects import Objects
from sardonyx.codegen.timing import FIXED, RECORD, TABLE, TimingPlan
from sardonyx.errors import CompileError
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Location, Module, Op
from sardonyx.kernels.target import Target
from sardonyx.loading import load
from sardonyx.parts import ENTRY, Parts
from sardonyx.passes.program import Program
from sardonyx.profiling.peak import Peak, peak_of
from sardonyx.profiling.results import Event, LaunchTime, Node, Profile
from sardonyx.profiling.work import Work, work_of
from sardonyx_runtime.feeds import Feeds
from sardonyx_runtime.native import NativeModel

__all__ = ["Instrumented", "instrument"]

_RECORDS = 1 << 17  # 6 MB

Words = np.ndarray[Any, np.dtype[np.int64]]


def instrument(
    make: Callable[[], Module],
    structures: Mapping[str, Any] | None,
    parts: Parts,
    target: Target,
    options: BuildOptions,
    imports: Mapping[str, int],
    threads: int,
    *,
    use_cache: bool = True,
) -> Instrumented:
    """The instrumented twin of a compiled model; only its entry point is compiled.

    ``make`` and ``structures`` are what the model was built from.  CompileError if its source has changed.
    """
    with compiling(), Objects(target, use_cache=use_cache) as objects:
        program = lower(make, target, None, structures=structures, options=options)
        if not program.kernels.keys() <= parts.objects.keys() or signature_of(program) != parts.signature:
            raise CompileError("the model has changed since it was compiled", hint="compile it again")
        objects.add(ENTRY, timed_program_text(program, target, ENTRY))
        timed = replace(parts, objects={**parts.objects, **objects.finish()})
    loaded = load(timed, target, imports, use_cache=use_cache, symbols=(ENTRY, TABLE))
    model = NativeModel(
        loaded.entry,
        parts.weights.__array_interface__["data"][0],
        parts.signature,
        threads=threads,
        gate=loaded.gate,
        keep=(loaded.library, parts.weights),
    )
    return Instrumented(program, model, target, loaded.library.address(TABLE))


@dataclass(frozen=True)
class Instrumented:
    """A model whose runs fill the table at an address (see ``codegen/timing.py``)."""

    program: Program
    model: NativeModel
    target: Target
    table: int
    lock: threading.Lock = field(default_factory=threading.Lock)

    def profile(self, feeds: Feeds, runs: int) -> Profile:
        """Run once to warm up, then ``runs`` times; RuntimeFault if a run fails."""
        with self.lock:  # there is one table at a time
            return self._profile(feeds, runs)

    def _profile(self, feeds: Feeds, runs: int) -> Profile:
        plan = TimingPlan.of(self.program)
        table = np.zeros(plan.words, np.int64)
        records = np.zeros((_RECORDS, RECORD), np.int64)
        table[1:3] = _RECORDS, records.__array_interface__["data"][0]
        pointer = ctypes.c_int64.from_address(self.table)
        self.model.run(feeds)
        nowhere, pointer.value = pointer.value, table.__array_interface__["data"][0]
        try:
            slots = np.zeros((runs, plan.words), np.int64)
            for number in range(runs):
                table[3:] = 0
                self.model.run(feeds)
                slots[number] = table
        finally:
            pointer.value = nowhere
        noted = int(table[0])
        quick = slots[np.argsort(slots[:, 3], kind="stable")[: (runs + 1) // 2]]
        return _Reading(self, plan, runs, quick, records[: min(noted, _RECORDS)], noted > _RECORDS).profile()


@dataclass(frozen=True)
class _Reading:
    """What the runs left in the table: the slots of the faster half of the runs, and the records of all.

    Means of the faster half add up, and what disturbs single runs does not show.
    """

    of: Instrumented
    plan: TimingPlan
    runs: int
    slots: Words
    records: Words
    truncated: bool

    def profile(self) -> Profile:
        peak = peak_of(self.of.target, self.of.model.threads)
        launches = tuple(self.launch(number, op, peak) for number, op in enumerate(self.plan.ops))
        target = self.of.target
        return Profile(
            float(self.slots[:, 3].mean()) * 1e-9,
            self.runs,
            self.of.model.threads,
            peak,
            launches,
            tuple(Event(*map(int, record)) for record in self.records),
            self.truncated,
            {"triple": target.triple, "cpu": target.cpu},
        )

    def launch(self, number: int, op: Op, peak: Peak) -> LaunchTime:
        at, count = self.plan.slots[number], len(op.operands)
        slots = self.slots[:, at : at + FIXED + 2 * count]
        calls, wall, busy = (float(slots[:, i].mean()) for i in range(3))
        seconds = wall * 1e-9
        pieces = self.records[(self.records[:, 0] == number) & (self.records[:, 4] >= 0)]
        passed, sizes = slots[-1, FIXED : FIXED + count], slots[-1, FIXED + count :]
        kernel = op.attributes.get("kernel", "")
        if kernel:
            function = self.of.program.kernels[kernel]
            work = work_of(function, [int(w) for w in passed], int(slots[-1, 3]))
            bytes_ = calls * _touched(work, sizes)
        else:
            work = Work()
            bytes_ = calls * (
                2.0 * float(passed[-1]) if op.name == "loop.copy" else float(sizes.clip(0).sum())
            )
        operations, products = calls * work.operations, calls * work.products
        share, bound = _of_peak(
            peak, seconds, bytes_, bytes_ / calls if calls else 0.0, products, work.double
        )
        nodes = tuple(Node(o.path, o.name, o.op_type) for o in op.location.origins)
        kind = {"loop.copy": "copy", "loop.external": "external"}.get(op.name, "kernel")
        return LaunchTime(
            number=number,
            kind=kind,
            kernel=kernel or op.attributes.get("symbol", "copy"),
            nodes=nodes,
            calls=calls,
            seconds=seconds,
            busy=busy * 1e-9 if kernel else seconds,
            threads=len(set(pieces[:, 1].tolist())) or 1,
            bytes=bytes_,
            operations=operations,
            products=products,
            peak_share=share,
            bound=bound,
            node_seconds=_split(seconds, nodes, self.kernel_nodes(kernel), work.shares),
        )

    def kernel_nodes(self, kernel: str) -> tuple[Node, ...]:
        """The nodes that a kernel was first made for: those that its ops name."""
        location = self.of.program.node_of_kernel.get(kernel, Location())
        return tuple(Node(o.path, o.name, o.op_type) for o in location.origins)


def _touched(work: Work, sizes: Words) -> float:
    """Bytes of memory that a launch reads or writes at least once: no more than a buffer has."""
    total = 0.0
    for number, size in enumerate(sizes.tolist()):
        traffic = work.traffic.get(number, 0.0)
        if traffic < 0:
            total += max(0, size)
        else:
            total += min(traffic, size) if size >= 0 else traffic
    return total


def _of_peak(
    peak: Peak, seconds: float, bytes_: float, working_set: float, products: float, double: bool
) -> tuple[float, str]:
    """The larger share: of the arithmetic peak, or of the bandwidth for a working set of this size."""
    if seconds <= 0:
        return 0.0, ""
    arithmetic = products / seconds / (peak.operations / (2 if double else 1))
    memory = bytes_ / seconds / peak.bytes_per_second(working_set)
    return max(arithmetic, memory), "arithmetic" if arithmetic > memory else "memory"


def _split(
    seconds: float, nodes: tuple[Node, ...], made_for: tuple[Node, ...], shares: Mapping[Location, float]
) -> dict[Node, float]:
    """The time of a launch over its nodes, by the instructions that stem from each.

    What stems from several nodes counts for none, unless nothing else is there.  A kernel that serves equal
    groups names the nodes of the first: those at the same place of the launch are meant.
    """
    if not nodes:
        return {}
    same_place = dict(zip(made_for, nodes, strict=True)) if len(made_for) == len(nodes) else {}
    weights = dict.fromkeys(nodes, 0.0)
    for location, amount in shares.items():
        if len(location.origins) == 1:
            origin = location.origins[0]
            node = Node(origin.path, origin.name, origin.op_type)
            node = same_place.get(node, node)
            if node in weights:
                weights[node] += amount
    total = sum(weights.values())
    if total <= 0:
        return dict.fromkeys(nodes, seconds / len(nodes))
    return {node: seconds * weight / total for node, weight in weights.items()}
