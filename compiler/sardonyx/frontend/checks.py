"""A node against its operator's schema: numbers of inputs and outputs, names and kinds of attributes.

Types are not checked here; the passes that know them use :func:`sardonyx.frontend.schemas.check_types`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx

from sardonyx.errors import CompileError
from sardonyx.frontend.attributes import attribute_kind, describe_kind
from sardonyx.frontend.schemas import Schema, did_you_mean
from sardonyx.ir.graph import Location

__all__ = [
    "check_attribute_names",
    "check_function_call",
    "check_inputs",
    "check_kind",
    "check_outputs",
    "present",
]


def present(names: Sequence[str]) -> Sequence[str]:
    """The names without the trailing empty ones."""
    count = len(names)
    while count and not names[count - 1]:
        count -= 1
    return names[:count]


def check_inputs(schema: Schema, inputs: Sequence[str], location: Location) -> None:
    """CompileError if there are too many inputs or a required one is left out.

    ``inputs`` are the names without trailing empty ones.
    """
    formals = schema.inputs
    variadic = bool(formals) and formals[-1].option == "variadic"
    if len(inputs) > len(formals) and not variadic:
        raise CompileError(
            f"{schema.name} takes at most {_count(len(formals), 'input')} since opset {schema.since}, "
            f"but the node has {len(inputs)}",
            location=location,
        )
    for index, formal in enumerate(formals):
        if formal.option == "single" and (index >= len(inputs) or not inputs[index]):
            raise CompileError(
                f"{schema.name} requires its input {index} {formal.name!r}, but the node leaves it out "
                f"(it has {_count(len(inputs), 'input')})",
                location=location,
            )
    if variadic:
        first, least = len(formals) - 1, formals[-1].least
        given = inputs[first:]
        if len(given) < least:
            raise CompileError(
                f"{schema.name} takes at least {_count(least, 'value')} for its input {formals[-1].name!r}, "
                f"but the node has {len(given)}",
                location=location,
            )
        if "" in given:
            raise CompileError(
                f"{schema.name} cannot do without its input {first + list(given).index('')}, "
                f"one of the values of {formals[-1].name!r}",
                location=location,
            )


def check_outputs(schema: Schema, outputs: Sequence[str], location: Location) -> None:
    """CompileError if there are more or fewer outputs than the operator can have."""
    variadic = bool(schema.outputs) and schema.outputs[-1].option == "variadic"
    if len(outputs) > len(schema.outputs) and not variadic:
        raise CompileError(
            f"{schema.name} gives at most {_count(len(schema.outputs), 'output')} "
            f"since opset {schema.since}, but the node has {len(outputs)}",
            location=location,
        )
    if len(outputs) < schema.least_outputs:
        raise CompileError(
            f"{schema.name} gives at least {_count(schema.least_outputs, 'output')}, "
            f"but the node has {len(outputs)}",
            location=location,
        )


def check_kind(
    schema: Schema, attribute: onnx.AttributeProto, enclosing: Collection[str] | None, location: Location
) -> int:
    """The kind of a node's attribute; CompileError if the operator does not have it, or not of this kind."""
    spec = schema.attributes.get(attribute.name)
    if spec is None:
        known = list(schema.attributes)
        raise CompileError(
            f"{schema.name} has no attribute {attribute.name!r} since opset {schema.since}",
            location=location,
            hint=did_you_mean(attribute.name, known)
            or (f"its attributes: {', '.join(known)}" if known else "it has no attributes"),
        )
    kind = check_reference(attribute, enclosing, location) or spec.kind
    if kind != spec.kind:
        raise CompileError(
            f"the attribute {attribute.name!r} of {schema.name} must be {describe_kind(spec.kind)}, "
            f"but is {describe_kind(kind)}",
            location=location,
        )
    return kind


def check_reference(
    attribute: onnx.AttributeProto, enclosing: Collection[str] | None, location: Location
) -> int:
    """The kind of an attribute.

    CompileError if it refers to an attribute that the enclosing function (None: there is none) does not have.
    """
    name = attribute.ref_attr_name
    if name and (enclosing is None or name not in enclosing):
        why = "no function encloses the node" if enclosing is None else "the function has no such attribute"
        raise CompileError(
            f"the attribute {attribute.name!r} refers to the function attribute {name!r}, but {why}",
            location=location,
            hint=did_you_mean(name, list(enclosing or ())),
        )
    return attribute_kind(attribute)


def check_attribute_names(schema: Schema, given: Mapping[str, object], location: Location) -> None:
    """CompileError for a required attribute that is missing."""
    for name in schema.required_attributes:
        if name not in given:
            raise CompileError(f"{schema.name} requires the attribute {name!r}", location=location)


def check_function_call(
    function: onnx.FunctionProto, node: onnx.NodeProto, attributes: Iterable[str], location: Location
) -> None:
    """CompileError if a call does not fit the model-local function."""
    for what, given, formal in (
        ("input", present(list(node.input)), function.input),
        ("output", present(list(node.output)), function.output),
    ):
        if len(given) > len(formal):
            raise CompileError(
                f"the model's function {function.name!r} has {_count(len(formal), what)}, "
                f"but the node has {len(given)}",
                location=location,
            )
    known = [*function.attribute, *(a.name for a in function.attribute_proto)]
    for name in attributes:
        if name not in known:
            raise CompileError(
                f"the model's function {function.name!r} has no attribute {name!r}",
                location=location,
                hint=did_you_mean(name, known),
            )


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
