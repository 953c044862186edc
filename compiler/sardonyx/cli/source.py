"""The MODEL argument that most commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ModelArgument", "checked"]

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="An ONNX file, or IR text (.mlir).", show_default=False)
]


def checked(model: str) -> str:
    """The path of a file that is there; else a usage error."""
    path = Path(model)
    if not path.exists():
        raise typer.BadParameter(f"there is no file {model!r}", param_hint="MODEL")
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.onnx"))
        hint = f"; it holds {', '.join(inside[:5])}" if inside else ""
        raise typer.BadParameter(f"{model!r} is a folder, not an ONNX file{hint}", param_hint="MODEL")
    return model
