"""Every stage of a compilation as text, from the ONNX nodes to the assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.objects import assembly, optimise
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource
from sardonyx.ir.graph import Function, Location, Module, walk
from sardonyx.ir.printer import print_module, print_op
from sardonyx.kernels.target import Target
from sardonyx.passes.plan_memory import MemoryPlan, plan_memory
from sardonyx.passes.program import Program
from sardonyx.passes.schedule import schedule
from sardonyx.pipeline import PIPELINE, run_passes
from sardonyx.targets.host import host_target

__all__ = ["Stage", "StageSize", "kernel_locations", "stage_sizes", "stage_text"]


class Stage(StrEnum):
    """The stages in the order in which a model goes through them."""

    ONNX = "onnx"
    RESOLVED = "resolved"
    CORE = "core"
    FUSED = "fused"
    LOOP = "loop"
    PLANNED = "planned"
    LLVM = "llvm"
    LLVM_OPT = "llvm-opt"
    ASM = "asm"


@dataclass(frozen=True)
class StageSize:
    """How large a stage is: operations (or instructions) and bytes of text."""

    stage: Stage
    operations: int
    bytes: int


def stage_text(
    model: ModelSource,
    stage: str,
    *,
    node: str | None = None,
    locations: bool = True,
    elide: int | None = 16,
    target: Target | None = None,
) -> str:
    """The text of a model at a stage.

    ``stage`` is one of `Stage`: the model's nodes (``onnx``), typed core ops (``resolved``), simplified
    (``core``), grouped into kernels (``fused``), loops (``loop``), with places in memory (``planned``), LLVM
    IR as it is made and as it is optimised (``llvm``, ``llvm-opt``), assembly (``asm``).

    ``node`` is a pattern (``Conv_*``) that the name of an ONNX node has to match; only what stems from such
    nodes is shown.  ``locations`` says whether each operation names its nodes.  Constants of more than
    ``elide`` elements are written as a key (None: written out).  ``target`` is the machine to compile for,
    by default this one.

    ValueError for an unknown stage or a pattern that matches no node; CompileError if the model cannot be
    compiled that far.
    """
    wanted = _stage(stage)
    printer = _StageText(_Nodes(node), locations, elide)
    texts: dict[Stage, str] = {}
    _each_stage(model, wanted, lambda at, subject: texts.update({at: printer.text(subject)}), wanted, target)
    return texts[wanted]


def stage_sizes(model: ModelSource) -> list[StageSize]:
    """The size of every stage, without locations."""
    printer = _StageText(_Nodes(None), locations=False, elide=16)
    sizes: list[StageSize] = []
    _each_stage(
        model,
        Stage.ASM,
        lambda at, subject: sizes.append(StageSize(at, subject.count(), len(printer.text(subject).encode()))),
    )
    return sizes


def kernel_locations(program: Program) -> dict[str, Location]:
    """The ONNX nodes that each kernel computes; kernels of equal code are one kernel."""
    nodes: dict[str, Location] = {}
    for op in walk(program.main):
        if op.name == "loop.launch":
            nodes[op.attributes["kernel"]] = nodes.get(op.attributes["kernel"], Location()) | op.location
    return nodes


def _stage(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        raise ValueError(f"there is no stage {name!r}; the stages are {', '.join(Stage)}") from None


# --- the stages one after the other --------------------------------------------------------------------


@dataclass(frozen=True)
class _ModuleSubject:
    """A module between two passes."""

    module: Module

    def count(self) -> int:
        return sum(1 for _ in walk(self.module))


@dataclass(frozen=True)
class _ProgramSubject:
    """A scheduled program: loops of all kernels; with a memory plan once it is made."""

    program: Program
    plan: MemoryPlan | None = None

    def count(self) -> int:
        return sum(1 for f in (self.program.main, *self.program.kernels.values()) for _ in walk(f))


@dataclass(frozen=True)
class _CodeSubject:
    """Machine-level text: one part per kernel, and the entry point."""

    parts: Mapping[str, str]  # by symbol
    nodes: Mapping[str, Location]
    comment: str
    is_instruction: Callable[[str], bool]

    def count(self) -> int:
        return sum(self.is_instruction(line) for text in self.parts.values() for line in text.splitlines())


_Subject = _ModuleSubject | _ProgramSubject | _CodeSubject
_ENTRY = "sdx_model_run"


def _each_stage(
    model: ModelSource,
    last: Stage,
    visit: Callable[[Stage, _Subject], None],
    only: Stage | None = None,
    target: Target | None = None,
) -> None:
    """Compile up to the last stage; visit each (or the only one asked for)."""

    def at(stage: Stage, subject: Callable[[], _Subject]) -> bool:
        if only in (None, stage):
            visit(stage, subject())
        return stage is last

    module = import_model(model)
    if at(Stage.ONNX, lambda: _ModuleSubject(module)):
        return
    order = iter(PIPELINE)
    steps = PIPELINE[: _steps_until(last)]

    def observe(name: str, module: Module, seconds: float) -> None:
        if stage := next(order).stage:
            at(Stage(stage), lambda: _ModuleSubject(module))

    run_passes(module, observe, steps)
    if last in _PASS_STAGES:
        return
    target = target or host_target()
    program = schedule(module.main, target, "model")
    if at(Stage.LOOP, lambda: _ProgramSubject(program)):
        return
    plan = plan_memory(program)
    if at(Stage.PLANNED, lambda: _ProgramSubject(program, plan)):
        return
    _each_code_stage(program, target, at)


def _each_code_stage(
    program: Program, target: Target, at: Callable[[Stage, Callable[[], _Subject]], bool]
) -> None:
    nodes = kernel_locations(program)
    texts = {symbol: kernel_text(f, symbol, target) for symbol, f in program.kernels.items()}
    texts[_ENTRY] = whole_program_text(program, target, _ENTRY)

    def optimised() -> dict[str, str]:
        return {symbol: str(optimise(text, target)) for symbol, text in texts.items()}

    def assembled() -> dict[str, str]:
        return {symbol: assembly(text, target) for symbol, text in texts.items()}

    if at(Stage.LLVM, lambda: _CodeSubject(texts, nodes, ";", _is_llvm_instruction)):
        return
    if at(Stage.LLVM_OPT, lambda: _CodeSubject(optimised(), nodes, ";", _is_llvm_instruction)):
        return
    at(Stage.ASM, lambda: _CodeSubject(assembled(), nodes, "#", _is_machine_instruction))


_PASS_STAGES = frozenset(Stage(step.stage) for step in PIPELINE if step.stage)


def _steps_until(stage: Stage) -> int:
    numbers = [i for i, step in enumerate(PIPELINE) if step.stage == stage]
    return numbers[-1] + 1 if numbers else len(PIPELINE)


def _is_llvm_instruction(line: str) -> bool:
    return line.startswith("  ") and not line.lstrip().startswith(";")


def _is_machine_instruction(line: str) -> bool:
    return line.startswith("\t") and not line.startswith(("\t.", "\t#"))


# --- text ----------------------------------------------------------------------------------------------


@dataclass
class _Nodes:
    """A choice of ONNX nodes by a pattern of their names; without one, all."""

    pattern: str | None
    seen: dict[str, None] = field(default_factory=dict)  # names looked at, for the message

    def choose(self, location: Location) -> bool:
        if self.pattern is None:
            return True
        self.seen.update(dict.fromkeys(o.name for o in location.origins))
        return any(fnmatchcase(o.name, self.pattern) for o in location.origins)

    def none_found(self) -> ValueError:
        some = ", ".join(list(self.seen)[:8]) or "none"
        more = f" and {len(self.seen) - 8} others" if len(self.seen) > 8 else ""
        return ValueError(f"no node at this stage matches {self.pattern!r}; its nodes are {some}{more}")


@dataclass(frozen=True)
class _StageText:
    nodes: _Nodes
    locations: bool
    elide: int | None

    def text(self, subject: _Subject) -> str:
        if isinstance(subject, _ModuleSubject):
            return self.module(subject.module)
        if isinstance(subject, _ProgramSubject):
            return self.program(subject.program, subject.plan)
        return self.code(subject)

    def module(self, module: Module) -> str:
        if self.nodes.pattern is None:
            return print_module(module, elide=self.elide, locations=self.locations)
        return self._found(line for f in module.functions.values() for line in self._chosen(f))

    def program(self, program: Program, plan: MemoryPlan | None) -> str:
        summary = "" if plan is None else _plan_text(plan, program)
        if self.nodes.pattern is None:
            # A module of the loop level: it can be parsed back, the summary being a comment.
            module = Module({"main": program.main, **program.kernels})
            return summary + print_module(module, elide=self.elide, locations=self.locations)
        chosen = {s for s, location in kernel_locations(program).items() if self.nodes.choose(location)}
        lines = list(self._chosen(program.main))
        kernels = Module({s: program.kernels[s] for s in sorted(chosen)})
        if kernels.functions:
            lines += ["", print_module(kernels, elide=self.elide, locations=self.locations).rstrip("\n")]
        return self._found(lines)

    def code(self, subject: _CodeSubject) -> str:
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
            print_op(op, elide=self.elide, locations=self.locations)
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


def _plan_text(plan: MemoryPlan, program: Program) -> str:
    """The memory plan as comment lines."""
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
