"""What a model may be given as: ONNX in any form, or IR of any level as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sardonyx import core, loop
from sardonyx.errors import CompileError
from sardonyx.frontend.external_files import external_files
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx.ir.graph import Module
from sardonyx.ir.parser import IRSyntaxError, parse_module

__all__ = ["Source", "is_ir", "open_source", "parse_ir"]

assert core.__all__ and loop.__all__  # the imports declare the ops

_SUFFIXES = (".mlir", ".sdx")


@dataclass(frozen=True)
class Source:
    """``module()`` makes the module anew each time; ``files`` are those that tensors lie in outside the model."""

    module: Callable[[], Module]
    files: list[str] = field(default_factory=list)


def is_ir(model: object) -> bool:
    """Whether a model is given as the path of a file with IR text."""
    return isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(_SUFFIXES)


def open_source(model: ModelSource) -> Source:
    """The source of a model; CompileError if it cannot be read."""
    if is_ir(model):
        path = Path(os.fspath(model))  # type: ignore[arg-type]
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CompileError(f"cannot read {str(path)!r}: {error}") from error
        return Source(lambda: parse_ir(text, str(path)))
    proto, base_dir = load_model(model)
    return Source(lambda: import_model(proto, base_dir=base_dir), external_files(proto))


def parse_ir(text: str, where: str = "the text") -> Module:
    """The module of a text; CompileError if it is none, or has no ``@main``."""
    try:
        module = parse_module(text)
    except IRSyntaxError as error:
        raise CompileError(f"{where}: {error}") from error
    if "main" not in module.functions:
        names = ", ".join(f"@{n}" for n in module.functions) or "none"
        raise CompileError(f"{where} has no function @main; its functions: {names}")
    return module
