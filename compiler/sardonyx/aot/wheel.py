"""A wheel of a model: what pip installs, with the library, the runtime, and a module that calls it.

The form is that of the "Binary distribution format" and of the "Core metadata" in the Python packaging
specifications (packaging.python.org); equal contents give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import keyword
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sardonyx.aot.export import compile_to
from sardonyx.aot.glibc import needed_glibc
from sardonyx.aot.python_module import module_text, needs_ml_dtypes, runtime_files
from sardonyx.errors import CompileError
from sardonyx.frontend.load import ModelSource
from sardonyx.targets.triples import Triple, host_triple, parse_triple
from sardonyx_runtime.artifact import read_description
from sardonyx_runtime.signature import Signature
from sardonyx_runtime.version import __version__

__all__ = ["package_model"]

_LIBRARY = "model.so"
_VERSION = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?"
)  # of the forms of PEP 440 the usual ones
_NEEDS = {"numpy": "numpy>=2.0", "ml_dtypes": "ml_dtypes>=0.5.4"}

# The oldest glibc that pip knows a platform tag of, by machine (PEP 513, PEP 599, and when glibc took the port in).
_OLDEST = {"x86_64": (2, 5), "aarch64": (2, 17), "riscv64": (2, 31)}
_OLDEST_MUSL = (1, 1)


def package_model(
    model: ModelSource,
    name: str,
    folder: str | os.PathLike[str],
    *,
    version: str = "1.0.0",
    target: str | None = None,
    **options: Any,
) -> Path:
    """Compile a model into a wheel in a folder, which is made if it is not there; the wheel's path.

    ``name`` is what the package is installed and imported as.  ``target`` and the ``options`` are those of
    `compile_to` (``cpu``, ``threads``, ``dims`` ...).  The wheel needs NumPy, and ml_dtypes if the model's inputs or
    outputs have such types; nothing of Sardonyx.

    CompileError if the model cannot be compiled, or the name or version cannot be a package's.
    """
    package = _package_name(name)
    if not _VERSION.fullmatch(version):
        raise CompileError(f"{version!r} is no version of a package", hint="take one like 1.0.0 or 2.1.0rc1")
    system = _system(target)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=place) as scratch:
        library = Path(scratch) / _LIBRARY
        compile_to(model, library, target=target, **options)
        description = read_description(library)
        tag = f"py3-none-{_platform(library, system)}"
        signature = Signature.from_json(description["signature"])
        source = module_text(package, _LIBRARY, version, signature, description.get("threads"))
        contents: dict[str, bytes | Path] = {
            f"{package}/__init__.py": source.encode(),
            f"{package}/py.typed": b"",
            f"{package}/{_LIBRARY}": library,
            **{f"{package}/_runtime/{n}": data for n, data in runtime_files(package).items()},
        }
        info = f"{package}-{version}.dist-info"
        contents[f"{info}/METADATA"] = _metadata(name, version, signature, description).encode()
        contents[f"{info}/WHEEL"] = _wheel(tag).encode()
        wheel = place / f"{package}-{version}-{tag}.whl"
        part = Path(scratch) / "wheel"
        _write(part, contents, f"{info}/RECORD")
        os.replace(part, wheel)
    return wheel


def _package_name(name: str) -> str:
    """The name that is imported: the package's, with underscores."""
    package = re.sub(r"[-_.]+", "_", name)
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", package)
    if not plain or package != package.lower() or keyword.iskeyword(package):
        raise CompileError(
            f"{name!r} cannot be the name of a package",
            hint="take small letters, digits and '_', a letter first",
        )
    if package in {*sys.stdlib_module_names, "numpy", "ml_dtypes", "sardonyx", "sardonyx_runtime"}:
        raise CompileError(f"{name!r} is the name of another package", hint="take one of your own")
    return package


def _system(target: str | None) -> Triple:
    """The system that a wheel is made for; CompileError if there is no platform tag of it here."""
    triple = host_triple() if target is None else parse_triple(target)
    if triple.system != "linux" or triple.machine not in _OLDEST:
        raise CompileError(
            f"wheels are made for Linux on {', '.join(_OLDEST)} so far, not for {triple.short or target}",
            hint="`sardonyx compile` writes libraries for other systems",
        )
    return triple


def _platform(library: Path, triple: Triple) -> str:
    """The platforms that pip installs the library on (PEP 600, PEP 656)."""
    if triple.environment.startswith("musl"):
        major, minor = _OLDEST_MUSL
        return f"musllinux_{major}_{minor}_{triple.machine}"
    major, minor = max(_OLDEST[triple.machine], needed_glibc(library) or (0, 0))
    return f"manylinux_{major}_{minor}_{triple.machine}"


def _metadata(name: str, version: str, signature: Signature, description: Mapping[str, Any]) -> str:
    needs = [_NEEDS["numpy"]]
    if needs_ml_dtypes([*signature.inputs, *signature.outputs]):
        needs.append(_NEEDS["ml_dtypes"])
    head = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        "Summary: An ONNX model, compiled by Sardonyx",
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {need}" for need in needs),
        "Description-Content-Type: text/plain; charset=UTF-8",
    ]
    made = f"Compiled by Sardonyx {__version__} for {description['triple']} from the model with the SHA-256"
    lines = [f"{made} {description['model']}.", ""]
    lines += [f"Input {a.name!a}: {a.describe()}" for a in signature.inputs]
    lines += [f"Output {a.name!a}: {a.describe()}" for a in signature.outputs]
    return "\n".join([*head, "", *lines, ""])


def _wheel(tag: str) -> str:
    python, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))
    return f"Wheel-Version: 1.0\nGenerator: sardonyx {__version__}\nRoot-Is-Purelib: false\n{tags}"


def _write(path: Path, contents: Mapping[str, bytes | Path], record: str) -> None:
    """The archive: files with one and the same time, and the list of their hashes as the last."""
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            data = content.read_bytes() if isinstance(content, Path) else content
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            archive.writestr(_entry(name), data)
        archive.writestr(_entry(record), "".join([*rows, f"{record},,\n"]))


def _entry(name: str) -> zipfile.ZipInfo:
    """A file of fixed time (the oldest that the format knows), owner and mode."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix: the mode is read
    entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
    return entry
