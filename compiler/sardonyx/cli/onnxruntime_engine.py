"""ONNX Runtime, if it is installed.  Only comparing loads it; nothing is computed with it otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

try:
    import onnxruntime
except ImportError:
    raise typer.BadParameter(
        "onnxruntime is not installed (pip install onnxruntime)", param_hint="--compare"
    ) from None

__all__ = ["outputs"]

_ERRORS_ONLY = 3


def outputs(model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """All outputs of a model for feeds by name; a usage error if it cannot run this."""
    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    source = model if isinstance(model, str) else model.SerializeToString()
    try:
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(feeds)))
    except Exception as error:  # it raises whatever its parts raise
        raise typer.BadParameter(f"onnxruntime cannot run this: {error}", param_hint="--compare") from error
