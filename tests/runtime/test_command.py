"""`python -m sardonyx_runtime`: shows and runs libraries."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import sardonyx
from sardonyx_runtime.__main__ import main
from sardonyx_runtime.about import facts
from sardonyx_runtime.artifact import read_description

from ..helpers import make_model
from .test_artifact import SYSTEM

pytestmark = pytest.mark.skipif(not SYSTEM, reason="libraries are exported on Linux, with a linker")
X = np.array([[1, -2, 3]], np.float32)
B = np.array([0.5, 2, -1], ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("libraries") / "model.so"
    nodes = ["y = Abs (x)", "[negate] z = Neg (b)"]
    model = make_model(nodes, {"x": X, "b": B}, dims={"x": ["n", 3]})
    sardonyx.compile_to(model, path, name="net")
    return path


@pytest.mark.parametrize("word", [[], ["info"]])
def test_info(library: Path, capsys: pytest.CaptureFixture[str], word: list[str]) -> None:
    assert main([*word, str(library)]) == 0
    printed = capsys.readouterr().out
    assert "input x    f32[n, 3]\n" in printed and "symbols net_..." in printed


def test_run(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "b.npy", B)
    feeds = [f"x={tmp_path}/x.npy", f"b={tmp_path}/b.npy"]
    assert main(["run", str(library), *feeds, "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("y: float32[1, 3]\n[[1. 2. 3.]]\nz: bfloat16[3]\n")
    assert main(["run", str(library), *feeds, "-o", str(tmp_path / "results")]) == 0
    assert np.array_equal(np.load(tmp_path / "results" / "y.npy"), np.abs(X))
    assert np.array_equal(np.load(tmp_path / "results" / "z.npy").view(ml_dtypes.bfloat16), -B)


def test_wrong_command_lines(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.npy").write_bytes(b"no array")
    for arguments, word in (
        (["run", library, "q=x.npy"], "no input 'q'; the inputs are x, b"),
        (["run", library, "x"], "not NAME=FILE.npy"),
        (["run", library, "x=missing.npy"], "missing.npy"),
        (["run", library, f"x={tmp_path}/bad.npy"], "cannot be read as a .npy file"),
        (["run", library, "--threads", "0"], "1 or more"),
        ([], "info|run"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        assert ended.value.code == 2 and word in capsys.readouterr().err


def test_failures(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path / "missing.so")]) == 4
    assert "missing.so" in capsys.readouterr().err
    np.save(tmp_path / "x.npy", X)
    assert main(["run", str(library), f"x={tmp_path}/x.npy"]) == 4
    assert "'b'" in capsys.readouterr().err


def test_facts_of_levels_and_of_weights_beside(library: Path) -> None:
    levels = [{"cpu": "x86-64-v2", "features": ["sse3"]}, {"cpu": "x86-64-v4", "features": ["avx512f"]}]
    description = {**read_description(library), "triple": "t", "levels": levels, "arena": [64, 0, "8*n"]}
    rows = facts({**description, "weights": 1500, "weights_file": "m.weights"})
    assert [v for k, v in rows if k in ("target", "features")] == [
        "t x86-64-v2",
        "sse3",
        "t x86-64-v4",
        "avx512f",
    ]
    assert ("weights", "1.5 KB in m.weights") in rows
    assert [(k, v) for k, v in rows if k.startswith("arena")] == [
        ("arena 0", "64 bytes"),
        ("arena 1", "grows"),
        ("arena 2", "8*n bytes"),
    ]
