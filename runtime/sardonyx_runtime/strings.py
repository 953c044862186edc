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


def records(texts: Sequence[Any], what: str = "") -> tuple[Array, Array]:
    """The records of strings, one behind the other at multiples of 8, as bytes; and where each begins."""
    try:
        data = [text.encode("utf-8", "surrogateescape") for text in texts]
    except (AttributeError, UnicodeEncodeError):
        data = [_bytes(text, what) for text in texts]
    lengths = np.fromiter(map(len, data), np.int64, len(data))
    sizes = (lengths + (2 * _WORD - 1)) & -_WORD
    ends = np.cumsum(sizes)
    starts = ends - sizes
    memory = np.zeros(int(sizes.sum()), np.uint8)
    memory.view(np.int64)[starts // _WORD] = lengths
    flat = np.frombuffer(b"".join(data), np.uint8)
    shift = starts + _WORD - (np.cumsum(lengths) - lengths)
    memory[np.arange(len(flat)) + np.repeat(shift, lengths)] = flat
    return memory, starts


def _bytes(text: Any, what: str) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise RuntimeFault(f"{what} holds {text!r} of the type {type(text).__name__}, which is no string")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise RuntimeFault(f"{what} holds {text!r}, which is no Unicode text: {error}") from error


def encode(array: Array, name: str) -> tuple[Array, Any]:
    """The addresses of an array's strings as int64, and what owns their memory."""
    memory, starts = records(array.ravel().tolist(), f"the input {name!r}")
    owner = np.append(memory, np.zeros(_WORD, np.uint8))  # a byte behind the last string may be looked at
    base = owner.__array_interface__["data"][0]
    return (starts + base).reshape(array.shape), owner


def decode(addresses: Array) -> Array:
    """The strings at addresses, as an object array of str."""
    result = np.empty(addresses.shape, object)
    length, text = ctypes.c_int64.from_address, ctypes.string_at
    result.reshape(-1)[:] = [
        text(a + _WORD, length(a).value).decode("utf-8", "surrogateescape") for a in addresses.ravel().tolist()
    ]
    return result
