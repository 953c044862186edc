"""The signature of a compiled model: what goes in, what comes out, what a fault code means."""

from __future__ import annotations

import base64
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

    @property
    def memory(self) -> np.dtype[Any]:
        """The NumPy type of the elements in native memory: strings are addresses there."""
        return np.dtype(np.int64) if self.dtype is dtypes.string else self.dtype.numpy

    def describe(self) -> str:
        return f"{self.dtype.onnx_name}[{', '.join(map(str, self.shape))}]"

    def to_json(self) -> dict[str, Any]:
        """The argument as JSON knows it; a default as its type's bytes in base64."""
        shape = [d if isinstance(d, int) else str(d) for d in self.shape]
        data: dict[str, Any] = {"name": self.name, "dtype": self.dtype.name, "shape": shape}
        if self.default is not None:
            text = base64.b64encode(np.ascontiguousarray(self.default).tobytes()).decode()
            data["default"] = [list(self.default.shape), text]
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Argument:
        shape = tuple(d if isinstance(d, int) else parse_dim(d) for d in data["shape"])
        dtype = dtypes.by_name(data["dtype"])
        default = None
        if "default" in data:
            extents, text = data["default"]
            default = np.frombuffer(base64.b64decode(text), dtype.numpy).reshape(extents)
        return Argument(data["name"], dtype, shape, default)


@dataclass(frozen=True)
class Signature:
    """Inputs, outputs, and the tables that turn status codes into messages.

    ``nodes`` are the names of the nodes that a fault may report by number, ``tensors`` what it says of their
    tensors and types, ``messages`` pairs of the node
    that requires something of the dims and what it says if that does not hold; ``chunks`` is the number of
    arena chunks of a context.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[str, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    chunks: int = 0
    tensors: tuple[str, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        """The signature as JSON knows it."""
        return {
            "inputs": [a.to_json() for a in self.inputs],
            "outputs": [a.to_json() for a in self.outputs],
            "nodes": list(self.nodes),
            "tensors": list(self.tensors),
            "messages": [list(m) for m in self.messages],
            "chunks": self.chunks,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Signature:
        """The signature that ``to_json`` described."""
        return Signature(
            tuple(Argument.from_json(a) for a in data["inputs"]),
            tuple(Argument.from_json(a) for a in data["outputs"]),
            tuple(data["nodes"]),
            tuple((node, text) for node, text in data["messages"]),
            data["chunks"],
            tuple(data.get("tensors", ())),
        )
