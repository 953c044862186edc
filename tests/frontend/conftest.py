"""Small models for the tests of the frontend."""

from collections.abc import Callable, Sequence
from typing import Any

import onnx
import pytest
from onnx import helper

F32 = onnx.TensorProto.FLOAT


def _model(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Sequence[Any] = ("x",),
    outputs: Sequence[Any] = ("y",),
    opset: int = 21,
    domains: dict[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    **graph: Any,
) -> onnx.ModelProto:
    """A model; inputs and outputs are names (float vectors of length n) or ValueInfoProtos."""

    def value(item: Any) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(item, F32, ["n"]) if isinstance(item, str) else item

    imports = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
    made = helper.make_graph(nodes, "graph", [*map(value, inputs)], [*map(value, outputs)], **graph)
    return helper.make_model(made, opset_imports=imports, functions=functions, ir_version=10)


@pytest.fixture
def model() -> Callable[..., onnx.ModelProto]:
    return _model
