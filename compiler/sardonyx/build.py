"""Compiling for real: from a module of the onnx level to the parts of a compiled model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.objects import Objects
from sardonyx.frontend.external_files import external_files
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Function, Module, walk
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY, Bytes, Parts
from sardonyx.passes.program import Port, Program
from sardonyx.pipeline import run_passes, to_program, with_structures
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["build", "build_module"]

_ALIGN = 64


def build(model: ModelSource, target: Target, *, use_cache: bool = True) -> tuple[Parts, list[str]]:
    """The parts of a model, and the files outside of it that its tensors lie in."""
    with compiling():
        proto, base_dir = load_model(model)
        files = external_files(proto)
        return build_module(import_model(proto, base_dir=base_dir), target, use_cache=use_cache), files


def build_module(
    module: Module, target: Target, *, use_cache: bool = True, structures: Mapping[str, Any] | None = None
) -> Parts:
    """The parts of a module of the onnx level (it is consumed).

    ``structures`` are those of inputs that are sequences or optionals (see ``core/aggregates.py``).
    """
    with compiling(), Objects(target, use_cache=use_cache) as objects:

        def compile_kernel(symbol: str, function: Function) -> None:
            objects.add(symbol, kernel_text(function, symbol, target))

        run_passes(module, steps=with_structures(structures))
        program, plan = to_program(module, target, on_kernel=compile_kernel)
        objects.add("program", whole_program_text(program, target, ENTRY))
        weights = _weights(program)
        return Parts(_signature(program, len(plan.chunks)), objects.finish(), weights, program.externals)


def _weights(program: Program) -> Bytes:
    """All constants at their offsets, in memory aligned to 64 bytes."""
    memory = np.zeros(program.weights.size + _ALIGN, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGN
    weights = memory[start : start + program.weights.size]
    for offset, dense in program.weights.items:
        flat = np.ascontiguousarray(dense.array).reshape(-1).view(np.uint8)
        weights[offset : offset + flat.size] = flat
    return weights


def _signature(program: Program, chunks: int) -> Signature:
    nodes = {
        op.attributes["message"]: program.locations[op.attributes["node"]].names
        for op in walk(program.main)
        if op.name == "loop.require"
    }
    return Signature(
        tuple(_argument(p) for p in program.inputs),
        tuple(_argument(p) for p in program.outputs),
        tuple(location.names for location in program.locations),
        tuple((nodes.get(number, ""), text) for number, text in enumerate(program.messages)),
        chunks,
    )


def _argument(port: Port) -> Argument:
    default: Any = None if port.default is None else port.default.array
    return Argument(port.name, port.dtype, port.shape, default)
