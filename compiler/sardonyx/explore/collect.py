"""Compiling a model step by step and keeping what the page shows of each step.

A model that cannot be compiled further gives what was reached and the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

from sardonyx.errors import CompileError
from sardonyx.explore.changes import changes
from sardonyx.explore.fusion import fusion_data
from sardonyx.explore.graph import Graph, graph_of
from sardonyx.explore.kernels import KERNEL_STAGES, kernel_data
from sardonyx.explore.layout import BOX, check_library, lay_out
from sardonyx.explore.lines import Text, module_text
from sardonyx.explore.memory import memory_data
from sardonyx.explore.outline import outline_of
from sardonyx.explore.times import check_profile, times_data
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Function, Location, Module, Op, walk
from sardonyx.kernels.target import Target
from sardonyx.listings.listing import kernel_listing, program_listing
from sardonyx.parts import ENTRY
from sardonyx.pass_manager import Pass, PassRun, failed, run_steps
from sardonyx.passes.decisions import Decisions
from sardonyx.passes.fuse import Fuse
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.plan_memory import plan_memory
from sardonyx.passes.program import Program
from sardonyx.passes.schedule import schedule
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target, llvm_version
from sardonyx_runtime.version import __version__

__all__ = ["Exploration", "NoSuchNode", "Report", "explore"]


class NoSuchNode(ValueError):
    """A pattern that matches no node of the model."""


Report = Callable[[str, float], None]  # what is being done, and the part of all work that is done

_TITLES = {
    "onnx": "the model's nodes",
    "resolved": "typed core operations",
    "core": "simplified",
    "fused": "grouped into kernels",
    "planned": "the program, with places in memory",
    "loop": "loops of a kernel",
    "llvm": "LLVM IR of a kernel",
    "llvm-opt": "LLVM IR, optimised",
    "asm": "assembly of a kernel",
}


@dataclass
class Exploration:
    """What the page shows: ``main`` is read at once, each section when it is looked at."""

    main: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    error: CompileError | None = None  # that ended the compilation


def explore(
    model: ModelSource,
    *,
    node: str | None = None,
    profile: dict[str, Any] | None = None,
    target: Target | None = None,
    report: Report = lambda what, done: None,
) -> Exploration:
    """Collect everything about a model.

    ``node`` is a pattern of names: only kernels of such nodes are listed down to assembly.  ``profile`` is
    what `sardonyx profile --json` has written.  ``report`` is told of the progress.

    CompileError only if the file is no ONNX model; NoSuchNode for a pattern that matches no node;
    ForeignProfile for a profile of another model; LayoutMissing without the library that places the nodes.
    """
    with compiling():
        return _Collector(node, target or host_target(), report).collect(model, profile)


class _Collector:
    def __init__(self, pattern: str | None, target: Target, report: Report) -> None:
        self.pattern = pattern
        self.target = target
        self.report = report
        self.result = Exploration()
        self.graph = Graph()
        self.stages: list[dict[str, Any]] = []
        self.passes: list[dict[str, Any]] = []
        self.kernels: list[dict[str, Any]] = []
        self.memory: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.reached = ""
        self.text = Text()  # of the module after the last pass

    def collect(self, model: ModelSource, profile: dict[str, Any] | None) -> Exploration:
        check_library()
        if profile is not None:
            check_profile(profile)
        self.report("reading the model", 0)
        module = self.imported(model)
        chosen = self.chosen()
        if module is not None:
            try:
                self.core_level(module)
                self.program(module, chosen)
            except CompileError as error:
                self.failed(error)
            except Exception as error:
                self.failed(failed(f"behind {self.reached}", len(self.passes), error))
        self.report("laying out the graph", 0.95)
        self.result.main = self.main(model, profile, chosen)
        return self.result

    def imported(self, model: ModelSource) -> Module | None:
        """The model at the onnx level, its graph being noted; None if only its outline can be read."""
        try:
            module = import_model(model)
        except CompileError as error:
            self.graph = outline_of(model)
            self.failed(error)
            return None
        self.graph = graph_of(module)
        return module

    def chosen(self) -> list[int]:
        """The nodes that the pattern matches."""
        if self.pattern is None:
            return []
        names = [
            (n, node.name) for n, node in enumerate(self.graph.nodes) if node.kind in ("node", "constant")
        ]
        found = [n for n, name in names if fnmatchcase(name, self.pattern)]
        if not found:
            some = ", ".join(name for _, name in names[:8]) or "none"
            raise NoSuchNode(f"no node matches {self.pattern!r}; the model's nodes are {some}")
        return found

    def stage(self, name: str, text: Text) -> Text:
        self.reached = name
        self.stages.append(
            {"id": name, "title": _TITLES[name], "section": name, "lines": len(text.lines), "kernel": False}
        )
        self.result.sections[name] = text.data()
        return text

    def core_level(self, module: Module) -> None:
        """Run the passes up to the fused level; keep what each changed."""
        steps = tuple(takewhile(lambda step: step.stage != "loop", pipeline(self.target)))
        decisions = Decisions()
        steps = tuple(replace(step, run=self.watched(step.run, decisions)) for step in steps)
        self.text = self.stage("onnx", module_text(module, self.graph))

        def observe(run: PassRun, module: Module) -> None:
            self.ran(
                run.label, run.seconds, steps[run.number].why, module_text(module, self.graph), run.stage
            )
            done = (run.number + 1) / len(steps)
            self.report(f"the pass behind {run.label}", 0.05 + 0.25 * done)

        run_steps(module, steps, [observe])
        self.result.sections["fusion"] = fusion_data(decisions.made, self.graph)

    def watched(self, run: Pass, decisions: Decisions) -> Pass:
        """A pass that tells what it does to a node."""
        if isinstance(run, LowerToCore):
            return replace(run, on_node=self.graph.learn)
        return replace(run, decisions=decisions) if isinstance(run, Fuse) else run

    def ran(self, label: str, seconds: float, why: str, after: Text, stage: str) -> None:
        """A pass has run: keep what it changed, and the stage that it ends, if one."""
        change = changes(self.text, after, self.graph)
        section = f"pass{len(self.passes)}"
        self.passes.append(
            {
                "name": label,
                "why": why,
                "seconds": seconds,
                "removed": change.removed,
                "added": change.added,
                "section": section,
            }
        )
        if change.text.lines:
            self.result.sections[section] = change.text.data()
        self.text = after
        if stage:
            self.stage(stage, after)

    def program(self, module: Module, chosen: list[int]) -> None:
        """Schedule, plan the memory, list the kernels."""
        self.report("scheduling", 0.3)
        why = {step.run.name: step.why for step in pipeline(self.target)}
        start = time.perf_counter()
        program = schedule(module.main, self.target, "model")
        seconds = time.perf_counter() - start
        self.ran("schedule", seconds, why["schedule"], module_text([program.main], self.graph), "")
        start = time.perf_counter()
        plan = plan_memory(program)
        seconds = time.perf_counter() - start
        self.ran(
            "plan-memory", seconds, why["plan-memory"], module_text([program.main], self.graph), "planned"
        )
        self.memory = memory_data(program, plan, self.graph)
        self.stages += [
            {"id": name, "title": _TITLES[name], "section": name, "lines": 0, "kernel": True}
            for name in KERNEL_STAGES
        ]
        launches = _launches(program)
        for number, (symbol, function) in enumerate(program.kernels.items()):
            done = number / len(program.kernels)
            self.report(f"kernel {number + 1} of {len(program.kernels)}", 0.35 + 0.55 * done)
            self.kernel(program, symbol, function, launches[symbol], set(chosen))
        if not chosen:
            self.entry_point(program)

    def kernel(
        self, program: Program, symbol: str, function: Function, launches: list[Op], chosen: set[int]
    ) -> None:
        # The lines of a kernel that is launched for several groups name the nodes of the one it was made for.
        launches.sort(key=lambda one: one.location != program.node_of_kernel[symbol])
        location = Location(tuple({o: None for one in launches for o in one.location.origins}))
        group, kernel = program.launched[launches[0]]
        members = self.graph.node_set(location)
        section = f"kernel{len(self.kernels)}"
        listed = not chosen or bool(chosen & set(self.graph.sets[members]))
        self.kernels.append(
            {
                "symbol": symbol,
                "nodes": members,
                "launches": [self.graph.nodes_of(one.location) for one in launches],
                "schedule": "; ".join(dict.fromkeys((group.attributes["kind"], *kernel.schedule))),
                "section": section if listed else None,
            }
        )
        if listed:
            listing = kernel_listing(function, symbol, self.target, group, location)
            self.result.sections[section] = kernel_data(function, listing, self.graph, members)

    def entry_point(self, program: Program) -> None:
        """The function that launches the kernels, listed as one of them."""
        self.report("the entry point", 0.9)
        section = f"kernel{len(self.kernels)}"
        self.kernels.append({"symbol": ENTRY, "nodes": 0, "launches": [], "schedule": "", "section": section})
        listing = program_listing(program, self.target)
        self.result.sections[section] = kernel_data(program.main, listing, self.graph, 0)

    def failed(self, error: CompileError) -> None:
        self.result.error = error
        self.error = {
            "reached": self.reached,
            "message": str(error),
            "nodes": self.graph.node_set(error.location),
        }

    def main(self, model: ModelSource, profile: dict[str, Any] | None, chosen: list[int]) -> dict[str, Any]:
        graph = self.graph
        picture = lay_out(graph)
        return {
            "title": Path(model).name if isinstance(model, (str, Path)) else "model",
            "made": f"Sardonyx {__version__}, LLVM {'.'.join(map(str, llvm_version()[:2]))}, {self.target.triple}",
            "box": BOX,
            "size": picture.size,
            "nodes": [
                {
                    "name": node.name,
                    "op": node.op,
                    "kind": node.kind,
                    "domain": node.domain,
                    "family": node.family,
                    "attributes": node.attributes,
                    "inputs": node.inputs,
                    "outputs": node.outputs,
                    "scope": node.scope,
                    "calls": node.calls,
                    "at": _rounded(picture.places[number]) if number in picture.places else None,
                }
                for number, node in enumerate(graph.nodes)
            ],
            "tensors": [[tensor.name, tensor.type] for tensor in graph.tensors],
            "scopes": [{"title": scope.title, "owner": scope.owner} for scope in graph.scopes],
            "edges": [
                {
                    "from": edge.source,
                    "to": edge.target,
                    "tensor": edge.tensor,
                    "captured": edge.captured,
                    "way": [_rounded(p) for p in picture.ways[edge.source, edge.target]],
                }
                for scope in graph.scopes
                for edge in scope.edges
                if (edge.source, edge.target) in picture.ways
            ],
            "frames": [
                [f.scope, *_rounded((f.x, f.y)), *_rounded((f.width, f.height))] for f in picture.frames
            ],
            "sets": graph.sets,
            "stages": self.stages,
            "passes": self.passes,
            "kernels": self.kernels,
            "memory": self.memory,
            "times": None if profile is None else times_data(profile, self.kernels, graph),
            "chosen": chosen,
            "error": self.error,
        }


def _rounded(point: tuple[float, float]) -> list[int]:
    return [round(point[0]), round(point[1])]


def _launches(program: Program) -> dict[str, list[Op]]:
    """For each kernel its launches."""
    launches: dict[str, list[Op]] = {}
    for op in walk(program.main):
        if op.name == "loop.launch":
            launches.setdefault(op.attributes["kernel"], []).append(op)
    return launches
