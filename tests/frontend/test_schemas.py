"""The wrapper over onnx.defs, and the check of input types."""

import pytest
from onnx import defs

from sardonyx.errors import CompileError
from sardonyx.frontend import check_types, schemas
from sardonyx.ir.attributes import Dense
from sardonyx.ir.types import MapType, NoneType, OptionalType, SequenceType, TensorType, UnrankedType
from sardonyx_runtime import dtypes as d


def test_schema():
    clip = schemas.find("Clip", "", 20)
    assert clip.since == 13
    assert [(p.name, p.option) for p in clip.inputs] == [
        ("input", "single"),
        ("min", "optional"),
        ("max", "optional"),
    ]
    concat = schemas.find("Concat", "", 13)
    assert concat.required_attributes == ("axis",)
    assert concat.input(5) is concat.inputs[0]
    assert schemas.find("Floor", "", 13).input(1) is None
    assert schemas.find("Gemm", "", 13).defaults == {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    assert schemas.find("Clip", "", 20) is clip


def test_every_schema_converts():
    for schema in defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found = schemas.find(schema.name, schema.domain, schema.since_version)
            assert (found.name, found.since) == (schema.name, schema.since_version)
            for attribute in found.attributes.values():
                known = (int, float, str, tuple, Dense)
                assert attribute.default is None or isinstance(attribute.default, known)


def test_versions():
    assert schemas.versions("Clip", "") == (1, 6, 11, 12, 13)
    assert schemas.versions("Clip", "nowhere") == ()
    assert schemas.newest_opset("ai.onnx.ml") == 5
    assert schemas.newest_opset("nowhere") == 0


def test_registered_operators_are_found():
    schema = defs.OpSchema("Brew", "vendor.test", 2)
    defs.register_schema(schema)
    try:
        assert schemas.find("Brew", "vendor.test", 3).since == 2
        with pytest.raises(CompileError, match=r"does not exist in opset 1 of vendor\.test"):
            schemas.find("Brew", "vendor.test", 1)
    finally:
        defs.deregister_schema("Brew", 2, "vendor.test")


@pytest.mark.parametrize(
    ("op_type", "opset", "types"),
    [
        ("Floor", 13, [d.f32]),
        ("Floor", 13, [TensorType(d.bf16, (2,))]),
        ("Floor", 13, [UnrankedType(None)]),
        ("Floor", 13, [None]),
        ("Clip", 13, [d.i8, NoneType(), d.i8]),
        ("Concat", 13, [d.string, d.string, d.string]),
        ("Pow", 13, [d.f32, d.i64]),  # two type variables
        ("Loop", 16, [d.i64, d.boolean, d.f32, d.i8]),  # variadic of many types
        ("SequenceLength", 11, [SequenceType(UnrankedType(d.f32))]),
        ("SequenceLength", 11, [SequenceType(UnrankedType(None))]),
        ("OptionalGetElement", 15, [OptionalType(SequenceType(TensorType(d.f32, (2,))))]),
        ("Floor", 13, [d.f32, d.i8]),  # too many: for another check
    ],
)
def test_types_that_are_allowed(op_type, opset, types):
    assert check_types(op_type, "", opset, types) is None


@pytest.mark.parametrize(
    ("op_type", "opset", "types", "message"),
    [
        (
            "Floor",
            6,
            [d.bf16],
            "input 0 'X' (tensor 'x') has type bfloat16, but Floor in opset 6 of ai.onnx takes "
            "double, float, float16; bfloat16 is allowed since opset 13",
        ),
        (
            "Floor",
            13,
            [TensorType(d.i32, (2,))],
            "input 0 'X' (tensor 'x') has type int32, but Floor in opset 13 of ai.onnx takes "
            "bfloat16, double, float, float16; no opset up to 28 allows int32",
        ),
        (
            "Add",
            14,
            [d.f32, d.f64],
            "input 0 'A' (tensor 'x') and input 1 'B' (tensor 'y') of Add must have the same type, "
            "but they have float and double",
        ),
        (
            "Concat",
            13,
            [d.f32, d.f32, d.i8],
            "input 0 'inputs' (tensor 'x') and input 2 'inputs' of Concat must have the same type, "
            "but they have float and int8",
        ),
        (
            "SequenceLength",
            11,
            [d.f32],
            "input 0 'input_sequence' (tensor 'x') has type float, but",
        ),
        ("Floor", 13, [SequenceType(UnrankedType(d.f32))], "has type seq(tensor(float)), but"),
    ],
)
def test_types_that_are_refused(op_type, opset, types, message):
    assert message in check_types(op_type, "", opset, types, names=["x", "y"])


def test_maps():
    kind = MapType(d.string, UnrankedType(d.f32))
    assert check_types("DictVectorizer", "ai.onnx.ml", 1, [kind]) is None
    kind = MapType(d.string, UnrankedType(d.u8))
    message = check_types("DictVectorizer", "ai.onnx.ml", 1, [kind])
    assert "has type map(string,tensor(uint8))" in message
