"""Strings between Python and native code.

In native memory an element of a string tensor is the address of a record: its length in bytes (int64), then
its bytes, in UTF-8.  Bytes that are no UTF-8 are lone surrogates in Python (``surrogateescape``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.feeds import Array

__all__ = ["decode", "encode", "records"]

_WORD = 8


def records(texts: Sequence[Any], what: str = "") -> tuple[Array, Array]:
    """The records of strings, one behind the other at multiples of 8, as bytes; and where each begins."""
    joined, lengths = _joined(texts, what)
    sizes = (lengths + (2 * _WORD - 1)) & -_WORD
    starts = np.cumsum(sizes) - sizes
    memory = np.zeros(int(sizes.sum()), np.uint8)
    memory.view(np.int64)[starts // _WORD] = lengths
    memory[_places(starts + _WORD, lengths)] = np.frombuffer(joined, np.uint8)
    return memory, starts


def _places(starts: Array, lengths: Array) -> Array:
    """The places of all bytes of strings that begin at ``starts``, string by string."""
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(shift, lengths))


def _joined(texts: Sequence[Any], what: str) -> tuple[bytes, Array]:
    """The bytes of all strings, and how many are each's."""
    data: Sequence[Any] = texts
    try:
        joined = "".join(texts)
    except TypeError:
        joined = "\x80"
    if joined.isascii():
        whole = joined.encode()
    else:
        data = [_bytes(text, what) for text in texts]
        whole = b"".join(data)
    return whole, np.fromiter(map(len, data), np.int64, len(data))


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


class _Memory:
    """A range of memory as an array: NumPy touches only what is asked for."""

    def __init__(self, address: int, count: int, kind: str) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": kind, "version": 3}


def decode(addresses: Array) -> Array:
    """The strings at addresses, as an object array of str."""
    result = np.empty(addresses.shape, object)
    if not addresses.size:
        return result
    flat = addresses.ravel()
    base = int(flat.min())
    offsets = flat - base
    words = np.asarray(_Memory(base, int(offsets.max()) // _WORD + 1, "<i8"))
    lengths = words[offsets // _WORD]
    ends = np.cumsum(lengths)
    size = int((offsets + lengths).max()) + _WORD
    data = np.asarray(_Memory(base, size, "|u1"))[_places(offsets + _WORD, lengths)].tobytes()
    pairs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    if data.isascii():
        text = data.decode()
        result.reshape(-1)[:] = [text[a:b] for a, b in pairs]
    else:
        result.reshape(-1)[:] = [data[a:b].decode("utf-8", "surrogateescape") for a, b in pairs]
    return result
