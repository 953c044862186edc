"""An object file as text: its sections, and the bytes of the code."""

from __future__ import annotations

from collections.abc import Iterator

import llvmlite.binding as llvm

__all__ = ["object_listing"]

_WIDTH = 16  # bytes in a line


def object_listing(data: bytes) -> str:
    """A line for each section (size in bytes, name), and the code's bytes in hexadecimal behind its line."""
    return "\n".join(_lines(data)) + "\n"


def _lines(data: bytes) -> Iterator[str]:
    for section in llvm.ObjectFileRef.from_data(data).sections():
        size = section.size()
        if not size:
            continue
        yield f"# section {section.name().decode()}: {size} bytes"
        if section.is_text():
            code = section.data()
            for start in range(0, size, _WIDTH):
                yield f"\t{start:06x}  {code[start : start + _WIDTH].hex(' ')}"
