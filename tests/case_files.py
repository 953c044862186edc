"""Reads files of cases: models as a few lines of text, with inputs and what is right.

The form is told at the head of each file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from .helpers import Array, check, make_model, numpy_type, prepare

__all__ = ["Case", "read_cases", "run_case"]


@dataclass(frozen=True)
class Case:
    """One model with its inputs, and either the right outputs or the error it has to end in."""

    name: str
    opset: int = 18
    nodes: tuple[str, ...] = ()
    inputs: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: dict[str, Array] = field(default_factory=dict)
    tolerance: dict[str, Any] = field(default_factory=dict)
    zero_signs: bool = False
    fails: str = ""
    mentions: tuple[str, ...] = ()
    folded: bool = False


def read_cases(path: Path) -> list[Case]:
    """The cases of a file; behind each that asks for it a twin whose inputs are initializers."""
    cases: list[Case] = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            cases.extend(_twins(_case(lines)))
    return cases


def _twins(case: Case) -> Iterator[Case]:
    yield case
    if case.folded:
        constants = {**case.constants, **case.inputs}
        yield replace(case, name=f"{case.name}, folded", constants=constants, inputs={})


def _case(lines: list[str]) -> Case:
    fields: dict[str, Any] = {"name": lines[0], "nodes": ()}
    for line in lines[1:]:
        words = line.split()
        match words[0]:
            case "opset":
                fields["opset"] = int(words[1])
            case "input" | "constant" | "output":
                fields.setdefault(f"{words[0]}s", {})[words[1].rstrip(":")] = _array(
                    line.split(":", 1)[1].strip()
                )
            case "ulp" | "rtol":
                fields["tolerance"] = {words[0]: float(words[1])}
            case "zero":
                fields["zero_signs"] = True
            case "also":
                fields["folded"] = True
            case "fails":
                fields.update(fails=words[1].rstrip(":"), mentions=tuple(words[2:]))
            case _:
                fields["nodes"] += (line.strip(),)
    return Case(**fields)


def _array(text: str) -> Array:
    kind, _, shape = text.partition("[") if "[" in text.split()[0] else (text.split()[0], "", "")
    dims, _, values = shape.partition("]") if shape else ("", "", text[len(kind) :])
    dtype = numpy_type(kind)
    number: Any = int if dtype.kind in "iu" else (lambda v: bool(int(v))) if dtype.kind == "b" else float
    array = np.array([number(v) for v in values.split()], dtype)
    return array.reshape([int(d) for d in dims.split(",") if d.strip()]) if shape else array


def run_case(case: Case, engine: str) -> None:
    """Fail unless an engine gives what the case says is right."""
    names = list(case.outputs) or None
    model = make_model(case.nodes, case.inputs, opset=case.opset, constants=case.constants, outputs=names)
    if case.fails:
        errors: Any = {"compile": CompileError, "run": RuntimeFault}.get(
            case.fails, (CompileError, RuntimeFault)
        )
        with pytest.raises(errors) as caught:
            prepare(model, engine)(case.inputs)
        assert all(word in str(caught.value) for word in case.mentions), str(caught.value)
        return
    results = prepare(model, engine)(case.inputs)
    assert len(results) == len(case.outputs)
    for got, want in zip(results, case.outputs.values(), strict=True):
        check(got, want, zero_signs=case.zero_signs, **case.tolerance)
