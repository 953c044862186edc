"""Puts objects into this process with LLVM's LLJIT."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from sardonyx.kernels.target import Target
from sardonyx.targets.host import target_machine

__all__ = ["JitLibrary"]

_lock = threading.Lock()


@cache
def _engine(target: Target) -> Any:
    return llvm.create_lljit_compiler(target_machine(target), use_jit_link=False, suppress_errors=False)


class JitLibrary:
    """Objects linked into the process.  They stay as long as the library object lives."""

    _number = 0

    def __init__(self, objects: Mapping[str, bytes], symbols: list[str], target: Target) -> None:
        builder = llvm.JITLibraryBuilder()
        for data in objects.values():
            builder.add_object_img(data)
        builder.add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        with _lock:
            JitLibrary._number += 1
            self._tracker = builder.link(_engine(target), f"sardonyx{JitLibrary._number}")

    def address(self, symbol: str) -> int:
        return int(self._tracker[symbol])
