"""`compile`: from a model to a CompiledModel."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sardonyx.codegen.compile import compile_text, kernel_text, support_object, whole_program_text
from sardonyx.codegen.jit import JitLibrary, support_addresses
from sardonyx.frontend import import_model, load_model
from sardonyx.ir.graph import Module
from sardonyx.kernels.target import Target
from sardonyx.passes.program import Port, Program
from sardonyx.pipeline import run_passes, to_program
from sardonyx.targets.host import host_target
from sardonyx_runtime.native import NativeModel
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["CompiledModel", "compile"]


class CompiledModel(NativeModel):
    """A model compiled for this process."""


def compile(model: Any, *, threads: int | None = None) -> CompiledModel:
    """Compile a model: a path, bytes, or a ``ModelProto``.

    ``threads`` is how many threads a run may use (default: all cores of the process).  CompileError
    names the node that cannot be compiled.
    """
    proto, base_dir = load_model(model)
    module = import_model(proto, base_dir=base_dir)
    return compile_module(module, threads=threads)


def compile_module(module: Module, *, threads: int | None = None) -> CompiledModel:
    """Compile a module of the onnx level (it is consumed)."""
    target = host_target()
    run_passes(module)
    program, plan = to_program(module, target)
    return build(program, len(plan.chunks), target, threads)


def build(program: Program, chunks: int, target: Target, threads: int | None) -> CompiledModel:
    entry = "sdx_model_run"
    objects = {
        "program": compile_text(whole_program_text(program, target, entry), target),
        **{s: compile_text(kernel_text(f, s, target), target) for s, f in program.kernels.items()},
    }
    support = support_addresses(target, lambda: support_object(target))
    library = JitLibrary(objects, [entry], target, support)
    weights = np.zeros(program.weights.size + 64, np.uint8)
    start = -weights.__array_interface__["data"][0] % 64
    for offset, dense in program.weights.items:
        flat = np.ascontiguousarray(dense.array).reshape(-1).view(np.uint8)
        weights[start + offset : start + offset + flat.size] = flat
    signature = Signature(
        tuple(_argument(p) for p in program.inputs),
        tuple(_argument(p) for p in program.outputs),
        tuple(location.names for location in program.locations),
        tuple(_messages(program)),
        chunks,
    )
    address = weights.__array_interface__["data"][0] + start
    count = threads or len(os.sched_getaffinity(0))
    return CompiledModel(
        library.address(entry),
        address,
        signature,
        threads=count,
        gate=support["sdx_gate"],
        keep=(library, weights),
    )


def _messages(program: Program) -> list[tuple[str, str]]:
    """For each fact about dims that is checked in a run: the node that needs it, and what to say."""
    nodes = {
        op.attributes["message"]: program.locations[op.attributes["node"]].names
        for op in program.main.body.ops
        if op.name == "loop.require"
    }
    return [(nodes.get(number, ""), text) for number, text in enumerate(program.messages)]


def _argument(port: Port) -> Argument:
    return Argument(port.name, port.dtype, port.shape, None if port.default is None else port.default.array)
