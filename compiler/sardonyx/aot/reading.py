"""What an output says of itself, whatever its form: a library, an object with its manifest, a wheel."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from sardonyx.aot.formats import SUFFIXES, Format
from sardonyx.aot.manifest import is_manifest
from sardonyx_runtime.artifact import read_description
from sardonyx_runtime.errors import RuntimeFault

__all__ = ["description_of", "is_output"]


def is_output(path: str) -> bool:
    """Whether a file's name is one of an output, of a manifest, or of a wheel."""
    return Path(path).suffix.lower() in {*SUFFIXES, ".json", ".whl"}


def description_of(path: str) -> dict[str, Any]:
    """The description of an output.

    Libraries hold theirs; that of other files is in the manifest beside them.  RuntimeFault for a file that is
    damaged or no output, and for one whose manifest is missing.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".whl":
        return _of_wheel(file)
    if suffix != ".json" and SUFFIXES[suffix] is Format.SHARED:
        return read_description(path)
    manifest = file if suffix == ".json" else file.with_suffix(".json")
    if not manifest.exists():
        raise RuntimeFault(
            f"{file.name!r} does not say what it is, and its manifest {manifest.name!r} is not beside it"
        )
    if not is_manifest(manifest):
        raise RuntimeFault(f"{manifest.name!r} is no manifest of Sardonyx")
    content: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    if file != manifest and file.name not in content["files"]:
        raise RuntimeFault(f"{manifest.name!r} is the manifest of other files than {file.name!r}")
    return content


def _of_wheel(file: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory() as folder:
            libraries = [name for name in archive.namelist() if name.endswith(".so")]
            if len(libraries) == 1:
                return read_description(archive.extract(libraries[0], folder))
    except zipfile.BadZipFile:
        pass
    raise RuntimeFault(f"{file.name!r} is no wheel of a model")
