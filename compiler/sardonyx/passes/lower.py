"""resolve+lower: from ONNX nodes to core ops.

Each node's function in ``ops/`` builds core ops; building them computes types and symbolic shapes, so
this pass is the shape inference as well.  Type constraints are checked against the schema first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sardonyx import ops
from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError, at_node
from sardonyx.frontend import schemas
from sardonyx.ir.graph import Block, Function, Module, Op, Value
from sardonyx.ir.types import NoneType, UnrankedType
from sardonyx.ops import registry

__all__ = ["LowerToCore"]

assert ops.__all__  # the import fills the registry


@dataclass(frozen=True)
class LowerToCore:
    """Replace every ``onnx`` op by core ops.  Requires: no calls of model functions left (legalise)."""

    name = "lower"

    def run(self, module: Module) -> bool:
        main = module.main
        module.functions = {}
        module.add(_lower_function(main))
        return True


def _lower_function(source: Function) -> Function:
    body = Block()
    values: dict[Value, Value] = {}
    for argument in source.arguments:
        if isinstance(argument.type, UnrankedType):
            raise CompileError(
                f"the graph input {argument.name!r} has no shape",
                hint="give the input a shape; single dims may stay symbolic",
            )
        values[argument] = body.add_argument(argument.type, argument.name)
    builder = Builder(body)
    for op in source.body.ops:
        lower_op(builder, op, values)
    return Function(source.name, body, dict(source.attributes), source.location)


def lower_op(builder: Builder, op: Op, values: dict[Value, Value]) -> None:
    """Lower one op of the onnx level; ``values`` maps its operands and receives its results."""
    builder.location = op.location
    if op.name == "core.constant":
        values[op.result] = builder.constant(op.attributes["value"])
        if not values[op.result].name:
            values[op.result].name = op.result.name
        return
    if op.name == "core.return":
        builder.emit("core.return", [values[o] for o in op.operands], (), {})
        return
    if op.name == "onnx.none":
        return
    operands = [values.get(o) if not isinstance(o.type, NoneType) else None for o in op.operands]
    named = [(o.name, v.type) for o, v in zip(op.operands, operands, strict=True) if v is not None]
    try:
        results = _call(builder, op, operands)
    except CompileError as error:
        raise at_node(error, op.location, named) from error
    for result, value in zip(op.results, results, strict=False):
        if value is not None:
            values[result] = value
            if not value.name and value.op is not None:
                value.name = result.name
    missing = [r.name for r in op.results[len(results) :] if r.name]
    if missing:
        raise CompileError(f"the output {missing[0]!r} is not supported", location=op.location)


def _call(builder: Builder, op: Op, operands: list[Value | None]) -> tuple[Value | None, ...]:
    op_type, domain = op.kind, op.attributes.get("sdx.domain", "")
    opset: int = op.attributes["sdx.opset"]
    types = [NoneType() if o is None else o.type for o in operands]
    message = schemas.check_types(op_type, domain, opset, types, [o.name for o in op.operands])
    if message:
        raise CompileError(message)
    entry = registry.find(op_type, domain, opset)
    if entry is None:
        raise CompileError(
            f"the operator {op_type} of opset {opset} is not supported",
            hint="`sardonyx ops` lists what is supported",
        )
    builder.opset = opset
    attributes: Mapping[str, Any] = {
        **schemas.find(op_type, domain, opset).defaults,
        **{k: v for k, v in op.attributes.items() if not k.startswith("sdx.")},
    }
    result = entry.function(builder, *operands, **attributes)
    return result if isinstance(result, tuple) else (result,)
