"""Writes the model of the examples: a classifier of rows of four features, and the scores of some classes.

python make_model.py classifier.onnx
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

__all__ = ["make_model"]


def make_model() -> onnx.ModelProto:
    """Inputs ``x: float[rows, 4]``, ``classes: int64[count]``; outputs the scores of all classes, and of these."""
    weights = np.array([[1, 2, 3], [0, 0, 0], [1, 1, 1], [0, 0, 0]], np.float32)
    nodes = (
        "[product] sums = MatMul (x, weights)",
        "[scale] scores = Softmax (sums)",
        "[pick] picked = Gather <axis = 1> (scores, classes)",
    )
    graph = helper.make_graph(
        [parser.parse_node(node) for node in nodes],
        "classifier",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("classes", TensorProto.INT64, ["count"]),
        ],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", 3]),
            helper.make_tensor_value_info("picked", TensorProto.FLOAT, ["rows", "count"]),
        ],
        [numpy_helper.from_array(weights, "weights")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


if __name__ == "__main__":
    onnx.save(make_model(), sys.argv[1])
