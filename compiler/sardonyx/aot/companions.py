"""What is written beside an output: the C header and the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx.aot.header import FIRST_WORDS, header_text
from sardonyx.aot.manifest import is_manifest, manifest_text
from sardonyx.errors import CompileError
from sardonyx_runtime.signature import Signature

__all__ = ["check_companions", "write_companions"]


def check_companions(output: Path) -> None:
    """CompileError if a file that is not ours has the name of the header or the manifest of an output."""
    header, manifest = _paths(output)
    foreign = [p for p, ours in ((header, _is_header), (manifest, is_manifest)) if p.exists() and not ours(p)]
    if foreign:
        raise CompileError(
            f"{foreign[0].name!r} would be written beside {output.name!r}, but there is another file of this name",
            hint="write the output to another folder or under another name",
        )


def write_companions(
    output: Path,
    signature: Signature,
    description: Mapping[str, Any],
    symbols: Iterable[str],
    files: Sequence[Path],
) -> list[Path]:
    """Write both for an output that is there; ``files`` are what it consists of, itself among them."""
    header, manifest = _paths(output)
    _write(header, header_text(description["name"], signature, description))
    everything = {path.name: path for path in (*files, header)}
    _write(manifest, manifest_text(description, symbols, everything))
    return [header, manifest]


def _paths(output: Path) -> tuple[Path, Path]:
    return output.with_suffix(".h"), output.with_suffix(".json")


def _is_header(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST_WORDS)) == FIRST_WORDS.encode()


def _write(path: Path, text: str) -> None:
    """Write a file that appears only when it is complete."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
