"""A whole ``ModelProto`` to a module of the onnx level."""

from __future__ import annotations

import os
from typing import Any

import onnx

from sardonyx.errors import CompileError
from sardonyx.frontend import schemas
from sardonyx.frontend.function_bodies import import_function
from sardonyx.frontend.graph_builder import (
    Context,
    FunctionKey,
    GraphBuilder,
    function_name,
    opset_versions,
)
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx.frontend.tensors import TensorReader
from sardonyx.frontend.types_from_proto import UNKNOWN_TYPE, Symbols, type_from_proto
from sardonyx.ir.graph import Function, Module
from sardonyx.ir.types import Type

__all__ = ["import_model"]

_OLDEST_IR = 3  # from this version on a model says which opsets it is written for


def import_model(model: ModelSource, *, base_dir: str | os.PathLike[str] | None = None) -> Module:
    """The model as a module of the onnx level: function ``main`` and the model's functions that it calls.

    ``base_dir`` is the folder of external data; by default that of the model's file.  CompileError, which
    names the node, for a model that is not well formed or uses operators that do not exist in its opsets.
    """
    proto, folder = load_model(model)
    if not proto.HasField("graph"):
        raise CompileError("the model has no graph")
    if 0 < proto.ir_version < _OLDEST_IR:
        raise CompileError(
            f"the model has ir_version {proto.ir_version}; the oldest that is supported is {_OLDEST_IR}",
            hint="export it again with a newer version of the exporter",
        )
    if not proto.opset_import:
        raise CompileError(
            "the model does not say which opset it is written for",
            hint="add one: model.opset_import.append(onnx.helper.make_opsetid('', 21))",
        )
    context = Context(
        opsets=opset_versions(proto.opset_import, "the model"),
        reader=TensorReader(folder if base_dir is None else base_dir),
        functions=_functions(proto),
    )
    module = Module()
    main = module.add(_main(proto.graph, context, listed_initializers=0 < proto.ir_version < 4))
    main.attributes.update(
        ir_version=proto.ir_version,
        opsets={schemas.domain_name(d): v for d, v in context.opsets.items()},
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        metadata={p.key: p.value for p in proto.metadata_props},
    )
    _add_functions(module, context)
    return module


def _main(graph: onnx.GraphProto, context: Context, *, listed_initializers: bool) -> Function:
    symbols = Symbols([*graph.input, *graph.output, *graph.value_info])
    builder = GraphBuilder(context, "main")
    # Before version 4 of the format every initialiser had to be listed as an input; it is a constant all the same.
    constants = {t.name for t in graph.initializer} if listed_initializers else set()
    for value in graph.input:
        if value.name in constants:
            continue
        kind = type_from_proto(value.type, value.name, symbols)
        if kind == UNKNOWN_TYPE:
            raise CompileError(f"the input {value.name!r} of the model has no element type")
        builder.add_argument(kind, value.name)
    defaults = builder.add_initializers(graph)
    builder.add_nodes(graph.node)
    outputs = tuple(v.name for v in graph.output)
    for name in outputs:
        if outputs.count(name) > 1:
            raise CompileError(f"the output {name!r} of the model is there twice")
    builder.add_terminator("core.return", outputs)
    attributes: dict[str, Any] = {
        "inputs": tuple(v.name for v in graph.input if v.name not in constants),
        "outputs": outputs,
        "defaults": defaults,
        "declared_outputs": _declared(graph.output, symbols),
        "declared_values": _declared(graph.value_info, symbols),
        "graph_name": graph.name,
    }
    return Function("main", builder.block, attributes)


def _declared(values: Any, symbols: Symbols) -> dict[str, Type]:
    """The types that the model states for values it computes: for reports, never trusted."""
    declared = {}
    for value in values:
        try:
            declared[value.name] = type_from_proto(value.type, value.name, symbols)
        except CompileError:
            declared[value.name] = UNKNOWN_TYPE
    return declared


def _functions(model: onnx.ModelProto) -> dict[FunctionKey, onnx.FunctionProto]:
    functions: dict[FunctionKey, onnx.FunctionProto] = {}
    for function in model.functions:
        key = (schemas.normalise_domain(function.domain), function.name, function.overload)
        if key in functions:
            raise CompileError(f"the model has two functions {function_name(*key)!r}")
        functions[key] = function
    return functions


def _add_functions(module: Module, context: Context) -> None:
    """Import the functions that are called, and those that they call."""
    callees: dict[FunctionKey, tuple[FunctionKey, ...]] = {}
    pending = list(context.calls)
    while pending:
        key = pending.pop(0)
        if key in callees:
            continue
        inner = Context(context.opsets, context.reader, context.functions)
        module.add(import_function(context.functions[key], name=function_name(*key), context=inner))
        callees[key] = tuple(inner.calls)
        pending += inner.calls
    _refuse_recursion(callees)


def _refuse_recursion(callees: dict[FunctionKey, tuple[FunctionKey, ...]]) -> None:
    """CompileError if a function calls itself, directly or through others."""
    open_ones = dict(callees)  # closed, one after the other, once they call closed ones only
    while open_ones:
        closed = [k for k, called in open_ones.items() if not any(c in open_ones for c in called)]
        if not closed:
            names = ", ".join(repr(function_name(*k)) for k in open_ones)
            raise CompileError(f"functions of the model call themselves, directly or through others: {names}")
        for key in closed:
            del open_ones[key]
