"""The form of the onnx level."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.frontend import AttributeReference, bind_references, import_model
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Origin, walk
from sardonyx.ir.types import NoneType, OptionalType, SequenceType, TensorType, UnrankedType
from sardonyx_runtime import dtypes

node = helper.make_node
ONE = numpy_helper.from_array(np.float32(1), "one")
OPSET = helper.make_opsetid("", 21)


def value(name, dtype=1, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def test_node(model):
    main = import_model(model([node("Floor", ["x"], ["y"], name="down")])).main
    floor, end = main.body
    assert floor.name == "onnx.Floor"
    assert floor.operands == tuple(main.arguments)
    assert floor.attributes == {"sdx.opset": 21}
    assert floor.location.origins == (Origin("main", "down", "Floor", ("y",)),)
    assert floor.result.name == "y"
    assert floor.result.type == UnrankedType(None)
    assert end.name == "core.return"
    assert end.operands == (floor.result,)


def test_main(model):
    made = model([node("Floor", ["x"], ["y"])])
    made.producer_name, made.producer_version = "exporter", "1.2"
    made.metadata_props.add(key="k", value="v")
    made.graph.value_info.append(value("inner", 1, [2]))
    attributes = import_model(made).main.attributes
    assert attributes["inputs"] == ("x",)
    assert attributes["outputs"] == ("y",)
    assert attributes["ir_version"] == 10
    assert attributes["opsets"] == {"ai.onnx": 21}
    assert attributes["producer"] == "exporter 1.2"
    assert attributes["metadata"] == {"k": "v"}
    assert attributes["graph_name"] == "graph"
    assert attributes["declared_outputs"]["y"].describe() == "float[n]"
    assert attributes["declared_values"]["inner"].describe() == "float[2]"
    assert attributes["defaults"] == {}


def test_node_names_are_stable_and_unique(model):
    names = ["", "twin", "twin", "", "Neg_3"]
    ops = ["Floor", "Ceil", "Abs", "Neg", "Sin"]
    values = ["x", "a", "b", "c", "d", "y"]
    nodes = [node(o, [values[i]], [values[i + 1]], name=names[i]) for i, o in enumerate(ops)]
    body = list(import_model(model(nodes)).main.body)
    assert [op.location.names for op in body[:-1]] == ["Floor_0", "twin", "twin_2", "Neg_3_", "Neg_3"]


def test_odd_names(model):
    names = ["a b", "%1", 'quo"te', "ß/\\\n", "main"]
    values = ["x", *names]
    nodes = [node("Floor", [values[i]], [values[i + 1]], name=n) for i, n in enumerate(names)]
    main = import_model(model(nodes, outputs=["main"])).main
    assert [op.result.name for op in list(main.body)[:-1]] == names
    assert [op.location.names for op in list(main.body)[:-1]] == names


def test_inputs_left_out(model):
    nodes = [
        node("Clip", ["x", "", "one"], ["a"]),
        node("Clip", ["a", "", ""], ["b"]),
        node("Resize", ["b", "", "", "sizes"], ["y"]),
    ]
    sizes = numpy_helper.from_array(np.array([1]), "sizes")
    main = import_model(model(nodes, initializer=[ONE, sizes])).main
    ops = {op.location.names: op for op in main.body}
    clip, cut, resize = ops["Clip_0"], ops["Clip_1"], ops["Resize_2"]
    (none,) = (op for op in main.body if op.name == "onnx.none")
    assert none.result.type == NoneType()
    assert [o.name for o in clip.operands] == ["x", "", "one"]
    assert clip.operands[1] is none.result
    assert len(cut.operands) == 1
    assert resize.operands[1:3] == (none.result, none.result)
    assert main.body.ops.index(none) < main.body.ops.index(clip)


def test_outputs_left_out(model):
    made = model([node("GRU", ["x", "w", "r"], ["", "y"], hidden_size=1)], inputs=["x", "w", "r"])
    gru = import_model(made).main.body.ops[0]
    assert [r.name for r in gru.results] == ["", "y"]
    made = model([node("Split", ["x"], ["", "y", ""], num_outputs=3)])
    assert [r.name for r in import_model(made).main.body.ops[0].results] == ["", "y", ""]


def test_initializers(model):
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "s"), numpy_helper.from_array(np.array([1])), [2]
    )
    made = model(
        [node("Add", ["x", "one"], ["a"]), node("Add", ["a", "s"], ["y"])],
        initializer=[ONE],
        sparse_initializer=[sparse],
    )
    one, s, *_ = import_model(made).main.body
    assert one.name == s.name == "core.constant"
    assert one.attributes == {"value": Dense(np.float32(1))}
    assert one.result.name == "one"
    assert one.result.type == TensorType(dtypes.f32, ())
    assert one.location.names == "one"
    assert s.attributes["value"].array.tolist() == [0, 1]


def test_initializer_that_is_an_input(model):
    made = model([node("Add", ["x", "one"], ["y"])], inputs=["x", value("one", 1, [])], initializer=[ONE])
    main = import_model(made).main
    assert [op.name for op in main.body] == ["onnx.Add", "core.return"]
    assert main.attributes["defaults"] == {"one": Dense(np.float32(1))}
    assert main.attributes["inputs"] == ("x", "one")


def test_outputs_that_no_node_makes(model):
    main = import_model(model([], outputs=["x", "one"], initializer=[ONE])).main
    assert [o.name for o in main.results] == ["x", "one"]
    assert main.results[0] is main.arguments[0]


def attribute(kind, **fields):
    return onnx.AttributeProto(name="a", type=getattr(onnx.AttributeProto, kind), **fields)


A_TYPE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(np.ones(1, np.float32), "s"), numpy_helper.from_array(np.array([1])), [2]
)


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (attribute("FLOAT", f=0.5), 0.5),
        (attribute("INT", i=-3), -3),
        (attribute("STRING", s=b"same"), "same"),
        (attribute("STRING", s="grün".encode()), "grün"),
        (attribute("STRING", s=b"\xff"), b"\xff"),
        (attribute("TENSOR", t=ONE), Dense(np.float32(1))),
        (attribute("SPARSE_TENSOR", sparse_tensor=SPARSE), Dense(np.float32([0, 1]))),
        (attribute("TYPE_PROTO", tp=A_TYPE), SequenceType(UnrankedType(dtypes.f32))),
        (attribute("FLOATS", floats=[0.5, 2]), (0.5, 2.0)),
        (attribute("INTS", ints=[1, 2]), (1, 2)),
        (attribute("INTS"), ()),
        (attribute("STRINGS", strings=[b"a", b"\xff"]), ("a", b"\xff")),
        (attribute("TENSORS", tensors=[ONE]), (Dense(np.float32(1)),)),
        (attribute("SPARSE_TENSORS", sparse_tensors=[SPARSE]), (Dense(np.float32([0, 1])),)),
        (attribute("TYPE_PROTOS", type_protos=[A_TYPE]), (SequenceType(UnrankedType(dtypes.f32)),)),
    ],
    ids=lambda p: (
        onnx.AttributeProto.AttributeType.Name(p.type) if isinstance(p, onnx.AttributeProto) else ""
    ),
)
def test_attributes(model, proto, expected):
    """Through a call of a function, which takes attributes of any kind; with and without the ``type``."""
    function = helper.make_function("f", "F", ["a"], ["b"], [node("Floor", ["a"], ["b"])], [OPSET], ["a"])
    for _ in range(2):
        call = node("F", ["x"], ["y"], domain="f")
        call.attribute.append(proto)
        op = import_model(model([call], functions=[function])).main.body.ops[0]
        assert op.attributes["a"] == expected
        assert type(op.attributes["a"]) is type(expected)
        if expected == ():
            break
        proto.ClearField("type")  # as the first exporters did


def test_kind_of_an_empty_attribute_comes_from_the_schema(model):
    transpose = node("Transpose", ["x"], ["y"])
    transpose.attribute.add(name="perm")
    assert import_model(model([transpose])).main.body.ops[0].attributes["perm"] == ()


def loop_body(*extra_nodes, **graph):
    return helper.make_graph(
        [node("Identity", ["go"], ["keep"]), *extra_nodes],
        "body",
        [value("i", 7, []), value("go", 9, []), value("s", 1, ["k"])],
        [value("keep", 9, []), value("s2")],
        **graph,
    )


def test_regions(model):
    inner = helper.make_graph([node("Mul", ["s", "x"], ["inner"])], "then", [], [value("inner")])
    other = helper.make_graph(
        [], "else", [], [value("half")], [numpy_helper.from_array(np.float32(0.5), "half")]
    )
    body = loop_body(node("If", ["go"], ["s2"], else_branch=other, then_branch=inner))
    made = model([node("Floor", ["x"], ["f"]), node("Loop", ["", "", "f"], ["y"], name="loop", body=body)])
    main = import_model(made).main
    loop = main.body.ops[2]
    assert loop.name == "onnx.Loop"
    assert loop.attributes == {"sdx.opset": 21, "sdx.regions": ("body",)}
    (block,) = loop.regions
    assert [a.name for a in block.arguments] == ["i", "go", "s"]
    assert [a.type for a in block.arguments] == [
        UnrankedType(t) for t in (dtypes.i64, dtypes.boolean, dtypes.f32)
    ]
    identity, choice, end = block
    assert end.name == "onnx.yield"
    assert end.operands == (identity.result, choice.result)
    assert choice.attributes["sdx.regions"] == ("then_branch", "else_branch")
    then, otherwise = choice.regions
    assert then.ops[0].operands == (block.arguments[2], main.arguments[0])  # captured from two levels
    assert [op.name for op in otherwise] == ["core.constant", "onnx.yield"]
    assert then.ops[0].location.origins[0].path == "main/loop.body/If_1.then_branch"
    assert end.location == loop.location
    assert block.parent is loop


def test_names_of_an_enclosing_graph_may_be_used_again(model):
    body = loop_body(node("Floor", ["s"], ["x"]), node("Ceil", ["x"], ["s2"]))
    loop = import_model(model([node("Loop", ["", "", "x"], ["y"], body=body)])).main.body.ops[1]
    floor, ceil = loop.regions[0].ops[1:3]
    assert ceil.operands == (floor.result,)


def test_nodes_are_sorted(model):
    """By operands and by what a subgraph captures; what is in order stays in order."""
    body = loop_body(node("Add", ["s", "late"], ["s2"]))
    nodes = [
        node("Abs", ["x"], ["free"], name="free"),
        node("Loop", ["", "", "b"], ["y"], name="loop", body=body),
        node("Ceil", ["a"], ["b"], name="second"),
        node("Floor", ["x"], ["a"], name="first"),
        node("Neg", ["x"], ["late"], name="late"),
    ]
    body = import_model(model(nodes)).main.body
    names = [op.location.names for op in body if op.level == "onnx" and op.kind != "none"]
    assert names == ["free", "first", "second", "late", "loop"]


def leaky(name="alpha"):
    made = node("LeakyRelu", ["a"], ["b"])
    made.attribute.add(name="alpha", ref_attr_name=name, type=onnx.AttributeProto.FLOAT)
    return made


def test_functions(model):
    plain = helper.make_function(
        "f", "Leaky", ["a"], ["b"], [leaky()], [helper.make_opsetid("", 16)], ["alpha"]
    )
    with_default = helper.make_function(
        "f", "Leaky", ["a"], ["b"], [leaky()], [OPSET],
        attribute_protos=[helper.make_attribute("alpha", 0.25)], overload="default",
    )  # fmt: skip
    outer = helper.make_function(
        "g", "Outer", ["a", "unused"], ["b"], [node("Leaky", ["a"], ["b"], domain="f")],
        [OPSET, helper.make_opsetid("f", 3)],
    )  # fmt: skip
    unknown = helper.make_function("f", "Unused", ["a"], ["b"], [node("Nothing", ["a"], ["b"])], [OPSET])
    nodes = [
        node("Outer", ["x"], ["o"], domain="g"),
        node("Leaky", ["o"], ["y"], domain="f", overload="default"),
    ]
    made = model(nodes, functions=[plain, with_default, outer, unknown], domains={"f": 1, "g": 2})
    module = import_model(made)
    assert list(module.functions) == ["main", "g::Outer", "f::Leaky:default", "f::Leaky"]
    first, second, _ = module.main.body
    assert first.name == "onnx.Outer"
    assert first.attributes == {"sdx.function": "g::Outer", "sdx.opset": 2, "sdx.domain": "g"}
    assert second.attributes["sdx.function"] == "f::Leaky:default"

    inner = module.functions["g::Outer"].body.ops[0]
    assert inner.attributes == {"sdx.function": "f::Leaky", "sdx.opset": 3, "sdx.domain": "f"}

    function = module.functions["f::Leaky"]
    assert function.attributes["inputs"] == ("a",)
    assert function.attributes["outputs"] == ("b",)
    assert function.attributes["attribute_names"] == ("alpha",)
    assert function.attributes["attribute_defaults"] == {}
    op = function.body.ops[0]
    assert op.attributes == {
        "alpha": AttributeReference("alpha", "float"),
        "sdx.opset": 16,
    }
    assert op.location.origins[0] == Origin("f::Leaky", "LeakyRelu_0", "LeakyRelu", ("b",))
    assert function.arguments[0].type == UnrankedType(None)
    assert module.functions["f::Leaky:default"].attributes["attribute_defaults"] == {"alpha": 0.25}


def test_references_can_be_bound(model):
    function = helper.make_function(
        "f", "F", ["a"], ["b"], [leaky("slope")], [OPSET], ["slope"]
    )  # fmt: skip
    made = model([node("F", ["x"], ["y"], domain="f")], functions=[function])
    for values, expected in (({"slope": 0.5}, {"alpha": 0.5, "sdx.opset": 21}), ({}, {"sdx.opset": 21})):
        body = import_model(made).functions["f::F"].body
        bind_references(body, values)
        assert body.ops[0].attributes == expected
        assert not any(isinstance(v, AttributeReference) for op in walk(body) for v in op.attributes.values())


def test_function_that_replaces_an_operator(model):
    function = helper.make_function("", "Floor", ["a"], ["b"], [node("Ceil", ["a"], ["b"])], [OPSET])
    module = import_model(model([node("Floor", ["x"], ["y"])], functions=[function]))
    assert module.main.body.ops[0].attributes["sdx.function"] == "::Floor"
    assert module.functions["::Floor"].body.ops[0].name == "onnx.Ceil"


def types_of(model, *inputs):
    module = import_model(model([], inputs=inputs, outputs=[inputs[0].name]))
    return [a.type for a in module.main.arguments]


def test_dims(model):
    a, b = types_of(
        model,
        value("a", 1, ["batch", 3, "seq len", 0, " batch "]),
        value("b", 10, ["batch", None, "?", "-1", "None", -5, ""]),
    )
    assert a.describe() == "float[batch, 3, 'seq len', 0, batch]"
    assert b.describe() == "float16[batch, 'b.d1', 'b.d2', 'b.d3', 'b.d4', 'b.d5', 'b.d6']"
    assert a.shape[0] == a.shape[4] == b.shape[0]


def test_fresh_symbols_differ_from_all_others(model):
    a, _ = types_of(model, value("a", 1, [None]), value("b", 1, ["a.d0"]))
    assert a.describe() == "float['a.d0_']"


def test_no_shape_and_scalars(model):
    assert types_of(model, value("a", 1), value("b", 1, [])) == [
        UnrankedType(dtypes.f32),
        TensorType(dtypes.f32, ()),
    ]


def test_types_other_than_tensors(model):
    tensor = helper.make_tensor_type_proto(TensorProto.INT64, ["n"])
    sequence = helper.make_sequence_type_proto(tensor)
    optional = helper.make_optional_type_proto(sequence)
    mapping = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(1, []))
    protos = {"s": sequence, "o": optional, "m": mapping}
    found = types_of(model, *(helper.make_value_info(n, t) for n, t in protos.items()))
    assert [t.describe() for t in found] == [
        "sequence of int64[n]",
        "optional sequence of int64[n]",
        "map from string to float[]",
    ]
    assert isinstance(found[1], OptionalType)
