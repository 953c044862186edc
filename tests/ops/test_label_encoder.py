"""LabelEncoder and the rest of ai.onnx.ml that prepares features, and its linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.helpers import check, each_engine, make_model, run_model

import sardonyx

Array = np.ndarray[Any, Any]


def ml(
    op_type: str,
    inputs: dict[str, Array],
    outputs: Any = ("y",),
    *,
    version: int = 4,
    dims: Any = None,
    **attributes: Any,
) -> onnx.ModelProto:
    node = helper.make_node(op_type, list(inputs), list(outputs), domain="ai.onnx.ml", **attributes)
    model = make_model([node], inputs, dims=dims)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    return model


def same(got: Array, want: Any) -> None:
    want = np.asarray(want)
    if want.dtype == object:
        assert got.dtype == object and got.tolist() == want.tolist()
    else:
        check(got, want)


NAMES = np.array(["b", "", "日本", "zz", "a", "b ", "nan"], object)
NUMBERS = np.array([5, -7, 0, 2**62, 5, 11, -(2**63)])
FLOATS = np.array([0.5, -0.0, np.nan, np.inf, -1e30, 0.5, 3], np.float32)


@each_engine
@pytest.mark.parametrize("source", ["strings", "int64s", "floats"])
@pytest.mark.parametrize("target", ["strings", "int64s", "floats"])
@pytest.mark.parametrize("version", [2, 4])
def test_label_encoder(source: str, target: str, version: int, engine: str) -> None:
    columns = {"strings": NAMES, "int64s": NUMBERS, "floats": FLOATS}
    keys, values = columns[source], columns[target]
    default: Any = {"strings": "none", "int64s": 99, "floats": 0.25}[target]
    others = {"strings": ["x", "日", "B"], "int64s": [6, 1, 2**62 + 1], "floats": [0.75, 1, -np.inf]}[source]
    x = np.concatenate([keys, np.array(others, keys.dtype), keys[::-1]])
    given = {
        f"keys_{source}": keys.tolist(),
        f"values_{target}": values.tolist(),
        f"default_{target.rstrip('s')}": default,
    }
    model = ml("LabelEncoder", {"x": x}, version=version, dims={"x": ["n"]}, **given)
    table = {("nan" if k != k else k): v for k, v in zip(keys.tolist(), values.tolist(), strict=True)}
    want = [table.get("nan" if k != k else k, default) for k in x.tolist()]
    same(run_model(model, [x], engine)[0], np.array(want, values.dtype))


@each_engine
@pytest.mark.parametrize("source", [np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("target", [np.int16, np.int32, np.float64, np.int64])
def test_label_encoder_of_tensors(source: Any, target: Any, engine: str) -> None:
    rng = np.random.RandomState(0)
    for count in (1, 2, 3, 64, 100):
        keys = rng.permutation(200)[:count].astype(source)
        values = rng.randint(-99, 99, count).astype(target)
        x = rng.randint(-1, 201, (3, 40)).astype(source)
        given = {
            "keys_tensor": numpy_helper.from_array(keys), "values_tensor": numpy_helper.from_array(values),
            "default_tensor": numpy_helper.from_array(np.array([7], target)),
        }  # fmt: skip
        table = dict(zip(keys.tolist(), values.tolist(), strict=True))
        want = np.vectorize(lambda k, table=table: table.get(k, 7))(x).astype(target)
        same(run_model(ml("LabelEncoder", {"x": x}, **given), [x], engine)[0], want)


@each_engine
def test_many_strings(engine: str) -> None:
    keys = [f"key {i * i}" for i in range(3000)]
    x = np.array([*keys[::17], "key", "key 2", ""], object)
    model = ml("LabelEncoder", {"x": x}, keys_strings=keys, values_int64s=list(range(3000)), default_int64=-5)
    same(run_model(model, [x], engine)[0], np.array([*range(0, 3000, 17), -5, -5, -5]))


@each_engine
def test_label_encoder_1(engine: str) -> None:
    names = ["a", "b", "日"]
    x = np.array([0, 2, 3, -1, 1])
    model = ml("LabelEncoder", {"x": x}, version=1, classes_strings=names)
    same(run_model(model, [x], engine)[0], np.array(["a", "日", "_Unused", "_Unused", "b"], object))
    text = np.array(["日", "a", "c"], object)
    model = ml("LabelEncoder", {"x": text}, version=1, classes_strings=names, default_int64=-9)
    same(run_model(model, [text], engine)[0], np.array([2, 0, -9]))


@each_engine
def test_category_mapper(engine: str) -> None:
    x = np.array(["b", "x", "a"], object)
    given = {"cats_strings": ["a", "b"], "cats_int64s": [10, 20]}
    same(run_model(ml("CategoryMapper", {"x": x}, **given), [x], engine)[0], np.array([20, -1, 10]))
    y = np.array([20, 7])
    same(
        run_model(ml("CategoryMapper", {"x": y}, **given), [y], engine)[0], np.array(["b", "_Unused"], object)
    )


@pytest.mark.parametrize(
    "attributes, words",
    [
        ({"keys_int64s": [1]}, "values_"),
        ({"keys_int64s": [1], "values_int64s": [1, 2]}, "1 keys for 2"),
        ({"keys_strings": ["a"], "values_int64s": [1]}, "keys are string"),
        ({"keys_int64s": [1], "keys_floats": [1.0], "values_int64s": [1]}, "2"),
    ],
)
def test_what_is_refused(attributes: Any, words: str) -> None:
    with pytest.raises(sardonyx.CompileError, match=words):
        sardonyx.compile(ml("LabelEncoder", {"x": np.array([1])}, **attributes))


def against_onnxruntime(
    model: onnx.ModelProto, feeds: dict[str, Array], engine: str, **tolerance: Any
) -> None:
    ort = pytest.importorskip("onnxruntime")
    for output in model.graph.output:
        output.type.tensor_type.elem_type = output.type.tensor_type.elem_type or TensorProto.FLOAT
    want = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    for got, expected in zip(run_model(model, list(feeds.values()), engine), want, strict=True):
        if expected.dtype == object:
            assert got.tolist() == expected.tolist()
        else:
            check(got, expected.reshape(got.shape), zero_signs=False, **tolerance)


@each_engine
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_scaler(kind: Any, engine: str) -> None:
    x = (np.random.RandomState(0).randn(5, 3) * 10).astype(kind)
    for offset, scale in (([1.0, 2, 3], [0.5, 2, 1]), ([0.5], [3.0])):
        against_onnxruntime(ml("Scaler", {"x": x}, offset=offset, scale=scale), {"x": x}, engine, ulp=1)


@each_engine
@pytest.mark.parametrize("kind", [np.float32, np.int64])
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str, kind: Any, engine: str) -> None:
    x = (np.random.RandomState(0).rand(5, 3) * 10 + 1).astype(kind)
    x[2] = 0
    against_onnxruntime(ml("Normalizer", {"x": x}, norm=norm), {"x": x}, engine, ulp=2)


@each_engine
def test_imputer_binarizer_extractor(engine: str) -> None:
    x = np.array([[1, np.nan, 3], [np.nan, 5, 6]], np.float32)
    got = run_model(
        ml("Imputer", {"x": x}, replaced_value_float=np.nan, imputed_value_floats=[7.0, 8, 9]), [x], engine
    )[0]
    check(got, np.array([[1, 8, 3], [7, 5, 6]], np.float32))
    i = np.array([[1, -1], [-1, 4]])
    got = run_model(ml("Imputer", {"x": i}, replaced_value_int64=-1, imputed_value_int64s=[0]), [i], engine)[
        0
    ]
    check(got, np.array([[1, 0], [0, 4]]))
    check(
        run_model(ml("Binarizer", {"x": x}, threshold=3.0), [x], engine)[0],
        np.array([[0, 0, 0], [0, 1, 1]], np.float32),
    )
    index = np.array([2, 0, 2])
    got = run_model(ml("ArrayFeatureExtractor", {"x": x, "i": index}), [x, index], engine)[0]
    check(got, x[:, index])
    text = np.array(["a", "b", "c"], object)
    got = run_model(ml("ArrayFeatureExtractor", {"x": text, "i": index}), [text, index], engine)[0]
    assert got.tolist() == [["c", "a", "c"]]


@each_engine
def test_feature_vectorizer_and_one_hot(engine: str) -> None:
    x, y = np.array([[1, 2], [3, 4]]), np.array([[5], [6]])
    model = ml("FeatureVectorizer", {"x": x, "y": y}, outputs=("z",), inputdimensions=[2, 1])
    check(run_model(model, [x, y], engine)[0], np.array([[1, 2, 5], [3, 4, 6]], np.float32))
    i = np.array([3, 1, 9])
    model = ml("OneHotEncoder", {"x": i}, cats_int64s=[1, 2, 3])
    check(run_model(model, [i], engine)[0], np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], np.float32))
    t = np.array([["b"], ["?"]], object)
    model = ml("OneHotEncoder", {"x": t}, cats_strings=["a", "b"])
    check(run_model(model, [t], engine)[0], np.array([[[0, 1]], [[0, 0]]], np.float32))


@each_engine
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_regressor(transform: str, engine: str) -> None:
    x = np.random.RandomState(0).randn(6, 4).astype(np.float32)
    given = {"coefficients": np.linspace(-1, 1, 12).tolist(), "intercepts": [0.5, 0.0, -1.0], "targets": 3}
    model = ml("LinearRegressor", {"x": x}, **given, post_transform=transform, dims={"x": ["n", 4]})
    against_onnxruntime(model, {"x": x}, engine, rtol=1e-5, atol=1e-6)


@each_engine
@pytest.mark.parametrize(
    "labels", [{"classlabels_ints": [3, 1, 2]}, {"classlabels_strings": ["x", "y", "日"]}]
)
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_classifier(labels: Any, transform: str, engine: str) -> None:
    x = np.random.RandomState(0).randn(6, 4).astype(np.float32)
    given = {"coefficients": np.linspace(-1, 1, 12).tolist(), "intercepts": [0.5, 0.0, -1.0], **labels}
    model = ml("LinearClassifier", {"x": x}, outputs=("label", "z"), **given, post_transform=transform)
    model.graph.output[0].type.tensor_type.elem_type = (
        TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64
    )
    against_onnxruntime(model, {"x": x}, engine, rtol=1e-5, atol=1e-6)
