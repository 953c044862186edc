"""Exports a compiled model as a shared library with everything in it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from sardonyx.codegen.artifact import EXPORTS, artifact_text, cpu_text
from sardonyx.codegen.objects import compile_text, support_object
from sardonyx.errors import CompileError
from sardonyx.kernels.target import Target
from sardonyx.parts import Parts
from sardonyx.targets.link import link_shared
from sardonyx_runtime.artifact import ABI, seal
from sardonyx_runtime.version import __version__

__all__ = ["export"]

_LARGEST = (1 << 31) - (1 << 26)  # code reaches its data within 2 GiB


def export(parts: Parts, target: Target, path: str | os.PathLike[str]) -> None:
    """Write the library.  It appears under its name only when it is complete.

    CompileError if there is no linker, or the weights are too large for one library; OSError if the file
    cannot be written.
    """
    if "linux" not in target.triple:
        raise CompileError(f"libraries can be exported for Linux only so far, not for {target.triple}")
    if parts.externals:
        names = ", ".join(sorted(parts.externals.values()))
        raise CompileError(f"a library cannot hold the external functions that the model calls: {names}")
    if parts.weights.size > _LARGEST:
        raise CompileError(
            f"the model has {parts.weights.size:,} bytes of weights, but a library holds at most {_LARGEST:,}"
        )
    output = Path(path).absolute()
    description = {
        "abi": ABI,
        "sardonyx": __version__,
        "triple": target.triple,
        "cpu": target.cpu,
        "features": list(target.features),
        "byteorder": sys.byteorder,
        "weights": int(parts.weights.size),
        "signature": parts.signature.to_json(),
    }
    with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=output.parent) as name:
        folder = Path(name)
        library = folder / "library.so"
        link_shared(_objects(parts, target, description, folder), library, EXPORTS, folder)
        seal(library, description)
        os.replace(library, output)


def _objects(parts: Parts, target: Target, description: dict[str, Any], folder: Path) -> list[Path]:
    """Object files of kernels, entry point, support, data, and the look at the CPU."""
    weights = folder / "weights.bin"
    parts.weights.tofile(weights)
    info = json.dumps(description).encode()
    plain = Target(target.triple)
    objects = {
        **parts.objects,
        "support": support_object(target),
        "data": compile_text(
            artifact_text(target.triple, ABI, info, str(weights), parts.signature), plain, passes=False
        ),
        "cpu": compile_text(cpu_text(target.triple), plain, passes=False),
    }
    files = []
    for number, data in enumerate(objects.values()):
        files.append(folder / f"{number}.o")
        files[-1].write_bytes(data)
    return files
