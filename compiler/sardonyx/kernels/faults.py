"""What can go wrong inside a kernel: the codes of the native entry point."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["FaultKind"]


class FaultKind(IntEnum):
    """Fault codes; the numbers are part of the ABI (docs/abi.md)."""

    NO_STRING_MEMORY = 6
    DIVISION_BY_ZERO = 16
    INDEX_OUT_OF_RANGE = 17
    NO_NUMBER = 19
    EXTERNAL = 18  # of the program: a function that a user registered
