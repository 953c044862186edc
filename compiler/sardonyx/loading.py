"""Puts the parts of a compiled model into this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx.codegen.jit import JitLibrary, support_addresses
from sardonyx.codegen.objects import support_object
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY, Parts

__all__ = ["Loaded", "load"]


@dataclass(frozen=True)
class Loaded:
    """Code in this process: ``library`` owns it, ``entry`` and ``gate`` are addresses."""

    library: Any
    entry: int
    gate: int


def load(
    parts: Parts,
    target: Target,
    imports: Mapping[str, int],
    *,
    use_cache: bool = True,
    symbols: tuple[str, ...] = (ENTRY,),
) -> Loaded:
    """Link the objects in memory.

    ``imports`` are addresses of functions of users; ``symbols`` are those that can be asked for.
    """
    support = support_addresses(target, lambda: support_object(target, use_cache=use_cache))
    library = JitLibrary(parts.objects, list(symbols), target, {**support, **imports})
    return Loaded(library, library.address(ENTRY), support["sdx_gate"])
