"""Random operators: known answers, distributions, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.helpers import check, each_engine, make_model, numpy_type, prepare, run_model

import sardonyx
from sardonyx.core.randomness import philox

Array = np.ndarray[Any, Any]
KINDS = {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE}


def test_philox_known_answer() -> None:
    """From the authors' list; others there have a counter of 128 bits (here the upper half is 0)."""
    got = int(philox({}, np.array([0], np.uint64), np.array([0], np.uint64))[0])
    assert (got & 0xFFFFFFFF, got >> 32) == (0x6627E8D5, 0xE169C58D)


def node(op_type: str, inputs: list[str], outputs: list[str] | None = None, **attributes: Any) -> Any:
    given = {k: v for k, v in attributes.items() if v is not None}
    return helper.make_node(op_type, inputs, outputs or ["y"], **given)


@each_engine
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [None, 3.5])
def test_uniform(kind: str, seed: float | None, engine: str) -> None:
    attributes = {"shape": [100, 500], "low": -2.0, "high": 3.0, "dtype": KINDS[kind], "seed": seed}
    (y,) = run_model(make_model([node("RandomUniform", [], **attributes)], {}), [], engine)
    assert (y.dtype, y.shape) == (numpy_type(kind), (100, 500))
    wide = y.astype(np.float64)
    assert wide.min() >= -2 and wide.max() <= 3
    assert abs(wide.mean() - 0.5) < 0.03 and abs(wide.var() - 25 / 12) < 0.06
    counts = np.histogram(wide, bins=10, range=(-2, 3))[0]
    assert (np.abs(counts - 5000) < 400).all()


@each_engine
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [None, 0.0])
def test_normal(kind: str, seed: float | None, engine: str) -> None:
    attributes = {"mean": 2.0, "scale": 3.0, "dtype": KINDS[kind], "seed": seed}
    x = np.zeros((123, 401), np.float32)
    (y,) = run_model(make_model([node("RandomNormalLike", ["x"], **attributes)], {"x": x}), [x], engine)
    z = (y.astype(np.float64) - 2) / 3
    assert np.isfinite(z).all() and y.dtype == numpy_type(kind)
    assert (
        abs(z.mean()) < 0.02
        and abs(z.var() - 1) < 0.03
        and abs((z**3).mean()) < 0.06
        and abs((z**4).mean() - 3) < 0.2
    )
    assert abs((np.abs(z) < 1).mean() - 0.6827) < 0.01 and np.abs(z).max() > 3.5


@pytest.mark.parametrize("op_type", ["RandomUniformLike", "RandomNormalLike", "Bernoulli"])
def test_engines_agree_for_a_seed(op_type: str) -> None:
    x = np.full((7, 33), 0.5, np.float32)
    model = make_model([node(op_type, ["x"], seed=1.0)], {"x": x}, dims={"x": ["n", 33]})
    reference, compiled = run_model(model, [x], "interpreter")[0], sardonyx.compile(model)
    for threads in (1, 2):
        check(sardonyx.compile(model, threads=threads).run([x])[0], reference, ulp=4)
    part = compiled.run([x[:3]])[0]
    check(part, reference[:3], ulp=4)


@each_engine
def test_seeds(engine: str) -> None:
    """Equal seeds give equal numbers, unlike ones others; without a seed no two nodes or runs are alike."""
    x = np.zeros(50, np.float32)
    nodes = [
        node("RandomUniformLike", ["x"], [name], seed=seed)
        for name, seed in (("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", None), ("e", None))
    ]
    run = prepare(make_model(nodes, {"x": x}), engine)
    a, b, c, d, e = run([x])
    check(a, b)
    assert not (a == c).any() and not (d == e).any()
    again = run([x])
    check(again[0], a)
    assert not (again[3] == d).any() and not (again[3] == e).any()


@each_engine
def test_bernoulli(engine: str) -> None:
    p = np.linspace(0, 1, 11).repeat(4000).reshape(11, 4000)
    (y,) = run_model(make_model([node("Bernoulli", ["p"], dtype=TensorProto.INT32)], {"p": p}), [p], engine)
    assert y.dtype == np.int32 and set(np.unique(y)) <= {0, 1}
    assert (np.abs(y.mean(axis=1) - p[:, 0]) < 0.04).all() and not y[0].any() and y[-1].all()


@each_engine
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_multinomial(kind: str, engine: str) -> None:
    share = np.array([[0.1, 0.2, 0.0, 0.7], [5.0, 5.0, 10.0, 0.0]])
    with np.errstate(divide="ignore"):
        x = np.log(share).astype(numpy_type(kind))
    (y,) = run_model(make_model([node("Multinomial", ["x"], sample_size=5000)], {"x": x}), [x], engine)
    assert y.dtype == np.int32 and y.shape == (2, 5000)
    got = np.stack([np.bincount(row, minlength=4) for row in y]) / 5000
    assert (np.abs(got - share / share.sum(axis=1, keepdims=True)) < 0.03).all()
    assert not got[0, 2] and not got[1, 3]


def dropout(x: Array, seed: int, ratio: Any) -> tuple[Array, Array]:
    """As the standard's tests compute it."""
    kept = np.random.RandomState(seed).uniform(0, 1.0, x.shape) >= ratio
    scale = np.float32(1) / (np.float32(1) - np.float32(ratio))
    return np.where(kept, x.astype(np.float32) * scale, 0).astype(x.dtype), kept


@each_engine
@pytest.mark.parametrize("seed", [0, 1, 123456789])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1,), (0, 3), (700, 3)])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.75])
def test_dropout_with_a_seed(seed: int, shape: tuple[int, ...], ratio: float, engine: str) -> None:
    x = np.random.RandomState(9).randn(*shape).astype(np.float32)
    feeds = [x, np.array(ratio, np.float32), np.array(True)]
    model = make_model(
        [node("Dropout", ["x", "r", "t"], ["y", "mask"], seed=seed)],
        dict(zip("xrt", feeds, strict=True)),
        dims={"x": [f"d{i}" for i in range(len(shape))]},
    )
    y, mask = run_model(model, feeds, engine)
    want, kept = dropout(x, seed, np.float32(ratio))
    check(y, want, zero_signs=False)
    check(mask, kept)
    feeds[2] = np.array(False)
    y, mask = run_model(model, feeds, engine)
    check(y, x)
    assert mask.all()


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_without_a_seed(kind: str, engine: str) -> None:
    x = np.ones((200, 200), numpy_type(kind))
    constants = {"r": np.array(0.25, np.float32), "t": np.array(True)}
    model = make_model([node("Dropout", ["x", "r", "t"], ["y", "mask"])], {"x": x}, constants=constants)
    run = prepare(model, engine)
    y, mask = run([x])
    assert y.dtype == x.dtype and abs(mask.mean() - 0.75) < 0.02
    check(y[mask], np.full(int(mask.sum()), 1 / 0.75).astype(x.dtype), ulp=1)
    assert not y[~mask].any() and (run([x])[1] != mask).any()


@each_engine
@pytest.mark.parametrize(
    "opset, mask_kind", [(1, np.float32), (6, np.float32), (7, np.float32), (10, np.bool_)]
)
def test_dropout_of_old_opsets(opset: int, mask_kind: Any, engine: str) -> None:
    x = np.random.RandomState(0).randn(3, 4).astype(np.float32)
    given = {"is_test": 1} if opset < 7 else {}
    model = make_model([node("Dropout", ["x"], ["y", "mask"], ratio=0.5, **given)], {"x": x}, opset=opset)
    y, mask = run_model(model, [x], engine)
    check(y, x)
    check(mask, np.ones(x.shape, mask_kind))
