"""From a path, bytes or a ``ModelProto`` to a ``ModelProto``, with an error a user understands."""

from __future__ import annotations

import hashlib
import os
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from sardonyx.errors import CompileError

__all__ = ["ModelSource", "load_model", "model_digest"]

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto


def load_model(model: ModelSource) -> tuple[onnx.ModelProto, str | None]:
    """The model, and the folder that the paths of its external data start from (None unless a path is given).

    CompileError if there is no such file or it does not hold an ONNX model.
    """
    if isinstance(model, onnx.ModelProto):
        return model, None
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _parse(bytes(model), "the given bytes"), None
    if not isinstance(model, (str, os.PathLike)):
        raise CompileError(
            f"expected a path, bytes or an onnx.ModelProto as the model, but got {type(model).__name__}"
        )
    path = os.fspath(model)
    return _parse(_read(path), repr(path)), os.path.dirname(os.path.abspath(path))


def model_digest(model: ModelSource) -> str:
    """SHA-256 of the model as it was given: of the file, of the bytes, or of the object written down."""
    if isinstance(model, onnx.ModelProto):
        data = model.SerializeToString(deterministic=True)
    elif isinstance(model, (str, os.PathLike)):
        data = _read(os.fspath(model))
    else:
        data = bytes(model)
    return hashlib.sha256(data).hexdigest()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise CompileError(f"there is no file {path!r}") from None
    except IsADirectoryError:
        raise CompileError(f"{path!r} is a folder, not an ONNX file") from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        raise CompileError(f"cannot read {path!r}: {error}") from error


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise CompileError(
            f"{what} ({len(data):,} bytes) cannot be parsed as an ONNX model: not an ONNX file, or cut short",
            hint=_guess(data),
        ) from error
    if not model.HasField("graph"):
        raise CompileError(
            f"{what} ({len(data):,} bytes) holds no graph: not an ONNX file, or an empty one",
            hint=_guess(data),
        )
    return model


def _guess(data: bytes) -> str:
    """What the bytes rather are, from their beginning."""
    if len(data) >= 1 << 31:
        return "protobuf reads no more than 2 GB: save the model with its tensors as external data"
    for start, kind in _OTHER_FORMATS.items():
        if data.startswith(start):
            return f"it begins like {kind}"
    return ""


_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive (maybe a PyTorch checkpoint; export it with torch.onnx.export)",
    b"\x80\x02": "a Python pickle (maybe a PyTorch checkpoint; export it with torch.onnx.export)",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"version https://git-lfs": "a Git LFS pointer; fetch the file itself with `git lfs pull`",
    b"\x89HDF": "an HDF5 file (maybe a Keras model; convert it with tf2onnx)",
    b"<": "an HTML or XML page, maybe a download that failed",
    b"{": "a JSON text",
}
