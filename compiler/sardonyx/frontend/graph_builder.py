"""One ``GraphProto`` (or the nodes of a ``FunctionProto``) to a block of the onnx level.

The form of the level is described in :mod:`sardonyx.frontend`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from sardonyx.errors import CompileError, at_node
from sardonyx.frontend import checks, schemas
from sardonyx.frontend.attributes import decode_attribute, describe_kind
from sardonyx.frontend.order import Node, check_text, collect_nodes, in_order
from sardonyx.frontend.references import AttributeReference
from sardonyx.frontend.tensors import TensorReader
from sardonyx.frontend.types_from_proto import UNKNOWN_TYPE, Symbols, type_from_proto, unranked
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import UNKNOWN, Block, Location, Op, Origin, Value
from sardonyx.ir.types import NoneType, Type

__all__ = ["Context", "GraphBuilder", "function_name", "opset_versions"]

FunctionKey = tuple[str, str, str]  # domain, name, overload

_NONE = NoneType()
_GRAPH = onnx.AttributeProto.GRAPH
# Regions are in this order, others follow by name: a schema's attributes have no order of their own.
_REGION_ORDER = {"then_branch": 0, "else_branch": 1}


@dataclass(slots=True)
class Context:
    """What all graphs of a model, or of one function, share."""

    opsets: Mapping[str, int]
    reader: TensorReader
    functions: Mapping[FunctionKey, onnx.FunctionProto] = field(default_factory=dict)
    enclosing_attributes: Collection[str] | None = None  # of the enclosing function; None in main
    calls: dict[FunctionKey, None] = field(default_factory=dict)  # the functions called, in order
    checked: dict[str, int] = field(default_factory=dict)  # the opsets that were asked for

    def opset(self, domain: str, op_type: str, location: Location) -> int:
        """The version imported of an operator's domain; CompileError if there is none or it is not known."""
        if domain in self.checked:
            return self.checked[domain]
        version = self.opsets.get(domain)
        newest = schemas.newest_opset(domain)
        if version is None and newest:
            have = ", ".join(f"{schemas.domain_name(d)} {v}" for d, v in self.opsets.items())
            raise CompileError(
                f"{op_type} is of the domain {schemas.domain_name(domain)}, "
                "of which the model imports no opset",
                location=location,
                hint=f"it imports: {have or 'nothing'}",
            )
        if version is not None and newest and version > newest:
            raise CompileError(
                f"{op_type} is of version {version} of the domain {schemas.domain_name(domain)}, "
                f"which is known up to version {newest}",
                location=location,
            )
        self.checked[domain] = version or 1
        return self.checked[domain]


def opset_versions(imports: Iterable[onnx.OperatorSetIdProto], what: str) -> dict[str, int]:
    """The imported version of each domain; CompileError for a version that is not known or given twice."""
    versions: dict[str, int] = {}
    for entry in imports:
        domain = schemas.normalise_domain(entry.domain)
        if versions.setdefault(domain, entry.version) != entry.version:
            raise CompileError(
                f"{what} imports two opsets of the domain {schemas.domain_name(domain)}: "
                f"{versions[domain]} and {entry.version}"
            )
        if entry.version < 1:
            raise CompileError(
                f"{what} imports opset {entry.version} of the domain {schemas.domain_name(domain)}; "
                "opsets start at 1"
            )
    newest = schemas.newest_opset("")
    if versions.get("", 0) > newest:
        raise CompileError(
            f"{what} imports opset {versions['']} of ai.onnx, but the newest that is known is {newest}",
            hint="convert it with onnx.version_converter, or install newer versions of sardonyx and onnx",
        )
    return versions


def function_name(domain: str, name: str, overload: str = "") -> str:
    """The name of a model-local function in the module: ``domain::name`` or ``domain::name:overload``."""
    return f"{domain}::{name}:{overload}" if overload else f"{domain}::{name}"


