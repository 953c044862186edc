"""The pipeline: from a module of the onnx level to a program with its memory planned, as one list.

The order is data; what runs, times, verifies and dumps it is ``pass_manager.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sardonyx import core, loop
from sardonyx.ir.graph import Function, Module
from sardonyx.kernels.target import Target
from sardonyx.pass_manager import Pass, Step, parse_passes, register_pass, registered_passes, run_steps
from sardonyx.passes.fold import Fold
from sardonyx.passes.fuse import Fuse
from sardonyx.passes.layout import Layout
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.plan_memory import PlanMemory, plan_memory
from sardonyx.passes.program import Program
from sardonyx.passes.schedule import Schedule, schedule
from sardonyx.passes.simplify import Simplify

__all__ = ["level_of", "pipeline", "remaining", "steps_of", "to_program"]

assert core.__all__ and loop.__all__  # the imports declare the ops

for _one in (LowerToCore, Simplify, Fold, Layout, Fuse, Schedule, PlanMemory):
    register_pass(_one)


def pipeline(
    target: Target,
    *,
    structures: Mapping[str, Any] | None = None,
    on_kernel: Callable[[str, Function], None] | None = None,
    after: Program | None = None,
    named: bool = False,
) -> tuple[Step, ...]:
    """The steps for a target.

    ``structures`` are those of inputs that are sequences or optionals (see ``core/aggregates.py``);
    ``on_kernel(symbol, function)`` is told of each kernel as soon as it is scheduled; ``after`` is a program of
    the same model for another target, with which this one is to share its constants; ``named`` puts the nodes'
    names into the symbols of kernels.
    """
    return (
        Step(LowerToCore(structures), "everything behind works on typed core ops", "resolved"),
        Step(
            Simplify(), "lowering leaves dead shape arithmetic and repeated constants", "core", optional=True
        ),
        Step(Layout(), "before fusion, so that chains of convolutions stay channels last", optional=True),
        Step(Simplify(), "the transposes that have met their inverse leave dead ops", optional=True),
        Step(Fold(moves=True), "layouts are settled: constants can be written down in theirs", optional=True),
        Step(Fuse(), "last at this level: its groups are the kernels", "fused"),
        Step(Schedule(target, on_kernel, after, named), "the groups are final: each becomes loops", "loop"),
        Step(PlanMemory(), "every allocation and its life is known", "planned"),
    )


def steps_of(text: str, target: Target) -> tuple[Step, ...]:
    """The steps of a pipeline's text; ValueError if it is none (see `parse_passes`)."""
    known = {name: _for_target(made, target) for name, made in registered_passes().items()}
    return tuple(Step(one) for one in parse_passes(text, known))


def _for_target(made: Callable[..., Pass], target: Target) -> Callable[..., Pass]:
    """A pass with the machine given that it works for, if it asks for one."""
    fields: set[str] = {f.name for f in dataclasses.fields(made)} if dataclasses.is_dataclass(made) else set()
    return partial(made, target) if "target" in fields else made


def to_program(module: Module, target: Target) -> Program:
    """The program of a module; of one up to the fused level it still knows the group that each kernel computes."""
    if level_of(module) in ("loop", "planned"):
        run_steps(module, remaining(module, pipeline(target)))
        return Program.from_module(module)
    run_steps(module, remaining(module, pipeline(target))[:-2])
    program = schedule(module.main, target, "model")
    plan_memory(program)
    return program


_ENTRY = {"onnx": 0, "core": 1, "fused": 6, "loop": 7, "planned": 8}


def level_of(module: Module) -> str:
    """The level a module is at: ``onnx``, ``core``, ``fused`` (groups are made), ``loop`` or ``planned``."""
    names = {op.name for function in module.functions.values() for op in function.body.ops}
    if any(n.startswith("onnx.") for n in names):
        return "onnx"
    if names <= {"core.constant", "core.return"} and "outputs" in module.main.attributes:
        return (
            "onnx"  # a graph without nodes looks the same at the core level; lowering it again does no harm
        )
    if any(n.startswith("loop.") for n in names):
        return "planned" if "chunks" in module.main.attributes else "loop"
    return "fused" if "core.fused" in names else "core"


def remaining(module: Module, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of the whole `pipeline` that a module of some level still has to go through."""
    return tuple(steps[_ENTRY[level_of(module)] :])
