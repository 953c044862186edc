"""Shared libraries that go when nobody uses them any more."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from sardonyx_runtime.errors import RuntimeFault

__all__ = ["Library"]

_dlclose = ctypes.CDLL(None).dlclose
_dlclose.argtypes = [ctypes.c_void_p]


@dataclass
class _Name:
    """The file that the system knows under a name, and how many libraries were opened by that name."""

    path: str
    file: tuple[int, int]
    users: int = 0


_names: dict[str, _Name] = {}
# Held while the system's loader works, so that a fork finds it and the table in order.  A library may go while
# another one is opened by the same thread, for the collector runs anywhere.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Library:
    """An open library.  It is unloaded when the last object that looks at it is gone.

    While it is loaded, its file may be replaced by another one, but not changed in place.
    """

    def __init__(self, path: str) -> None:
        """RuntimeFault if the system cannot load the file."""
        self._name: _Name | None = None
        try:
            self.code = self._open(path)
        except OSError as error:
            raise RuntimeFault(f"{path!r} cannot be loaded: {error}") from error

    def _open(self, path: str) -> ctypes.CDLL:
        """Open the file, by another name where this one was opened before and the file replaced since.

        The system's loader takes a name that it knows for the library that it has.
        """
        status = os.stat(path)
        file = (status.st_dev, status.st_ino)
        with _lock:
            known = _names.setdefault(path, _Name(path, file))
            if known.file == file:
                known.users += 1
                self._name = known
                return ctypes.CDLL(path)
            with import_module("tempfile").TemporaryDirectory(prefix="sardonyx-") as folder:
                alias = os.path.join(folder, os.path.basename(path))
                os.symlink(path, alias)
                return ctypes.CDLL(alias)

    def address(self, symbol: str) -> int:
        """Where a function or data is; RuntimeFault if the library has no such symbol."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self.code, symbol))
        except ValueError:
            raise RuntimeFault(f"{self.code._name!r} is incomplete: it has no symbol {symbol!r}") from None

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if ending():  # a process that ends unloads everything itself
            return
        with _lock:
            if hasattr(self, "code"):
                _dlclose(self.code._handle)  # ends the library's threads, too
            if self._name is not None:
                self._name.users -= 1
                if not self._name.users:
                    _names.pop(self._name.path, None)
