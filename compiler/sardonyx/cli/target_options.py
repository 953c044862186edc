"""The options of commands that compile ahead of time: for which machine, and which sizes are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

__all__ = [
    "CpuOption",
    "DimOption",
    "FeaturesOption",
    "QuietOption",
    "TargetOption",
    "feature_list",
    "fixed_dims",
]

TargetOption = Annotated[
    str | None,
    typer.Option(metavar="TRIPLE", help="The system to compile for, as aarch64-linux-gnu (default: this)."),
]
CpuOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The CPU, or levels of which a run takes the best, with commas between."
    ),
]
FeaturesOption = Annotated[
    str, typer.Option(metavar="LIST", help="What the CPU has besides, or lacks: '+avx2,-avx512f'.")
]
DimOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SIZE", help="Give a symbol of the inputs' shapes a size, as batch=1."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def feature_list(text: str) -> list[str]:
    """The features of a ``--features`` option."""
    return [feature.strip() for feature in text.split(",") if feature.strip()]


def fixed_dims(options: Sequence[str] | None) -> dict[str, int]:
    """The sizes by symbol of the ``--dim`` options; a usage error for what is none."""
    return dict(_fixed(text) for text in options or ())


def _fixed(text: str) -> tuple[str, int]:
    name, equals, size = text.rpartition("=")
    if not equals or not name or not size.strip().isdecimal():
        raise typer.BadParameter(f"{text!r} is not of the form NAME=SIZE, as batch=1", param_hint="--dim")
    return name.strip(), int(size)
