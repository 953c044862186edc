"""Constant tensors as text: MLIR's ``dense<...>`` literals, resource blobs, and their inverses.

| form | when |
|---|---|
| `dense<[1.0, 2.0]>` | few elements |
| `dense<0.0>` | all elements the same bits, however many |
| `dense<"0x0000803F">` | many elements in place: the memory, little endian |
| `#sdx.strings<type, [...]>` | string tensors that hold bytes, and all of the generic form: not every tool reads `dense<["a"]>` |
| `dense_resource<key>` | many elements elsewhere: the trailing section, another module, a file |
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from sardonyx.ir.attributes import Dense
from sardonyx.ir.lexical import legal_float, quote, quote_bytes, resource_text
from sardonyx.ir.types import TensorType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = [
    "ElidedDense",
    "blob_of",
    "dense_text",
    "from_blob",
    "from_literals",
    "from_memory",
]

_INLINE = 16  # elements written out singly where a limit is not given
_SPLAT = 1 << 16  # elements looked at to find out whether all are the same
_ALIGNMENT = 64


class ElidedDense(Dense):
    """A constant of which the text gives only type and key: comparing and printing work, the data do not."""

    __slots__ = ("_error",)

    def __init__(self, type: TensorType, key: str, error: Callable[[], Exception]) -> None:
        self.dtype = type.dtype
        self.__dict__.update(type=type, key=key)
        self._error = error

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(d) for d in self.type.shape if isinstance(d, int))

    @property
    def array(self) -> np.ndarray[Any, Any]:  # type: ignore[override]
        raise self._error()


# --- printing ----------------------------------------------------------------------------------------


def dense_text(dense: Dense, elide: int | None, needed: dict[str, Dense], *, generic: bool = False) -> str:
    """A constant as text.  One of more than ``elide`` elements is named by its key and put into ``needed``.

    With ``elide=None`` everything is in place, in hexadecimal beyond a few elements.
    """
    if isinstance(dense, ElidedDense):
        return f"dense_resource<{resource_text(dense.key)}> : {dense.type}"
    if dense.dtype is dtypes.string:
        items = dense.array.reshape(-1).tolist()
        if elide is None or len(items) <= elide:
            if not generic and all(type(s) is str for s in items):
                return f"dense<{_nested([quote(s) for s in items], dense.shape)}> : {dense.type}"
            texts = (quote(s) if isinstance(s, str) else f"#sdx.bytes<{quote_bytes(s)}>" for s in items)
            return f"#sdx.strings<{dense.type}, [{', '.join(texts)}]>"
    else:
        # MLIR packs booleans in a blob, but not in every release: they are always written singly.
        limit = elide if elide is not None else dense.array.size if dense.dtype is dtypes.boolean else _INLINE
        if dense.array.size <= limit:
            return f"dense<{_nested(_element_texts(dense.array, dense.dtype), dense.shape)}> : {dense.type}"
        if _is_splat(dense.array):
            (text,) = _element_texts(dense.array.reshape(-1)[:1], dense.dtype)
            return f"dense<{text}> : {dense.type}"
        if elide is None:
            return f'dense<"0x{_memory(dense.array).hex().upper()}"> : {dense.type}'
    needed[dense.key] = dense
    return f"dense_resource<{resource_text(dense.key)}> : {dense.type}"


def blob_of(dense: Dense) -> str:
    """The hexadecimal blob of the resource section: the alignment in four bytes, then the memory.

    A string is a letter (``s`` text, ``b`` bytes), its length in four bytes, and its bytes.
    """
    if dense.dtype is dtypes.string:
        parts = []
        for item in dense.array.reshape(-1).tolist():
            data = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else bytes(item)
            parts.append(struct.pack("<cI", b"s" if isinstance(item, str) else b"b", len(data)) + data)
        memory = b"".join(parts)
    else:
        memory = _memory(dense.array)
    return f"0x{struct.pack('<I', _ALIGNMENT).hex()}{memory.hex()}".upper().replace("X", "x", 1)


def _memory(array: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def _is_splat(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements have the same bits (a NaN equals itself, a zero of the other sign does not)."""
    if not 1 < array.size <= _SPLAT:
        return False
    rows = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    return bool((rows[:2] == rows[0]).all() and (rows == rows[0]).all())


def _nested(texts: Sequence[str], shape: tuple[int, ...]) -> str:
    """Element texts in brackets by shape; nothing at all for an empty tensor, as MLIR writes it."""
    if not texts and 0 in shape:
        return ""
    if not shape:
        return texts[0]
    step = len(texts) // shape[0]
    return f"[{', '.join(_nested(texts[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0]))}]"


def _float_texts(array: np.ndarray[Any, Any], dtype: DType) -> list[str]:
    """The shortest decimals that give the elements back, or their bits in hexadecimal."""
    bits = array.view(np.dtype(f"u{dtype.itemsize}")).tolist()
    digits = max(dtype.bits, 8) // 4
    texts = []
    for element, pattern in zip(array, bits, strict=True):
        value = float(element)
        for candidate in (str(element), repr(value)) if math.isfinite(value) else ():
            text = legal_float(candidate)
            if text and _floats([text], dtype).view(f"u{dtype.itemsize}")[0] == pattern:
                texts.append(text)
                break
        else:
            texts.append(f"0x{pattern:0{digits}X}")
    return texts


