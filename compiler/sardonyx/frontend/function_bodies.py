"""Functions: those of a model, and the bodies by which ONNX itself defines some of its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from sardonyx.errors import CompileError
from sardonyx.frontend import schemas
from sardonyx.frontend.attributes import GRAPH_KINDS, decode_attribute, encode_attribute
from sardonyx.frontend.graph_builder import Context, GraphBuilder, function_name, opset_versions
from sardonyx.frontend.tensors import TensorReader
from sardonyx.frontend.types_from_proto import UNKNOWN_TYPE, to_proto
from sardonyx.ir.graph import Function
from sardonyx.ir.types import NoneType, Type

__all__ = ["import_function", "schema_function"]


def import_function(
    function: onnx.FunctionProto, *, name: str | None = None, context: Context | None = None
) -> Function:
    """The function with all types unknown.

    Its attributes: ``inputs`` and ``outputs`` (tuples of names), ``attribute_names`` (of its attribute
    parameters), ``attribute_defaults`` (values of those that have one), ``opsets``.  In its body, attributes
    that refer to a parameter are :class:`AttributeReference`.  ``context`` is that of its model; without it
    the function is taken as one of ONNX's own, whose results may include an ``onnx.none``.
    """
    domain = schemas.normalise_domain(function.domain)
    name = name or function_name(domain, function.name, function.overload)
    parameters = tuple(dict.fromkeys([*function.attribute, *(a.name for a in function.attribute_proto)]))
    opsets = opset_versions(function.opset_import, f"the function {name!r}")
    inner = Context(
        opsets={**(context.opsets if context else {}), **opsets},
        reader=context.reader if context else TensorReader(),
        functions=context.functions if context else {},
        enclosing_attributes=parameters,
        calls=context.calls if context else {},
    )
    defaults = {}
    for attribute in function.attribute_proto:
        if attribute.type in GRAPH_KINDS:
            raise CompileError(f"the attribute {attribute.name!r} of {name!r} has a graph as its default")
        defaults[attribute.name] = decode_attribute(attribute, inner.reader)
    builder = GraphBuilder(inner, name)
    for value in function.input:
        builder.add_argument(UNKNOWN_TYPE, value)
    builder.add_nodes(function.node)
    # ONNX's own bodies may leave out the outputs that the node does not use (Attention does).
    builder.add_terminator("core.return", function.output, complete=context is not None)
    attributes: dict[str, Any] = {
        "inputs": tuple(function.input),
        "outputs": tuple(function.output),
        "attribute_names": parameters,
        "attribute_defaults": defaults,
        "opsets": {schemas.domain_name(d): v for d, v in inner.opsets.items()},
    }
    return Function(name, builder.block, attributes)


def schema_function(
    op_type: str,
    domain: str,
    opset: int,
    input_types: Sequence[Type | None],
    attributes: Mapping[str, Any],
    outputs: Sequence[bool] | int = 1,
) -> onnx.FunctionProto | None:
    """ONNX's own function body for a node, written for the newest opset that is not above ``opset``.

    ``input_types`` are those of the node's operands; NoneType stands for an input left out, None for a type
    that is not known.  ``attributes`` are the node's (entries named ``sdx.*`` are ignored); ``outputs`` says
    which outputs are used, or how many.  A body that does not depend on the node is given for any; one that
    does can fail to exist for these types (then None).  None also for operators whose attributes include
    graphs (SequenceMap), and for those without a body.  The body's inputs are named as in the schema.
    """
    found = schemas.raw(op_type, domain, opset)
    version = max((v for v in found.function_opset_versions if v <= opset), default=None)
    if version is not None:
        return _parse(found.get_function_with_opset_version(version))
    version = max((v for v in found.context_dependent_function_opset_versions if v <= opset), default=None)
    specs = schemas.find(op_type, domain, opset).attributes
    if version is None or any(s.kind in GRAPH_KINDS for s in specs.values()):
        return None
    used = [True] * outputs if isinstance(outputs, int) else list(outputs)
    node = onnx.NodeProto(
        op_type=op_type,
        domain=domain,
        input=["" if isinstance(t, NoneType) else f"x{i}" for i, t in enumerate(input_types)],
        output=[f"y{i}" if use else "" for i, use in enumerate(used)],
        attribute=[
            encode_attribute(key, value, specs[key].kind)
            for key, value in attributes.items()
            if not key.startswith("sdx.")
        ],
    )
    types = [to_proto(t).SerializeToString() for t in input_types]
    return _parse(
        found.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
    )


def _parse(data: bytes) -> onnx.FunctionProto | None:
    return onnx.FunctionProto.FromString(data) if data else None
