"""Which versions of the GNU C library an ELF file asks for, from its table of needed versions.

The format is that of the System V ABI ("gABI") and of the LSB ("Symbol Versioning"): section headers, of which one
of the type SHT_GNU_verneed lists files, and for each file the names of versions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["needed_glibc"]

_VERNEED = 0x6FFFFFFE
_SECTION = "IIQQQQIIQQ"  # name, type, flags, address, offset, size, link, info, alignment, entry size
_NAME = re.compile(rb"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


def needed_glibc(path: Path) -> tuple[int, int] | None:
    """The largest version of glibc that a 64-bit ELF file names; None if it names none.

    ValueError if the file is none.
    """
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise ValueError(f"{path.name} is no 64-bit ELF file")
    order = "<" if data[5] == 1 else ">"
    found = [
        (int(match[1]), int(match[2])) for name in _versions(data, order) if (match := _NAME.fullmatch(name))
    ]
    return max(found, default=None)


def _versions(data: bytes, order: str) -> Iterator[bytes]:
    """The names of all versions that are needed."""
    (start,) = struct.unpack_from(f"{order}Q", data, 40)
    size, count = struct.unpack_from(f"{order}HH", data, 58)
    sections = [struct.unpack_from(order + _SECTION, data, start + size * i) for i in range(count)]
    for _, kind, _, _, offset, _, link, files, _, _ in sections:
        if kind != _VERNEED:
            continue
        names = sections[link][4]
        for _ in range(files):
            _, versions, _, first, following = struct.unpack_from(f"{order}HHIII", data, offset)
            place = offset + first
            for _ in range(versions):
                _, _, _, name, after = struct.unpack_from(f"{order}IHHII", data, place)
                end = data.index(b"\0", names + name)
                yield data[names + name : end]
                place += after
            offset += following
