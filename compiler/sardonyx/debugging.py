"""Compiling and loading models for debuggers and profilers.

With `Debug` every kernel carries DWARF lines of its loop text, which is written to a file beside, and its
symbol names its nodes.  For a debugger the objects are linked to a shared library that is loaded into the
process: gdb and perf treat it as any other, symbols, lines and unwinding included.  Where there is no linker,
or only perf is of interest, the code stays in memory and a map of its addresses is written for perf.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import llvmlite.binding as llvm

from sardonyx import cache
from sardonyx.build_options import Debug
from sardonyx.codegen.debug_info import DebugSource
from sardonyx.codegen.objects import compile_text, support_object
from sardonyx.codegen.support import EXPORTS
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Function
from sardonyx.ir.printer import function_lines
from sardonyx.kernels.target import Target
from sardonyx.loading import Loaded, load
from sardonyx.parts import ENTRY, Parts
from sardonyx.targets.link import link_shared

__all__ = ["LinkedLibrary", "debug_options", "debug_source", "load_for_debugging", "write_perf_map"]


def debug_source(debug: Debug, function: Function) -> DebugSource:
    """The text of a function, written to the folder; its file is named after the function's nodes."""
    lines, places = function_lines(function)
    text = "\n".join(lines) + "\n"
    name = function.name.rpartition("__k_")[0] or function.name
    path = debug.folder / f"{name}-{_digest(text.encode(), 4)}.mlir"
    _write(path, text.encode())
    starts = {op: at.start + 1 for op, at in places.items()}
    return DebugSource(starts, path.name, str(debug.folder))


def debug_options(mode: bool | str, folder: str | os.PathLike[str] | None) -> Debug | None:
    """The options that arguments of `compile` stand for.

    CompileError if the folder cannot be made, ValueError for arguments that make no sense.
    """
    if mode not in (False, True, "gdb", "perf"):
        raise ValueError(f"debug is False, True, 'gdb' or 'perf', not {mode!r}")
    if not mode:
        if folder is not None:
            raise ValueError("debug_dir is for debug=True, debug='gdb' or debug='perf'")
        return None
    if folder is None:
        place = cache.place("debug") or Path(tempfile.mkdtemp(prefix="sardonyx-debug-"))
    else:
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CompileError(
                f"the folder for debug information cannot be made: {error}", hint="choose another debug_dir"
            ) from error
    return Debug(place.resolve(), mode == "perf")


def load_for_debugging(
    parts: Parts, target: Target, debug: Debug, imports: Mapping[str, int], *, use_cache: bool = True
) -> Loaded:
    """Put a model that was built with debug information into this process."""
    if debug.perf_map:
        symbols = tuple(symbol for name in parts.objects for symbol in _functions_of(name))
        loaded = load(parts, target, imports, use_cache=use_cache, symbols=symbols)
        write_perf_map(parts, loaded.library.address)
        return loaded
    library = LinkedLibrary(parts, target, debug.folder, imports)
    return Loaded(library, library.address(ENTRY), library.address("sdx_gate"))


class LinkedLibrary:
    """A compiled model as a shared library in the debug folder, loaded into this process for good.

    The library has support code and a thread pool of its own.  ``imports`` are addresses of the functions
    of users that it calls.
    """

    def __init__(self, parts: Parts, target: Target, folder: Path, imports: Mapping[str, int]) -> None:
        objects = {**parts.objects, "support": support_object(target, unwind=True)}
        if imports:
            objects["imports"] = compile_text(_thunks(imports, target), target)
        digest = _digest(b"".join(hashlib.blake2b(o).digest() for o in objects.values()), 10)
        self.path = folder / f"model-{digest}.so"
        if not self.path.exists():
            # Not in the folder: its name may hold what means something to a linker.
            with tempfile.TemporaryDirectory(prefix="sardonyx-") as name:
                scratch = Path(name)
                files = []
                for number, data in enumerate(objects.values()):
                    files.append(scratch / f"{number}.o")
                    files[-1].write_bytes(data)
                library = scratch / "library.so"
                link_shared(files, library, (ENTRY, *EXPORTS), scratch)
                _write(self.path, library.read_bytes())
        os.utime(self.path)  # recently used; and debuggers warn of texts that are newer
        self._library = ctypes.CDLL(str(self.path))

    def address(self, symbol: str) -> int:
        """Where a symbol is in this process."""
        return ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value or 0


def _thunks(imports: Mapping[str, int], target: Target) -> str:
    """Functions that jump to the addresses: a linker knows only symbols."""
    parameters = "ptr %a, ptr %b, ptr %c, ptr %d"
    functions = [
        f"define i32 @{symbol}({parameters}) nounwind {{\n"
        f"  %f = inttoptr i64 {address} to ptr\n"
        f"  %code = tail call i32 %f({parameters})\n  ret i32 %code\n}}\n"
        for symbol, address in imports.items()
    ]
    return f'target triple = "{target.triple}"\n' + "".join(functions)


def _digest(data: bytes, size: int) -> str:
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write a file that others may be reading: it appears under its name when it is complete."""
    try:
        if path.stat().st_size == len(data):
            os.utime(path)  # recently used
            return
    except OSError:
        pass
    new = path.with_name(f".new-{secrets.token_hex(8)}")
    try:
        new.write_bytes(data)
        os.replace(new, path)
    except OSError as error:
        raise CompileError(
            f"the file {str(path)!r} cannot be written: {error}", hint="choose another debug_dir"
        ) from error


# --- perf's map of code in memory ------------------------------------------------------------------------


def _functions_of(name: str) -> tuple[str, ...]:
    """The functions in the object of a kernel, or of the entry point."""
    return (f"{ENTRY}.body", ENTRY) if name == ENTRY else (name, f"{name}.task")


def write_perf_map(parts: Parts, address: Callable[[str], int]) -> Path:
    """Tell perf where the functions of a model are in this process: ``/tmp/perf-PID.map``, a line for each.

    A function ends where the next one of its object begins, the last one with the object's code.
    """
    lines = []
    for name, data in parts.objects.items():
        places = sorted((address(symbol), symbol) for symbol in _functions_of(name))
        ends = [start for start, _ in places[1:]] + [places[0][0] + _code_size(data)]
        for (start, symbol), end in zip(places, ends, strict=True):
            lines.append(f"{start:x} {end - start:x} {symbol}\n")
    path = Path(f"/tmp/perf-{os.getpid()}.map")  # the place where perf looks
    with open(path, "a", encoding="ascii") as file:
        file.writelines(lines)
    return path


def _code_size(data: bytes) -> int:
    """Bytes of an object's functions."""
    sections = llvm.ObjectFileRef.from_data(data).sections()
    return sum(section.size() for section in sections if section.is_text())
