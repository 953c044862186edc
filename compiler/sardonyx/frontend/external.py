"""Tensor data outside of the model's file, mapped into memory and never read from outside its folder."""

from __future__ import annotations

import os
import stat
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import onnx

from sardonyx.errors import CompileError

__all__ = ["ExternalFiles"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class ExternalFiles:
    """The data files of one model.  Each is mapped once; tensors are views of the map."""

    def __init__(self, base_dir: str | os.PathLike[str] | None) -> None:
        self.base_dir = None if base_dir is None else os.path.realpath(base_dir)
        self._maps: dict[str, Bytes] = {}

    def read(self, tensor: onnx.TensorProto, size: int, what: str) -> Bytes:
        """The ``size`` bytes of a tensor's external data, not copied.

        ``what`` names the tensor in the CompileError raised for a location that is not allowed, a file that
        is missing or too short, or a length that does not fit the tensor.
        """
        entries = {e.key: e.value for e in tensor.external_data}
        location = entries.get("location", "")
        offset = _number(entries, "offset", what) or 0
        length = _number(entries, "length", what)
        if length is not None and length != size:
            raise CompileError(
                f"{what} needs {size} bytes, but its external data in {location!r} has a length of {length}"
            )
        data = self._map(location, what)
        if offset + size > len(data):
            raise CompileError(
                f"{what} needs the bytes {offset} to {offset + size} of the external data file {location!r}, "
                f"but that has {len(data)} bytes",
                hint="the file may be cut short, or belong to another version of the model",
            )
        return data[offset : offset + size]

    def _map(self, location: str, what: str) -> Bytes:
        if location not in self._maps:
            path = self._resolve(location, what)
            try:
                status = os.stat(path)
                if not stat.S_ISREG(status.st_mode):
                    raise CompileError(f"the external data {location!r} of {what} is not a regular file")
                if status.st_size:
                    self._maps[location] = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
                else:
                    self._maps[location] = np.empty(0, np.uint8)
            except FileNotFoundError:
                raise CompileError(
                    f"the external data file {location!r} of {what} is missing in {self.base_dir!r}",
                    hint="keep the data files of a model next to it, under their own names",
                ) from None
            except OSError as error:
                raise CompileError(
                    f"cannot read the external data file {location!r} of {what}: {error}"
                ) from error
        return self._maps[location]

    def _resolve(self, location: str, what: str) -> str:
        if not location:
            raise CompileError(f"{what} is said to have external data, but no location of it is given")
        if self.base_dir is None:
            raise CompileError(
                f"{what} has its data in the file {location!r}, but the model was not given as a path",
                hint="pass base_dir, the folder of the model's data files",
            )
        if (
            not isinstance(location, str)
            or "\0" in location
            or PurePosixPath(location).is_absolute()
            or PureWindowsPath(location).anchor
        ):
            raise CompileError(
                f"the external data {location!r} of {what} is not a path relative to the model",
                hint="only files in the folder of the model are read",
            )
        path = os.path.realpath(os.path.join(self.base_dir, location))
        if os.path.commonpath([self.base_dir, path]) != self.base_dir:
            raise CompileError(
                f"the external data {location!r} of {what} is outside of the folder {self.base_dir!r}",
                hint="only files in the folder of the model are read; a link has to stay inside it too",
            )
        return path


def _number(entries: dict[str, str], key: str, what: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise CompileError(f"the {key} {text!r} of the external data of {what} is not a number")
    return int(text)
