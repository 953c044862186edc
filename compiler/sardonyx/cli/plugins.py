"""``--load``: Python files with passes or operators of the user's own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["LoadOption", "load_files"]

LoadOption = Annotated[
    list[Path] | None,
    typer.Option("--load", metavar="FILE.py", help="Run this file first: it registers passes or operators."),
]


def load_files(paths: list[Path] | None) -> None:
    """Run the files; a usage error if one is not there or fails."""
    for number, path in enumerate(paths or ()):
        if not path.is_file():
            raise typer.BadParameter(f"there is no file {str(path)!r}", param_hint="--load")
        spec = importlib.util.spec_from_file_location(f"sardonyx_plugin_{number}", path)
        if spec is None or spec.loader is None:
            raise typer.BadParameter(f"{str(path)!r} is no Python file", param_hint="--load")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise typer.BadParameter(
                f"{path}: {type(error).__name__}: {error}", param_hint="--load"
            ) from error
