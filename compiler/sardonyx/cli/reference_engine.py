"""The plain meaning of a model: every operation by NumPy, before any optimisation.

IR text is taken as it is: what an earlier pass did to it is part of its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sardonyx.core.interpret import interpret
from sardonyx.errors import CompileError
from sardonyx.passes.lower import LowerToCore
from sardonyx.pipeline import level_of
from sardonyx.source import open_source

__all__ = ["outputs"]


def outputs(model: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """All outputs of a model for feeds by name; inputs that have a default may be left out."""
    module = open_source(model).module()
    level = level_of(module)
    if level in ("loop", "planned"):
        raise CompileError(
            "loops have no plain meaning to compare with",
            hint="take the text of an earlier stage: onnx, resolved, core or fused",
        )
    defaults = module.main.attributes.get("defaults", {})
    if level == "onnx":
        LowerToCore().run(module)
    arguments = module.main.arguments
    return interpret(
        module.main, [feeds[a.name] if a.name in feeds else defaults[a.name].array for a in arguments]
    )
