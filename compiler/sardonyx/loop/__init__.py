"""The loop level: loop nests over buffers, scalar and vector operations, and the program that launches kernels."""

from sardonyx.loop import ops

__all__ = ["ops"]
