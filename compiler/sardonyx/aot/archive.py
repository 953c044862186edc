"""Writes a static library: the common archive format of Unix, with the table of symbols that linkers look in.

The format is the one of System V and GNU (the ``ar.h`` of the C library; "Archive File Format" in the
System V ABI): a mark, then members of a header of 60 characters and their bytes, at even places.  The first
member, ``/``, is the table: how many symbols, where the member of each begins (big-endian), their names.
Times, owners and modes are constants, so that equal contents give equal bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["archive"]

_MARK = b"!<arch>\n"


def archive(name: str, data: bytes, symbols: Sequence[str]) -> bytes:
    """An archive of one object file that defines the symbols; the name has at most 15 characters."""
    table = _table(symbols, 0)
    first = len(_MARK) + len(_member("", table))
    return _MARK + _member("", _table(symbols, first)) + _member(name, data)


def _table(symbols: Sequence[str], place: int) -> bytes:
    """The symbols, all of them of the member that begins at a place."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    return struct.pack(f">{len(symbols) + 1}I", len(symbols), *[place] * len(symbols)) + names


def _member(name: str, data: bytes) -> bytes:
    head = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)