def _component(dtype: DType) -> DType:
    return {dtypes.c64: dtypes.f32, dtypes.c128: dtypes.f64}[dtype]


def _complex_texts(array: np.ndarray[Any, Any], dtype: DType) -> list[str]:
    part = _component(dtype)
    parts = _float_texts(array.view(part.numpy), part)
    return [f"({re}, {im})" for re, im in zip(parts[::2], parts[1::2], strict=True)]


_TEXTS: dict[str, Callable[[np.ndarray[Any, Any], DType], list[str]]] = {
    "float": _float_texts,
    "complex": _complex_texts,
    "signed": lambda array, _: [str(int(x)) for x in array],
    "unsigned": lambda array, _: [str(int(x)) for x in array],
    "bool": lambda array, _: ["true" if x else "false" for x in array],
}


def _element_texts(array: np.ndarray[Any, Any], dtype: DType) -> list[str]:
    return _TEXTS[dtype.kind](np.ascontiguousarray(array).reshape(-1), dtype)


# --- parsing -----------------------------------------------------------------------------------------


def _floats(literals: Iterable[str], dtype: DType) -> np.ndarray[Any, Any]:
    literals = list(literals)
    array = np.array([0.0 if t.startswith("0x") else float(t) for t in literals], np.float64)
    with np.errstate(over="ignore"):
        array = array.astype(dtype.numpy)
    for i, text in enumerate(literals):
        if text.startswith("0x"):
            array.view(f"u{dtype.itemsize}")[i] = int(text, 16)
    return array


def _integers(literals: Sequence[str], dtype: DType) -> np.ndarray[Any, Any]:
    values = [int(t, 0) for t in literals]
    signed = dtype.kind == "signed"
    least = -(1 << dtype.bits - 1) if signed else 0
    for value in values:
        if not least <= value < least + (1 << dtype.bits):
            raise ValueError(f"{value} does not fit {dtype}")
    return np.array(values, np.int64 if signed else np.uint64).astype(dtype.numpy)


def _booleans(literals: Sequence[str], _: DType) -> np.ndarray[Any, Any]:
    return np.array([{"true": True, "false": False, "1": True, "0": False}[t] for t in literals], np.bool_)


def _strings(literals: Sequence[Any], _: DType) -> np.ndarray[Any, Any]:
    array = np.empty(len(literals), object)
    array[:] = literals
    return array


def _complexes(literals: Sequence[str], dtype: DType) -> np.ndarray[Any, Any]:
    return _floats(literals, _component(dtype)).view(dtype.numpy)


_ARRAYS: dict[str, Callable[[Any, DType], np.ndarray[Any, Any]]] = {
    "float": _floats,
    "complex": _complexes,
    "signed": _integers,
    "unsigned": _integers,
    "bool": _booleans,
    "string": _strings,
}


def from_literals(literals: Sequence[Any], type: TensorType) -> Dense:
    """The constant of these element literals (two for a complex element); ValueError if they do not fit.

    One element stands for all.
    """
    shape = _static(type)
    array = _ARRAYS[type.dtype.kind](literals, type.dtype)
    if array.size == 1:
        array = np.full(shape, array[0], array.dtype)
    elif array.size != math.prod(shape):
        raise ValueError(f"{array.size} elements for {type}")
    return Dense(array.reshape(shape), type.dtype)


def from_memory(data: bytes, type: TensorType) -> Dense:
    """The constant whose memory this is; ValueError if the size does not fit."""
    shape = _static(type)
    if len(data) != math.prod(shape) * type.dtype.itemsize:
        raise ValueError(f"{len(data)} bytes for {type}")
    return Dense(np.frombuffer(data, type.dtype.numpy).reshape(shape), type.dtype)


def from_blob(blob: str, type: TensorType) -> Dense:
    """The constant of a blob of the resource section: the inverse of :func:`blob_of`."""
    if not blob.startswith("0x"):
        raise ValueError("a blob begins with 0x")
    data = bytes.fromhex(blob[2:])[4:]
    if type.dtype is not dtypes.string:
        return from_memory(data, type)
    items: list[Any] = []
    at = 0
    while at < len(data):
        tag, length = struct.unpack_from("<cI", data, at)
        at += 5 + length
        raw = data[at - length : at]
        items.append(raw if tag == b"b" else raw.decode("utf-8", "surrogatepass"))
    shape = _static(type)
    if len(items) != math.prod(shape):
        raise ValueError(f"{len(items)} strings for {type}")
    return Dense(_strings(items, type.dtype).reshape(shape), type.dtype)


def _static(type: TensorType) -> tuple[int, ...]:
    if not type.is_static:
        raise ValueError(f"a constant of the dynamic type {type}")
    return tuple(int(d) for d in type.shape if isinstance(d, int))
