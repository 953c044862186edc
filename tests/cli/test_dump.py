"""`sardonyx dump` and `sardonyx.stage_text`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import sardonyx as package
from sardonyx.dumps.stages import MLIR_STAGES, Stage, stage_sizes
from sardonyx.ir.compare import same
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module

from ..helpers import make_model
from .conftest import Sardonyx

SHOWN = {
    "onnx": "onnx.Floor",
    "resolved": "core.floor",
    "core": "core.ge",
    "fused": "core.fused",
    "loop": "loop.launch",
    "planned": "// weights:",
    "llvm": "define",
    "llvm-opt": "define",
    "asm": ".globl",
    "object": "# section .text:",
}


def test_all_stages_are_tested() -> None:
    assert list(SHOWN) == list(Stage)


@pytest.mark.parametrize("stage", Stage)
def test_prints_the_stage(sardonyx: Sardonyx, floor_ge: Path, stage: str) -> None:
    result = sardonyx("dump", floor_ge, "--stage", stage)
    assert result.code == 0
    assert SHOWN[stage] in result.out
    assert result.out == package.stage_text(str(floor_ge), stage)


@pytest.mark.parametrize("stage", ["onnx", "asm"])
def test_a_compiled_model_shows_its_stages(floor_ge: Path, stage: str) -> None:
    compiled = package.compile(str(floor_ge))
    assert compiled.ir(stage) == package.stage_text(str(floor_ge), stage)
    assert "loc(" not in compiled.ir(stage, locations=False)


@pytest.mark.parametrize("stage", ["onnx", "resolved", "core", "fused", "loop", "planned"])
@pytest.mark.parametrize("locations", [True, False])
def test_text_parses_back(floor_ge: Path, stage: str, locations: bool) -> None:
    text = package.stage_text(str(floor_ge), stage, locations=locations)
    assert ("loc(" in text) == locations
    assert text.endswith(print_module(parse_module(text), locations=locations))


@pytest.mark.parametrize("stage", Stage)
def test_only_what_stems_from_a_node(sardonyx: Sardonyx, floor_ge: Path, stage: str) -> None:
    result = sardonyx("dump", floor_ge, "--stage", stage, "--node", "Floor_*")
    assert result.code == 0
    assert "core.return" not in result.out and "sdx_model_run" not in result.out
    if stage in ("onnx", "resolved", "core"):
        assert "reater" not in result.out and "core.ge" not in result.out


def test_no_node_of_that_name(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("dump", floor_ge, "--node", "Conv_*")
    assert result.code == 2
    assert "no node at this stage matches 'Conv_*'; its nodes are Floor_0, GreaterOrEqual_1" in result.err


def test_unknown_stage(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("dump", floor_ge, "--stage", "binary")
    assert result.code == 2
    assert "llvm-opt" in result.err
    with pytest.raises(ValueError, match="there is no stage 'binary'; the stages are onnx, resolved"):
        package.stage_text(str(floor_ge), "binary")


def test_writes_a_file(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    result = sardonyx("dump", floor_ge, "--stage", "asm", "-o", tmp_path / "model.s")
    assert result.code == 0 and result.out == ""
    assert ".globl" in (tmp_path / "model.s").read_text()
    assert sardonyx("dump", floor_ge, "-o", tmp_path / "no" / "folder").code == 2


def test_sizes_of_all_stages(floor_ge: Path) -> None:
    sizes = stage_sizes(str(floor_ge))
    assert [s.stage for s in sizes] == list(Stage)
    assert all(s.operations > 0 and s.bytes > 100 for s in sizes)


@pytest.mark.parametrize("stage", MLIR_STAGES)
def test_mlir_says_the_same(sardonyx: Sardonyx, floor_ge: Path, stage: str) -> None:
    """`tests/test_mlir.py` has other tools read it."""
    result = sardonyx("dump", floor_ge, "--stage", stage, "--mlir")
    assert result.code == 0 and '"func.func"() ({' in result.out
    assert same(parse_module(result.out), parse_module(package.stage_text(str(floor_ge), stage))) is None


def test_mlir_of_a_node(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("dump", floor_ge, "--mlir", "--node", "Floor_*")
    assert '"core.floor"(%x)' in result.out and "core.ge" not in result.out


@pytest.mark.parametrize("stage", ["llvm", "llvm-opt", "asm", "object"])
def test_machine_stages_are_no_mlir(sardonyx: Sardonyx, floor_ge: Path, stage: str) -> None:
    result = sardonyx("dump", floor_ge, "--mlir", "--stage", stage)
    assert result.code == 2
    assert f"the stage '{stage}' is no MLIR; those that are: onnx, resolved, core" in result.err
    with pytest.raises(ValueError, match="is no MLIR"):
        package.stage_text(str(floor_ge), stage, generic=True)


def test_after_a_pass(sardonyx: Sardonyx, floor_ge: Path) -> None:
    assert sardonyx("dump", floor_ge, "--after", "lower").out == package.stage_text(str(floor_ge), "resolved")
    diff = sardonyx("dump", floor_ge, "--after", "fuse", "--diff").out
    assert diff.startswith("--- before fuse\n+++ after fuse\n") and "core.fused" in diff
    unchanged = sardonyx("dump", floor_ge, "--after", "simplify#2", "--diff")
    assert unchanged.out == "simplify#2 changes nothing\n"
    unknown = sardonyx("dump", floor_ge, "--after", "inline")
    assert unknown.code == 2
    assert "no pass 'inline' is run; the passes are lower, simplify, layout" in unknown.err


def test_after_each_pass(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    result = sardonyx("dump", floor_ge, "--after-each", folder, "--changed-only")
    assert result.code == 0
    assert "schedule" in result.out and "no change" in result.out and "files" in result.out
    assert (folder / "06-fuse.mlir").read_text() == package.stage_text(str(floor_ge), "fused")
    assert not (folder / "04-simplify-2.mlir").exists()


def test_after_each_pass_of_a_node(sardonyx: Sardonyx, tmp_path: Path) -> None:
    """Nodes that are folded away, and the code of the others' kernels, are not there."""
    x = np.ones((2, 3), np.float32)
    nodes = ["s = Shape (x)", "a = Floor (x)", "b = Exp (a)", "y = Reshape (b, s)", "z = CumSum (b, axis)"]
    path = tmp_path / "model.onnx"
    onnx.save(make_model(nodes, {"x": x}, constants={"axis": np.array(0)}, outputs=["y", "z"]), path)
    assert sardonyx("dump", path, "--after-each", tmp_path / "shape", "--node", "Shape_*").code == 0
    assert "onnx.Shape" in (tmp_path / "shape" / "00-import.mlir").read_text()
    assert "nothing that is left" in (tmp_path / "shape" / "06-fuse.mlir").read_text()
    assert not (tmp_path / "shape" / "11-asm").exists()
    assert sardonyx("dump", path, "--after-each", tmp_path / "sum", "--node", "CumSum_*").code == 0
    assert len(list((tmp_path / "sum" / "11-asm").iterdir())) == 1
    result = sardonyx("dump", path, "--after-each", tmp_path / "none", "--node", "Conv_*")
    assert result.code == 2 and "no node at this stage matches 'Conv_*'" in result.err


def test_options_that_exclude_each_other(sardonyx: Sardonyx, floor_ge: Path) -> None:
    assert "exclude each other" in sardonyx("dump", floor_ge, "--stage", "core", "--after", "fuse").err
    assert "go with --after" in sardonyx("dump", floor_ge, "--diff").err


def test_the_generic_form(sardonyx: Sardonyx, floor_ge: Path) -> None:
    out = sardonyx("dump", floor_ge, "--stage", "core", "--mlir").out
    assert '"core.floor"(' in out and '"func.func"()' in out
    assert parse_module(out).main.body.ops[0].name == "core.floor"
