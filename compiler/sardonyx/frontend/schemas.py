"""What ``onnx.defs`` knows about operators, as plain values; the only user of it.

Schemas registered with ``onnx.defs.register_schema`` (operators of other domains) are seen here as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnx import defs

from sardonyx.errors import CompileError
from sardonyx.frontend.attributes import decode_attribute, encode_attribute
from sardonyx.frontend.tensors import TensorReader
from sardonyx.frontend.types_from_proto import schema_text
from sardonyx.ir.graph import UNKNOWN, Location
from sardonyx.ir.types import NoneType, Type
from sardonyx_runtime.dtypes import DType

__all__ = [
    "NEWEST_OPSET",
    "AttributeSpec",
    "Parameter",
    "Schema",
    "check_types",
    "did_you_mean",
    "domain_name",
    "find",
    "newest_opset",
    "normalise_domain",
    "operators",
    "raw",
    "register",
    "versions",
]

# The newest opset of ai.onnx whose operators we have read; the onnx package may know fewer or more.
NEWEST_OPSET: int = min(28, defs.onnx_opset_version())


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal input or output: ``option`` is ``single``, ``optional`` or ``variadic``.

    ``types`` are the allowed types in ONNX's words (``tensor(float)``); ``variable`` is the type variable
    (``T``), which stands for one type throughout an operator, except within a variadic parameter that is
    not ``homogeneous``.  ``least`` is the least number of values of a variadic parameter.
    """

    name: str
    option: str
    variable: str
    types: frozenset[str]
    homogeneous: bool
    least: int


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """An attribute: ``kind`` is the ``AttributeProto.AttributeType``'s number; ``default`` may be None."""

    name: str
    kind: int
    required: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """One operator as its domain defines it from version ``since`` on."""

    name: str
    domain: str
    since: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    least_outputs: int
    attributes: dict[str, AttributeSpec]

    @property
    def required_attributes(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.attributes.values() if a.required)

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values of all attributes that have one."""
        return {a.name: a.default for a in self.attributes.values() if a.default is not None}

    def input(self, index: int) -> Parameter | None:
        """The parameter of the input with this index; the last one repeats if it is variadic."""
        if index < len(self.inputs):
            return self.inputs[index]
        return self.inputs[-1] if self.inputs and self.inputs[-1].option == "variadic" else None


def normalise_domain(domain: str) -> str:
    """``ai.onnx`` is another name of the default domain, the empty one."""
    return "" if domain == "ai.onnx" else domain


def domain_name(domain: str) -> str:
    """The domain's name for messages."""
    return domain or "ai.onnx"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A hint with the names like this one; empty if there is none."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    same = [k for k in known if k.lower() == name.lower() and k not in near]
    names = (same + near)[:3]
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def newest_opset(domain: str) -> int:
    """The newest version of a domain that is known; 0 for an unknown domain."""
    if domain == "":
        return NEWEST_OPSET
    found = defs.get_all_schemas_with_history()
    return max((s.since_version for s in found if s.domain == domain), default=0)


def versions(op_type: str, domain: str) -> tuple[int, ...]:
    """The versions of the domain that define or change the operator, ascending; empty if it has none."""
    found = defs.get_all_schemas_with_history()
    return tuple(sorted(s.since_version for s in found if s.name == op_type and s.domain == domain))


