"""The node tests of the onnx package by operator, and how one is run."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import cache
from typing import Any

import onnx
from onnx import numpy_helper

from .helpers import check, prepare

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
    """Fail unless an engine gives a test's outputs, within its own tolerances."""
    run = prepare(case.model, engine)
    for inputs, outputs in case.data_sets:
        for got, want in zip(run([_array(i) for i in inputs]), map(_array, outputs), strict=True):
            check(got, want, rtol=case.rtol, atol=case.atol, zero_signs=False)
