"""Which operators are supported, at which versions, and how: from the registry and ONNX's own schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from sardonyx import ops
from sardonyx.errors import CompileError
from sardonyx.frontend import import_function, schema_function, schemas
from sardonyx.ir.graph import Function, Op, walk
from sardonyx.ir.types import NoneType, TensorType, Type
from sardonyx.ops import registry
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbol

__all__ = ["OperatorRow", "Support", "operator_rows", "ranges"]

assert ops.__all__  # the import fills the registry


class Support(StrEnum):
    """How an operator is supported at a version."""

    DIRECT = "direct"  # a function of ours builds its core ops
    BODY = "function body"  # by ONNX's own definition, in operators that are supported
    DEPRECATED = "deprecated"  # no longer an operator
    NONE = "not supported"


@dataclass(frozen=True)
class OperatorRow:
    """One operator: for each version at which ONNX defines or changes it, how it is supported."""

    name: str
    domain: str
    versions: Mapping[int, Support]

    def at(self, *kinds: Support) -> list[int]:
        """The versions that are supported in one of these ways."""
        return [v for v, support in self.versions.items() if support in kinds]

    @property
    def supported(self) -> bool:
        """Whether any version is."""
        return bool(self.at(Support.DIRECT, Support.BODY))


def operator_rows(name: str | None = None) -> list[OperatorRow]:
    """The table by domain and name: of the operators of one name, or of all that ONNX defines."""
    return [
        OperatorRow(op_type, domain, {v: _support(op_type, domain, v) for v in versions})
        for (domain, op_type), versions in schemas.operators().items()
        if name in (None, op_type)
    ]


@cache
def _support(op_type: str, domain: str, version: int) -> Support:
    try:
        schema = schemas.find(op_type, domain, version)
    except CompileError:
        return Support.DEPRECATED
    if registry.find(op_type, domain, version) is not None:
        return Support.DIRECT
    body = _body(schema, version)
    return Support.BODY if body is not None and all(map(_is_known, walk(body))) else Support.NONE


def _is_known(op: Op) -> bool:
    """Whether an operation of a function body is supported (no body here calls itself)."""
    if op.level != "onnx" or op.name in ("onnx.none", "onnx.yield"):
        return True
    support = _support(op.kind, op.attributes.get("sdx.domain", ""), op.attributes["sdx.opset"])
    return support is Support.DIRECT or (support is Support.BODY and not op.regions)


def _body(schema: schemas.Schema, version: int) -> Function | None:
    """The operator's function body for typical operands; None if it has none."""
    types = [_typical_type(p) if p.option != "optional" else NoneType() for p in schema.inputs]
    try:
        proto = schema_function(schema.name, schema.domain, version, types, schema.defaults)
        return None if proto is None else import_function(proto)
    except CompileError:
        return None


def _typical_type(parameter: schemas.Parameter) -> Type:
    for dtype in (dtypes.f32, dtypes.i64, dtypes.i32, dtypes.boolean):
        if f"tensor({dtype.onnx_name})" in parameter.types:
            return TensorType(dtype, tuple(symbol(n) for n in ("n", "c", "h", "w")))
    return NoneType()


def ranges(versions: Sequence[int], defined: Sequence[int], newest: int) -> str:
    """Versions as ranges of opsets: ``1-5, 13-28`` for those supported among those defined."""
    spans: list[list[int]] = []
    for version, following in zip(defined, [*defined[1:], newest + 1], strict=True):
        if version not in versions:
            continue
        if spans and spans[-1][1] == version - 1:
            spans[-1][1] = following - 1
        else:
            spans.append([version, following - 1])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
