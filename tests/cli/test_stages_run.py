"""`sardonyx run` on IR text, with passes of one's own, and the search for a pass at fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sardonyx as package

from ..helpers import check, make_model
from .conftest import Sardonyx

PLUGIN = Path(__file__).with_name("plugin.py")
STAGES = ["onnx", "resolved", "core", "fused", "loop", "planned"]


@pytest.mark.parametrize("stage", STAGES)
def test_text_of_any_stage_runs(tmp_path: Path, stage: str) -> None:
    """Constants, symbolic dims, control flow, messages of faults: all of it is in the text."""
    random = np.random.default_rng(0)
    nodes = [
        "m = MatMul (x, w)",
        "s = Add (m, bias)",
        'y = Loop (trips, "", s) <body = b (int64 i, bool ok, float[n, 5] c) => (ok, d) { d = Mul (c, half) }>',
        "z = GreaterOrEqual (y, bound)",
    ]
    feeds = {
        "x": random.normal(size=(3, 7)).astype(np.float32),
        "trips": np.array(4),
        "bound": np.ones(5, np.float32),
    }
    constants = {
        "w": random.normal(size=(7, 5)).astype(np.float32),
        "bias": random.normal(size=5).astype(np.float32),
        "half": np.float32(0.5),
    }
    model = make_model(
        nodes, feeds, constants=constants, dims={"x": ["n", 7], "bound": ["m"]}, outputs=["y", "z"]
    )
    path = tmp_path / f"{stage}.mlir"
    path.write_text(package.stage_text(model, stage, resources=True), encoding="utf-8")
    compiled, again = package.compile(model), package.compile(path)
    assert [(a.name, a.dtype, a.shape) for a in again.outputs] == [
        (a.name, a.dtype, a.shape) for a in compiled.outputs
    ]
    for got, want in zip(again.run(feeds), compiled.run(feeds), strict=True):
        check(got, want)
    with pytest.raises(package.RuntimeFault) as fault:
        again.run({**feeds, "bound": np.ones(2, np.float32)})
    assert "GreaterOrEqual" in str(fault.value)


def test_text_without_data_is_refused(sardonyx: Sardonyx, tmp_path: Path) -> None:
    w = np.arange(40, dtype=np.float32)
    model = make_model("y = Add (x, w)", {"x": w}, constants={"w": w})
    path = tmp_path / "short.mlir"
    path.write_text(package.stage_text(model, "core"), encoding="utf-8")
    result = sardonyx("run", path)
    assert result.code == 3
    assert "--full" in result.err


def test_the_command_and_its_comparison(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    path = tmp_path / "fused.mlir"
    assert sardonyx("dump", floor_ge, "--stage", "fused", "--full", "-o", path).code == 0
    result = sardonyx("run", path, "--compare")
    assert result.code == 0
    assert "identical" in result.out
    path = tmp_path / "loop.mlir"
    assert sardonyx("dump", floor_ge, "--stage", "loop", "--full", "-o", path).code == 0
    assert "loops have no plain meaning" in sardonyx("run", path, "--compare").err


def test_passes_of_ones_own(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "--passes", "lower,fuse{max=1}", "--verify-each", "--compare")
    assert result.code == 0
    assert "identical" in result.out


def test_ablation_finds_the_wrong_pass(sardonyx: Sardonyx, tmp_path: Path) -> None:
    import onnx

    x = np.arange(8, dtype=np.float32) / 4
    path = tmp_path / "model.onnx"
    onnx.save(make_model(["a = Floor (x)", "b = Exp (a)", "y = Floor (b)"], {"x": x}), path)
    passes = "lower,simplify,floor-to-ceil{most=1},layout,fuse"
    result = sardonyx("run", path, "--load", PLUGIN, "--passes", passes, "--compare", "--ablate")
    assert result.code == 1
    lines = {line.split()[0]: line for line in result.out.splitlines() if line}
    assert "cured" in lines["floor-to-ceil"]
    assert all("still wrong" in lines[name] for name in ("simplify", "layout", "fuse"))
    assert "floor-to-ceil: floor to ceil: core.floor of Floor_0" in result.out
    step = int(result.out.partition("is number ")[2].partition(":")[0])
    for limit, verdict in ((step, "DIFFERS"), (step - 1, "identical")):
        again = sardonyx(
            "run", path, "--load", PLUGIN, "--passes", passes, "--compare", "--opt-bisect", str(limit)
        )
        assert verdict in again.out


def test_ablation_goes_with_a_comparison(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("run", floor_ge, "--ablate")
    assert result.code == 2
    assert "--compare" in result.err
