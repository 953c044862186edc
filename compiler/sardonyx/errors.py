"""The compile-time error family.  (``RuntimeFault``, its run-time sister, lives in the runtime.)"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sardonyx.ir.graph import UNKNOWN, Location
from sardonyx.ir.types import describe
from sardonyx_runtime.errors import RuntimeFault

__all__ = ["CompileError", "NeedsConstant", "RuntimeFault", "at_node"]


class CompileError(Exception):
    """The model cannot be compiled.

    ``reason`` says what was expected and what came; ``location`` which nodes it is about; ``operands``
    the inputs with their types; ``hint`` what to do next.  ``str()`` shows all of them.
    """

    def __init__(
        self,
        reason: str,
        *,
        location: Location = UNKNOWN,
        operands: Iterable[tuple[str, Any]] = (),
        hint: str = "",
    ) -> None:
        self.reason = reason
        self.location = location
        self.operands = tuple(operands)
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        lines = []
        if self.location.origins:
            nodes = "; ".join(_node_text(o) for o in self.location.origins)
            lines.append(f"{nodes}: {self.reason}")
        else:
            lines.append(self.reason)
        lines += [f"  input {name or '(unnamed)'}: {describe(kind)}" for name, kind in self.operands]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class NeedsConstant(CompileError):
    """What is fed decides the form of the code: the value of ``tensor`` (its name), or of dims (``symbols``)."""

    def __init__(
        self, reason: str, tensor: str, symbols: frozenset[str] = frozenset(), **details: Any
    ) -> None:
        self.tensor = tensor
        self.symbols = symbols
        super().__init__(reason, **details)


def _node_text(origin: Any) -> str:
    place = f" in {origin.path}" if origin.path and origin.path != "main" else ""
    return f"node {origin.name!r} ({origin.op_type}){place}"


def at_node(
    error: CompileError, location: Location, operands: Iterable[tuple[str, Any]] = ()
) -> CompileError:
    """The error with the node added, where it has none yet."""
    extra = {"tensor": error.tensor, "symbols": error.symbols} if isinstance(error, NeedsConstant) else {}
    return type(error)(
        error.reason,
        **extra,
        location=error.location if error.location.origins else location,
        operands=error.operands or operands,
        hint=error.hint,
    )