def operators() -> dict[tuple[str, str], tuple[int, ...]]:
    """Every operator by domain and name: the versions that define or change it, ascending."""
    found: dict[tuple[str, str], set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.since_version <= newest_opset(schema.domain):
            found.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return {key: tuple(sorted(found[key])) for key in sorted(found)}


def register(schema: Schema) -> None:
    """Make an operator of another domain known; ValueError if that version of it is known already."""
    if schema.since in versions(schema.name, schema.domain):
        raise ValueError(
            f"{domain_name(schema.domain)}::{schema.name} of version {schema.since} is known already"
        )
    constraints: dict[str, frozenset[str]] = {}

    def formal(parameter: Parameter) -> defs.OpSchema.FormalParameter:
        constraints[parameter.variable] = parameter.types
        return defs.OpSchema.FormalParameter(
            parameter.name,
            parameter.variable,
            param_option=getattr(defs.OpSchema.FormalParameterOption, parameter.option.capitalize()),
            is_homogeneous=parameter.homogeneous,
            min_arity=parameter.least,
        )

    def attribute(spec: AttributeSpec) -> defs.OpSchema.Attribute:
        kind = defs.OpSchema.AttrType(spec.kind)
        if spec.default is None:
            return defs.OpSchema.Attribute(spec.name, kind, required=spec.required)
        return defs.OpSchema.Attribute(spec.name, encode_attribute(spec.name, spec.default, spec.kind))

    inputs, outputs = list(map(formal, schema.inputs)), list(map(formal, schema.outputs))
    defs.register_schema(
        defs.OpSchema(
            schema.name,
            schema.domain,
            schema.since,
            inputs=inputs,
            outputs=outputs,
            type_constraints=[(v, sorted(types), "") for v, types in constraints.items()],
            attributes=list(map(attribute, schema.attributes.values())),
        )
    )
    _CACHE.clear()


_CACHE: dict[tuple[str, str, int], Schema] = {}


def find(op_type: str, domain: str, opset: int, location: Location = UNKNOWN) -> Schema:
    """The schema valid in this opset; CompileError, with the location, if it is unknown or deprecated."""
    key = (op_type, domain, opset)
    schema = _CACHE.get(key)
    if schema is None:
        try:
            found = defs.get_schema(op_type, opset, domain)
        except defs.SchemaError:
            raise _unknown_operator(op_type, domain, opset, location) from None
        schema = _CACHE.setdefault((op_type, domain, found.since_version), _from_onnx(found))
        _CACHE[key] = schema
    if schema.deprecated:
        raise CompileError(
            f"the operator {op_type} is deprecated since opset {schema.since} of {domain_name(domain)}; "
            f"the model imports opset {opset}",
            location=location,
            hint=f"use an opset below {schema.since}, or the operators that replace it",
        )
    return schema


def raw(op_type: str, domain: str, opset: int) -> defs.OpSchema:
    """onnx's own schema object; errors as those of :func:`find`."""
    find(op_type, domain, opset)
    return defs.get_schema(op_type, opset, domain)


def _unknown_operator(op_type: str, domain: str, opset: int, location: Location) -> CompileError:
    since = versions(op_type, domain)
    if since:
        return CompileError(
            f"the operator {op_type} does not exist in opset {opset} of {domain_name(domain)}; "
            f"it does since opset {since[0]}",
            location=location,
            hint=f"convert the model to opset {since[0]} or later",
        )
    everything = defs.get_all_schemas_with_history()
    domains = sorted({s.domain for s in everything})
    if domain not in domains:
        known = ", ".join(f"{domain_name(d)} up to version {newest_opset(d)}" for d in domains)
        return CompileError(
            f"the operator {op_type} is of the unknown domain {domain!r}, "
            "and the model has no function of that name",
            location=location,
            hint=f"known domains: {known}",
        )
    names = sorted({s.name for s in everything if s.domain == domain})
    elsewhere = sorted({s.domain for s in everything if s.name == op_type})
    hint = did_you_mean(op_type, names)
    if elsewhere:
        hint = f"there is one in the domain {domain_name(elsewhere[0])}"
    return CompileError(
        f"there is no operator {op_type!r} in {domain_name(domain)}, which is known up to opset "
        f"{newest_opset(domain)}",
        location=location,
        hint=hint,
    )


def _from_onnx(schema: defs.OpSchema) -> Schema:
    reader = TensorReader()
    return Schema(
        name=schema.name,
        domain=schema.domain,
        since=schema.since_version,
        deprecated=schema.deprecated,
        inputs=tuple(map(_parameter, schema.inputs)),
        outputs=tuple(map(_parameter, schema.outputs)),
        least_outputs=schema.min_output,
        attributes={
            name: AttributeSpec(
                name,
                int(a.type.value),
                a.required,
                decode_attribute(a.default_value, reader) if a.default_value.type else None,
            )
            for name, a in sorted(schema.attributes.items())
        },
    )


def _parameter(formal: defs.OpSchema.FormalParameter) -> Parameter:
    return Parameter(
        name=formal.name,
        option=formal.option.name.lower(),
        variable=formal.type_str,
        types=frozenset(formal.types),
        homogeneous=formal.is_homogeneous,
        least=formal.min_arity,
    )


def check_types(
    op_type: str,
    domain: str,
    opset: int,
    input_types: Sequence[Type | DType | None],
    names: Sequence[str] = (),
) -> str | None:
    """None if the operator takes inputs of these types in this opset, else a message that says why not.

    The message names the input, its type, the types that the schema allows, and the first opset that would
    allow it.  An input whose type is not known (None, an unranked tensor of unknown dtype), or that is left
    out, passes.  ``names`` are the names of the tensors, for the message.
    """
    schema = find(op_type, domain, opset)
    bound: dict[str, tuple[str, str]] = {}  # type variable -> its type, the input that set it
    for index, kind in enumerate(input_types):
        parameter = schema.input(index)
        text = None if isinstance(kind, NoneType) else schema_text(kind)
        if parameter is None or text is None:
            continue
        label = f"input {index} {parameter.name!r}"
        if index < len(names) and names[index]:
            label += f" (tensor {names[index]!r})"
        if text not in parameter.types:
            return f"{label} has type {_short(text)}, but {_allowed(schema, parameter, opset, index, text)}"
        if parameter.homogeneous:
            before, where = bound.setdefault(parameter.variable, (text, label))
            if before != text:
                return (
                    f"{where} and {label} of {op_type} must have the same type, "
                    f"but they have {_short(before)} and {_short(text)}"
                )
    return None


def _allowed(schema: Schema, parameter: Parameter, opset: int, index: int, text: str) -> str:
    allowed = ", ".join(sorted(map(_short, parameter.types)))
    domain = domain_name(schema.domain)
    message = f"{schema.name} in opset {opset} of {domain} takes {allowed}"
    for version in versions(schema.name, schema.domain):
        if version > opset:
            later = _CACHE.get((schema.name, schema.domain, version))
            later = later or _from_onnx(defs.get_schema(schema.name, version, schema.domain))
            formal = later.input(index)
            if formal is not None and text in formal.types and not later.deprecated:
                return f"{message}; {_short(text)} is allowed since opset {version}"
    return f"{message}; no opset up to {newest_opset(schema.domain)} allows {_short(text)}"


def _short(text: str) -> str:
    return text.removeprefix("tensor(").removesuffix(")") if text.startswith("tensor(") else text
