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
from sardonyx_runtime.frame import function_address

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


def encode(array: Array, name: str, gate: Any = None) -> tuple[Array, Any]:
    """The addresses of an array's strings as int64, and what owns their memory.

    ``array`` is a C-contiguous object array.  ``gate`` is native code that does it (None: in Python).
    RuntimeFault names what is no string.
    """
    if gate is not None:
        addresses = np.empty(array.shape, np.int64)
        frame = _frame(_TAKE, array, addresses)
        if gate(ctypes.byref(frame)) == 0:
            memory = np.empty(
                frame[_SIZE] + _WORD, np.uint8
            )  # a byte behind the last string may be looked at
            frame[_MEMORY] = memory.__array_interface__["data"][0]
            if gate(ctypes.byref(frame)) == 0:
                return addresses, memory
    memory, starts = records(array.ravel().tolist(), f"the input {name!r}")
    owner = np.append(memory, np.zeros(_WORD, np.uint8))
    base = owner.__array_interface__["data"][0]
    return (starts + base).reshape(array.shape), owner


# Words of the gate's frame for strings; the compiler's ``codegen/text_gate.py`` has the table.
_TAKE, _GIVE = 0, 1
_MEMORY, _SIZE, _FRAME_WORDS = 5, 10, 11
_ESCAPE = ctypes.create_string_buffer(b"surrogateescape")


def _frame(direction: int, cells: Array, addresses: Array) -> Any:
    functions = ("PyUnicode_AsUTF8AndSize", "PyUnicode_DecodeUTF8")
    frame = (ctypes.c_int64 * _FRAME_WORDS)()
    places = [a.__array_interface__["data"][0] for a in (cells, addresses)]
    frame[:] = [
        *(0, direction, places[0], cells.size, places[1], 0),
        *(function_address(n) for n in (functions[direction], "PyErr_Clear", "Py_DecRef")),
        *(ctypes.addressof(_ESCAPE), 0),
    ]
    return frame


class _Memory:
    """A range of memory as an array: NumPy touches only what is asked for."""

    def __init__(self, address: int, count: int, kind: str) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": kind, "version": 3}


def decode(addresses: Array, gate: Any = None) -> Array:
    """The strings at addresses (C-contiguous), as an object array of str."""
    result = np.empty(addresses.shape, object)
    if not addresses.size:
        return result
    if gate is not None and gate(ctypes.byref(_frame(_GIVE, result, addresses))) == 0:
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
