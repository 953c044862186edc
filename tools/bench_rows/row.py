"""One row of the operator benchmark: a small model in ONNX's text form, with its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["Row", "floats", "integers"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """A name, the nodes, the inputs (made anew for each row), the constants."""

    name: str
    nodes: tuple[str, ...]
    feeds: Mapping[str, Array]
    constants: Mapping[str, Array] = field(default_factory=dict)
    opset: int = 19
    given: onnx.ModelProto | None = None  # instead of nodes: operators of other domains

    @cached_property
    def model(self) -> onnx.ModelProto:
        if self.given is not None:
            return self.given
        nodes = [onnx.parser.parse_node(n) for n in self.nodes]
        used = {name for node in nodes for name in node.input}
        outputs = [name for node in nodes for name in node.output if name and name not in used]
        graph = helper.make_graph(
            nodes,
            "row",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                for n, a in self.feeds.items()
            ],
            [helper.make_empty_tensor_value_info(n) for n in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: Any = np.uint8, seed: int = 0) -> Array:
    """Integers from low to high, both included."""
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)
