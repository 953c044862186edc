"""`compile_to`: from a model to a file, by the suffix of its name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sardonyx.aot.archive import archive
from sardonyx.aot.assemble import assemble, machine_code, visible
from sardonyx.aot.companions import check_companions, write_companions
from sardonyx.aot.formats import Format, check_system, format_of, implied_target
from sardonyx.aot.levels import Levels, compile_levels
from sardonyx.aot.weights import INSIDE, check_size, weights_path, write_beside
from sardonyx.build_options import USUAL, BuildOptions
from sardonyx.codegen.artifact import PREFIX, exports
from sardonyx.codegen.constants import Beside, Inside
from sardonyx.codegen.objects import code_size, machine_text
from sardonyx.debugging import debug_options
from sardonyx.errors import CompileError
from sardonyx.frontend.load import ModelSource
from sardonyx.kernels.target import Target
from sardonyx.parts import Parts
from sardonyx.targets.cpus import targets_for
from sardonyx.targets.host import llvm_version
from sardonyx.targets.link import check_linker, link_shared
from sardonyx.targets.triples import Triple, parse_triple
from sardonyx_runtime.artifact import ABI, seal
from sardonyx_runtime.version import __version__

__all__ = ["compile_to", "write_model"]

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def compile_to(
    model: ModelSource,
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    cpu: str | None = None,
    features: Sequence[str] = (),
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    weights: str | os.PathLike[str] = INSIDE,
    name: str = PREFIX,
    debug: bool = False,
) -> list[Path]:
    """Compile a model (a path, bytes, or a ``ModelProto``) into a file that needs nothing of Sardonyx.

    The suffix of ``path`` says what is written: a shared library (``.so``, ``.dylib``, ``.dll``), an object
    (``.o``, ``.obj``), a static library (``.a``, ``.lib``), LLVM IR (``.ll``), bitcode (``.bc``) or assembly
    (``.s``).  docs/ahead-of-time.md has examples, docs/abi.md the functions in it.

    ``target`` is a system, as ``aarch64-linux-gnu`` or any triple of LLVM (default: this machine's, or
    the only one whose libraries have the suffix, as ``.wasm``); ``cpu`` a
    CPU or level that LLVM knows, as ``x86-64-v3``, several with commas between, of which a run takes the best
    that there is (default: this machine's CPU, for another system the plainest one); ``features`` are added
    to what the CPU has, or with ``-`` before the name taken away.
    ``threads`` is how many threads a run may use where its caller does not say; ``dims`` gives sizes to
    symbols of the inputs' shapes; ``weights`` is ``inside``, ``beside`` (in a file that the library maps into
    memory when it is used, ``model.weights`` for ``model.so``), or the path of that file; ``name`` is what the
    symbols begin with.  ``debug`` adds debug information: symbols name the nodes, lines are those of the kernels'
    texts in the folder ``<path>.debug``, see docs/debugging.md.

    A C header and a manifest (JSON) are written beside it.  Returns the files that were written, ``path``
    first; they appear only when they are complete.
    CompileError if the model cannot be compiled, or there is no linker; OSError if a file cannot be written.
    """
    targets = targets_for(target or implied_target(Path(path)), cpu, features)
    build = BuildOptions(debug=debug_options(True, f"{os.fspath(path)}.debug")) if debug else USUAL
    return write_model(
        model, path, targets, threads=threads, dims=dims, weights=weights, name=name, build=build
    )


def write_model(
    model: ModelSource,
    path: str | os.PathLike[str],
    targets: Sequence[Target],
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    weights: str | os.PathLike[str] = INSIDE,
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
    system = parse_triple(targets[0].triple)
    check_system(output, format, system)
    if format.linked:
        check_linker(system)
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(output.parent)!r} to write {output.name!r} to")
    if not _NAME.fullmatch(name):
        raise CompileError(
            f"{name!r} cannot begin the names of symbols", hint="take letters, digits and '_', no digit first"
        )
    if threads is not None and threads < 1:
        raise CompileError(f"a run cannot use {threads} threads", hint="it uses one at least")
    check_companions(output)
    beside = weights_path(output, weights, system)
    levels = compile_levels(model, targets, name, dims or {}, build)
    if like is not None and not dims and not _alike(levels, like):
        raise CompileError("the model has changed since it was compiled", hint="compile it again")
    with ExitStack() as folders:
        scratch = Path(folders.enter_context(TemporaryDirectory(prefix=".sardonyx-", dir=output.parent)))
        constants: Inside | Beside
        if beside is None:
            check_size(levels.weights.size, format)
            constants = Inside(levels.weights.data, written_out=format.is_text)
        else:
            # Beside may be on another disk, where the file has to be before it can get its name.
            there = folders.enter_context(TemporaryDirectory(prefix=".sardonyx-", dir=beside.parent))
            constants = write_beside(levels.weights, Path(there) / "constants", beside, output, system)
        description = _description(levels, targets, threads, name, constants)
        loadable = format is Format.SHARED
        module = assemble(levels, targets, name, constants, description, loadable=loadable)
        symbols = visible(name, constants, loadable=loadable)
        made = scratch / output.name  # a name that some formats keep
        _write(made, module, format, targets[0], constants, description, symbols, system)
        if beside is not None:
            os.replace(Path(there) / "constants", beside)
        os.replace(made, output)
    files = [output] if beside is None else [output, beside]
    return [
        *files,
        *write_companions(output, levels.signature, description, exports(name, type(constants)), files),
    ]


def _write(
    made: Path,
    module: Any,
    format: Format,
    target: Target,
    constants: Inside | Beside,
    description: dict[str, Any],
    symbols: Sequence[str],
    system: Triple,
) -> None:
    """Write a module in a format; what is known only then is added to the description."""
    if format is Format.LLVM:
        made.write_text(str(module), encoding="utf-8")
    elif format is Format.BITCODE:
        made.write_bytes(module.as_bitcode())
    elif format is Format.ASSEMBLY:
        made.write_text(machine_text(module, target), encoding="utf-8")
    else:
        code = machine_code(module, target, constants)
        description["code"] = code_size(code)  # the seal and the manifest have it
        if format is Format.OBJECT:
            made.write_bytes(code)
        elif format is Format.ARCHIVE:
            made.write_bytes(archive("model.o", code, symbols, bsd=system.system == "macos"))
        else:
            part = made.parent / "code.o"
            part.write_bytes(code)
            link_shared([part], made, symbols, made.parent, system)
            if system.system in _SEALED:
                seal(made, description)


# Loaders of these systems do not mind what stands behind a library's own bytes.
_SEALED = ("linux", "windows")


def _alike(levels: Levels, parts: Parts) -> bool:
    return levels.signature == parts.signature and np.array_equal(levels.weights, parts.weights)


def _description(
    levels: Levels,
    targets: Sequence[Target],
    threads: int | None,
    name: str,
    constants: Inside | Beside,
) -> dict[str, Any]:
    """What a library says of itself; docs/abi.md lists it."""
    target = targets[0]
    given: dict[str, Any] = {} if threads is None else {"threads": threads}
    if isinstance(constants, Beside):
        given |= {"weights_file": constants.name, "weights_digest": f"{constants.digest:016x}"}
    if len(targets) > 1:
        given["levels"] = [{"cpu": t.cpu, "features": list(t.features)} for t in targets]
    return {
        "abi": ABI,
        "sardonyx": __version__,
        "model": levels.digest,
        "name": name,
        "triple": target.triple,
        "cpu": target.cpu,
        "features": list(target.features),
        "byteorder": "little",  # of all targets that are not refused
        "weights": int(levels.weights.size),
        **given,
        "kernels": levels.kernels,
        "nodes": levels.nodes,
        "opsets": dict(levels.opsets),
        "llvm": ".".join(map(str, llvm_version())),
        "arena": [size if isinstance(size, int) else str(size) for size in levels.arena],
        "signature": levels.signature.to_json(),
    }
