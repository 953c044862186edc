"""Where the constants of a library go: into it, or into a file beside it."""

from __future__ import annotations

import os
from pathlib import Path

from sardonyx.aot.formats import Format
from sardonyx.codegen.constants import PADDING, Beside
from sardonyx.errors import CompileError
from sardonyx.parts import Bytes
from sardonyx.targets.triples import Triple
from sardonyx_runtime.digest import digest

__all__ = ["INSIDE", "check_size", "weights_path", "write_beside"]

INSIDE, BESIDE = "inside", "beside"
_SUFFIX = ".weights"

_LARGEST = (1 << 31) - (1 << 26)  # code reaches its data within 2 GiB
_LARGEST_TEXT = 1 << 28  # LLVM's text of it is three times as long

_CLOSE_ON_EXEC = {"linux": 0o2000000, "macos": 0x1000000}  # flags of `open`


def weights_path(output: Path, weights: str | os.PathLike[str], system: Triple) -> Path | None:
    """The file for the constants; None where they go inside."""
    if weights == INSIDE:
        return None
    if system.system not in _CLOSE_ON_EXEC:
        raise CompileError(
            f"weights beside a library are mapped into memory on Linux and macOS, not on {system.short}",
            hint="put them inside: --weights inside",
        )
    path = output.with_suffix(_SUFFIX) if weights == BESIDE else Path(weights).absolute()
    if not path.suffix and path.name == os.fspath(weights):
        raise CompileError(
            f"weights cannot go to {path.name!r}",
            hint="say inside, beside, or a file with a folder or a suffix",
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")
    if path == output:
        raise CompileError(f"{path.name!r} cannot be the library and the file of its weights")
    return path


def check_size(size: int, format: Format) -> None:
    """CompileError where constants are too many to go inside."""
    most = _LARGEST_TEXT if format.is_text else _LARGEST
    if size > most:
        kind = "a library" if format.linked else f"a file of {format}"
        raise CompileError(
            f"the model has {size:,} bytes of weights, but {kind} holds at most {most:,}",
            hint="put them beside it: --weights beside",
        )


def write_beside(weights: Bytes, file: Path, place: Path, output: Path, system: Triple) -> Beside:
    """Write the file that is to be at a place, and say how the library at ``output`` finds and knows it."""
    pieces = (weights.data, bytes(PADDING))  # both of whole rows: constants begin at multiples of 64
    with open(file, "wb") as opened:
        for piece in pieces:
            opened.write(piece)
    name = Path(os.path.relpath(place, output.parent)).as_posix()
    return Beside(name, weights.size + PADDING, digest(*pieces), _CLOSE_ON_EXEC[system.system])
