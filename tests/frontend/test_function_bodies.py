"""The function bodies by which ONNX defines operators."""

import pytest
from onnx import defs

from sardonyx.frontend import AttributeReference, import_function, schema_function, schemas
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import walk
from sardonyx.ir.types import NoneType, TensorType, UnrankedType
from sardonyx_runtime import dtypes as d
from sardonyx_runtime.dims import symbol

F32 = UnrankedType(d.f32)


def kinds(function):
    return [op.kind for op in function.body]


def test_static():
    proto = schema_function("MeanVarianceNormalization", "", 17, [F32], {})
    function = import_function(proto, name="body")
    assert function.name == "body"
    assert function.attributes["inputs"] == ("X",)
    assert function.attributes["attribute_names"] == ("axes",)
    assert {op.attributes["sdx.opset"] for op in walk(function) if op.level == "onnx"} == {13}
    references = [
        v for op in walk(function) for v in op.attributes.values() if isinstance(v, AttributeReference)
    ]
    assert {r.name for r in references} == {"axes"}
    later = schema_function("MeanVarianceNormalization", "", 20, [F32], {})
    assert later.opset_import[0].version == 18


def test_depends_on_the_inputs_that_are_there():
    both = import_function(schema_function("Clip", "", 13, [F32, F32, F32], {}))
    upper = import_function(schema_function("Clip", "", 13, [F32, NoneType(), F32], {}))
    assert kinds(both).count("Where") == 2
    assert kinds(upper) == ["Less", "Where", "return"]
    assert upper.attributes["inputs"] == ("input", "min", "max")


def test_depends_on_attributes_and_types():
    proto = schema_function("Softmax", "", 13, [F32], {"axis": 1, "sdx.opset": 13})
    axes = import_function(proto).body.ops[0].attributes
    assert [v.array.tolist() for v in axes.values() if isinstance(v, Dense)] == [[1]]
    assert schema_function("Attention", "", 24, [UnrankedType(None)] * 3, {}) is None


def test_outputs_that_a_body_leaves_out():
    tensor = TensorType(d.f16, (symbol("batch"), 8, 4, 16))
    function = import_function(schema_function("Attention", "", 24, [tensor] * 3, {}))
    assert function.attributes["outputs"] == ("Y", "present_key", "present_value", "qk_matmul_output")
    assert [isinstance(r.type, NoneType) for r in function.results] == [False, True, True, True]


def test_attributes_are_handed_over():
    proto = schema_function("Gelu", "", 20, [F32], {"approximate": "tanh"})
    assert "Tanh" in [n.op_type for n in proto.node]
    proto = schema_function("Gelu", "", 20, [F32], {"approximate": "none"})
    assert "Erf" in [n.op_type for n in proto.node]


def test_outputs_that_are_used():
    loss = [TensorType(d.f32, (2, 3)), TensorType(d.i64, (2,))]
    one = schema_function("SoftmaxCrossEntropyLoss", "", 13, loss, {}, outputs=1)
    two = schema_function("SoftmaxCrossEntropyLoss", "", 13, loss, {}, outputs=[True, True])
    assert len(two.output) >= len(one.output)
    assert len(two.node) > len(one.node)


def test_without_a_body():
    assert schema_function("Floor", "", 13, [F32], {}) is None
    assert schema_function("SequenceMap", "", 17, [None], {}) is None


@pytest.mark.parametrize("static", [True, False])
def test_every_body_imports(static):
    found = 0
    for schema in defs.get_all_schemas():
        versions = (
            schema.function_opset_versions if static else schema.context_dependent_function_opset_versions
        )
        converted = schemas.find(schema.name, schema.domain, schema.since_version) if versions else None
        for version in versions:
            if version < schema.since_version:
                continue
            types = []
            for parameter in converted.inputs:
                names = sorted(t for t in parameter.types if t.startswith("tensor("))
                name = "tensor(float)" if "tensor(float)" in names else names[0] if names else None
                types.append(UnrankedType(d.by_name(name[7:-1])) if name else None)
            # Any value will do for attributes that are required.
            values = {s.name: 1 if s.kind == 2 else "x" for s in converted.attributes.values() if s.required}
            outputs = len(converted.outputs)
            proto = schema_function(schema.name, schema.domain, version, types, values, outputs)
            if proto is not None:
                import_function(proto)
                found += 1
    assert found >= (20 if static else 10)
