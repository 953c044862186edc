"""Loads the libraries that `CompiledModel.export` writes: without the compiler, checked before code runs.

Behind the library's own bytes stand its description (JSON) and a seal of 48 bytes: the lengths of both, a
checksum of everything before, and a mark.  Loaders of the operating system do not look there.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import struct
import sys
import zlib
from typing import Any

from sardonyx_runtime.cpu import WORDS, missing_features
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.library import Library
from sardonyx_runtime.native import NativeModel
from sardonyx_runtime.signature import Signature
from sardonyx_runtime.version import __version__

__all__ = ["ABI", "load", "read_description", "seal"]

ABI = 1  # of the entry point, contexts, status codes and symbols (docs/abi.md)

_SEAL = struct.Struct("<QQI12x16s")  # bytes of the library, of the description, checksum, mark
_MARK = b"sardonyx-library"
_NEEDED = {"abi", "sardonyx", "triple", "byteorder", "weights", "signature"}  # what every description says


def seal(path: str | os.PathLike[str], description: dict[str, Any]) -> None:
    """Append the description and the seal to a linked library."""
    text = json.dumps(description).encode()
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.write(text)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            check = zlib.crc32(data)
        file.write(_SEAL.pack(size, len(text), check, _MARK))


def load(path: str | os.PathLike[str], *, threads: int | None = None) -> NativeModel:
    """The model in a library, ready to run.

    ``threads`` is how many threads a run may use (default: what the library was compiled with, else all cores
    of the process).  RuntimeFault says what is wrong with the file, or what this machine lacks.  The library is
    unloaded when the model is closed, by ``close``, by ``with``, or because nobody looks at it any more.
    """
    if threads is not None and threads < 1:
        raise RuntimeFault(f"a run has 1 thread or more, not {threads}")
    name = os.path.abspath(path)
    description = read_description(name)
    _check(name, description)
    library = Library(name)
    if _machine() == "x86_64":
        _check_cpu(name, description, library)
    prefix = description["name"]
    return NativeModel(
        library.address(f"{prefix}_run"),
        _constants(name, description, library),
        Signature.from_json(description["signature"]),
        threads=threads or description.get("threads") or _processors(),
        gate=library.address("sdx_gate"),
        keep=library,
    )


def _check_cpu(path: str, description: dict[str, Any], library: Library) -> None:
    """RuntimeFault if the CPU cannot run the code; of several levels, none of them."""
    words = (ctypes.c_int32 * WORDS)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("sdx_cpu"))(ctypes.addressof(words))
    levels = description.get("levels") or [description]
    lacking = [missing_features(list(words), level["features"]) for level in levels]
    if all(lacking):
        fewest = min(lacking, key=len)
        raise RuntimeFault(
            f"{path!r} was compiled for a CPU with {', '.join(fewest)}, which this one does not have; "
            "compile it for a plainer CPU"
        )


def _constants(path: str, description: dict[str, Any], library: Library) -> int:
    """Where a library's constants are; RuntimeFault if they lie in a file that is not there or not the right one."""
    prefix = description["name"]
    if "weights_file" not in description:
        return library.address(f"{prefix}_weights")
    places = [os.path.dirname(path), os.path.dirname(os.path.realpath(path))]  # a library may be a link
    files = [os.path.normpath(os.path.join(place, description["weights_file"])) for place in places]
    file = next((f for f in files if os.path.exists(f)), files[0])
    kinds = [ctypes.c_int32, ctypes.c_char_p]
    code = ctypes.CFUNCTYPE(*kinds)(library.address(f"{prefix}_open"))(os.fsencode(file))
    if code:
        raise RuntimeFault(f"the weights of {path!r} {_WEIGHTS.get(code, 'cannot be used')}: {file!r}")
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(library.address(f"{prefix}_create"))
    destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(f"{prefix}_destroy"))
    context = create(1)  # only the library knows where it mapped the file
    if not context:
        raise RuntimeFault(f"there is no memory for a context of {path!r}")
    address = ctypes.c_int64.from_address(context).value
    destroy(context)
    return address


_WEIGHTS = {
    1: "are missing or cannot be read",
    2: "have another size than they should: the file was cut short, or is of another model",
    3: "are damaged, or of another model",
}


def read_description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a library says of itself (docs/abi.md), read without loading it; for any machine.

    RuntimeFault if the file is no library of Sardonyx, or is not whole.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise RuntimeFault(f"{name!r} is no library of Sardonyx: it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                text = _sealed(name, data)
    except OSError as error:
        raise RuntimeFault(f"{name!r} cannot be read: {error.strerror}") from error
    try:
        description: dict[str, Any] = json.loads(text)
        if not description.keys() >= _NEEDED:
            raise ValueError
    except (ValueError, AttributeError):
        raise RuntimeFault(f"{name!r} is damaged: its description cannot be read") from None
    return description


def _sealed(path: str, data: mmap.mmap) -> bytes:
    """The description of a library that is whole, as text."""
    end = len(data) - _SEAL.size
    if end < 0 or data[end + _SEAL.size - len(_MARK) :] != _MARK:
        raise RuntimeFault(f"{path!r} is no library of Sardonyx, or was cut short or changed{_guess(data)}")
    size, length, check, _ = _SEAL.unpack(data[end:])
    if size + length != end:
        raise RuntimeFault(f"{path!r} is damaged: it holds {end:,} bytes instead of {size + length:,}")
    with memoryview(data) as view, view[:end] as content:
        if zlib.crc32(content) != check or data[end:] != _SEAL.pack(size, length, check, _MARK):
            raise RuntimeFault(f"{path!r} is damaged: its checksum is wrong")
    return data[size:end]


def _guess(data: mmap.mmap) -> str:
    """What a file without a seal rather is."""
    if data.find(b"sdx_gate") >= 0:
        return "; it is one of ours that lost its last bytes (strip, for one, takes them away)"
    kinds = {
        b"\x7fELF": "another ELF file",
        b"!<arch>": "a static library, for programs to be linked with",
        b"PK": "an archive, maybe a wheel: pip installs it",
        b"\x08": "maybe an ONNX model: compile it first",
    }
    found = next((kind for start, kind in kinds.items() if data[: len(start)] == start), "")
    return f"; it is {found}" if found else ""


def _check(path: str, description: dict[str, Any]) -> None:
    if description["abi"] != ABI:
        raise RuntimeFault(
            f"{path!r} has version {description['abi']} of the binary interface (made by Sardonyx "
            f"{description['sardonyx']}), but this runtime ({__version__}) knows version {ABI}; "
            "compile the model again, or install the runtime of that version"
        )
    machine, _, system = description["triple"].partition("-")
    names = _SYSTEMS.get(sys.platform, (sys.platform,))
    fits = _plain(machine) == _machine() and description["byteorder"] == sys.byteorder
    if not fits or not any(name in system for name in names):
        raise RuntimeFault(
            f"{path!r} was compiled for {description['triple']}, but this is {_machine()} {names[0]}"
        )


_SYSTEMS = {"win32": ("windows",), "darwin": ("macos", "darwin")}  # as triples have them


def _machine() -> str:
    return _plain(platform.machine().lower())


def _plain(machine: str) -> str:
    """A machine's name as LLVM has it."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
