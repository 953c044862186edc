"""The manifest of an output: what a library says of itself, and the files it consists of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["MANIFEST", "is_manifest", "manifest_text"]

MANIFEST = 1  # the version of the manifest's form


def manifest_text(description: Mapping[str, Any], symbols: Iterable[str], files: Mapping[str, Path]) -> str:
    """The manifest as JSON, always the same for the same files.

    ``symbols`` are those that programs may use; ``files`` the names that stand beside the manifest, and where
    these files are now.
    """
    content = {
        "manifest": MANIFEST,
        **description,
        "symbols": sorted(symbols),
        "files": {name: _state(path) for name, path in files.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def is_manifest(path: Path) -> bool:
    """Whether a file is a manifest."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and "manifest" in content and "abi" in content


def _state(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}
