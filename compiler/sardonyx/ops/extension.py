"""Operators of other domains: how users add theirs, and how ours of such domains are added."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.core.external import ExternalFunction, add_function
from sardonyx.errors import CompileError
from sardonyx.frontend import schemas
from sardonyx.frontend.schemas import AttributeSpec, Parameter, Schema
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.registry import end_before, onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["define_operator", "external_operator"]

Operator = Callable[..., Any]
Shapes = Callable[..., Sequence[Shape]]

# The kinds of attributes by Python type: the number of AttributeProto.AttributeType.
_KINDS: dict[Any, int] = {float: 1, int: 2, str: 3, bool: 2}
_LISTS: dict[Any, int] = {float: 6, int: 7, str: 8, bool: 7}
_FORMAL = re.compile(r"(\*?)(\w+)(\??)\s*:\s*(\w+)")


def define_operator(
    function: Operator,
    *,
    name: str,
    domain: str,
    since: int = 1,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
    types: Mapping[str, Sequence[str]] | None = None,
) -> Operator:
    """Add an operator; see :func:`sardonyx.register_operator`."""
    if domain in ("", "ai.onnx"):
        raise ValueError("operators of the default domain are ONNX's own; choose a domain of yours")
    allowed = {k: frozenset(v) for k, v in (types or {}).items()}
    schema = Schema(
        name=name,
        domain=domain,
        since=since,
        deprecated=False,
        inputs=tuple(_parameter(i, allowed) for i in inputs),
        outputs=tuple(_parameter(o, allowed) for o in outputs),
        least_outputs=len(outputs),
        attributes={spec.name: spec for spec in map(_attribute, (attributes or {}).items())},
    )
    schemas.register(schema)
    end_before(name, domain, since)
    onnx_op(name, since=since, domain=domain)(function)
    return function


def _parameter(text: str, types: Mapping[str, frozenset[str]]) -> Parameter:
    match = _FORMAL.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no input or output: write 'name: T', 'name?: T' or '*names: T'")
    star, name, optional, variable = match.groups()
    names = types.get(variable)
    if names is None:
        names = frozenset([variable])
        variable = f"{name}_type"
    try:
        allowed = frozenset(f"tensor({dtypes.by_name(n).onnx_name})" for n in names)
    except KeyError as error:
        raise ValueError(
            f"{error.args[0]!r} is no element type, and no entry of `types` (they are {', '.join(types) or 'none'})"
        ) from None
    option = "variadic" if star else "optional" if optional else "single"
    return Parameter(name, option, variable, allowed, True, 1)


def _attribute(item: tuple[str, Any]) -> AttributeSpec:
    """``name: default``; ``name: type`` is required, ``name?: type`` may be left out."""
    name, given = item
    optional = name.endswith("?")
    listed = given.__args__[0] if hasattr(given, "__args__") else None  # list[int]
    if isinstance(given, type) or listed is not None:
        if (given if listed is None else listed) not in _KINDS:
            raise ValueError(f"the attribute {name!r} cannot be of the type {given}")
        kind = _KINDS[given] if listed is None else _LISTS[listed]
        return AttributeSpec(name.rstrip("?"), kind, not optional, None)
    many = isinstance(given, (list, tuple))
    kinds = {type(v) for v in given} if many else {type(given)}
    if len(kinds) != 1 or not kinds <= _KINDS.keys() or optional:
        raise ValueError(f"the attribute {name!r} needs a default or a type, it has {given!r}")
    (python_type,) = kinds
    default = tuple(given) if many else int(given) if python_type is bool else given
    return AttributeSpec(name, (_LISTS if many else _KINDS)[python_type], False, default)


def external_operator(
    name: str,
    domain: str,
    since: int,
    function: ExternalFunction,
    outputs: Sequence[str],
    shapes: Shapes | None,
    types: Mapping[str, Sequence[str]],
    inputs: Sequence[str],
) -> Operator:
    """The function that calls a C function: attributes follow the inputs as constant tensors."""
    key = f"{domain}::{name}:{since}"
    add_function(key, function)
    formals = [m.groups() for m in (_FORMAL.fullmatch(i.strip()) for i in inputs) if m]

    def operator(b: Builder, *operands: Value | None, **attributes: Any) -> Any:
        given = [o for o in operands if o is not None]
        if len(given) != len(operands):
            raise CompileError(f"{name} is a function in C; it needs all of its inputs")
        results = [v.type.shape for v in given[:1]] * len(outputs) if shapes is None else None
        if results is None and shapes is not None:
            results = [tuple(s) for s in shapes(*(v.type.shape for v in given), **attributes)]
        assert results is not None
        if len(results) != len(outputs):
            raise CompileError(f"`shapes` of {name} gives {len(results)} shapes for {len(outputs)} outputs")
        constants = [b.constant(_tensor(v)) for v in attributes.values()]
        kinds = tuple(_output_type(o, formals, given, types) for o in outputs)
        op = b.external_call(key, [*given, *constants], kinds, tuple(results))
        return tuple(op.results)

    return operator


def _output_type(
    output: str,
    formals: Sequence[tuple[Any, ...]],
    given: Sequence[Value],
    types: Mapping[str, Sequence[str]],
) -> DType:
    """The element type of an output: its own, or that of the first input with its type variable."""
    match = _FORMAL.fullmatch(output.strip())
    assert match is not None
    variable = match.group(4)
    if variable not in types:
        return dtypes.by_name(variable)
    for (*_, of_input), value in zip(formals, given, strict=False):
        if of_input == variable:
            kind: DType = value.type.dtype
            return kind
    if len(types[variable]) == 1:
        return dtypes.by_name(types[variable][0])
    raise CompileError(f"the type {variable!r} of the output {output!r} is that of no input")


def _tensor(value: Any) -> np.ndarray[Any, Any]:
    """An attribute as a C function sees it: int64, float, or bytes with a 0 at the end."""
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        return np.frombuffer(data + b"\0", np.uint8)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise CompileError(f"the attribute {value!r} cannot be passed to a function in C")
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
