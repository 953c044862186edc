"""Every model of ONNX's own test suite imports, and damaged models are refused in words."""

import random
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test import loader

from sardonyx.errors import CompileError
from sardonyx.frontend import import_model
from sardonyx.ir.graph import walk

DATA = Path(loader.DATA_DIR)


def node_models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite's own generators overflow and divide by zero on purpose
        from onnx.backend.test.case.node import collect_testcases

        return [(case.name, case.model) for case in collect_testcases(None)]


def file_models():
    return [(str(p.relative_to(DATA)), p) for p in sorted(DATA.rglob("*.onnx"))]


def check(module):
    """What every pass relies on: each operand is defined before it is used, each block is ended."""
    for function in module.functions.values():
        seen = set()

        def visit(block, seen=seen):
            seen.update(map(id, block.arguments))
            for op in block:
                assert all(id(o) in seen for o in op.operands)
                assert op.block is block
                for region in op.regions:
                    visit(region)
                seen.update(map(id, op.results))
            assert block.terminator.kind in ("return", "yield")

        visit(function.body)
        for op in walk(function):
            assert op.level in ("onnx", "core")
            assert op.level == "core" or op.kind in ("none", "yield") or "sdx.opset" in op.attributes


@pytest.mark.parametrize("models", [node_models, file_models])
def test_models_of_the_standard_suite(models):
    names = 0
    for name, model in models():
        try:
            module = import_model(model)
        except CompileError as error:
            pytest.fail(f"{name}: {error}")
        check(module)
        proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
        main = module.main
        assert main.attributes["outputs"] == tuple(o.name for o in proto.graph.output)
        nodes = [op for op in main.body if op.level == "onnx" and op.kind != "none"]
        assert [op.kind for op in nodes] == [n.op_type for n in proto.graph.node]
        names += 1
    assert names > 100


def chain(length):
    """A chain of three nodes and one initializer for each link."""
    nodes, weights, last = [], [], "x"
    for i in range(length):
        weights.append(numpy_helper.from_array(np.ones((4, 4), np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"a{i}"]))
        nodes.append(helper.make_node("Transpose", [f"a{i}"], [f"b{i}"], perm=[1, 0]))
        nodes.append(helper.make_node("Softmax", [f"b{i}"], [f"c{i}"], axis=-1))
        last = f"c{i}"
    return nodes, weights, last


def test_three_thousand_nodes(model):
    nodes, weights, last = chain(1000)
    made = model(nodes, outputs=[last], initializer=weights)
    times = []
    for _ in range(3):
        start = time.process_time()
        import_model(made)
        times.append(time.process_time() - start)
    assert min(times) < 0.5  # 0.05 s on an idle machine


def test_many_nodes_of_another_domain(model):
    nodes = [
        helper.make_node("Binarizer", [f"v{i}" if i else "x"], [f"v{i + 1}"], domain="ai.onnx.ml")
        for i in range(500)
    ]
    made = model(nodes, outputs=["v500"], domains={"ai.onnx.ml": 1})
    start = time.process_time()
    import_model(made)
    assert time.process_time() - start < 1  # onnx takes 15 ms to list all of its schemas


def test_backward_chain_is_sorted(model):
    nodes, weights, last = chain(300)
    module = import_model(model(nodes[::-1], outputs=[last], initializer=weights))
    check(module)
    assert [op.results[0].name for op in module.main.body if op.level == "onnx"] == [
        n.output[0] for n in nodes
    ]


def everything(model):
    """A small model that uses most of what a file can hold."""

    def value(name, dtype=1, shape=("n",)):
        return helper.make_tensor_value_info(name, dtype, shape)

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["keep"]), helper.make_node("Add", ["s", "w"], ["s2"])],
        "body",
        [value("i", 7, []), value("go", 9, []), value("s")],
        [value("keep", 9, []), value("s2")],
        [numpy_helper.from_array(np.ones(2, np.float32), "k")],
    )
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.add(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function("f", "F", ["a"], ["b"], [leaky], [helper.make_opsetid("", 21)], ["alpha"])
    texts = numpy_helper.from_array(np.array(["a", "b"], object))
    nodes = [
        helper.make_node("Loop", ["m", "", "x"], ["l"], body=body, name="loop"),
        helper.make_node("F", ["l"], ["z"], domain="f", alpha=0.5),
        helper.make_node("Cast", ["z"], ["q"], to=1),
        helper.make_node("Constant", [], ["c"], value=texts),
        helper.make_node("Clip", ["q", "", "w"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0]),
    ]
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "sp"), numpy_helper.from_array(np.array([1, 3])), [5]
    )
    weights = [
        numpy_helper.from_array(np.float32(1), "w"),
        numpy_helper.from_array(np.arange(5, dtype="i1"), "v"),
    ]
    inputs = [value("m", 7, []), "x", helper.make_tensor_sequence_value_info("sq", 1, ["?"])]
    return model(nodes, inputs=inputs, functions=[function], domains={"f": 1},
                 initializer=weights, sparse_initializer=[sparse])  # fmt: skip


def test_damaged_models(model, tmp_path):
    """Whatever the bytes: a module, or a CompileError."""
    data = everything(model).SerializeToString()
    check(import_model(data))
    random_numbers = random.Random(0)
    accepted = 0
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(random_numbers.choice((1, 1, 2, 4))):
            where = random_numbers.randrange(len(damaged))
            kind = random_numbers.random()
            if kind < 0.6:
                damaged[where] = random_numbers.randrange(256)
            elif kind < 0.8:
                del damaged[where : where + random_numbers.randrange(1, 4)]
            else:
                damaged[where:where] = random_numbers.randbytes(2)
        try:
            check(import_model(bytes(damaged), base_dir=tmp_path))
            accepted += 1
        except CompileError as error:
            assert str(error)
    assert 0 < accepted < 3000
