"""The node tests of the onnx package for the elementwise operators, with its tolerances."""

from __future__ import annotations

import warnings
from typing import Any

import onnx
import pytest
from onnx import numpy_helper

from sardonyx.errors import CompileError

from ..helpers import check, each_engine, prepare
from .test_registry import ELEMENTWISE

# Values that are not tensors of numbers: not supported yet.
REFUSED = {
    "test_identity_opt",
    "test_identity_sequence",
}


def node_tests() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the computation of expected values
        from onnx.backend.test.loader import load_model_tests

        found = load_model_tests(kind="node")
    return [case for case in found if {node.op_type for node in case.model.graph.node} <= set(ELEMENTWISE)]


NODE_TESTS = {case.name: case for case in node_tests()}


def array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def test_there_are_node_tests_for_the_operators() -> None:
    covered = {node.op_type for case in NODE_TESTS.values() for node in case.model.graph.node}
    assert len(NODE_TESTS) > 500
    assert covered >= set(ELEMENTWISE)


@pytest.mark.parametrize("name", sorted(NODE_TESTS.keys() - REFUSED))
@each_engine
def test_node(name: str, engine: str) -> None:
    case = NODE_TESTS[name]
    run = prepare(case.model, engine)
    for inputs, outputs in case.data_sets:
        for got, want in zip(run([array(i) for i in inputs]), map(array, outputs), strict=True):
            if want.dtype.kind in "OU":
                assert got.astype(object).tolist() == want.tolist()
            else:
                check(got, want, rtol=case.rtol, atol=case.atol, zero_signs=False)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_node_that_is_refused(name: str) -> None:
    with pytest.raises(CompileError):
        prepare(NODE_TESTS[name].model)
