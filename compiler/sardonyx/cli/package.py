"""``sardonyx package``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.aot.wheel import package_model
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
    name: Annotated[str, typer.Option(metavar="NAME", help="What the package is installed and imported as.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write the wheel to.")
    ] = Path("dist"),
    version: Annotated[str, typer.Option(metavar="VERSION", help="The package's version.")] = "1.0.0",
    target: TargetOption = None,
    cpu: CpuOption = None,
    features: FeaturesOption = "",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of a run (default: all cores of the process).")
    ] = None,
    dim: DimOption = None,
    quiet: QuietOption = False,
) -> None:
    """Compile a model into a wheel, which pip installs and which needs nothing of Sardonyx.

    The wheel has a module with a function `run`, whose parameters are the model's inputs and whose results
    are its outputs, with their types. It needs NumPy (and ml_dtypes for bfloat16 and smaller types).

    \b
    Examples:
      sardonyx package model.onnx --name my_model
      sardonyx package model.onnx --name my_model --version 2.1.0 -o wheels --dim batch=1
      sardonyx package model.onnx --name my_model --cpu x86-64-v2,x86-64-v3,x86-64-v4
      sardonyx package model.onnx --name my_model --target aarch64-linux-gnu
      pip install dist/my_model-1.0.0-*.whl
    """
    path = checked(model)
    try:
        with progress("compiling"):
            wheel = package_model(
                path,
                name,
                output,
                version=version,
                target=target,
                cpu=cpu,
                features=feature_list(features),
                threads=threads,
                dims=fixed_dims(dim),
            )
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {str(output)!r}: {error.strerror or error}", param_hint="--output"
        ) from None
    if not quiet:
        typer.echo(f"{wheel}: {amount(wheel.stat().st_size)}")
