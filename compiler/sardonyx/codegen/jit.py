"""Puts objects into this process with LLVM's LLJIT."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import llvmlite.binding as llvm

from sardonyx.codegen.support import EXPORTS
from sardonyx.kernels.target import Target
from sardonyx.targets.host import target_machine

__all__ = ["JitLibrary", "support_addresses"]

_lock = threading.Lock()
_numbers = itertools.count()
_engines: dict[Target, Any] = {}
_support: dict[Target, dict[str, int]] = {}


def _engine(target: Target) -> Any:
    """The one engine of a target; call with the lock held."""
    found = _engines.get(target)
    if found is None:
        found = llvm.create_lljit_compiler(target_machine(target), use_jit_link=False, suppress_errors=False)
        _engines[target] = _for_ever(found)
    return found


def _for_ever(owner: Any) -> Any:
    """Keep an object beyond the end of the interpreter: threads of the pool run in its code to the last."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return owner


def _link(
    objects: Iterable[bytes], exports: Iterable[str], imports: Mapping[str, int], target: Target
) -> Any:
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    builder.add_current_process()
    for symbol in exports:
        builder.export_symbol(symbol)
    for symbol, address in imports.items():
        builder.import_symbol(symbol, address)
    return builder.link(_engine(target), f"sardonyx{next(_numbers)}")


def support_addresses(target: Target, make: Any) -> dict[str, int]:
    """Where the support code of this process is; ``make()`` gives its object if it is not there yet."""
    with _lock:
        found = _support.get(target)
        if found is None:
            tracker = _for_ever(_link([make()], EXPORTS, {}, target))
            found = _support[target] = {symbol: int(tracker[symbol]) for symbol in EXPORTS}
        return found


class JitLibrary:
    """Objects linked into the process.  They stay as long as the library object lives.

    ``imports`` gives addresses of symbols that the objects use and none of them defines.
    """

    def __init__(
        self,
        objects: Mapping[str, bytes],
        symbols: list[str],
        target: Target,
        imports: Mapping[str, int] | None = None,
    ) -> None:
        with _lock:
            self._tracker = _link(objects.values(), symbols, imports or {}, target)

    def address(self, symbol: str) -> int:
        return int(self._tracker[symbol])
