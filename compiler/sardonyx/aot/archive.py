"""Writes a static library: the common archive format of Unix, with the table of symbols that linkers look in.

The format is the one of System V and GNU (the ``ar.h`` of the C library; "Archive File Format" in the System V
ABI): a mark, then members of a header of 60 characters and their bytes, at even places.  The first member,
``/``, is the table: how many symbols, where the member of each begins (big-endian), their names.  Windows
reads the same.  macOS has the table of BSD (``ranlib.h``), ``__.SYMDEF``: pairs of the place of a name and of a
member (little-endian), then the names; and wants objects at multiples of 8.

Times, owners and modes are constants, so that equal contents give equal bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

__all__ = ["archive"]

_MARK = b"!<arch>\n"


def archive(name: str, data: bytes, symbols: Sequence[str], *, bsd: bool = False) -> bytes:
    """An archive of one object file that defines the symbols; the name has at most 11 characters.

    ``bsd``: the form is that of macOS, where the symbols of C begin with ``_``.
    """
    table: Callable[[Sequence[str], int], bytes] = _bsd_table if bsd else _table
    member: Callable[[str, bytes], bytes] = _bsd_member if bsd else _member
    head = "__.SYMDEF" if bsd else ""
    place = len(_MARK) + len(member(head, table(symbols, 0)))
    return _MARK + member(head, table(symbols, place)) + member(name, data)


def _table(symbols: Sequence[str], place: int) -> bytes:
    """The symbols, all of them of the member that begins at a place."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    return struct.pack(f">{len(symbols) + 1}I", len(symbols), *[place] * len(symbols)) + names


def _bsd_table(symbols: Sequence[str], place: int) -> bytes:
    names, pairs = b"", b""
    for symbol in symbols:
        pairs += struct.pack("<II", len(names), place)
        names += b"_" + symbol.encode() + b"\0"
    names += bytes(-len(names) % 8)
    return struct.pack("<I", len(pairs)) + pairs + struct.pack("<I", len(names)) + names


def _member(name: str, data: bytes) -> bytes:
    return _member_of(f"{name}/", data)


def _bsd_member(name: str, data: bytes) -> bytes:
    """The name stands before the data, so long that an object begins at a multiple of 8."""
    full = name.encode().ljust(12, b"\0")
    return _member_of(f"#1/{len(full)}", full + data)


def _member_of(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)
