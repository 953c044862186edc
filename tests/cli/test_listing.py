"""`sardonyx listing`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Sardonyx


def test_prints_nodes_and_what_became_of_them(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("listing", floor_ge, "--node", "Floor_*")
    assert result.code == 0
    for text in ("node Floor_0", "core.floor", "loop.floor", "@llvm.floor"):
        assert text in result.out
    assert "sdx_model_run" not in result.out
    assert "sdx_model_run" in sardonyx("listing", floor_ge).out


def test_prints_the_assembly_with_its_nodes(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("listing", floor_ge, "--from", "asm")
    assert result.code == 0
    assert "# Floor_0 | " in result.out and ".globl" in result.out


def test_prints_json(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    result = sardonyx("listing", floor_ge, "--json", "-o", tmp_path / "listing.json")
    assert result.code == 0 and not result.out
    kernels = json.loads((tmp_path / "listing.json").read_text())
    assert [k["symbol"] for k in kernels][-1] == "sdx_model_run"
    assert sorted(kernels[0]["nodes"]) == ["Floor_0", "GreaterOrEqual_1"]


@pytest.mark.parametrize("stage", ["onnx", "core", "fused", "loop", "planned"])
def test_ir_of_any_level(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, stage: str) -> None:
    text = tmp_path / "model.mlir"
    assert sardonyx("dump", floor_ge, "--stage", stage, "-o", text).code == 0
    result = sardonyx("listing", text, "--node", "Floor_*")
    assert result.code == 0 and "node Floor_0" in result.out and "@llvm.floor" in result.out
    assert "Floor_0" in sardonyx("profile", text, "--runs", "1").out


def test_wrong_node_and_file(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    result = sardonyx("listing", floor_ge, "--node", "Conv_*")
    assert result.code == 2 and "the nodes are Floor_0, GreaterOrEqual_1" in result.err
    assert sardonyx("listing", floor_ge, "-o", tmp_path / "no" / "folder").code == 2
