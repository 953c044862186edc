"""The onnx package's node tests of products, convolutions, pooling and batch normalisation."""

from __future__ import annotations

import warnings
from typing import Any

import onnx
import pytest
from onnx import numpy_helper

import sardonyx

from ..helpers import check

OPERATORS = {
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MatMul",
    "MaxPool",
}


def _cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the computation of expected values
        from onnx.backend.test.loader import load_model_tests

        found = load_model_tests(kind="node")
    return {case.name: case for case in found if {n.op_type for n in case.model.graph.node} <= OPERATORS}


CASES = {name: case for name, case in _cases().items() if case.model.graph.node}


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


@pytest.mark.parametrize("name", CASES)
def test_node(name: str) -> None:
    case = CASES[name]
    compiled = sardonyx.compile(case.model)
    for inputs, outputs in case.data_sets:
        results = compiled.run([_array(i) for i in inputs])
        for got, want in zip(results, outputs, strict=True):
            tolerance = max(case.rtol, 2e-3 if _array(want).dtype.itemsize == 2 else 0)
            check(got, _array(want), rtol=tolerance, atol=max(case.atol, 1e-6), zero_signs=False)
