"""``sardonyx dump``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import progress, write_text
from sardonyx.stages import MLIR_STAGES, Stage, stage_text

__all__ = ["command"]


def command(
    model: ModelArgument,
    stage: Annotated[Stage, typer.Option(help="The stage to print.")] = Stage.CORE,
    node: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only what stems from nodes of such names, as 'Conv_*'."),
    ] = None,
    elide: Annotated[
        int, typer.Option(min=0, help="Constants of more elements than this are printed as a key.")
    ] = 16,
    locations: Annotated[bool, typer.Option(help="Whether each line names its ONNX nodes.")] = True,
    mlir: Annotated[
        bool, typer.Option("--mlir", help="MLIR's generic syntax, which MLIR's own tools read.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
) -> None:
    """Print a model at a stage of the compilation.

    The model is compiled only as far as needed; it need not be supported further on.

    \b
    Stages:
      onnx      the model's nodes, one to one
      resolved  typed core operations, as each node's definition makes them
      core      the same, simplified
      fused     grouped into kernels
      loop      the program, and the loops of every kernel
      planned   the same with every tensor's place in memory
      llvm      LLVM IR of each kernel and of the entry point
      llvm-opt  the same, optimised
      asm       assembly for this machine

    \b
    Examples:
      sardonyx dump model.onnx
      sardonyx dump model.onnx --stage asm --node 'Conv_1'
      sardonyx dump model.onnx --stage fused --no-locations -o fused.mlir
      sardonyx dump model.onnx --mlir | iree-opt --allow-unregistered-dialect -
    """
    if mlir and stage not in MLIR_STAGES:
        raise typer.BadParameter(
            f"the stage {str(stage)!r} is no MLIR; those that are: {', '.join(MLIR_STAGES)}",
            param_hint="--mlir",
        )
    try:
        with progress(f"compiling to {stage}"):
            text = stage_text(
                checked(model), stage, node=node, locations=locations, elide=elide, generic=mlir
            )
    except ValueError as error:
        if node is None:
            raise
        raise typer.BadParameter(str(error), param_hint="--node") from None
    if output is None:
        write_text(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write {str(output)!r}: {error.strerror}", param_hint="--output"
        ) from None
