"""Every element type and both ways to store it, against onnx's own decoding."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import CompileError
from sardonyx.frontend.tensors import TensorReader
from sardonyx_runtime import dtypes

READ = TensorReader().read
TYPED = [t for t in dtypes.ALL if t is not dtypes.string]
SHAPES = [(), (0,), (1,), (2, 3), (5,), (7, 1, 3)]


def sample(dtype, shape):
    """Values of every kind, bit patterns for floats."""
    count = int(np.prod(shape, dtype=int))
    bits = np.random.default_rng(0).integers(0, 256, count * dtype.itemsize, np.uint8)
    if dtype.bits < 8:
        bits &= (1 << dtype.bits) - 1
    return bits.view(dtype.numpy).reshape(shape)


def same(dense, dtype, expected):
    assert dense.dtype is dtype
    assert dense.array.dtype == dtype.numpy
    assert dense.shape == expected.shape
    assert dense.array.tobytes() == expected.tobytes()
    assert not dense.array.flags.writeable


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPED, ids=str)
def test_raw_data(dtype, shape):
    values = sample(dtype, shape)
    tensor = numpy_helper.from_array(values, "t")
    assert tensor.HasField("raw_data")
    same(READ(tensor), dtype, values)
    same(READ(tensor), dtype, numpy_helper.to_array(tensor))


def typed(dtype, values):
    """The tensor with its elements in the field of its type, as the comments in onnx.proto say."""
    raw = numpy_helper.from_array(values).raw_data
    tensor = TensorProto(name="t", data_type=dtype.onnx, dims=values.shape)
    if dtype.bits == 6:  # one element each, not packed
        tensor.int32_data.extend(values.reshape(-1).view(np.uint8).tolist())
    elif dtype.kind == "complex":
        field = tensor.float_data if dtype is dtypes.c64 else tensor.double_data
        field.extend(values.reshape(-1).view(values.real.dtype).tolist())
    elif dtype in (dtypes.f32, dtypes.f64, dtypes.i64, dtypes.u32, dtypes.u64):
        names = {"f32": "float_data", "f64": "double_data", "i64": "int64_data"}
        getattr(tensor, names.get(dtype.name, "uint64_data")).extend(values.reshape(-1).tolist())
    elif dtype.kind in ("signed", "bool") and dtype.bits != 4 and dtype.bits != 2:
        tensor.int32_data.extend(values.reshape(-1).astype(np.int32).tolist())
    else:
        word = np.uint16 if dtype.itemsize == 2 else np.uint8
        tensor.int32_data.extend(np.frombuffer(raw, word).tolist())
    return tensor


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPED, ids=str)
def test_typed_fields(dtype, shape):
    values = sample(dtype, shape)
    if dtype.is_float or dtype.kind == "complex":
        values = np.where(np.isnan(values), np.zeros_like(values), values)  # protobuf may quieten a NaN
    if dtype is dtypes.boolean:
        values = values.view(np.uint8) % 2 == 1
    tensor = typed(dtype, values)
    same(READ(tensor), dtype, values)
    same(READ(tensor), dtype, numpy_helper.to_array(tensor))


def test_every_type_of_onnx_is_known():
    numbers = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    assert numbers == {t.onnx for t in dtypes.ALL}


def test_raw_data_is_not_copied():
    tensor = numpy_helper.from_array(np.arange(100, dtype=np.float32))
    base = READ(tensor).array
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, bytes)


def test_booleans_other_than_one_are_true():
    array = READ(TensorProto(data_type=TensorProto.BOOL, dims=[3], raw_data=b"\0\2\xff")).array
    assert array.view(np.uint8).tolist() == [0, 1, 1]


def test_strings():
    tensor = TensorProto(data_type=TensorProto.STRING, dims=[2, 2])
    tensor.string_data.extend([b"a", "dž".encode(), b"", b"\xff\x00"])
    dense = READ(tensor)
    assert dense.dtype is dtypes.string
    assert dense.array.tolist() == [["a", "dž"], ["", "\udcff\x00"]]
    tensor = TensorProto(data_type=TensorProto.STRING, string_data=[b"scalar"])
    assert READ(tensor).array[()] == "scalar"


def test_empty_raw_data_beside_a_typed_field():
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [2], [1, 2])
    tensor.raw_data = b""
    assert READ(tensor).array.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (TensorProto(data_type=1, dims=[2], raw_data=b"1234"), r"float\[2\] needs 8 .* raw_data has 4"),
        (TensorProto(data_type=1, dims=[1], raw_data=b"12345"), "needs 4 bytes, but its raw_data has 5"),
        (TensorProto(data_type=22, dims=[3], raw_data=b"1"), r"int4\[3\] needs 2 .* raw_data has 1"),
        (TensorProto(data_type=27, dims=[2], raw_data=b"1"), "needs 2 bytes"),
        (TensorProto(data_type=1, dims=[2], float_data=[1]), "needs 2 values in float_data, but there are 1"),
        (TensorProto(data_type=1, dims=[1], int32_data=[1]), "but there are 0; it has int32_data"),
        (TensorProto(data_type=14, dims=[1], float_data=[1]), "needs 2 values in float_data"),
        (TensorProto(data_type=8, dims=[1], raw_data=b"a"), "needs 1 values in string_data"),
        (TensorProto(data_type=1, dims=[2**40, 2**40]), "needs 1208925819614629174706176 values"),
        (TensorProto(data_type=1, dims=[-1]), "negative dim"),
        (TensorProto(dims=[1], float_data=[1]), "no element type"),
        (TensorProto(data_type=99), "the element type 99"),
        (TensorProto(data_type=1, segment=TensorProto.Segment(begin=0, end=1)), "segments"),
    ],
)  # fmt: skip
def test_refused(tensor, words):
    tensor.name = "weights"
    with pytest.raises(CompileError, match=words) as caught:
        READ(tensor)
    assert "tensor 'weights'" in str(caught.value)


def sparse(values, indices, dims):
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values), "s"),
        numpy_helper.from_array(np.asarray(indices), "i"),
        dims,
    )


def test_sparse():
    reader = TensorReader()
    expected = np.array([[0, 1.5, 0], [0, 0, 2.5]], np.float32)
    values = np.float32([1.5, 2.5])
    assert (reader.read_sparse(sparse(values, [1, 5], [2, 3])).array == expected).all()
    assert (reader.read_sparse(sparse(values, [[0, 1], [1, 2]], [2, 3])).array == expected).all()
    half = reader.read_sparse(sparse(values.astype(ml_dtypes.bfloat16), [1, 5], [2, 3]))
    assert half.dtype is dtypes.bf16
    assert (half.array == expected).all()
    assert not reader.read_sparse(sparse(values[:0], np.empty(0, np.int64), [2, 3])).array.any()
    text = reader.read_sparse(sparse(np.array(["a"], object), [1], [2]))
    assert text.array.tolist() == ["", "a"]


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (sparse(np.ones(2, "f4"), [1, 6], [2, 3]), r"index outside of its dims \[2, 3\]"),
        (sparse(np.ones(1, "f4"), [[0, 3]], [2, 3]), "index outside"),
        (sparse(np.ones(1, "f4"), [-1], [2, 3]), "index outside"),
        (sparse(np.ones(2, "f4"), [1], [2, 3]), r"needs values \[N\] and int64 indices"),
        (sparse(np.ones(1, "f4"), np.int32([1]), [2, 3]), "int32 indices"),
        (sparse(np.ones((1, 1), "f4"), [1], [2, 3]), r"has values \[1, 1\]"),
        (sparse(np.ones(1, "f4"), [1], [2**40, 2**20]), "too large"),
        (sparse(np.ones(1, "f4"), [1], [-2]), "negative dim"),
        (onnx.SparseTensorProto(dims=[1]), "no element type"),
    ],
)
def test_sparse_refused(tensor, words):
    with pytest.raises(CompileError, match=words):
        TensorReader().read_sparse(tensor)
