"""The model of ``sardonyx demo``: a small classifier of stripes, made in code.

Its filters are chosen by hand, not trained: each answers to one direction of the stripes, so the model
really tells them apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["CLASSES", "SIZE", "demo_images", "demo_model"]

Array = np.ndarray[Any, Any]

SIZE = 28  # pixels of an image's side
CLASSES = ("horizontal", "rising", "vertical", "falling")
_WAVE = 4.0  # pixels from stripe to stripe
_KERNEL = 7


def demo_images(count: int, seed: int = 0) -> tuple[Array, list[int]]:
    """Striped images with noise, of shape (count, 1, SIZE, SIZE), and the class of each."""
    generator = np.random.default_rng(seed)
    labels = [int(c) for c in generator.integers(0, len(CLASSES), count)]
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    images = [_stripes(rows, columns, label, generator.uniform(0, 2 * np.pi)) for label in labels]
    noise = generator.normal(0, 0.5, (count, SIZE, SIZE))
    scaled = np.clip(0.5 + 0.4 * np.stack(images) + noise, 0, 1)
    return scaled.astype(np.float32)[:, None], labels


def demo_model() -> onnx.ModelProto:
    """Floor to 16 grey levels, three convolutions, a linear layer, Softmax, GreaterOrEqual for "sure".

    Input ``image`` float[batch, 1, 28, 28]; outputs ``probabilities`` float[batch, 4] and ``sure``
    bool[batch, 4].
    """
    nodes = [
        helper.make_node("Mul", ["image", "levels"], ["bright"], name="scale"),
        helper.make_node("Floor", ["bright"], ["grey"], name="quantise"),
        helper.make_node("Sub", ["grey", "middle"], ["centred"], name="centre"),
        *_convolution("directions", "centred", "directed", padding=3),
        *_convolution("smooth", "directed", "smoothed", padding=1, group=2 * len(CLASSES)),
        helper.make_node(
            "MaxPool", ["smoothed"], ["pooled"], name="pool", kernel_shape=[2, 2], strides=[2, 2]
        ),
        *_convolution("join", "pooled", "joined", padding=0),
        helper.make_node("GlobalAveragePool", ["joined"], ["mean"], name="average"),
        helper.make_node("Flatten", ["mean"], ["features"], name="flatten"),
        helper.make_node("Gemm", ["features", "head.weight", "head.bias"], ["logits"], name="head", transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax"),
        helper.make_node("GreaterOrEqual", ["probabilities", "threshold"], ["sure"], name="decide"),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, SIZE, SIZE])
    outputs = [
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", len(CLASSES)]),
        helper.make_tensor_value_info("sure", TensorProto.BOOL, ["batch", len(CLASSES)]),
    ]
    constants = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in _weights().items()]
    graph = helper.make_graph(nodes, "stripes", [image], outputs, constants)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="sardonyx demo"
    )


def _convolution(
    name: str, source: str, result: str, *, padding: int, group: int = 1
) -> list[onnx.NodeProto]:
    inner = f"{name}.linear"
    return [
        helper.make_node(
            "Conv",
            [source, f"{name}.weight", f"{name}.bias"],
            [inner],
            name=name,
            pads=[padding] * 4,
            group=group,
        ),
        helper.make_node("Relu", [inner], [result], name=f"{name}.relu"),
    ]


def _stripes(rows: Array, columns: Array, label: int, phase: float) -> Array:
    angle = np.pi * label / len(CLASSES)
    across = np.cos(angle) * rows + np.sin(angle) * columns
    wave: Array = np.sin(2 * np.pi * across / _WAVE + phase)
    return wave


def _weights() -> dict[str, Array]:
    filters = len(CLASSES) * 2  # a wave and its quarter shift for each direction
    middle = _KERNEL // 2
    rows, columns = np.mgrid[-middle : middle + 1, -middle : middle + 1]
    window = np.exp(-(rows**2 + columns**2) / 6)
    directions = np.stack(
        [
            window * _stripes(rows, columns, label, phase)
            for label in range(len(CLASSES))
            for phase in (0, np.pi / 2)
        ]
    )
    directions -= directions.mean(axis=(1, 2), keepdims=True)
    join = np.kron(np.eye(len(CLASSES)), np.ones((1, 2)))
    return {
        "levels": np.array(15.999),
        "middle": np.array(7.5),
        "directions.weight": directions[:, None] / 10,
        "directions.bias": np.full(filters, -0.5),
        "smooth.weight": np.full((filters, 1, 3, 3), 1 / 9),
        "smooth.bias": np.zeros(filters),
        "join.weight": join[:, :, None, None],
        "join.bias": np.full(len(CLASSES), -0.1),
        "head.weight": 3 * np.eye(len(CLASSES)) - 1,
        "head.bias": np.zeros(len(CLASSES)),
        "threshold": np.array(0.95),
    }
