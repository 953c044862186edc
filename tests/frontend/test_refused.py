"""Models that are not well formed: the message names the node and what is wrong with it."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.errors import CompileError
from sardonyx.frontend import import_model

node = helper.make_node
ONE = numpy_helper.from_array(np.float32(1), "one")


def refusal(model):
    with pytest.raises(CompileError) as caught:
        import_model(model)
    return caught.value


def named(error):
    return [o.name for o in error.location.origins]


# Nodes from x to y, the last one at fault; what the message has to say.
AT_A_NODE = {
    "unknown operator": (
        [node("Flor", ["x"], ["y"], name="bad")],
        "no operator 'Flor' in ai.onnx",
        "'Floor'",
    ),
    "other case": ([node("floor", ["x"], ["y"], name="bad")], "no operator 'floor'", "'Floor'"),
    "other domain": (
        [node("Normalizer", ["x"], ["y"], name="bad")],
        "no operator 'Normalizer'",
        "in the domain ai.onnx.ml",
    ),
    "unknown domain": (
        [node("Gelu", ["x"], ["y"], name="bad", domain="com.vendor")],
        "Gelu is of the unknown domain 'com.vendor'",
        "ai.onnx up to version 28, ai.onnx.ml up to version 5",
    ),
    "domain not imported": (
        [node("Normalizer", ["x"], ["y"], name="bad", domain="ai.onnx.ml")],
        "Normalizer is of the domain ai.onnx.ml, of which the model imports no opset",
        "it imports: ai.onnx 21",
    ),
    "deprecated": (
        [node("Upsample", ["x", "one"], ["y"], name="bad")],
        "Upsample is deprecated since opset 10",
        "imports opset 21",
    ),
    "too few inputs": (
        [node("Add", ["x"], ["y"], name="bad")],
        "Add requires its input 1 'B', but the node leaves it out",
        "it has 1 input",
    ),
    "required input left out": ([node("Where", ["", "x", "x"], ["y"], name="bad")], "input 0 'condition'"),
    "too many inputs": ([node("Floor", ["x", "x"], ["y"], name="bad")], "at most 1 input", "has 2"),
    "too few values": ([node("Concat", [], ["y"], name="bad", axis=0)], "at least 1 value", "'inputs'"),
    "hole among values": ([node("Sum", ["x", "", "x"], ["y"], name="bad")], "cannot do without its input 1"),
    "too many outputs": ([node("Floor", ["x"], ["y", "z"], name="bad")], "at most 1 output", "has 2"),
    "too few outputs": ([node("TopK", ["x", "one"], ["y"], name="bad")], "at least 2 outputs", "has 1"),
    "missing attribute": ([node("Concat", ["x"], ["y"], name="bad")], "requires the attribute 'axis'"),
    "unknown attribute": (
        [node("Concat", ["x"], ["y"], name="bad", axs=0)],
        "Concat has no attribute 'axs'",
        "did you mean 'axis'?",
    ),
    "no attributes": ([node("Floor", ["x"], ["y"], name="bad", qq=0)], "'qq'", "it has no attributes"),
    "kind": (
        [node("Concat", ["x"], ["y"], name="bad", axis=1.0)],
        "'axis' of Concat must be an integer, but is a float",
    ),
    "reference outside of a function": (
        [node("LeakyRelu", ["x"], ["y"], name="bad")],
        "refers to the function attribute 'slope', but no function encloses the node",
    ),
    "undefined input": (
        [node("Floor", ["x"], ["floored"]), node("Add", ["floored", "flored"], ["y"], name="bad")],
        "the input 1 'flored' is not defined",
        "did you mean 'floored'?",
    ),
    "two producers": (
        [node("Floor", ["x"], ["y"]), node("Ceil", ["x"], ["y"], name="bad")],
        "'y' is defined already, by node 'Floor_0'",
    ),
    "output is an input": ([node("Floor", ["x"], ["x"], name="bad")], "by a graph input or initializer"),
    "own output": ([node("Add", ["x", "y"], ["y"], name="bad")], "cycle", "'bad' -> 'bad'"),
    "broken tensor": (
        [node("Constant", [], ["y"], name="bad", value=onnx.TensorProto(data_type=1, dims=[3]))],
        "the attribute 'value' of type float[3] needs 3 values in float_data, but there are 0",
    ),
    "function with overload": (
        [node("Floor", ["x"], ["y"], name="bad", overload="o")],
        "no function '::Floor:o'",
    ),
}


@pytest.mark.parametrize("case", AT_A_NODE)
def test_at_a_node(model, case):
    nodes, *words = AT_A_NODE[case]
    if case.startswith("reference"):
        nodes[-1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    error = refusal(model(nodes, initializer=[ONE]))
    assert named(error) == ["bad"]
    for word in words:
        assert word in str(error)
    assert str(error).startswith("node 'bad'")


def test_operator_of_a_later_opset(model):
    error = refusal(model([node("GreaterOrEqual", ["x", "x"], ["y"], name="ge")], opset=11))
    assert named(error) == ["ge"]
    assert "GreaterOrEqual does not exist in opset 11 of ai.onnx; it does since opset 12" in str(error)


def test_domain_too_new(model):
    error = refusal(
        model([node("Normalizer", ["x"], ["y"], name="n", domain="ai.onnx.ml")], domains={"ai.onnx.ml": 9})
    )
    assert named(error) == ["n"]
    assert "version 9 of the domain ai.onnx.ml, which is known up to version 5" in str(error)


def test_attribute_twice(model):
    made = model([node("Concat", ["x"], ["y"], name="bad", axis=0)])
    made.graph.node[0].attribute.add(name="axis", i=0, type=onnx.AttributeProto.INT)
    assert "attribute 'axis' is there twice" in str(refusal(made))


def test_cycle(model):
    nodes = [
        node("Floor", ["x"], ["a"], name="before"),
        node("Add", ["a", "d"], ["b"], name="first"),
        node("Ceil", ["b"], ["c"], name="second"),
        node("Abs", ["c"], ["d"], name="third"),
        node("Neg", ["d"], ["y"], name="after"),
    ]
    error = refusal(model(nodes))
    assert sorted(named(error)) == ["first", "second", "third"]
    assert "'first' -> 'second' -> 'third' -> 'first'" in str(error)


def test_names_that_occur_twice(model):
    floor = node("Floor", ["x"], ["y"])
    assert "input 'x' of main is there twice" in str(refusal(model([floor], inputs=["x", "x"])))
    assert "output 'y' of the model is there twice" in str(refusal(model([floor], outputs=["y", "y"])))
    assert "initializer 'one' of main is there twice" in str(refusal(model([floor], initializer=[ONE, ONE])))
    default = numpy_helper.from_array(np.ones(1, np.float32), "x")
    error = refusal(model([floor], initializer=[default, default]))
    assert "initializer 'x' of main is there twice" in str(error)


def test_names_that_are_missing(model):
    floor = node("Floor", ["x"], ["y"])
    unnamed = numpy_helper.from_array(np.float32(1))
    assert "an input of main has no name" in str(refusal(model([floor], inputs=["x", ""])))
    assert "an initializer of main has no name" in str(refusal(model([floor], initializer=[unnamed])))


def test_undefined_output(model):
    error = refusal(model([node("Floor", ["x"], ["result"])], outputs=["resul"]))
    assert "the output 'resul' of main is not defined" in str(error)
    assert "did you mean 'result'?" in str(error)


def test_name_that_is_not_utf8(model):
    data = model([node("Floor", ["x"], ["odd_name"])], outputs=["x"]).SerializeToString()
    assert "not UTF-8" in str(refusal(data.replace(b"odd_name", b"odd_\xff\xfeme")))


def test_input_without_element_type(model):
    floor = node("Floor", ["x"], ["y"])
    error = refusal(model([floor], inputs=[onnx.ValueInfoProto(name="x")]))
    assert "input 'x' of the model has no element type" in str(error)
    unknown = helper.make_tensor_value_info("x", 99, [1])
    assert "'x' has the element type 99" in str(refusal(model([floor], inputs=[unknown])))
    sparse = helper.make_sparse_tensor_value_info("x", 1, [1])
    assert "'x' has a sparse tensor type" in str(refusal(model([floor], inputs=[sparse])))


def branch(nodes, outputs, **more):
    values = [helper.make_tensor_value_info(o, 1, None) for o in outputs]
    return helper.make_graph(nodes, "branch", [], values, **more)


def conditional(model, then, before=()):
    other = branch([node("Abs", ["x"], ["e"])], ["e"])
    return model([*before, node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)],
                 inputs=["x", helper.make_tensor_value_info("c", 9, [])])  # fmt: skip


def test_inside_of_a_subgraph(model):
    error = refusal(conditional(model, branch([node("Flor", ["x"], ["t"], name="inner")], ["t"])))
    assert named(error) == ["inner"]
    assert error.location.origins[0].path == "main/if.then_branch"
    assert "node 'inner' (Flor) in main/if.then_branch" in str(error)


def test_output_of_a_subgraph(model):
    error = refusal(conditional(model, branch([], ["nothing"])))
    assert named(error) == ["if"]
    assert "output 'nothing' of main/if.then_branch is not defined" in str(error)


def test_tensor_of_a_subgraph(model):
    broken = onnx.TensorProto(name="w", data_type=1, dims=[3])
    error = refusal(conditional(model, branch([], ["w"], initializer=[broken])))
    assert named(error) == ["if"]
    assert "tensor 'w'" in str(error)


def test_ambiguous_name(model):
    """An inner node uses a name that an outer node defines, and a later inner one as well."""
    inner = [node("Neg", ["a"], ["t"], name="user"), node("Abs", ["x"], ["a"], name="again")]
    error = refusal(conditional(model, branch(inner, ["t"]), [node("Floor", ["x"], ["a"])]))
    assert named(error) == ["user"]
    assert "'a' is ambiguous" in str(error)


def test_subgraph_input_with_initializer(model):
    body = helper.make_graph(
        [node("Identity", ["go"], ["keep"]), node("Add", ["s", "s"], ["s2"])],
        "body",
        [helper.make_tensor_value_info(n, t, []) for n, t in (("i", 7), ("go", 9), ("s", 1))],
        [helper.make_tensor_value_info(n, t, []) for n, t in (("keep", 9), ("s2", 1))],
        [numpy_helper.from_array(np.float32(1), "s")],
    )
    loop = node("Loop", ["", "", "x"], ["y"], name="loop", body=body)
    error = refusal(model([loop]))
    assert named(error) == ["loop"]
    assert "'s' is both an input and an initializer of the subgraph main/loop.body" in str(error)


def test_functions(model):
    def function(name, nodes, attributes=()):
        return helper.make_function("f", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 21)], attributes)

    def call(*functions, inputs=("x",), outputs=("y",), **attributes):
        made = node("G", inputs, outputs, name="call", domain="f", **attributes)
        return refusal(model([made], functions=functions))

    good = function("G", [node("Floor", ["a"], ["b"])], ["alpha"])
    assert "function 'G' has 1 input, but the node has 2" in str(call(good, inputs=["x", "x"]))
    assert "function 'G' has 1 output, but the node has 2" in str(call(good, outputs=["y", "z"]))
    error = call(good, alfa=1.0)
    assert named(error) == ["call"]
    assert "function 'G' has no attribute 'alfa'" in str(error)
    assert "'alpha'" in str(error)
    assert "two functions 'f::G'" in str(call(good, good))

    error = call(function("G", [node("Flor", ["a"], ["b"], name="inner")]))
    assert error.location.origins[0].path == "f::G"
    leaky = node("LeakyRelu", ["a"], ["b"], name="inner")
    leaky.attribute.add(name="alpha", ref_attr_name="beta", type=onnx.AttributeProto.FLOAT)
    assert "'beta', but the function has no such attribute" in str(call(function("G", [leaky], ["alpha"])))

    first = function("G", [node("H", ["a"], ["b"], domain="f")])
    second = function("H", [node("G", ["a"], ["b"], domain="f")])
    assert "call themselves, directly or through others: 'f::G', 'f::H'" in str(call(first, second))
