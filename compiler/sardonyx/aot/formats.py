"""The kinds of files that a model can become, by the suffix of their names."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from sardonyx.errors import CompileError
from sardonyx.targets.triples import KNOWN, Triple, host_triple, parse_triple

__all__ = ["SUFFIXES", "Format", "check_system", "format_of", "implied_target"]


class Format(StrEnum):
    """What is written: whether it is linked, and whether LLVM's text or machine code stands in it."""

    SHARED = "shared library"
    OBJECT = "object"
    ARCHIVE = "static library"
    WASM = "WebAssembly module"
    LLVM = "LLVM IR"
    BITCODE = "LLVM bitcode"
    ASSEMBLY = "assembly"

    @property
    def linked(self) -> bool:
        return self in (Format.SHARED, Format.WASM)

    @property
    def is_text(self) -> bool:
        """Whether people, or LLVM's tools, read it."""
        return self in (Format.LLVM, Format.BITCODE, Format.ASSEMBLY)


SUFFIXES = {
    ".so": Format.SHARED,
    ".dylib": Format.SHARED,
    ".dll": Format.SHARED,
    ".o": Format.OBJECT,
    ".obj": Format.OBJECT,
    ".a": Format.ARCHIVE,
    ".lib": Format.ARCHIVE,
    ".wasm": Format.WASM,
    ".ll": Format.LLVM,
    ".bc": Format.BITCODE,
    ".s": Format.ASSEMBLY,
}


def format_of(path: Path) -> Format:
    """The format that a file's name asks for; CompileError if there is none."""
    found = SUFFIXES.get(path.suffix.lower())
    if found is None:
        ending = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        known = ", ".join(f"{suffix} ({kind})" for suffix, kind in SUFFIXES.items())
        raise CompileError(
            f"{path.name!r} has {ending}, which decides what is written", hint=f"known: {known}"
        )
    return found


def implied_target(path: Path) -> str | None:
    """The system that a suffix stands for, if it is not this machine's and no other has it."""
    suffix = path.suffix.lower()
    targets = [name for name in KNOWN if parse_triple(name).suffix == suffix]
    return targets[0] if len(targets) == 1 and suffix != host_triple().suffix else None


def check_system(path: Path, format: Format, system: Triple) -> None:
    """CompileError where the suffix is that of another system's libraries."""
    suffix = path.suffix.lower()
    if format in (Format.SHARED, Format.WASM) and suffix != system.suffix:
        targets = [name for name in KNOWN if parse_triple(name).suffix == suffix]
        raise CompileError(
            f"libraries of {system.short or system.llvm} end in {system.suffix}, not in {suffix}",
            hint=f"choose a target: --target {' or '.join(targets)}",
        )