class GraphBuilder:
    """Builds one block; the builder of an enclosing graph is its ``parent``, whose values it captures."""

    def __init__(
        self, context: Context, path: str, parent: GraphBuilder | None = None, owner: Location = UNKNOWN
    ) -> None:
        self.context = context
        self.path = path
        self.parent = parent
        self.owner = owner  # the node that a subgraph belongs to
        self.block = Block()
        self.values: dict[str, Value] = {}
        self._none: Value | None = None

    def lookup(self, name: str) -> Value | None:
        """The value of this name in this graph or an enclosing one."""
        scope: GraphBuilder | None = self
        while scope is not None:
            found = scope.values.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def add_argument(self, kind: Type, name: str) -> None:
        check_text([name], self.path)
        if not name or name in self.values:
            what = f"the input {name!r} of {self.path} is there twice"
            raise CompileError(what if name else f"an input of {self.path} has no name", location=self.owner)
        self.values[name] = self.block.add_argument(kind, name)

    def add_initializers(self, graph: onnx.GraphProto) -> dict[str, Dense]:
        """Constants for the initializers; the values of those that are arguments too are returned instead."""
        defaults: dict[str, Dense] = {}
        reader = self.context.reader
        for tensor in graph.initializer:
            self._add_initializer(tensor.name, reader.read(tensor), defaults)
        for sparse in graph.sparse_initializer:
            self._add_initializer(sparse.values.name, reader.read_sparse(sparse), defaults)
        return defaults

    def _add_initializer(self, name: str, value: Dense, defaults: dict[str, Dense]) -> None:
        check_text([name], self.path)
        if not name or name in defaults:
            what = f"the initializer {name!r} of {self.path} is there twice"
            raise CompileError(
                what if name else f"an initializer of {self.path} has no name", location=self.owner
            )
        argument = self.values.get(name)
        if argument is None:
            location = Location((Origin(self.path, name, "initializer", (name,)),))
            op = self.block.append(Op("core.constant", (), (value.type,), {"value": value}, (), location))
            op.result.name = name
            self.values[name] = op.result
        elif argument.op is not None:
            raise CompileError(f"the initializer {name!r} of {self.path} is there twice", location=self.owner)
        elif self.parent is not None:
            raise CompileError(
                f"{name!r} is both an input and an initializer of the subgraph {self.path}",
                location=self.owner,
                hint="only the inputs of the main graph can have a default value",
            )
        else:
            defaults[name] = value

    def add_nodes(self, protos: Sequence[onnx.NodeProto]) -> None:
        nodes = collect_nodes(protos, self.path)
        outer = self.parent.lookup if self.parent is not None else lambda name: None
        for node in in_order(nodes, self.values, lambda name: outer(name) is not None, self.path):
            try:
                self._add_node(node)
            except CompileError as error:
                if error.location.origins:
                    raise
                raise at_node(error, node.location) from error

    def add_terminator(self, name: str, outputs: Iterable[str], *, complete: bool = True) -> None:
        """The last op of the block, which returns or yields the graph's outputs.

        An output that is not defined is an error; unless ``complete``, it is nothing (``onnx.none``).
        """
        operands = []
        for output in outputs:
            value = self.lookup(output)
            if value is None and not complete:
                value = self._operand("")
            if value is None:
                raise CompileError(
                    f"the output {output!r} of {self.path} is not defined: "
                    "no node, graph input or initializer has that name",
                    location=self.owner,
                    hint=schemas.did_you_mean(output, list(self.values)),
                )
            operands.append(value)
        self.block.append(Op(name, operands, (), None, (), self.owner))

    def _operand(self, name: str) -> Value:
        if name:
            value = self.lookup(name)
            assert value is not None, name  # in_order has seen to it
            return value
        if self._none is None:
            self._none = self.block.append(Op("onnx.none", (), (_NONE,))).result
        return self._none

    def _add_node(self, node: Node) -> None:
        proto, location = node.proto, node.location
        op_type, domain = proto.op_type, schemas.normalise_domain(proto.domain)
        inputs = checks.present(node.inputs)
        key = (domain, op_type, proto.overload)
        function = self.context.functions.get(key)
        schema = None
        if function is None:
            if key[2]:
                raise CompileError(f"the model has no function {function_name(*key)!r}")
            opset = self.context.opset(domain, op_type, location)
            schema = schemas.find(op_type, domain, opset, location)
            checks.check_inputs(schema, inputs, location)
            checks.check_outputs(schema, node.outputs, location)
        else:
            opset = self.context.opsets.get(domain, 1)
        attributes, graphs = self._attributes(proto, schema, location)
        if function is not None:
            checks.check_function_call(function, proto, [*attributes, *graphs], location)
            self.context.calls[key] = None
            attributes["sdx.function"] = function_name(*key)
        elif schema is not None and schema.required_attributes:
            checks.check_attribute_names(schema, {**attributes, **graphs}, location)
        attributes["sdx.opset"] = opset
        if domain:
            attributes["sdx.domain"] = domain
        regions = []
        if graphs:
            names = sorted(graphs, key=lambda n: (_REGION_ORDER.get(n, len(_REGION_ORDER)), n))
            attributes["sdx.regions"] = tuple(names)
            regions = [self._region(graphs[n], f"{self.path}/{node.name}.{n}", location) for n in names]
        operands = [self._operand(name) for name in inputs]
        op = Op(
            f"onnx.{op_type}", operands, (UNKNOWN_TYPE,) * len(node.outputs), attributes, regions, location
        )
        self.block.append(op)
        for name, result in zip(node.outputs, op.results, strict=True):
            result.name = name
            if name:
                self.values[name] = result

    def _attributes(
        self, proto: onnx.NodeProto, schema: schemas.Schema | None, location: Location
    ) -> tuple[dict[str, Any], dict[str, onnx.GraphProto]]:
        """The attributes that are plain values, and those that are graphs."""
        context = self.context
        attributes: dict[str, Any] = {}
        graphs: dict[str, onnx.GraphProto] = {}
        for attribute in proto.attribute:
            name = attribute.name
            if name in attributes or name in graphs:
                raise CompileError(f"the attribute {name!r} is there twice", location=location)
            if schema is not None:
                kind = checks.check_kind(schema, attribute, context.enclosing_attributes, location)
            else:
                kind = checks.check_reference(attribute, context.enclosing_attributes, location)
            if attribute.ref_attr_name:
                word = onnx.AttributeProto.AttributeType.Name(kind).lower()
                attributes[name] = AttributeReference(attribute.ref_attr_name, word)
            elif kind == _GRAPH:
                graphs[name] = attribute.g
            elif kind == onnx.AttributeProto.GRAPHS or kind == 0:
                what = describe_kind(kind) if kind else "without a type and a value"
                raise CompileError(f"the attribute {name!r} is {what}, which is not supported")
            else:
                attributes[name] = decode_attribute(attribute, context.reader, kind)
        return attributes, graphs

    def _region(self, graph: onnx.GraphProto, path: str, owner: Location) -> Block:
        inner = GraphBuilder(self.context, path, self, owner)
        symbols = Symbols()
        for value in graph.input:
            inner.add_argument(unranked(type_from_proto(value.type, value.name, symbols)), value.name)
        inner.add_initializers(graph)
        inner.add_nodes(graph.node)
        inner.add_terminator("onnx.yield", (v.name for v in graph.output))
        return inner.block
