"""``TypeProto`` to the IR's types and back, and to the texts that operator schemas use for types."""

from __future__ import annotations

import re
from collections.abc import Iterable

import onnx

from sardonyx.errors import CompileError
from sardonyx.ir.types import MapType, NoneType, OptionalType, SequenceType, TensorType, Type, UnrankedType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimLike, symbol
from sardonyx_runtime.dtypes import DType

__all__ = ["UNKNOWN_TYPE", "Symbols", "schema_text", "to_proto", "type_from_proto", "unranked"]

UNKNOWN_TYPE = UnrankedType(None)

# What exporters write for "unknown": nothing, signs only, a negative number, Python's None.
_NO_NAME = re.compile(r"[\W_]*|-\d+|None")


class Symbols:
    """The symbols of a model's dims: one for each name, and fresh ones for dims without a name."""

    def __init__(self, values: Iterable[onnx.ValueInfoProto] = ()) -> None:
        """``values``: all whose dim names a fresh symbol has to avoid."""
        self._named: dict[str, Dim] = {}
        self._fresh: set[str] = set()
        for value in values:
            for name in _dim_params(value.type):
                self.named(name)

    def named(self, name: str) -> Dim | None:
        """The symbol of a dim_param; None if that is no proper name."""
        if not isinstance(name, str):  # no UTF-8
            return None
        name = name.strip()
        found = self._named.get(name)
        if found is None and not _NO_NAME.fullmatch(name):
            found = self._named[name] = symbol(name)
        return found

    def fresh(self, tensor: str, axis: int) -> Dim:
        """A symbol of its own, ``<tensor>.d<axis>``."""
        name = f"{tensor}.d{axis}"
        while name in self._named or name in self._fresh:
            name += "_"
        self._fresh.add(name)
        return symbol(name)


def _dim_params(proto: onnx.TypeProto) -> Iterable[str]:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return [d.dim_param for d in proto.tensor_type.shape.dim if d.dim_param]
    if kind == "map_type":
        return _dim_params(proto.map_type.value_type)
    if kind in ("sequence_type", "optional_type"):
        return _dim_params(getattr(proto, kind).elem_type)
    return []


def type_from_proto(proto: onnx.TypeProto, name: str, symbols: Symbols) -> Type:
    """The IR's type; ``name`` is that of the value, for fresh symbols and messages.

    A type that the model leaves out is ``UNKNOWN_TYPE``.  CompileError for sparse and opaque types.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        dtype = _dtype(tensor.elem_type, name)
        if dtype is None:
            return UNKNOWN_TYPE
        if not tensor.HasField("shape"):
            return UnrankedType(dtype)
        return TensorType(dtype, tuple(_dim(d, name, i, symbols) for i, d in enumerate(tensor.shape.dim)))
    if kind == "sequence_type":
        return SequenceType(type_from_proto(proto.sequence_type.elem_type, name, symbols))
    if kind == "optional_type":
        return OptionalType(type_from_proto(proto.optional_type.elem_type, name, symbols))
    if kind == "map_type":
        key = _dtype(proto.map_type.key_type, name)
        if key is None:
            raise CompileError(f"the map type of {name!r} has no key type")
        return MapType(key, type_from_proto(proto.map_type.value_type, name, symbols))
    if kind is None:
        return UNKNOWN_TYPE
    raise CompileError(f"{name!r} has a {kind.replace('_', ' ')}, which is not supported")


def _dtype(number: int, name: str) -> DType | None:
    if number == onnx.TensorProto.UNDEFINED:
        return None
    try:
        return dtypes.by_onnx(number)
    except KeyError:
        raise CompileError(
            f"{name!r} has the element type {number}, which this version does not know"
        ) from None


def _dim(proto: onnx.TensorShapeProto.Dimension, name: str, axis: int, symbols: Symbols) -> DimLike:
    kind = proto.WhichOneof("value")
    if kind == "dim_value" and proto.dim_value >= 0:
        return int(proto.dim_value)
    found = symbols.named(proto.dim_param) if kind == "dim_param" else None
    return found if found is not None else symbols.fresh(name, axis)


def unranked(kind: Type) -> Type:
    """The type with element types only: what a subgraph's declared input is good for."""
    if isinstance(kind, TensorType):
        return UnrankedType(kind.dtype)
    if isinstance(kind, SequenceType):
        return SequenceType(unranked(kind.element))
    if isinstance(kind, OptionalType):
        return OptionalType(unranked(kind.element))
    if isinstance(kind, MapType):
        return MapType(kind.key, unranked(kind.element))
    return kind


def to_proto(kind: Type | None) -> onnx.TypeProto:
    """The TypeProto of a type; an empty one for an unknown type and for nothing."""
    proto = onnx.TypeProto()
    if isinstance(kind, (TensorType, UnrankedType)):
        proto.tensor_type.elem_type = kind.dtype.onnx if kind.dtype else 0
        if isinstance(kind, TensorType):
            proto.tensor_type.shape.SetInParent()
            for dim in kind.shape:
                where = proto.tensor_type.shape.dim.add()
                if isinstance(dim, int):
                    where.dim_value = dim
                else:
                    where.dim_param = str(dim)
    elif isinstance(kind, SequenceType):
        proto.sequence_type.elem_type.CopyFrom(to_proto(kind.element))
    elif isinstance(kind, OptionalType):
        proto.optional_type.elem_type.CopyFrom(to_proto(kind.element))
    elif isinstance(kind, MapType):
        proto.map_type.key_type = kind.key.onnx
        proto.map_type.value_type.CopyFrom(to_proto(kind.element))
    return proto


def schema_text(kind: Type | DType | None) -> str | None:
    """The type as ONNX schemas write it, e.g. ``seq(tensor(float))``; None where it is not known (fully)."""
    if isinstance(kind, DType):
        return f"tensor({kind.onnx_name})"
    if isinstance(kind, (TensorType, UnrankedType)):
        return f"tensor({kind.dtype.onnx_name})" if kind.dtype else None
    if isinstance(kind, (SequenceType, OptionalType)):
        inner = schema_text(kind.element)
        return inner and f"{'seq' if isinstance(kind, SequenceType) else 'optional'}({inner})"
    if isinstance(kind, MapType):
        element = schema_text(kind.element)
        return element and f"map({kind.key.onnx_name},{element})"
    assert kind is None or isinstance(kind, NoneType), kind
    return None
