"""Every stage of a compilation as text, from the ONNX nodes to the assembly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.object_listing import object_listing
from sardonyx.codegen.objects import assembly, compile_text, optimise
from sardonyx.dumps.stage_printer import (
    CodeSubject,
    ModuleSubject,
    NodeChoice,
    StagePrinter,
    Subject,
    kernel_locations,
)
from sardonyx.frontend.load import ModelSource
from sardonyx.ir.graph import Module
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY
from sardonyx.pass_manager import Observer, PassRun, Step, run_steps
from sardonyx.passes.program import Program
from sardonyx.pipeline import pipeline, remaining
from sardonyx.source import open_source
from sardonyx.targets.host import host_target

__all__ = ["MLIR_STAGES", "Stage", "StageSize", "follow", "kernel_locations", "stage_sizes", "stage_text"]


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
    OBJECT = "object"


# What is a module of our own IR, and so can be written in MLIR's syntax.
MLIR_STAGES = (Stage.ONNX, Stage.RESOLVED, Stage.CORE, Stage.FUSED, Stage.LOOP, Stage.PLANNED)


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
    resources: bool = False,
    generic: bool = False,
    target: Target | None = None,
) -> str:
    """The text of a model at a stage.

    ``stage`` is one of `Stage`: the model's nodes (``onnx``), typed core ops (``resolved``), simplified
    (``core``), grouped into kernels (``fused``), loops (``loop``), with places in memory (``planned``), LLVM
    IR as it is made and as it is optimised (``llvm``, ``llvm-opt``), assembly (``asm``), sections, symbols and
    bytes of the machine code (``object``).

    ``node`` is a pattern (``Conv_*``) that the name of an ONNX node has to match; only what stems from such
    nodes is shown.  ``locations`` says whether each operation names its nodes.  Constants of more than
    ``elide`` elements are written as a key (None: written out), whose data ``resources`` adds at the end: such a
    text can be compiled and run.  ``generic`` writes MLIR's generic form, which MLIR's own tools and xDSL read
    with unregistered dialects allowed.  ``target`` is the machine to compile for, by default this one.

    ValueError for an unknown stage, one that has no generic form, or a pattern that matches no node;
    CompileError if the model cannot be compiled that far.
    """
    wanted = _stage(stage)
    if generic and wanted not in MLIR_STAGES:
        raise ValueError(f"the stage {stage!r} is no MLIR; those that are: {', '.join(MLIR_STAGES)}")
    printer = StagePrinter(NodeChoice(node), locations, elide, resources, generic)
    texts: list[str] = []
    follow(model, wanted, lambda at, subject: texts.append(printer.text(subject())), target, only=True)
    if not texts:
        raise ValueError(f"the text is of a later stage than {wanted}")
    return texts[0]


def stage_sizes(model: ModelSource) -> list[StageSize]:
    """The size of every stage up to assembly, without locations."""
    printer = StagePrinter(locations=False)
    sizes: list[StageSize] = []

    def visit(stage: Stage, subject: Callable[[], Subject]) -> None:
        made = subject()
        sizes.append(StageSize(stage, made.count(), len(printer.text(made).encode())))

    follow(model, Stage.ASM, visit)
    return sizes


def _stage(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        raise ValueError(f"there is no stage {name!r}; the stages are {', '.join(Stage)}") from None


def follow(
    model: ModelSource,
    last: Stage,
    visit: Callable[[Stage, Callable[[], Subject]], None],
    target: Target | None = None,
    *,
    only: bool = False,
    observers: tuple[Observer, ...] = (),
) -> None:
    """Compile a model up to the last stage; visit each, or that one only.

    ``visit(stage, subject)`` is given a function that makes what the stage is.  ``observers`` are told of every
    pass as well; a model given as IR text begins at its own stage.
    """
    target = target or host_target()

    def at(stage: Stage, subject: Callable[[], Subject]) -> None:
        if not only or stage is last:
            visit(stage, subject)

    def observe(run: PassRun, module: Module) -> None:
        if run.stage:
            at(Stage(run.stage), lambda: ModuleSubject(module))

    module = open_source(model).module()
    whole = pipeline(target)
    steps = remaining(module, whole)
    if len(steps) < len(whole):  # IR text: the stage it is at
        before = [step.stage for step in whole[: len(whole) - len(steps)] if step.stage]
        at(Stage(before[-1] if before else Stage.ONNX), lambda: ModuleSubject(module))
    else:
        at(Stage.ONNX, lambda: ModuleSubject(module))
    run_steps(module, _until(steps, last), (observe, *observers))
    if list(Stage).index(last) > list(Stage).index(Stage.PLANNED):
        _each_code_stage(Program.from_module(module), target, at)


def _until(steps: tuple[Step, ...], last: Stage) -> tuple[Step, ...]:
    """The steps up to the one that makes a stage; all if the stage comes later, none if it was before."""
    numbers = [i for i, step in enumerate(steps) if step.stage == last]
    if numbers:
        return steps[: numbers[-1] + 1]
    return steps if list(Stage).index(last) > list(Stage).index(Stage.PLANNED) else ()


def _each_code_stage(
    program: Program, target: Target, at: Callable[[Stage, Callable[[], Subject]], None]
) -> None:
    nodes = kernel_locations(program)
    texts = {symbol: kernel_text(f, symbol, target) for symbol, f in program.kernels.items()}
    texts[ENTRY] = whole_program_text(program, target, ENTRY)

    def subject(stage: Stage) -> CodeSubject:
        parts = {symbol: code_text(text, stage, target) for symbol, text in texts.items()}
        llvm = stage in (Stage.LLVM, Stage.LLVM_OPT)
        counts = _is_llvm_instruction if llvm else _is_machine_instruction
        return CodeSubject(parts, nodes, ";" if llvm else "#", counts)

    for stage in (Stage.LLVM, Stage.LLVM_OPT, Stage.ASM, Stage.OBJECT):
        at(stage, lambda stage=stage: subject(stage))  # type: ignore[misc]


def code_text(llvm: str, stage: Stage, target: Target) -> str:
    """A module's text at a stage behind LLVM IR, made of that IR."""
    if stage is Stage.LLVM:
        return llvm
    if stage is Stage.LLVM_OPT:
        return str(optimise(llvm, target))
    if stage is Stage.ASM:
        return assembly(llvm, target)
    return object_listing(compile_text(llvm, target))


def _is_llvm_instruction(line: str) -> bool:
    return line.startswith("  ") and not line.lstrip().startswith(";")


def _is_machine_instruction(line: str) -> bool:
    return line.startswith("\t") and not line.startswith(("\t.", "\t#"))
