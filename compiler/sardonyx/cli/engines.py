"""The engines that ``--compare`` can ask; each is a module that is loaded when it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any

__all__ = ["Engine", "outputs_of"]


class Engine(StrEnum):
    """What compiled code can be compared with."""

    REFERENCE = "reference"
    ONNXRUNTIME = "onnxruntime"


_MODULES = {
    Engine.REFERENCE: "sardonyx.cli.reference_engine",
    Engine.ONNXRUNTIME: "sardonyx.cli.onnxruntime_engine",
}


def outputs_of(engine: Engine, model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """All outputs of a model (a path or a ModelProto), in order, for feeds by name."""
    outputs: list[Any] = import_module(_MODULES[engine]).outputs(model, feeds)
    return outputs
