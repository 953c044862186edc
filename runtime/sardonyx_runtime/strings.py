"""Strings between Python and native code.

In native memory an element of a string tensor is the address of a record: its length in bytes (int64), then
its bytes, in UTF-8.  Bytes that are no UTF-8 are lone surrogates in Python (``surrogateescape``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.feeds import Array

__all__ = ["decode", "encode", "records"]

_WORD = 8


def records(texts: Sequence[Any], what: str = "") -> tuple[bytes, list[int]]:
    """The records of strings, one behind the other at multiples of 8, and where each begins."""
    parts: list[bytes] = []
    starts: list[int] = []
    position = 0
    for text in texts:
        if isinstance(text, str):
            data = text.encode("utf-8", "surrogateescape")
        elif isinstance(text, bytes):
            data = text
        else:
            raise RuntimeFault(f"{what} holds {text!r} of the type {type(text).__name__}, which is no string")
        padding = -len(data) % _WORD
        parts.append(len(data).to_bytes(_WORD, "little") + data + bytes(padding))
        starts.append(position)
        position += _WORD + len(data) + padding
    return b"".join(parts), starts


def encode(array: Array, name: str) -> tuple[Array, Any]:
    """The addresses of an array's strings as int64, and what owns their memory."""
    data, starts = records(array.ravel().tolist(), f"the input {name!r}")
    owner = np.frombuffer(data + bytes(_WORD), np.uint8).copy()
    base = owner.__array_interface__["data"][0]
    return (np.array(starts, np.int64) + base).reshape(array.shape), owner


def decode(addresses: Array) -> Array:
    """The strings at addresses, as an object array of str."""
    result = np.empty(addresses.shape, object)
    flat = result.reshape(-1)
    for i, address in enumerate(addresses.ravel().tolist()):
        length = ctypes.c_int64.from_address(address).value
        flat[i] = ctypes.string_at(address + _WORD, length).decode("utf-8", "surrogateescape")
    return result
