"""DFT, STFT and MelWeightMatrix: any length, against NumPy's transforms in float64."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["DFT", "STFT", "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow"])
# Expected values with the rounding errors of a float32 transform, beyond their own tolerance.
NOISY = {"test_dft_inverse", "test_dft_inverse_opset19"}

LENGTHS = [1, 2, 3, 5, 16, 37, 64, 65, 97, 100, 128, 161, 257, 263, 400, 526]
LONG = [512, 1000, 1009, 1024, 1155, 4096, 10007]
KINDS = ["real", "complex", "onesided", "inverse", "to real"]


@pytest.mark.parametrize("name", sorted(NODE_TESTS.keys() - NOISY))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


def pair(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


def example(kind: str, n: int) -> tuple[str, Array, Array]:
    """Attributes, a signal or spectrum of (3, ...), and its transform as complex numbers."""
    rng = np.random.default_rng(n)
    z = (rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))).astype(np.complex64)
    match kind:
        case "real":
            return "inverse = 0", z.real[..., None], np.fft.fft(z.real.astype(np.float64))
        case "onesided":
            return "onesided = 1", z.real[..., None], np.fft.rfft(z.real.astype(np.float64))
        case "inverse":
            return "inverse = 1", pair(z), np.fft.ifft(z.astype(np.complex128))
        case "to real":
            half = z[:, : n // 2 + 1]
            return "onesided = 1, inverse = 1", pair(half), np.fft.irfft(half.astype(np.complex128), n)
    return "inverse = 0", pair(z), np.fft.fft(z.astype(np.complex128))


def error(got: Array, want: Array) -> float:
    """The largest difference, relative to the largest number."""
    values = got[..., 0] if got.shape[-1] == 1 else got[..., 0] + 1j * got[..., 1]
    assert values.shape == want.shape
    return float(np.abs(values - want).max() / np.abs(want).max())


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
@each_engine
def test_every_length(kind: str, n: int, symbolic: bool, engine: str) -> None:
    attributes, x, want = example(kind, n)
    dims = {"x": ["b", "n", x.shape[-1]]} if symbolic else None
    text = f"y = DFT <{attributes}> (x, n)"
    model = make_model(text, {"x": x}, constants={"n": np.array(n)}, opset=20, dims=dims)
    assert error(run_model(model, {"x": x}, engine)[0], want) < 1e-7


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize("kind", KINDS)
def test_long(kind: str, n: int) -> None:
    attributes, x, want = example(kind, n)
    model = make_model(f"y = DFT <{attributes}> (x, n)", {"x": x}, constants={"n": np.array(n)}, opset=20)
    assert error(run_model(model, {"x": x}, "compiled")[0], want) < 1e-7


@pytest.mark.parametrize("n", [40, 100, 160])
@each_engine
def test_a_symbolic_length(n: int, engine: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, n, 2)).astype(np.float32)
    run = prepare(make_model("y = DFT (x)", {"x": x}, dims={"x": ["b", "n", 2]}, opset=17), engine)
    want = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    assert error(run({"x": x})[0], want) < 1e-7


@pytest.mark.parametrize("length", [3, 8])
@pytest.mark.parametrize("axis", [0, 1, -3, -2])
@each_engine
def test_axis_and_length(axis: int, length: int, engine: str) -> None:
    """A shorter length cuts the signal off, a longer one fills it up with zeros."""
    x = np.random.default_rng(1).standard_normal((5, 6, 1)).astype(np.float32)
    constants = {"n": np.array(length), "a": np.array(axis)}
    got = run_model(
        make_model("y = DFT (x, n, a)", {"x": x}, constants=constants, opset=20), {"x": x}, engine
    )[0]
    assert error(got, np.fft.fft(x[..., 0].astype(np.float64), length, axis % 3)) < 1e-7
    old = make_model(f"y = DFT <axis = {axis}> (x, n)", {"x": x}, constants=constants, opset=17)
    check(run_model(old, {"x": x}, engine)[0], got)


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 2e-3), ("bfloat16", 1e-2), ("float64", 1e-15)])
@each_engine
def test_types(dtype: str, bound: float, engine: str) -> None:
    x = np.random.default_rng(2).standard_normal((2, 96, 2)).astype(numpy_type(dtype))
    wide = x.astype(np.float64)
    got = run_model(make_model("y = DFT (x)", {"x": x}, opset=20), {"x": x}, engine)[0]
    assert got.dtype == x.dtype
    assert error(got.astype(np.float64), np.fft.fft(wide[..., 0] + 1j * wide[..., 1])) < bound


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y = DFT <axis = 2> (x)", "parts"),
        ("y = DFT <axis = 5> (x)", "axis 5"),
        ("y = DFT (x, n)", "at least 1"),
    ],
)
@each_engine
def test_refused(text: str, words: str, engine: str) -> None:
    x = np.zeros((2, 4, 1), np.float32)
    with pytest.raises(CompileError, match=words):
        prepare(make_model(text, {"x": x}, constants={"n": np.array(0)}, opset=17), engine)


def frames(x: Array, window: Array, step: int) -> Array:
    count = (x.shape[1] - len(window)) // step + 1
    return np.stack([x[:, i * step : i * step + len(window)] * window for i in range(count)], 1)


@pytest.mark.parametrize("size", [8, 24, 100])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@each_engine
def test_stft(symbolic: bool, onesided: int, size: int, engine: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 250, 1)).astype(np.float32)
    window = rng.random(size).astype(np.float32)
    dims = {"x": ["b", "n", 1]} if symbolic else None
    transform = np.fft.rfft if onesided else np.fft.fft
    text = f"y = STFT <onesided = {onesided}> (x, s, w, l)"
    constants = {"s": np.array(7), "w": window, "l": np.array(size)}
    got = run_model(make_model(text, {"x": x}, constants=constants, dims=dims), {"x": x}, engine)[0]
    wide = x[..., 0].astype(np.float64)
    assert error(got, transform(frames(wide, window.astype(np.float64), 7))) < 1e-7
    plain = make_model(
        f"y = STFT <onesided = {onesided}> (x, s, , l)", {"x": x}, constants=constants, dims=dims
    )
    got = run_model(plain, {"x": x}, engine)[0]
    assert error(got, transform(frames(wide, np.ones(size), 7))) < 1e-7


@each_engine
def test_stft_of_complex_numbers(engine: str) -> None:
    x = np.random.default_rng(4).standard_normal((1, 40, 2)).astype(np.float32)
    feeds = {"x": x, "w": np.hanning(10).astype(np.float32)}
    model = make_model("y = STFT <onesided = 0> (x, s, w)", feeds, constants={"s": np.array(5)})
    z = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    assert (
        error(run_model(model, feeds, engine)[0], np.fft.fft(frames(z, feeds["w"].astype(np.float64), 5)))
        < 1e-7
    )


@each_engine
def test_stft_refusals(engine: str) -> None:
    x = np.zeros((1, 8, 1), np.float32)
    for constants, words in (
        ({"s": np.array(0), "l": np.array(4)}, "frame_step"),
        ({"s": np.array(1), "l": np.array(9)}, "frames of 9"),
    ):
        with pytest.raises(CompileError, match=words):
            prepare(make_model("y = STFT (x, s, , l)", {"x": x}, constants=constants), engine)
    model = make_model(
        "y = STFT (x, s, , l)",
        {"x": x},
        constants={"s": np.array(1), "l": np.array(9)},
        dims={"x": [1, "n", 1]},
    )
    with pytest.raises(RuntimeFault, match="shorter"):
        prepare(model, engine)({"x": x})
