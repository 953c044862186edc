"""What each ONNX operator means, in core ops: one file per family, one function per operator.

Importing the package fills the registry.
"""

from sardonyx.ops import (
    activation,
    arithmetic,
    bits,
    cast,
    comparison,
    control_flow,
    layer_norm,
    convolution,
    matmul,
    movement,
    normalization,
    pooling,
    quantize,
    reduction,
    resize,
    shape,
    transcendental,
    trees,
)

__all__ = [
    "activation",
    "arithmetic",
    "bits",
    "cast",
    "comparison",
    "control_flow",
    "layer_norm",
    "convolution",
    "matmul",
    "movement",
    "normalization",
    "pooling",
    "quantize",
    "reduction",
    "resize",
    "shape",
    "transcendental",
    "trees",
]
