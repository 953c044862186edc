"""The core level: primitive tensor operations, fully typed, broadcasts explicit.

Importing the package declares every core op.
"""

from sardonyx.core import (
    contraction,
    elementwise,
    indexing,
    movement,
    program,
    reduction,
)

__all__ = ["contraction", "elementwise", "indexing", "movement", "program", "reduction"]
