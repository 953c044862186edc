"""`sardonyx run`."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from .conftest import Sardonyx, Save


def test_prints_shapes_and_values(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "--dim", "batch=4")
    assert result.code == 0
    assert result.out.startswith("ready in ")
    assert "4x3" in result.out and "12 true" in result.out
    assert "dims left out" not in result.out


def test_dims_left_out_are_one_and_said(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge)
    assert result.code == 0
    assert "dims left out: batch=1" in result.out


def test_output_is_plain_when_piped(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "--compare", "--repeat", "3")
    assert result.out.isascii()
    assert "\x1b" not in result.out + result.err
    assert all(line == line.rstrip() for line in result.out.splitlines())


@pytest.mark.parametrize("where", ["before", "after"])
def test_compare_with_the_reference(sardonyx: Sardonyx, floor_ge: Path, where: str) -> None:
    arguments = ["--compare", floor_ge] if where == "before" else [floor_ge, "--compare"]
    result = sardonyx("run", *arguments)
    assert result.code == 0
    assert "against reference" in result.out and "identical" in result.out


def test_compare_with_onnxruntime(sardonyx: Sardonyx, save: Save) -> None:
    pytest.importorskip("onnxruntime")
    path = save(["a = Exp (x)", "b = Tanh (a)"])
    result = sardonyx("run", path, "--compare", "onnxruntime")
    assert result.code == 0
    assert "against onnxruntime" in result.out
    assert "max ULP" in result.out


def test_a_difference_is_exit_code_1(
    sardonyx: Sardonyx, floor_ge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sardonyx.cli.run.outputs_of", lambda *_: [np.zeros((1, 3), np.bool_) ^ True])
    result = sardonyx("run", floor_ge, "--compare", "-i", "y=ones", "-i", "x=zeros")
    assert result.code == 1
    assert "DIFFERS" in result.out
    assert "z: 3 of 3 elements; at [0, 0]: 0 instead of 1" in result.out


def test_the_tolerance_decides(sardonyx: Sardonyx, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save("z = Abs (x)", inputs={"x": np.zeros(3, np.float32)})
    monkeypatch.setattr("sardonyx.cli.run.outputs_of", lambda *_: [np.full(3, 1.001, np.float32)])
    arguments = ("run", path, "-i", "x=ones", "--compare")
    assert sardonyx(*arguments).code == 1
    assert sardonyx(*arguments, "--rtol", "0.01").code == 0
    assert sardonyx(*arguments, "--atol", "0.01").code == 0


def test_inputs_from_files_and_outputs_to_files(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    x = np.array([[0.5, 1.5, -2.5], [7, 8, 9]], np.float32)
    np.save(tmp_path / "x.npy", x)
    result = sardonyx(
        "run", floor_ge, "-i", f"x={tmp_path / 'x.npy'}", "-i", "y=ones", "--output-dir", tmp_path / "out"
    )
    assert result.code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "z.npy"), np.floor(x) >= 1)


def test_bfloat16_files(sardonyx: Sardonyx, save: Save, tmp_path: Path) -> None:
    x = np.array([1.5, -0.5], ml_dtypes.bfloat16)
    path = save("z = Floor (x)", inputs={"x": x})
    np.save(tmp_path / "x.npy", x)
    result = sardonyx("run", path, "-i", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path)
    assert result.code == 0
    saved = np.load(tmp_path / "z.npy").view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(saved.astype(np.float32), [1, -1])


def test_random_data_is_the_same_for_a_seed(sardonyx: Sardonyx, save: Save, tmp_path: Path) -> None:
    path = save("z = Identity (x)")
    for name, seed in {"a": "1", "b": "1", "c": "2"}.items():
        assert sardonyx("run", path, "--seed", seed, "--output-dir", tmp_path / name).code == 0
    a, b, c = (np.load(tmp_path / name / "z.npy") for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.parametrize(
    ("data", "low", "high"), [("random", 0, 1), ("random:0..99", 0, 99), ("zeros", 0, 0), ("ones", 1, 1)]
)
def test_made_up_integers(
    sardonyx: Sardonyx, save: Save, tmp_path: Path, data: str, low: int, high: int
) -> None:
    path = save("z = Identity (x)", inputs={"x": np.zeros((50, 2), np.int64)})
    assert sardonyx("run", path, "-i", f"x={data}", "--output-dir", tmp_path).code == 0
    values = np.load(tmp_path / "z.npy")
    assert low == values.min() and (high == values.max() or (high == 99 and 1 < values.max() <= 99))


def test_shapes_of_made_up_data(sardonyx: Sardonyx, save: Save) -> None:
    path = save("z = Floor (x)", dims={"x": ["rows", "columns"]})
    result = sardonyx("run", path, "-i", "x=random:5x7:-2..2")
    assert result.code == 0 and "5x7" in result.out


def test_a_dim_follows_from_another_input(sardonyx: Sardonyx, save: Save, tmp_path: Path) -> None:
    inputs = {"x": np.zeros((2, 3), np.float32), "y": np.zeros((2, 1), np.float32)}
    path = save("z = Add (x, y)", inputs=inputs, dims={"x": ["n", 3], "y": ["n", 1]})
    result = sardonyx("run", path, "-i", "x=random:6x3")
    assert result.code == 0 and "6x1" in result.out


def test_repeat_prints_times(sardonyx: Sardonyx, floor_ge: Path) -> None:
    assert "20 runs: median " in sardonyx("run", floor_ge, "--repeat", "20").out


def test_without_the_cache(sardonyx: Sardonyx, floor_ge: Path) -> None:
    assert sardonyx("run", floor_ge, "--no-cache").out.startswith("compiled in ")


def test_threads(sardonyx: Sardonyx, floor_ge: Path) -> None:
    assert sardonyx("run", floor_ge, "--threads", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-i", "q=random"], "the model has no input 'q'; its inputs are x, y"),
        (["-i", "random"], "is not NAME="),
        (["-i", "x=nothing.npy"], "there is no file 'nothing.npy' for 'x'"),
        (["-d", "n=3"], "the inputs have no dim 'n'; their dims by name: batch"),
        (["-d", "batch"], "'batch' is not NAME=SIZE"),
        (["--repeat", "0"], "--repeat"),
        (["--no-such-option"], "--no-such-option"),
        (["extra.onnx"], "extra.onnx"),
    ],
)
def test_wrong_command_lines(sardonyx: Sardonyx, floor_ge: Path, arguments: list[str], message: str) -> None:
    result = sardonyx("run", floor_ge, *arguments)
    assert result.code == 2
    assert message in result.err


def test_file_that_is_no_array(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "-i", f"x={floor_ge}")
    assert result.code == 2
    assert "cannot be read as a .npy file" in result.err


@pytest.mark.parametrize("shape", ["2x4", "3", "scalar"])
def test_wrong_shape_is_exit_code_4(sardonyx: Sardonyx, floor_ge: Path, shape: str) -> None:
    result = sardonyx("run", floor_ge, "-i", f"x=random:{shape}")
    assert result.code == 4
    assert result.err.startswith("sardonyx: the run failed: ")
    assert "'x'" in result.err and "float[batch, 3]" in result.err


def test_fault_inside_a_node_is_exit_code_4(sardonyx: Sardonyx, save: Save) -> None:
    inputs = {"x": np.zeros(2, np.int32), "y": np.zeros(2, np.int32)}
    path = save("z = Div (x, y)", inputs=inputs)
    result = sardonyx("run", path, "-i", "y=zeros")
    assert result.code == 4
    assert "division by zero" in result.err and "Div" in result.err


def test_output_folder_that_cannot_be(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "--output-dir", floor_ge)
    assert result.code == 2
    assert "--output-dir" in result.err


@pytest.mark.parametrize("tool", [(), ("gdb",), ("perf",)])
def test_debug_information(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, tool: tuple[str, ...]) -> None:
    result = sardonyx("run", floor_ge, "--debug", *tool, "--debug-dir", tmp_path / "debug")
    assert result.code == 0 and f"debug information in {tmp_path / 'debug'}" in result.out
    assert any("Floor_0" in p.name for p in (tmp_path / "debug").iterdir())
    assert sardonyx("run", floor_ge, "--debug-dir", tmp_path).code == 2
