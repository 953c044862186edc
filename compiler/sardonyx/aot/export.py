"""`compile_to`: from a model to a file, by the suffix of its name."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.aot.archive import archive
from sardonyx.aot.companions import check_companions, write_companions
from sardonyx.aot.formats import Format, format_of
from sardonyx.aot.levels import Levels, compile_levels
from sardonyx.aot.modules import merge, parse
from sardonyx.build_options import USUAL, BuildOptions
from sardonyx.codegen.artifact import PREFIX, Blob, artifact_text, cpu_text, exports
from sardonyx.codegen.objects import METADATA, code_size, optimise
from sardonyx.codegen.support import support_text
from sardonyx.errors import CompileError
from sardonyx.frontend.load import ModelSource
from sardonyx.kernels.target import Target
from sardonyx.parts import Parts
from sardonyx.targets.host import host_target, llvm_version, target_machine
from sardonyx.targets.link import link_shared
from sardonyx_runtime.artifact import ABI, seal
from sardonyx_runtime.version import __version__

__all__ = ["compile_to", "write_model"]

_LARGEST = (1 << 31) - (1 << 26)  # code reaches its data within 2 GiB
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def compile_to(
    model: ModelSource,
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    name: str = PREFIX,
) -> list[Path]:
    """Compile a model (a path, bytes, or a ``ModelProto``) into a file that needs nothing of Sardonyx.

    The suffix of ``path`` says what is written: a shared library (``.so``, ``.dylib``, ``.dll``), an object
    (``.o``, ``.obj``), a static library (``.a``, ``.lib``), LLVM IR (``.ll``), bitcode (``.bc``) or assembly
    (``.s``).  docs/ahead-of-time.md has examples, docs/abi.md the functions in it.

    ``threads`` is how many threads a run may use where its caller does not say; ``dims`` gives sizes to
    symbols of the inputs' shapes; ``name`` is what the symbols begin with.

    A C header and a manifest (JSON) are written beside it.  Returns the files that were written, ``path``
    first; they appear only when they are complete.
    CompileError if the model cannot be compiled, or there is no linker; OSError if a file cannot be written.
    """
    return write_model(model, path, [host_target()], threads=threads, dims=dims, name=name)


def write_model(
    model: ModelSource,
    path: str | os.PathLike[str],
    targets: Sequence[Target],
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    name: str = PREFIX,
    like: Parts | None = None,
    build: BuildOptions = USUAL,
) -> list[Path]:
    """`compile_to` for targets that are known: one, or several of one triple, of which a run takes the best.

    ``like`` is what the model was compiled to before: CompileError if it is another one by now.  ``build`` are
    the options of `compile` for those who look for a fault.
    """
    output = Path(path).absolute()
    format = format_of(output)
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(output.parent)!r} to write {output.name!r} to")
    if not _NAME.fullmatch(name):
        raise CompileError(
            f"{name!r} cannot begin the names of symbols", hint="take letters, digits and '_', no digit first"
        )
    check_companions(output)
    levels = compile_levels(model, targets, name, dims or {}, build)
    if like is not None and not dims and not _alike(levels, like):
        raise CompileError("the model has changed since it was compiled", hint="compile it again")
    if levels.weights.size > _LARGEST:
        raise CompileError(
            f"the model has {levels.weights.size:,} bytes of weights, but a library holds at most {_LARGEST:,}"
        )
    description = _description(levels, targets, threads, name)
    with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=output.parent) as scratch:
        made = Path(scratch) / "made"
        _write(made, format, levels, targets, description, name, Path(scratch))
        os.replace(made, output)
    return [output, *write_companions(output, levels.signature, description, exports(name), [output])]


def _alike(levels: Levels, parts: Parts) -> bool:
    return levels.signature == parts.signature and np.array_equal(levels.weights, parts.weights)


def _description(levels: Levels, targets: Sequence[Target], threads: int | None, name: str) -> dict[str, Any]:
    """What a library says of itself; docs/abi.md lists it."""
    target = targets[0]
    given = {} if threads is None else {"threads": threads}
    return {
        "abi": ABI,
        "sardonyx": __version__,
        "model": levels.digest,
        "name": name,
        "triple": target.triple,
        "cpu": target.cpu,
        "features": list(target.features),
        "byteorder": sys.byteorder,
        "weights": int(levels.weights.size),
        **given,
        "kernels": levels.kernels,
        "nodes": levels.nodes,
        "opsets": dict(levels.opsets),
        "llvm": ".".join(map(str, llvm_version())),
        "arena": [size if isinstance(size, int) else str(size) for size in levels.arena],
        "signature": levels.signature.to_json(),
    }


def _write(
    made: Path,
    format: Format,
    levels: Levels,
    targets: Sequence[Target],
    description: dict[str, Any],
    name: str,
    scratch: Path,
) -> None:
    text = format in (Format.LLVM, Format.BITCODE, Format.ASSEMBLY)
    blob = Blob(levels.weights.data, written_out=text)
    target = targets[0]
    plain = Target(target.triple)
    info = json.dumps(description).encode()
    support = f'target triple = "{target.triple}"\n{support_text(target.triple)}{METADATA}'
    shell = artifact_text(target.triple, name, ABI, info, blob, levels.signature)
    kept = exports(name) if format is not Format.SHARED else (*exports(name), "sdx_cpu", "sdx_gate")
    module = merge(
        [
            *levels.modules,
            optimise(support, target),
            parse(shell, plain),
            parse(cpu_text(target.triple), plain),
        ],
        kept,
        target,
    )
    machine = target_machine(target)
    if format is Format.LLVM:
        made.write_text(str(module), encoding="utf-8")
    elif format is Format.BITCODE:
        made.write_bytes(module.as_bitcode())
    elif format is Format.ASSEMBLY:
        made.write_text(machine.emit_assembly(module), encoding="utf-8")
    else:
        emitted = machine.emit_object(module)
        description["code"] = code_size(emitted)  # known only now: the seal and the manifest have it
        code = blob.place(emitted)
        if format is Format.OBJECT:
            made.write_bytes(code)
        elif format is Format.ARCHIVE:
            made.write_bytes(archive("model.o", bytes(code), kept))
        else:
            part = scratch / "model.o"
            part.write_bytes(code)
            link_shared([part], made, kept, scratch)
            seal(made, description)
