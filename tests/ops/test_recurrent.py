"""RNN, GRU and LSTM against their plain meaning, and against onnxruntime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import helper

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare
from .recurrent_reference import ACTIVATIONS, GATES, network

KINDS = list(GATES)
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
ORDER = {  # of the inputs
    "RNN": ("x", "w", "r", "bias", "lengths", "h"),
    "GRU": ("x", "w", "r", "bias", "lengths", "h"),
    "LSTM": ("x", "w", "r", "bias", "lengths", "h", "c", "peepholes"),
}
OUTPUTS = {"RNN": ("y", "y_h"), "GRU": ("y", "y_h"), "LSTM": ("y", "y_h", "y_c")}
HIDDEN, WIDTH = 3, 4


def feeds_of(
    kind: str,
    direction: str,
    *,
    steps: int = 5,
    batch: int = 2,
    layout: int = 0,
    dtype: str = "f32",
    seed: int = 0,
) -> dict[str, Array]:
    """Every input but the lengths."""
    random = np.random.default_rng(seed)
    d, gates = DIRECTIONS[direction], GATES[kind]
    shapes: dict[str, tuple[int, ...]] = {
        "x": (steps, batch, WIDTH),
        "w": (d, gates * HIDDEN, WIDTH),
        "r": (d, gates * HIDDEN, HIDDEN),
        "bias": (d, 2 * gates * HIDDEN),
        "h": (d, batch, HIDDEN),
        "c": (d, batch, HIDDEN),
        "peepholes": (d, 3 * HIDDEN),
    }
    feeds = {
        n: random.normal(size=s).astype(numpy_type(dtype)) for n, s in shapes.items() if n in ORDER[kind]
    }
    for name in {"x", "h", "c"} & feeds.keys() if layout else ():
        feeds[name] = feeds[name].swapaxes(0, 1).copy()
    return feeds


def model_of(
    kind: str, feeds: dict[str, Array], *, opset: int = 22, outputs: Any = None, **attributes: Any
) -> Any:
    """A model of one node; ``weights`` are constants, which is how they come."""
    names = [n if n in feeds else "" for n in ORDER[kind]]
    dims = attributes.pop("dims", None)
    node = helper.make_node(
        kind, names, outputs or OUTPUTS[kind], name="recur", hidden_size=HIDDEN, **attributes
    )
    constants = {n: a for n, a in feeds.items() if n in ("w", "r", "bias", "peepholes")}
    rest = {n: a for n, a in feeds.items() if n not in constants}
    kept = [o for o in node.output if o]
    return make_model([node], rest, opset=opset, outputs=kept, constants=constants, dims=dims), rest


def compare(
    kind: str, engine: str, feeds: dict[str, Array], functions: Any = None, **attributes: Any
) -> None:
    model, rest = model_of(kind, feeds, **attributes)
    results = prepare(model, engine)(rest)
    plain = {
        k: v for k, v in attributes.items() if not k.startswith("activation") and k not in ("opset", "dims")
    }
    wants = network(kind, **feeds, functions=functions, **plain)
    dtype = feeds["x"].dtype
    tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-13}[dtype.itemsize]
    for got, want in zip(results, wants, strict=True):
        check(got, want.astype(dtype), rtol=tolerance, atol=tolerance, zero_signs=False)


@each_engine
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_inputs(engine: str, kind: str, direction: str, layout: int) -> None:
    compare(kind, engine, feeds_of(kind, direction, layout=layout), direction=direction, layout=layout)


@each_engine
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_shorter_sequences(engine: str, kind: str, direction: str) -> None:
    feeds = feeds_of(kind, direction, batch=4) | {"lengths": np.array([5, 0, 1, 3], np.int32)}
    compare(kind, engine, feeds, direction=direction)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_each_set_of_inputs(kind: str, layout: int) -> None:
    """Every optional input there or not."""
    optional = list(ORDER[kind][3:])
    everything = feeds_of(kind, "bidirectional", layout=layout) | {"lengths": np.array([2, 5], np.int32)}
    for given in itertools.product([False, True], repeat=len(optional)):
        left_out = [n for n, there in zip(optional, given, strict=True) if not there]
        feeds = {n: a for n, a in everything.items() if n not in left_out}
        compare(kind, "interpreter", feeds, direction="bidirectional", layout=layout)


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "f64"])
@pytest.mark.parametrize("kind", KINDS)
def test_element_types(engine: str, kind: str, dtype: str) -> None:
    feeds = feeds_of(kind, "bidirectional", dtype=dtype) | {"lengths": np.array([5, 3], np.int32)}
    compare(kind, engine, feeds, direction="bidirectional")


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16(engine: str, kind: str) -> None:
    feeds = feeds_of(kind, "forward", dtype="bf16")
    model, rest = model_of(kind, feeds)
    wants = network(kind, **{n: a.astype(np.float64) for n, a in feeds.items()})
    for got, want in zip(prepare(model, engine)(rest), wants, strict=True):
        check(got, want.astype(numpy_type("bf16")), ulp=1, atol=1e-3)


@each_engine
@pytest.mark.parametrize("clip", [0.2, 1.5])
@pytest.mark.parametrize("kind", KINDS)
def test_clip(engine: str, kind: str, clip: float) -> None:
    compare(kind, engine, feeds_of(kind, "forward"), clip=clip)


@each_engine
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_coupled_gates(engine: str, direction: str) -> None:
    compare("LSTM", engine, feeds_of("LSTM", direction), input_forget=1, direction=direction)


@each_engine
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_reset_behind_the_product(engine: str, direction: str, with_bias: bool) -> None:
    feeds = feeds_of("GRU", direction)
    if not with_bias:
        del feeds["bias"]
    compare("GRU", engine, feeds, linear_before_reset=1, direction=direction)


def chosen(names: list[str], alphas: list[float], betas: list[float]) -> Any:
    """Functions with their parameters, as the attributes give them in order."""
    alpha, beta = iter(alphas), iter(betas)
    defaults = {"LeakyRelu": (0.01, 0), "HardSigmoid": (0.2, 0.5), "ThresholdedRelu": (1, 0)}
    made = []
    for name in names:
        a, b = defaults.get(name, (1, {"ScaledTanh": 1}.get(name, 0)))
        if name in ("Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"):
            a = next(alpha, a)
        if name in ("Affine", "ScaledTanh", "HardSigmoid"):
            b = next(beta, b)
        made.append(lambda x, f=ACTIVATIONS[name], a=a, b=b: f(x, a, b))
    return made


@each_engine
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("given", [False, True])
def test_activations(engine: str, name: str, given: bool) -> None:
    alphas, betas = ([0.3], [0.7]) if given else ([], [])
    attributes: dict[str, Any] = {"activations": [name]}
    if given:
        attributes |= {"activation_alpha": alphas, "activation_beta": betas}
    compare("RNN", engine, feeds_of("RNN", "forward"), chosen([name], alphas, betas), **attributes)


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_activations_of_both_directions(engine: str, kind: str) -> None:
    """Parameters go in order to the functions that take them."""
    names = {
        "RNN": ["LeakyRelu", "Affine"],
        "GRU": ["HardSigmoid", "Tanh", "Sigmoid", "ScaledTanh"],
        "LSTM": ["HardSigmoid", "Elu", "Tanh", "Sigmoid", "ScaledTanh", "Softsign"],
    }[kind]
    alphas, betas = [0.25, 0.5, 0.75], [0.4, 0.6]
    functions = chosen(names, alphas, betas)
    attributes = {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
    compare(kind, engine, feeds_of(kind, "bidirectional"), functions, direction="bidirectional", **attributes)


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_one_compilation_serves_all_sizes(engine: str, kind: str) -> None:
    dims = {
        "x": ["steps", "batch", WIDTH],
        "lengths": ["batch"],
        "h": [2, "batch", HIDDEN],
        "c": [2, "batch", HIDDEN],
    }
    first = feeds_of(kind, "bidirectional") | {"lengths": np.array([5, 3], np.int32)}
    model, _ = model_of(kind, first, direction="bidirectional", dims=dims)
    run = prepare(model, engine)
    for steps, batch in ((5, 2), (1, 1), (7, 3), (2, 5), (0, 2), (3, 0)):
        sized = feeds_of(kind, "bidirectional", steps=steps, batch=batch, seed=9)
        feeds = first | {n: a for n, a in sized.items() if n in ("x", "h", "c")}
        feeds["lengths"] = np.arange(batch, dtype=np.int32) % (steps + 1)
        got = run({n: feeds[n] for n in ("x", "lengths", "h", "c") if n in feeds})
        for have, want in zip(got, network(kind, **feeds, direction="bidirectional"), strict=True):
            check(have, want.astype(np.float32), rtol=1e-5, atol=1e-5, zero_signs=False)


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_disagree_end_the_run(engine: str, kind: str) -> None:
    names = {
        "x": ["steps", "batch", WIDTH],
        "lengths": ["other"],
        "h": [1, "another", HIDDEN],
        "c": [1, "third", HIDDEN],
    }
    feeds = feeds_of(kind, "forward") | {"lengths": np.array([5, 3], np.int32)}
    model, rest = model_of(kind, feeds, dims=names)
    run = prepare(model, engine)
    for got, want in zip(run(rest), network(kind, **feeds), strict=True):
        check(got, want.astype(np.float32), rtol=1e-5, atol=1e-5, zero_signs=False)
    for name in {"lengths", "h", "c"} & rest.keys():
        axis = 0 if name == "lengths" else 1
        for size in (1, 3):
            wrong = np.take(rest[name], [0] * size, axis=axis)
            with pytest.raises(RuntimeFault, match="recur"):
                run(rest | {name: wrong})


@each_engine
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_that_nobody_wants(engine: str, kind: str) -> None:
    feeds = feeds_of(kind, "bidirectional")
    wants = network(kind, **feeds, direction="bidirectional")
    for number in range(len(wants)):
        names = [name if i == number else "" for i, name in enumerate(OUTPUTS[kind])]
        model, rest = model_of(kind, feeds, outputs=names, direction="bidirectional")
        (got,) = prepare(model, engine)(rest)
        check(got, wants[number].astype(np.float32), rtol=1e-5, atol=1e-5)


@each_engine
@pytest.mark.parametrize("opset", [1, 6, 7, 14])
@pytest.mark.parametrize("kind", KINDS)
def test_older_opsets(engine: str, kind: str, opset: int) -> None:
    compare(kind, engine, feeds_of(kind, "bidirectional"), opset=opset, direction="bidirectional")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "extra", [{}, {"clip": 0.4}, {"lengths": [5, 2]}, {"linear_before_reset": 1}, {"input_forget": 1}]
)
def test_against_onnxruntime(kind: str, direction: str, extra: dict[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    attributes: dict[str, Any] = {"direction": direction}
    feeds = feeds_of(kind, direction)
    for name, value in extra.items():
        if name == "lengths":
            feeds["lengths"] = np.array(value, np.int32)
        elif (name, kind) in {("linear_before_reset", "GRU"), ("input_forget", "LSTM")} or name == "clip":
            attributes[name] = value
    model, rest = model_of(kind, feeds, opset=14, **attributes)
    for output in model.graph.output:
        output.type.tensor_type.elem_type = 1
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(prepare(model, "compiled")(rest), session.run(None, rest), strict=True):
        check(got, want, rtol=2e-5, atol=2e-6, zero_signs=False)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"direction": "backward"}, ("recur", "backward", "reverse")),
        ({"activations": ["Cosine"]}, ("recur", "Cosine", "sigmoid")),
        ({"activations": ["Tanh", "Relu", "Tanh", "Tanh"]}, ("recur", "4 activations")),
    ],
)
def test_attributes_that_are_refused(attributes: dict[str, Any], words: tuple[str, ...]) -> None:
    model, _ = model_of("RNN", feeds_of("RNN", "forward"), **attributes)
    with pytest.raises(CompileError) as caught:
        prepare(model)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["w", "r", "bias", "peepholes", "h", "c", "lengths"])
def test_shapes_that_are_refused(kind: str, name: str) -> None:
    feeds = feeds_of(kind, "forward") | {"lengths": np.array([5, 3], np.int32)}
    if name not in feeds:
        return
    feeds[name] = np.concatenate([feeds[name], feeds[name]], axis=-1)
    model, _ = model_of(kind, feeds)
    with pytest.raises(CompileError, match="recur"):
        prepare(model)
