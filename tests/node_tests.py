"""The node tests of the onnx package by operator, and how one is run."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import cache
from typing import Any

import onnx
from onnx import numpy_helper

from sardonyx.errors import NeedsConstant

from .helpers import Run, check, prepare

__all__ = ["node_tests", "run_node_test"]


@cache
def _all() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the computation of expected values
        from onnx.backend.test.loader import load_model_tests

        return list(load_model_tests(kind="node"))


def node_tests(operators: Collection[str]) -> dict[str, Any]:
    """The tests whose nodes are all of these operators, by name."""
    return {c.name: c for c in _all() if {node.op_type for node in c.model.graph.node} <= set(operators)}


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def run_node_test(case: Any, engine: str) -> None:
    """Fail unless an engine gives a test's outputs, within its own tolerances.

    An input that decides the form of the code becomes an initializer where the engine asks for it.
    """
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.input]
        feeds = dict(zip(names, map(_array, inputs), strict=True))
        run = _prepared(case.model, feeds, engine)
        for got, want in zip(run(feeds), map(_array, outputs), strict=True):
            check(got, want, rtol=case.rtol, atol=case.atol, zero_signs=False)


def _prepared(model: onnx.ModelProto, feeds: dict[str, Any], engine: str) -> Run:
    try:
        return prepare(model, engine)
    except NeedsConstant as needed:
        fixed = onnx.ModelProto()
        fixed.CopyFrom(model)
        (position,) = [i for i, value in enumerate(fixed.graph.input) if value.name == needed.tensor]
        del fixed.graph.input[position]
        fixed.graph.initializer.append(numpy_helper.from_array(feeds.pop(needed.tensor), needed.tensor))
        return _prepared(fixed, feeds, engine)
