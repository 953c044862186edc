"""The core level: primitive tensor operations, fully typed, broadcasts explicit.

Importing the package declares every core op.
"""

from sardonyx.core import (
    contraction,
    control,
    elementwise,
    external,
    indexing,
    movement,
    order,
    program,
    randomness,
    reduction,
    text,
    trees,
)

__all__ = [
    "contraction",
    "control",
    "elementwise",
    "external",
    "indexing",
    "movement",
    "order",
    "program",
    "randomness",
    "reduction",
    "text",
    "trees",
]
