"""The engines that ``--compare`` can ask: each takes a model and feeds by name, and gives all outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any

import typer

from sardonyx.core.interpret import interpret
from sardonyx.frontend.importer import import_model
from sardonyx.passes.lower import LowerToCore

__all__ = ["Engine", "outputs_of"]


class Engine(StrEnum):
    """What compiled code can be compared with."""

    REFERENCE = "reference"
    ONNXRUNTIME = "onnxruntime"


def outputs_of(engine: Engine, model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """All outputs of the model, in order."""
    return _ENGINES[engine](model, feeds)


def _reference(model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """Sardonyx's own plain NumPy meaning of the model, before any optimisation."""
    module = import_model(model)
    LowerToCore().run(module)
    main = module.main
    defaults = main.attributes.get("defaults", {})
    return interpret(
        main, [feeds[a.name] if a.name in feeds else defaults[a.name].array for a in main.arguments]
    )


def _onnxruntime(model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        raise typer.BadParameter(
            "onnxruntime is not installed; `pip install onnxruntime`", param_hint="--compare"
        ) from None
    runtime.set_default_logger_severity(3)
    try:
        source = model if isinstance(model, str) else model.SerializeToString()
        session = runtime.InferenceSession(source, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(feeds)))
    except Exception as error:
        raise typer.BadParameter(f"onnxruntime cannot run this: {error}", param_hint="--compare") from error


_ENGINES: dict[Engine, Callable[[Any, Mapping[str, Any]], list[Any]]] = {
    Engine.REFERENCE: _reference,
    Engine.ONNXRUNTIME: _onnxruntime,
}
