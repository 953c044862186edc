"""resolve+lower: from ONNX nodes to core ops.

Each node's function in ``ops/`` builds core ops; building them computes types and symbolic shapes, so
this pass is the shape inference as well.  Type constraints are checked against the schema first.
Calls of model-local functions are inlined, and so are ONNX's own function bodies for operators that
have no function of ours: a body needs the operands' types, which are known only here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx import ops
from sardonyx.core.aggregates import flatten, is_plain, rebuild, structure_of
from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError, NeedsConstant, at_node
from sardonyx.frontend import import_function, schema_function, schemas
from sardonyx.frontend.references import AttributeReference
from sardonyx.ir.graph import UNKNOWN, Block, Function, Location, Module, Op, Value
from sardonyx.ir.types import NoneType, OptionalType, SequenceType, TensorType
from sardonyx.ops import registry

__all__ = ["LowerToCore", "is_supported"]

OnNode = Callable[[Op, Sequence["Value | None"], Sequence["Value | None"]], None]
Body = Callable[[Builder, Sequence[Value]], list[Value]]

_DEEPEST = 64  # calls within calls


@dataclass(frozen=True)
class LowerToCore:
    """Replace every ``onnx`` op by core ops.  Requires the onnx level; ensures typed core ops only.

    ``on_node(op, operands, results)`` is told of every node with the core values that it takes and gives.
    """

    structures: Mapping[str, Any] | None = None  # of inputs that are sequences or optionals, by name
    on_node: OnNode | None = None
    name: str = field(default="lower", init=False)

    def run(self, module: Module) -> bool:
        source = module.main
        lowering = _Lowering(
            module.functions, Builder(Block()), structures=self.structures, on_node=self.on_node
        )
        module.functions = {source.name: lowering.main(source)}
        return True


def is_supported(op_type: str, domain: str, opset: int) -> str:
    """How an operator is supported at an opset: ``direct``, ``function`` (by ONNX's body) or empty."""
    if registry.find(op_type, domain, opset) is not None:
        return "direct"
    schema = schemas.raw(op_type, domain, opset)
    if any(v <= opset for v in schema.function_opset_versions):
        return "function"
    return ""


@dataclass
class _Lowering:
    functions: Mapping[str, Function]
    builder: Builder
    depth: int = 0
    structures: Mapping[str, Any] | None = None
    on_node: OnNode | None = None

    def main(self, source: Function) -> Function:
        body = self.builder.block
        values: dict[Value, Value] = {}
        for argument in source.arguments:
            if isinstance(argument.type, (SequenceType, OptionalType)):
                values[argument] = self.aggregate(body, argument)
                continue
            if not isinstance(argument.type, TensorType):
                raise CompileError(
                    f"the graph input {argument.name!r} is {argument.type}",
                    hint="inputs have to be tensors of known rank; single dims may stay symbolic",
                )
            values[argument] = body.add_argument(argument.type, argument.name)
        results = self.block(source.body, values, {}, UNKNOWN)
        self.builder.location = UNKNOWN
        for name, result in zip(source.attributes["outputs"], results, strict=True):
            if result is None:
                raise CompileError(f"the output {name!r} is never computed")
        attributes = dict(source.attributes)
        if not is_plain(results):
            if self.structures is None:
                raise NeedsConstant("the model gives sequences or optionals", "")
            attributes["structure"] = tuple(structure_of(r) for r in results)
        leaves = [leaf for r in results for leaf in flatten(r)]
        if len(leaves) != len(results):
            attributes["outputs"] = tuple(f"output{i}" for i in range(len(leaves)))
        self.builder.emit("core.return", leaves, (), {})
        return Function(source.name, body, attributes, source.location)

    def aggregate(self, body: Block, argument: Value) -> Any:
        """The argument tensors of an input that is a sequence or an optional."""
        if self.structures is None or argument.name not in self.structures:
            raise NeedsConstant(
                f"the input {argument.name!r} is {argument.type}: its structure decides", argument.name
            )

        def leaf(structure: Any) -> Value:
            _, dtype, shape = structure
            return body.add_argument(TensorType(dtype, shape), f"{argument.name}.{len(body.arguments)}")

        return rebuild(self.structures[argument.name], argument.type, leaf)

    def block(
        self, block: Block, values: dict[Value, Value], attributes: Mapping[str, Any], outer: Location
    ) -> list[Value | None]:
        """Lower a body whose arguments stand in ``values``; gives what its last op returns."""
        for op in block.ops:
            if op.name in ("core.return", "onnx.yield"):
                return [values.get(o) for o in op.operands]
            if op.name == "onnx.none":
                continue
            location = outer | op.location if outer.origins else op.location
            self.builder.location = location
            operands = [values.get(o) for o in op.operands]
            named = [(o.name, v.type) for o, v in zip(op.operands, operands, strict=True) if v is not None]
            try:
                results = self.node(op, operands, attributes, values)
            except CompileError as error:
                raise at_node(error, location, named) from error
            self.name_results(op, results, values)
            if self.on_node is not None:
                self.on_node(op, operands, results)
        return []

    def body(self, region: Block, values: dict[Value, Value], scope: Mapping[str, Any]) -> Body:
        """A subgraph as a function that lowers it with a builder, for given arguments; it may be called often."""
        location = self.builder.location

        def lower(builder: Builder, arguments: Sequence[Value]) -> list[Value]:
            outer, self.builder = self.builder, builder
            try:
                inner = {**values, **dict(zip(region.arguments, arguments, strict=True))}
                results = self.block(region, inner, scope, location)
            finally:
                self.builder = outer
            missing = [i for i, r in enumerate(results) if r is None]
            if missing:
                raise CompileError(f"output {missing[0]} of a subgraph is never computed")
            return [r for r in results if r is not None]

        return lower

    def name_results(self, op: Op, results: Sequence[Value | None], values: dict[Value, Value]) -> None:
        for result, value in zip(op.results, results, strict=False):
            if value is not None:
                values[result] = value
                if not value.name and value.op is not None:
                    value.name = result.name
        missing = [r.name for r in op.results if r.name and r.uses and r not in values]
        if missing:
            raise CompileError(f"the output {missing[0]!r} is not supported")

    def node(
        self, op: Op, operands: list[Value | None], scope: Mapping[str, Any], values: dict[Value, Value]
    ) -> Sequence[Value | None]:
        if op.name == "core.constant":
            return [self.builder.constant(op.attributes["value"])]
        attributes = _bind({k: v for k, v in op.attributes.items() if not k.startswith("sdx.")}, scope)
        if "sdx.function" in op.attributes:
            function = self.functions[op.attributes["sdx.function"]]
            return self.call(function, operands, attributes)
        op_type, domain = op.kind, op.attributes.get("sdx.domain", "")
        opset: int = op.attributes["sdx.opset"]
        types = [NoneType() if o is None else o.type for o in operands]
        message = schemas.check_types(op_type, domain, opset, types, [o.name for o in op.operands])
        if message:
            raise CompileError(message)
        attributes = {**schemas.find(op_type, domain, opset).defaults, **attributes}
        entry = registry.find(op_type, domain, opset)
        if entry is None:
            return self.body_of(op, operands, attributes, opset)
        if op.regions:
            attributes["bodies"] = [self.body(region, values, scope) for region in op.regions]
        self.builder.opset = opset
        self.builder.outputs = max((i + 1 for i, r in enumerate(op.results) if r.name), default=0)
        result = entry.function(self.builder, *operands, **attributes)
        return result if isinstance(result, tuple) else (result,)

    def body_of(
        self, op: Op, operands: list[Value | None], attributes: Mapping[str, Any], opset: int
    ) -> Sequence[Value | None]:
        """Lower an operator by the function body that ONNX gives for it."""
        types = [NoneType() if o is None else o.type for o in operands]
        used = [bool(r.name) for r in op.results]
        domain = op.attributes.get("sdx.domain", "")
        proto = None if op.regions else schema_function(op.kind, domain, opset, types, attributes, used)
        if proto is None:
            raise CompileError(
                f"the operator {op.kind} of opset {opset} is not supported",
                hint="`sardonyx ops` lists what is",
            )
        return self.call(import_function(proto), operands, attributes)

    def call(
        self, function: Function, operands: Sequence[Value | None], attributes: Mapping[str, Any]
    ) -> Sequence[Value | None]:
        if self.depth >= _DEEPEST:
            raise CompileError(f"functions call each other more than {_DEEPEST} deep at {function.name!r}")
        known = {**function.attributes["attribute_defaults"], **attributes}
        if len(operands) > len(function.arguments):
            raise CompileError(
                f"{len(operands)} inputs for the function {function.name!r}, which takes {len(function.arguments)}"
            )
        values = {a: o for a, o in zip(function.arguments, operands, strict=False) if o is not None}
        location = self.builder.location
        self.depth += 1
        try:
            return self.block(function.body, values, known, location)
        finally:
            self.depth -= 1


def _bind(attributes: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes with references to the enclosing function's replaced; one without a value is left out."""
    bound = {}
    for key, value in attributes.items():
        if isinstance(value, AttributeReference):
            if value.name in scope:
                bound[key] = scope[value.name]
        else:
            bound[key] = value
    return bound


assert ops.__all__  # the import fills the registry
