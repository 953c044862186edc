"""Compiles a model for each of the targets that a library is for; the results share constants and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.aot.dims import fix_dims
from sardonyx.aot.modules import Texts, merge
from sardonyx.build import lower, signature_of, weights_of
from sardonyx.build_options import USUAL, BuildOptions
from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.frontend.load import ModelSource, model_digest
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Module, walk
from sardonyx.kernels.target import Target
from sardonyx.parts import Bytes
from sardonyx.passes.program import Program
from sardonyx.source import open_source
from sardonyx_runtime.dims import DimLike
from sardonyx_runtime.signature import Signature

__all__ = ["Levels", "chooses", "compile_levels"]


@dataclass(frozen=True)
class Levels:
    """A model compiled for one or several targets: an LLVM module for each, signature, constants and facts."""

    modules: Sequence[Any]
    signature: Signature
    weights: Bytes
    digest: str  # of the model
    kernels: int  # of the first target
    arena: Sequence[DimLike]  # bytes of each chunk, of the first target
    opsets: Mapping[str, int]
    nodes: int  # of the model, those of its functions and of branches included


def _entry_of(prefix: str, number: int, target: Target) -> str:
    """The symbol of a level's entry point: the model's own where no look at the CPU decides."""
    return f"{prefix}_run.{number}" if chooses(target) else f"{prefix}_run"


def chooses(target: Target) -> bool:
    """Whether a library for the target looks at the CPU before it runs."""
    return target.machine == "x86_64"


def compile_levels(
    model: ModelSource,
    targets: Sequence[Target],
    prefix: str,
    sizes: Mapping[str, int],
    options: BuildOptions = USUAL,
) -> Levels:
    """Compile a model with some dims fixed; CompileError for what no library can hold."""
    with compiling():
        source = open_source(model)

        def make() -> Module:
            module = source.module()
            fix_dims(module, sizes)
            return module

        first = make()
        programs: list[Program] = []
        modules: list[Any] = []
        for number, target in enumerate(targets):
            texts = Texts(target)
            entry = _entry_of(prefix, number, target)
            after = programs[-1] if programs else None
            try:
                program = lower(make, target, texts.add, entry=entry, options=options, after=after)
            except NeedsConstant as error:
                raise _refused(error) from error
            if program.externals:
                names = ", ".join(sorted(program.externals.values()))
                raise CompileError(
                    f"a library cannot hold the external functions that the model calls: {names}"
                )
            programs.append(program)
            modules.append(merge(texts.modules, [entry], target))
        return Levels(
            modules,
            signature_of(*programs),
            weights_of(programs[-1]),  # the last one's are those of all
            model_digest(model),
            len(programs[0].kernels),
            programs[0].chunks,
            first.main.attributes.get("opsets", {}),
            sum(op.level == "onnx" and op.name not in ("onnx.none", "onnx.yield") for op in walk(first)),
        )


def _refused(error: NeedsConstant) -> CompileError:
    """Such a model is compiled once per value in a process; a library would need the compiler for that."""
    if error.symbols:
        fixed = " ".join(f"--dim {s}=..." for s in sorted(error.symbols))
        hint = f"fix the dims that decide: {fixed}"
    elif error.tensor:
        hint = f"make {error.tensor!r} a constant of the model"
    else:
        hint = error.hint
    return CompileError(
        f"the code depends on what is fed, so it cannot be made ahead of time: {error.reason}",
        location=error.location,
        operands=error.operands,
        hint=hint,
    )
