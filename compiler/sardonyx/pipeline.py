"""The pipeline: from a module of the onnx level to a scheduled program, as one list.

``observe`` is called after every pass with its name and the module: dumps, verification and timing
all hang on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sardonyx import core, loop
from sardonyx.ir.graph import Function, Module
from sardonyx.kernels.target import Target
from sardonyx.passes.fold_moves import FoldMoves
from sardonyx.passes.fuse import Fuse
from sardonyx.passes.layout import Layout
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.plan_memory import MemoryPlan, plan_memory
from sardonyx.passes.program import Program
from sardonyx.passes.schedule import schedule
from sardonyx.passes.simplify import Simplify

__all__ = ["PIPELINE", "Pass", "Step", "run_passes", "to_program"]

assert core.__all__ and loop.__all__  # the imports declare the ops


class Pass(Protocol):
    """A pass: options are its fields; ``run`` says truthfully whether it changed the module."""

    @property
    def name(self) -> str: ...

    def run(self, module: Module) -> bool: ...


@dataclass(frozen=True)
class Step:
    """A pass and the reason for its place; ``stage`` names what the module is from here on, for dumps."""

    run: Pass
    why: str
    stage: str = ""


PIPELINE: tuple[Step, ...] = (
    Step(LowerToCore(), "everything behind works on typed core ops", "resolved"),
    Step(Simplify(), "lowering leaves dead shape arithmetic and repeated constants", "core"),
    Step(Layout(), "before fusion, so that chains of convolutions stay channels last"),
    Step(Simplify(), "the transposes that have met their inverse leave dead ops"),
    Step(FoldMoves(), "layouts are settled, so constants can be written down in theirs"),
    Step(Fuse(), "last at this level: its groups are the kernels", "fused"),
)


def with_structures(structures: Mapping[str, Any] | None) -> tuple[Step, ...]:
    """The pipeline for inputs of these structures."""
    if structures is None:
        return PIPELINE
    first = PIPELINE[0]
    return (Step(LowerToCore(structures), first.why, first.stage), *PIPELINE[1:])


Observe = Callable[[str, Module, float], None]


def run_passes(module: Module, observe: Observe | None = None, steps: tuple[Step, ...] = PIPELINE) -> None:
    """Run the steps in order; ``observe(name, module, seconds)`` is called after each."""
    for step in steps:
        start = time.perf_counter()
        step.run.run(module)
        if observe is not None:
            observe(step.run.name, module, time.perf_counter() - start)


def to_program(
    module: Module,
    target: Target,
    name: str = "model",
    on_kernel: Callable[[str, Function], None] | None = None,
) -> tuple[Program, MemoryPlan]:
    """Schedule a fused module and place its memory; ``on_kernel`` is told of each kernel as it is made."""
    program = schedule(module.main, target, name, on_kernel)
    return program, plan_memory(program)
