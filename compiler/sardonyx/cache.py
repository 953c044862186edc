"""The cache on disk: finished pieces of compilations by the digest of everything they depend on.

It lies in ``SARDONYX_CACHE_DIR``, else ``$XDG_CACHE_HOME/sardonyx``, else ``~/.cache/sardonyx``, and holds
no more than ``SARDONYX_CACHE_SIZE`` bytes (``2G`` by default; ``0`` switches it off), give or take what is
written in a minute.

An entry is one file: a header of 64 bytes, then the data.  Files are written under another name and
renamed, so processes may share a cache without locks.  An entry that is damaged, cut short or of another
version counts as absent and is written anew; so does one that another user owns, because entries hold code.
The least recently used entries go first when there are too many.  A folder that cannot be written, or
read, is no error: compiling just takes its time.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import struct
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

__all__ = ["Info", "clear", "enabled", "folder", "info", "limit", "place", "read", "tidy", "trim", "write"]

Buffer: TypeAlias = "bytes | bytearray | memoryview | mmap.mmap"

_FORMAT = 1
_HEADER = struct.Struct("<8sIIQ32s8x")  # magic, format, kind of checksum, size of the data, checksum
_MAGIC = b"SARDONYX"
_DIGEST, _CRC = 1, 2
_LARGE = 1 << 22  # data of this size and more has the quicker checksum
_SIZE = 2 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_STALE = 3600  # seconds after which a file that was never renamed is rubbish
_PAUSE = 60  # seconds between two looks through all entries, unless much was written meanwhile


@dataclass(frozen=True)
class Info:
    """What the cache holds: ``entries`` and ``bytes`` in all, ``kinds``: (entries, bytes) of each kind."""

    folder: Path | None
    entries: int
    bytes: int
    limit: int
    kinds: dict[str, tuple[int, int]]


def folder() -> Path | None:
    """Where the cache lies; None if there is no place for it."""
    given = os.environ.get("SARDONYX_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # the XDG specification: relative paths are to be ignored
        return Path(base, "sardonyx")
    home = os.path.expanduser("~")
    return Path(home, ".cache", "sardonyx") if os.path.isabs(home) else None


def limit() -> int:
    """The most bytes the cache may hold; 0 means that it is off."""
    text = os.environ.get("SARDONYX_CACHE_SIZE", "").strip().upper().removesuffix("B").removesuffix("I")
    if not text:
        return _SIZE
    unit = text[-1] if text[-1] in _UNITS else ""
    try:
        return max(0, int(float(text.removesuffix(unit)) * _UNITS[unit]))
    except (ValueError, OverflowError):
        return _SIZE


def enabled() -> bool:
    """Whether there is a cache."""
    return limit() > 0 and folder() is not None


def read(kind: str, key: str) -> memoryview | None:
    """The data of an entry, mapped into memory (aligned to 64 bytes); None if it is not there, or damaged."""
    path = _path(kind, key)
    if path is None or not enabled():
        return None
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and status.st_uid not in (os.geteuid(), 0):
                return None
            if status.st_size < _HEADER.size:
                return None
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return None
    magic, version, check, size, digest = _HEADER.unpack(view[: _HEADER.size])
    data = view[_HEADER.size :]
    if (magic, version, size) != (_MAGIC, _FORMAT, len(data)) or _checksum([data], check) != digest:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # recently used
    return data


def write(kind: str, key: str, *data: Buffer) -> bool:
    """Store an entry of some pieces; False if it cannot be, or would fill more than half of the cache."""
    global _written
    path = _path(kind, key)
    size = sum(map(len, data))
    if path is None or size + _HEADER.size > limit() // 2:
        return False
    check = _CRC if size >= _LARGE else _DIGEST
    header = _HEADER.pack(_MAGIC, _FORMAT, check, size, _checksum(data, check))
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        with open(number, "wb") as file:
            file.write(header)
            file.writelines(data)
        os.replace(name, path)
        _written += size
    except OSError:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
        return False
    return True


def place(kind: str) -> Path | None:
    """A folder for plain files that other programs read; they are counted and removed as entries are.

    None if there is no cache, or its folder cannot be made.
    """
    root = _root()
    if root is None or not enabled():
        return None
    path = root / kind
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return path if os.access(path, os.W_OK) else None


_written = 0  # bytes, by this process since it last looked through the entries


def tidy() -> None:
    """`trim` if it is due: a minute after the last time, or after writing a good part of the limit."""
    root = _root()
    if root is None:
        return
    mark = root / ".tidied"
    try:
        due = time.time() - mark.stat().st_mtime > _PAUSE
    except OSError:
        due = True
    if due or _written > limit() // 16:
        trim()
        with contextlib.suppress(OSError):
            mark.touch()


def trim() -> None:
    """Remove the entries used longest ago until the cache is within its limit, and rubbish."""
    global _written
    _written = 0
    most = limit()
    found = []
    for _, path, status in _files():
        if path.name.startswith("."):
            if path.name.startswith(".new-") and time.time() - status.st_mtime > _STALE:
                _remove(path)
        else:
            found.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found, key=lambda entry: entry[:2]):
        if total <= most:
            break
        _remove(path)
        total -= size


def info() -> Info:
    """What the cache holds now."""
    kinds: dict[str, tuple[int, int]] = {}
    for kind, path, status in _files():
        if not path.name.startswith("."):
            entries, size = kinds.get(kind, (0, 0))
            kinds[kind] = (entries + 1, size + status.st_size)
    entries = sum(n for n, _ in kinds.values())
    return Info(folder(), entries, sum(size for _, size in kinds.values()), limit(), kinds)


def clear() -> int:
    """Remove every entry; the number of bytes that became free.  Running models are not touched."""
    before = info().bytes
    root = _root()
    if root is not None:
        shutil.rmtree(root, ignore_errors=True)
    return before - info().bytes


def _root() -> Path | None:
    base = folder()
    return None if base is None else base / f"v{_FORMAT}"


def _path(kind: str, key: str) -> Path | None:
    root = _root()
    return None if root is None else root / kind / key[:2] / key


def _files() -> Iterator[tuple[str, Path, os.stat_result]]:
    """Every file with its kind; files that vanish meanwhile are left out."""
    root = _root()
    if root is None:
        return
    for base, _, names in os.walk(root):
        for name in names:
            path = Path(base, name)
            with contextlib.suppress(OSError):
                yield path.relative_to(root).parts[0], path, path.stat()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _checksum(pieces: Iterable[Buffer], check: int) -> bytes:
    """32 bytes.  Against accidents a CRC is enough, and several times quicker on big data."""
    if check == _CRC:
        value = 0
        for piece in pieces:
            value = zlib.crc32(piece, value)
        return value.to_bytes(32, "little")
    digest = hashlib.blake2b(digest_size=32)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
