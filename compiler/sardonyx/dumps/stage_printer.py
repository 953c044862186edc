"""Stages as text: modules, machine-level code, and what of them stems from chosen ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from sardonyx.ir.graph import Function, Location, Module, walk
from sardonyx.ir.printer import print_function, print_module, print_op
from sardonyx.passes.plan_memory import memory_plan
from sardonyx.passes.program import Program

__all__ = [
    "CodeSubject",
    "ModuleSubject",
    "NoSuchNode",
    "NodeChoice",
    "StagePrinter",
    "Subject",
    "kernel_locations",
]


def kernel_locations(program: Program) -> dict[str, Location]:
    """The ONNX nodes that each kernel computes; kernels of equal code are one kernel."""
    nodes: dict[str, Location] = {}
    for op in walk(program.main):
        if op.name == "loop.launch":
            nodes[op.attributes["kernel"]] = nodes.get(op.attributes["kernel"], Location()) | op.location
    return nodes


@dataclass(frozen=True)
class ModuleSubject:
    """A module between two passes."""

    module: Module

    def count(self) -> int:
        return sum(1 for _ in walk(self.module))


@dataclass(frozen=True)
class CodeSubject:
    """Machine-level text: one part per kernel, and the entry point."""

    parts: Mapping[str, str]  # by symbol
    nodes: Mapping[str, Location]
    comment: str
    is_instruction: Callable[[str], bool]

    def count(self) -> int:
        return sum(self.is_instruction(line) for text in self.parts.values() for line in text.splitlines())


Subject = ModuleSubject | CodeSubject


class NoSuchNode(ValueError):
    """No node that is left at a stage has a name of the pattern."""


@dataclass
class NodeChoice:
    """A choice of ONNX nodes by a pattern of their names; without one, all."""

    pattern: str | None = None
    seen: dict[str, None] = field(default_factory=dict)  # names looked at, for the message

    def choose(self, location: Location) -> bool:
        if self.pattern is None:
            return True
        self.seen.update(dict.fromkeys(o.name for o in location.origins))
        return any(fnmatchcase(o.name, self.pattern) for o in location.origins)

    def none_found(self) -> NoSuchNode:
        some = ", ".join(list(self.seen)[:8]) or "none"
        more = f" and {len(self.seen) - 8} others" if len(self.seen) > 8 else ""
        return NoSuchNode(f"no node at this stage matches {self.pattern!r}; its nodes are {some}{more}")


@dataclass(frozen=True)
class StagePrinter:
    """How stages are written: which nodes, with locations or without, constants up to which size.

    ``resources`` adds the data of the larger constants, so that the text can be compiled and run.
    """

    nodes: NodeChoice = field(default_factory=NodeChoice)
    locations: bool = True
    elide: int | None = 16
    resources: bool = False
    generic: bool = False

    def text(self, subject: Subject) -> str:
        if isinstance(subject, ModuleSubject):
            return self.module(subject.module)
        return self.code(subject)

    def module(self, module: Module) -> str:
        program = Program.from_module(module) if "program" in module.main.attributes else None
        if self.nodes.pattern is None:
            summary = _plan_text(program) if program is not None and program.planned else ""
            return summary + print_module(
                module,
                generic=self.generic,
                elide=self.elide,
                locations=self.locations,
                resources=self.resources,
            )
        if program is not None:
            return self._found(self._chosen_kernels(program))
        return self._found(line for f in module.functions.values() for line in self._chosen(f))

    def _chosen_kernels(self, program: Program) -> Iterator[str]:
        """What launches the chosen nodes' kernels, and the kernels."""
        yield from self._chosen(program.main)
        chosen = sorted(s for s, location in kernel_locations(program).items() if self.nodes.choose(location))
        for symbol in chosen:
            kernel = print_function(
                program.kernels[symbol], generic=self.generic, elide=self.elide, locations=self.locations
            )
            yield f"\n{kernel}".rstrip("\n")

    def code(self, subject: CodeSubject) -> str:
        parts = []
        for symbol, text in subject.parts.items():
            location = subject.nodes.get(symbol)
            if location is None:
                title = "the entry point"
                wanted = self.nodes.pattern is None
            else:
                title, wanted = f"of {_short(location)}", self.nodes.choose(location)
            if wanted:
                text = text.strip("\n")
                parts.append(f"{subject.comment} {symbol}, {title}\n{text}\n")
        return self._found(["\n".join(parts).rstrip("\n")] if parts else [])

    def _chosen(self, function: Function) -> Iterator[str]:
        """The operations of a function that stem from the chosen nodes."""
        lines = [
            print_op(op, generic=self.generic, elide=self.elide, locations=self.locations)
            for op in function.body.ops
            if self.nodes.choose(op.location)
        ]
        if lines:
            yield f"// in @{function.name}"
            yield from lines

    def _found(self, lines: Iterable[str]) -> str:
        text = "\n".join(lines)
        if not text:
            raise self.nodes.none_found()
        return text + "\n"


def _short(location: Location, most: int = 8) -> str:
    names = [f"{o.name} ({o.op_type})" for o in location.origins]
    more = [f"and {len(names) - most} others"] if len(names) > most else []
    return ", ".join(names[:most] + more) or "no node"


def _plan_text(program: Program) -> str:
    """The memory plan as comment lines."""
    plan = memory_plan(program)
    lines = [f"// weights: {program.weights.size:,} bytes in {len(program.weights.items)} tensors"]
    for number, size in enumerate(plan.chunks):
        mine = [a for a in plan.allocations if a.chunk == number]
        sizes = [a.size for a in mine]
        if all(isinstance(s, int) for s in sizes):
            apart = f"{sum(s for s in sizes if isinstance(s, int)):,}"
            lines.append(f"// arena {number}: {size:,} bytes; {apart} if nothing were shared")
        else:
            lines.append(f"// arena {number}: {size} bytes")
        for one in sorted(mine, key=lambda a: a.start):
            name = one.name or "(unnamed)"
            lines.append(
                f"//   {name}: {one.size} bytes at {one.offset}, used by ops {one.start} to {one.end}"
            )
    return "\n".join(lines) + "\n"
