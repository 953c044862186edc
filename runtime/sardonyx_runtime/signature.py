"""The signature of a compiled model: what goes in, what comes out, what a fault code means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, evaluate, parse_dim, symbols_of
from sardonyx_runtime.dtypes import DType

__all__ = ["Argument", "Signature"]


@dataclass(frozen=True)
class Argument:
    """An input or output: name, element type, and shape (ints, and expressions over symbols).

    ``default`` is what an input takes when it is not fed (an initialiser that is also an input).
    """

    name: str
    dtype: DType
    shape: tuple[DimLike, ...]
    default: np.ndarray[Any, Any] | None = field(default=None, compare=False)

    def describe(self) -> str:
        return f"{self.dtype.onnx_name}[{', '.join(map(str, self.shape))}]"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self.dtype.name,
            "shape": [d if isinstance(d, int) else str(d) for d in self.shape],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Argument:
        shape = tuple(d if isinstance(d, int) else parse_dim(d) for d in data["shape"])
        return Argument(data["name"], dtypes.by_name(data["dtype"]), shape)


@dataclass(frozen=True)
class Signature:
    """Inputs, outputs, and the tables that turn status codes into messages.

    ``nodes`` are the names of the nodes that a fault may report by number, ``messages`` pairs of the node
    that requires something of the dims and what it says if that does not hold; ``chunks`` is the number of
    arena chunks of a context.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    chunks: int = 0

    def late_symbols(self) -> set[str]:
        """Symbols that are bound only during a run."""
        bound = {s for a in self.inputs for d in a.shape for s in symbols_of(d)}
        return {s for a in self.outputs for d in a.shape for s in symbols_of(d)} - bound

    def output_shapes(self, symbols: Mapping[str, int]) -> list[tuple[int, ...] | None]:
        """The shapes of all outputs; None where it is known only after the run."""
        late = self.late_symbols()
        shapes: list[tuple[int, ...] | None] = []
        for output in self.outputs:
            if any(isinstance(d, Dim) and symbols_of(d) & late for d in output.shape):
                shapes.append(None)
            else:
                shapes.append(tuple(evaluate(d, symbols) for d in output.shape))
        return shapes
