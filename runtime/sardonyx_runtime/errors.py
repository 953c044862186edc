"""The run-time error family."""

from __future__ import annotations

__all__ = ["RuntimeFault"]


class RuntimeFault(Exception):
    """A run failed: wrong feeds, sizes that do not fit, a fault inside a node.

    ``code`` is the status of the native entry point (0 where the fault was found before the call);
    ``node`` the name of the ONNX node, where one is to blame.
    """

    def __init__(self, message: str, *, code: int = 0, node: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.node = node
