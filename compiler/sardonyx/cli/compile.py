"""``sardonyx compile``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.aot.export import compile_to
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.target_options import (
    CpuOption,
    DimOption,
    FeaturesOption,
    QuietOption,
    TargetOption,
    feature_list,
    fixed_dims,
)
from sardonyx.cli.terminal import amount, progress

__all__ = ["command"]


def command(
    model: ModelArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The file to write; its suffix says what.")
    ],
    target: TargetOption = None,
    cpu: CpuOption = None,
    features: FeaturesOption = "",
    weights: Annotated[
        str, typer.Option(metavar="WHERE", help="'inside', 'beside' (OUT's name with .weights), or a file.")
    ] = "inside",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of a run whose caller does not say how many.")
    ] = None,
    dim: DimOption = None,
    name: Annotated[
        str, typer.Option(metavar="PREFIX", help="What the names of the symbols begin with.")
    ] = "sdx_model",
    debug: Annotated[
        bool, typer.Option("--debug", help="Add debug information; its texts go to the folder OUT.debug.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Compile a model ahead of time to a file that needs nothing of Sardonyx to run.

    \b
    What is written, by the suffix of OUT:
      .so .dylib .dll  a shared library
      .o .obj          one object file
      .a .lib          a static library
      .wasm            a WebAssembly module
      .ll .bc .s       LLVM IR, LLVM bitcode, assembly

    Objects need no linker. Libraries are linked by this machine's C compiler or
    linker; for other systems `pip install sardonyx[cross]` brings one.

    \b
    Examples:
      sardonyx compile model.onnx -o model.so
      sardonyx compile model.onnx -o model.a --dim batch=1 --name classifier
      sardonyx compile model.onnx -o model.so --cpu x86-64-v2,x86-64-v3,x86-64-v4
      sardonyx compile model.onnx -o model.so --target aarch64-linux-gnu --cpu cortex-a76
      sardonyx compile model.onnx -o model.dll --target x86_64-windows-gnu
      sardonyx compile model.onnx -o model.so --weights beside
    """
    path = checked(model)
    sizes = fixed_dims(dim)
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(output.parent)!r}", param_hint="--output")
    try:
        with progress("compiling"):
            written = compile_to(
                path,
                output,
                target=target,
                cpu=cpu,
                features=feature_list(features),
                threads=threads,
                dims=sizes,
                weights=weights,
                name=name,
                debug=debug,
            )
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write {str(output)!r}: {error.strerror or error}", param_hint="--output"
        ) from None
    if not quiet:
        for file in written:
            typer.echo(f"{_relative(file)}: {amount(file.stat().st_size)}")


def _relative(file: Path) -> str:
    """The file's name as a user of this folder would write it."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
