"""``AttributeProto`` to plain Python values and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onnx
from onnx import numpy_helper

from sardonyx.errors import CompileError
from sardonyx.frontend.references import AttributeReference
from sardonyx.frontend.tensors import TensorReader
from sardonyx.frontend.types_from_proto import Symbols, to_proto, type_from_proto
from sardonyx.ir.attributes import Dense
from sardonyx.ir.types import Type

__all__ = [
    "GRAPH_KINDS",
    "attribute_kind",
    "decode_attribute",
    "describe_kind",
    "encode_attribute",
]

_Kind = onnx.AttributeProto

GRAPH_KINDS = (_Kind.GRAPH, _Kind.GRAPHS)

_DESCRIPTION = {
    _Kind.FLOAT: "a float",
    _Kind.INT: "an integer",
    _Kind.STRING: "a string",
    _Kind.TENSOR: "a tensor",
    _Kind.GRAPH: "a graph",
    _Kind.SPARSE_TENSOR: "a sparse tensor",
    _Kind.TYPE_PROTO: "a type",
    _Kind.FLOATS: "a list of floats",
    _Kind.INTS: "a list of integers",
    _Kind.STRINGS: "a list of strings",
    _Kind.TENSORS: "a list of tensors",
    _Kind.GRAPHS: "a list of graphs",
    _Kind.SPARSE_TENSORS: "a list of sparse tensors",
    _Kind.TYPE_PROTOS: "a list of types",
}


def describe_kind(kind: int) -> str:
    """``a list of integers`` for ``AttributeProto.INTS``."""
    return _DESCRIPTION.get(kind, f"of the unknown kind {kind}")


def attribute_kind(attribute: onnx.AttributeProto) -> int:
    """The kind of an attribute, from its fields where ``type`` was left out; 0 if there is none."""
    if attribute.type:
        return int(attribute.type)
    for kind, (field, _) in _DECODERS.items():
        filled = getattr(attribute, field) if field.endswith("s") and field != "s" else None
        if filled if filled is not None else attribute.HasField(field):
            return int(kind)
    return int(_Kind.GRAPH) if attribute.HasField("g") else 0


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _type(proto: onnx.TypeProto, name: str) -> Type:
    return type_from_proto(proto, name, Symbols())


_Decoder = Callable[[Any, TensorReader, str], Any]

# Kind -> the field that holds it, and how one element of it becomes a Python value.
_DECODERS: dict[int, tuple[str, _Decoder]] = {
    _Kind.FLOAT: ("f", lambda value, *_: value),
    _Kind.INT: ("i", lambda value, *_: value),
    _Kind.STRING: ("s", lambda value, *_: _text(value)),
    _Kind.TENSOR: ("t", lambda value, reader, what: reader.read(value, what)),
    _Kind.SPARSE_TENSOR: ("sparse_tensor", lambda value, reader, what: reader.read_sparse(value, what)),
    _Kind.TYPE_PROTO: ("tp", lambda value, _, what: _type(value, what)),
    _Kind.FLOATS: ("floats", lambda values, *_: tuple(values)),
    _Kind.INTS: ("ints", lambda values, *_: tuple(values)),
    _Kind.STRINGS: ("strings", lambda values, *_: tuple(map(_text, values))),
    _Kind.TENSORS: ("tensors", lambda values, reader, what: tuple(reader.read(v, what) for v in values)),
    _Kind.SPARSE_TENSORS: (
        "sparse_tensors",
        lambda values, reader, what: tuple(reader.read_sparse(v, what) for v in values),
    ),
    _Kind.TYPE_PROTOS: ("type_protos", lambda values, _, what: tuple(_type(v, what) for v in values)),
}


def decode_attribute(attribute: onnx.AttributeProto, reader: TensorReader, kind: int = 0) -> Any:
    """The value of an attribute that is no graph: int, float, str, bytes, Dense, Type or a tuple of one."""
    entry = _DECODERS.get(kind or attribute_kind(attribute))
    if entry is None:
        raise CompileError(f"the attribute {attribute.name!r} is {describe_kind(attribute.type)}")
    field, decode = entry
    return decode(getattr(attribute, field), reader, f"the attribute {attribute.name!r}")


def encode_attribute(name: str, value: Any, kind: int) -> onnx.AttributeProto:
    """The inverse of :func:`decode_attribute`, for ``kind`` as the schema gives it."""
    proto = onnx.AttributeProto(name=name, type=kind)
    if isinstance(value, AttributeReference):
        proto.ref_attr_name = value.name
        return proto
    if kind == _Kind.SPARSE_TENSOR:  # decoded to a dense one
        kind = proto.type = _Kind.TENSOR
    field = _DECODERS[kind][0]
    if kind in (_Kind.FLOAT, _Kind.INT):
        setattr(proto, field, value)
    elif kind == _Kind.STRING:
        proto.s = _bytes(value)
    elif kind == _Kind.TENSOR:
        proto.t.CopyFrom(_tensor(value))
    elif kind == _Kind.TYPE_PROTO:
        proto.tp.CopyFrom(to_proto(value))
    else:
        getattr(proto, field).extend(_encoded(value, kind))
    return proto


def _encoded(values: Iterable[Any], kind: int) -> list[Any]:
    if kind == _Kind.STRINGS:
        return [_bytes(v) for v in values]
    if kind == _Kind.TENSORS:
        return [_tensor(v) for v in values]
    if kind == _Kind.TYPE_PROTOS:
        return [to_proto(v) for v in values]
    return list(values)


def _bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _tensor(value: Dense) -> onnx.TensorProto:
    return numpy_helper.from_array(value.array)
