"""Whole compiled models in the cache: a second compilation of a file reads one entry.

An entry is found by the model's bytes, the target, and the identity of the compiler: its version, and what
its sources and the packages it folds constants with look like on disk (a change of the sources must not run
old code).  It holds the weights as the kernels want them: mapped into memory they cost nothing until
they are read, and processes share them.  Deriving them anew would mean to parse and lower the model.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite
import ml_dtypes
import numpy as np

from sardonyx import cache
from sardonyx.kernels.target import Target
from sardonyx.parts import Parts, pack, unpack
from sardonyx.targets.host import llvm_version
from sardonyx_runtime.version import __version__

__all__ = ["Source", "load", "source_of", "store", "suspend"]

_KIND = "models"


@dataclass(frozen=True)
class Source:
    """What a model is read from: the digest of its bytes, and for a file its folder and its state."""

    digest: str
    folder: str | None = None
    path: str | None = None
    state: tuple[int, ...] = ()

    def unchanged(self) -> bool:
        """Whether the file is still the one that was digested."""
        return self.path is None or _state(self.path) == self.state


_suspended = False


def suspend() -> None:
    """Keep and look up no more models in this process: what they mean depends on more than their bytes."""
    global _suspended
    _suspended = True


def source_of(model: Any) -> Source | None:
    """The identity of a path or of bytes; None for other things, and for files that cannot be read."""
    if _suspended:
        return None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Source(_digest(model))
    if not isinstance(model, (str, os.PathLike)):
        return None
    path = os.fspath(model)
    try:
        state = _state(path)
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            digest = _digest(data)
    except (OSError, ValueError, TypeError):
        return None
    return Source(digest, os.path.dirname(os.path.realpath(path)), path, state)


def load(source: Source, target: Target) -> Parts | None:
    """The parts of a model that was compiled before."""
    data = cache.read(_KIND, _key(source, target))
    if data is None:
        return None
    try:
        parts, extra = unpack(data)
        if extra["files"] == _files(source, [f[0] for f in extra["files"]]):
            return parts
    except (ValueError, KeyError, TypeError):
        pass
    return None


def store(source: Source, target: Target, parts: Parts, files: Iterable[str]) -> None:
    """Keep the parts of a model; ``files`` are the locations of its external data."""
    known = _files(source, files)
    if source.unchanged() and all(state for _, _, state in known):
        cache.write(_KIND, _key(source, target), *pack(parts, {"files": known}))


def _files(source: Source, locations: Iterable[str]) -> list[list[Any]]:
    """Location, place and state of each external file (which are too large to be digested every time)."""
    known: list[list[Any]] = []
    for location in locations:
        path = os.path.realpath(os.path.join(source.folder or "", location))
        try:
            known.append([location, path, list(_state(path))])
        except OSError:
            known.append([location, path, []])
    return known


def _state(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _digest(data: Any) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _key(source: Source, target: Target) -> str:
    return _digest("\0".join((source.digest, repr(target), _compiler())).encode())


@once
def _compiler() -> str:
    """The identity of the compiler and of what decides over its results."""
    parts = [__version__, llvmlite.__version__, str(llvm_version()), np.__version__, ml_dtypes.__version__]
    for package in ("sardonyx", "sardonyx_runtime", "onnx"):
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            pattern = "*.py" if package == "onnx" else "**/*.py"
            for path in sorted(Path(place).glob(pattern)):
                parts.append(f"{path} {_state(str(path))[:2]}")
    return _digest("\n".join(parts).encode())
