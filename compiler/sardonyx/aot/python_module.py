"""The Python package of a model: a module with a typed ``run``, and the runtime it needs, put inside."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files

from sardonyx.aot.identifiers import identifiers
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["module_text", "needs_ml_dtypes", "runtime_files"]

_RUNTIME = re.compile(r"^(\s*(?:from|import) )sardonyx_runtime\b", re.MULTILINE)
_TAKEN = {*keyword.kwlist, *keyword.softkwlist, "feeds", "count", "index"}

_MODULE = '''\
"""{summary}

    import {package}
    outputs = {package}.run({example})

{ports}
"""

from __future__ import annotations

import threading as _threading
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any, NamedTuple as _NamedTuple

from {package}._runtime import RuntimeFault

if _TYPE_CHECKING:
    import numpy as _np
    import numpy.typing as _npt

    from {package}._runtime.native import NativeModel as _NativeModel

__all__ = ["Outputs", "RuntimeFault", "load", "run"]
__version__ = {version}


class Outputs(_NamedTuple):
    """What `run` gives."""

{fields}


def load(*, threads: int | None = None) -> _NativeModel:
    """The model as an object of its own, which can be closed; `run` shares one that stays.

    ``threads`` is how many threads a run may use (default: {threads}).
    """
    from {package}._runtime.artifact import load as open_library

    return open_library(_Path(__file__).with_name({library}), threads=threads)


_lock = _threading.Lock()
_model: _NativeModel | None = None


def _shared() -> _NativeModel:
    """The model that `run` uses, opened when it is first called."""
    global _model
    with _lock:
        if _model is None:
            _model = load()
        return _model


def run({parameters}) -> Outputs:
    """Run the model once.

{described}

    RuntimeFault says what does not fit, or which node of the model failed.
    """
    feeds: dict[str, _Any] = {{{feeds}}}
{optional}    return Outputs(*(_model or _shared()).run(feeds))
'''


def module_text(package: str, library: str, version: str, signature: Signature, threads: int | None) -> str:
    """The source of the package's ``__init__.py``; ``library`` is the name of the file beside it."""
    inputs = identifiers([a.name for a in signature.inputs], _TAKEN)
    outputs = identifiers([a.name for a in signature.outputs], _TAKEN)
    required = [(n, a) for n, a in zip(inputs, signature.inputs, strict=True) if a.default is None]
    optional = [(n, a) for n, a in zip(inputs, signature.inputs, strict=True) if a.default is not None]
    parameters = [f"{name}: {_array(a)}" for name, a in required]
    parameters += [f"{name}: {_array(a)} | None = None" for name, a in optional]
    return _MODULE.format(
        summary="An ONNX model, compiled by Sardonyx.",
        package=package,
        example=", ".join(f"{name}=..." for name, _ in required),
        ports=_ports(signature),
        version=ascii(version),
        library=ascii(library),
        threads="all cores of the process" if threads is None else threads,
        fields="\n".join(
            f"    {name}: {_array(a)}\n    {_says(a)!a}"
            for name, a in zip(outputs, signature.outputs, strict=True)
        )
        or "    pass",
        parameters=f"*, {', '.join(parameters)}" if parameters else "",
        described="\n".join(
            f"    {name}: {_quoted(_says(a))}{' (optional)' if a.default is not None else ''}"
            for name, a in (*required, *optional)
        )
        or "    It has no inputs.",
        feeds=", ".join(f"{a.name!a}: {name}" for name, a in required),
        optional="".join(
            f"    if {name} is not None:\n        feeds[{a.name!a}] = {name}\n" for name, a in optional
        ),
    )


def _ports(signature: Signature) -> str:
    lines = [f"Input {a.name!a}: {a.describe()}" for a in signature.inputs]
    lines += [f"Output {a.name!a}: {a.describe()}" for a in signature.outputs]
    return _quoted("\n".join(lines))


def _says(argument: Argument) -> str:
    return f"{argument.describe()}, {argument.name!a} of the model"


def _quoted(text: str) -> str:
    """A text as it can stand inside a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _array(argument: Argument) -> str:
    """The type of an argument's arrays, for those who check types."""
    if needs_ml_dtypes([argument]):
        return "_npt.NDArray[_Any]"
    name = argument.dtype.numpy.name
    return f"_npt.NDArray[_np.{'object_' if name == 'object' else 'bool_' if name == 'bool' else name}]"


def needs_ml_dtypes(arguments: Sequence[Argument]) -> bool:
    """Whether some of the types are ml_dtypes', not NumPy's own."""
    return any(a.dtype.numpy.isbuiltin == 2 for a in arguments)


def runtime_files(package: str) -> dict[str, bytes]:
    """The files of the runtime, to lie inside a package as ``_runtime``, with their names inside it."""
    made: dict[str, bytes] = {}
    for file in sorted(files("sardonyx_runtime").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".py"):
            text = file.read_text(encoding="utf-8")
            made[file.name] = _RUNTIME.sub(rf"\1{package}._runtime", text).encode()
        elif file.name == "py.typed":
            made[file.name] = file.read_bytes()
    licence = _licence()
    if licence is not None:
        made["LICENSE"] = licence.encode()
    return made


def _licence() -> str | None:
    """The licence of the runtime, as it was installed."""
    try:
        return distribution("sardonyx").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        return None
