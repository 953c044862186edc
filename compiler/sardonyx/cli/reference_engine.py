"""The plain meaning of a model: every operation by NumPy, before any optimisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sardonyx.core.interpret import interpret
from sardonyx.frontend import import_model
from sardonyx.passes.lower import LowerToCore

__all__ = ["outputs"]


def outputs(model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """All outputs of a model for feeds by name; inputs that have a default may be left out."""
    module = import_model(model)
    defaults = module.main.attributes["defaults"]
    LowerToCore().run(module)
    arguments = module.main.arguments
    return interpret(
        module.main, [feeds[a.name] if a.name in feeds else defaults[a.name].array for a in arguments]
    )
