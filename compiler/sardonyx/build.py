"""Compiling for real: from a model's source to the parts of a compiled model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx import reproducer
from sardonyx.build_options import USUAL, BuildOptions
from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.objects import Objects
from sardonyx.debugging import debug_source
from sardonyx.dumps import dumping
from sardonyx.errors import CompileError
from sardonyx.frontend.load import ModelSource
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Function, Module, walk
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY, Bytes, Parts
from sardonyx.pass_manager import PassFailure, Step, failed, run_steps
from sardonyx.passes.budget import limited
from sardonyx.passes.program import Port, Program
from sardonyx.pipeline import pipeline, remaining, steps_of
from sardonyx.source import open_source
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["build", "build_module", "lower", "signature_of", "weights_of"]

_ALIGN = 64


def _steps(module: Module, target: Target, passes: str | None, **options: Any) -> tuple[Step, ...]:
    """The steps that a module has to go through; ``passes`` are the steps up to `schedule`."""
    usual = pipeline(target, **options)
    if passes is None:
        return remaining(module, usual)
    try:
        given = steps_of(passes, target)
    except ValueError as error:
        raise CompileError(str(error)) from error
    names = {step.run.name for step in given}
    return (*given, *(step for step in usual[-2:] if step.run.name not in names))


def build(
    model: ModelSource, target: Target, *, use_cache: bool = True, options: BuildOptions = USUAL
) -> tuple[Parts, list[str]]:
    """The parts of a model, and the files outside of it that its tensors lie in."""
    with compiling():
        source = open_source(model)
        return build_module(source.module, target, use_cache=use_cache, options=options), source.files


def build_module(
    make: Callable[[], Module],
    target: Target,
    *,
    use_cache: bool = True,
    structures: Mapping[str, Any] | None = None,
    options: BuildOptions = USUAL,
) -> Parts:
    """The parts of a module that ``make`` makes, of any level; it is made again only to report a failure.

    ``structures`` are those of inputs that are sequences or optionals (see ``core/aggregates.py``).
    """
    with compiling(), Objects(target, use_cache=use_cache) as objects:
        program = lower(make, target, objects.add, structures=structures, options=options)
        weights, signature = weights_of(program), signature_of(program)
        return Parts(signature, objects.finish(), weights, program.externals, program.structure)


def lower(
    make: Callable[[], Module],
    target: Target,
    take: Callable[[str, str], None] | None,
    *,
    entry: str = ENTRY,
    structures: Mapping[str, Any] | None = None,
    options: BuildOptions = USUAL,
    after: Program | None = None,
) -> Program:
    """The program of a module; ``take(symbol, text)`` gets the LLVM text of each kernel as soon as it is made,
    and of the entry point at the end (None: no code is made).  ``after`` is a program to share constants with (see `pipeline`).
    """
    with limited(options.opt_limit) as budget:
        watch, debug = dumping.current(), options.debug

        def compile_kernel(symbol: str, function: Function) -> None:
            if take is None:
                return
            try:
                source = None if debug is None else debug_source(debug, function)
                text = kernel_text(function, symbol, target, source)
            except CompileError:
                raise
            except Exception as error:
                raise failed("codegen", 0, error, function.location) from error
            watch.code(symbol, text, target)
            take(symbol, text)

        module = make()
        steps = _steps(
            module,
            target,
            options.passes,
            structures=structures,
            on_kernel=compile_kernel,
            after=after,
            named=debug is not None,
        )
        try:
            watch.module(module, steps)
            run_steps(module, steps, watch.observers, verify_each=options.verify_each)
            program = Program.from_module(module)
            if all(step.run.name != "schedule" for step in steps):
                for symbol, function in program.kernels.items():
                    compile_kernel(symbol, function)
            if take is not None:
                source = None if debug is None else debug_source(debug, program.main)
                text = whole_program_text(program, target, entry, source)
                watch.code(entry, text, target)
                take(entry, text)
        except PassFailure as failure:
            raise reproducer.write_for(
                failure, make, steps, target, options.reproducer, options.opt_limit
            ) from failure
        if options.budget is not None:
            options.budget.asked, options.budget.last = budget.asked, budget.last
        return program


def weights_of(program: Program) -> Bytes:
    """All constants at their offsets, in memory aligned to 64 bytes."""
    memory = np.zeros(program.weights.size + _ALIGN, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGN
    weights = memory[start : start + program.weights.size]
    for offset, dense in program.weights.items:
        flat = np.ascontiguousarray(dense.array).reshape(-1).view(np.uint8)
        weights[offset : offset + flat.size] = flat
    return weights


def signature_of(*programs: Program) -> Signature:
    """What programs of one model take and give, and what their numbers mean; each was lowered after the last."""
    program = programs[-1]
    nodes = {
        op.attributes["message"]: program.locations[op.attributes["node"]].names
        for one in programs
        for op in walk(one.main)
        if op.name == "loop.require"
    }
    return Signature(
        tuple(_argument(p) for p in program.inputs),
        tuple(_argument(p) for p in program.outputs),
        tuple(location.names for location in program.locations),
        tuple((nodes.get(number, ""), text) for number, text in enumerate(program.messages)),
        max(len(one.chunks) for one in programs),
        tuple(program.tensors),
    )


def _argument(port: Port) -> Argument:
    default: Any = None if port.default is None else port.default.array
    return Argument(port.name, port.dtype, port.shape, default)
