"""`sardonyx.dump` and what `sardonyx dump --after` and `--after-each` write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sardonyx
from sardonyx.dumps.dumping import dump_passes
from sardonyx.ir.parser import parse_module

from .helpers import make_model

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 3
MODEL = make_model(["a = Floor (x)", "y = GreaterOrEqual (a, x)"], {"x": X}, dims={"x": ["n", 4]})
PASSES = [
    "import",
    "lower",
    "simplify",
    "layout",
    "simplify#2",
    "fold",
    "fuse",
    "schedule",
    "plan-memory",
]


def test_all_that_is_compiled_inside_is_collected() -> None:
    data = MODEL.SerializeToString()
    sardonyx.compile(data)
    with sardonyx.dump() as dumps:
        sardonyx.compile(data)  # not from the cache
        sardonyx.compile(make_model("y = Abs (x)", {"x": X}))
    sardonyx.compile(data)
    first, second = dumps
    assert [p.label for p in first.passes] == [p.label for p in second.passes] == PASSES
    assert first.after("lower") == sardonyx.stage_text(MODEL, "resolved")
    for stage in ("onnx", "core", "fused", "loop", "planned"):
        assert first.stage(stage) == sardonyx.stage_text(MODEL, stage)
    assert "vroundps" in first.stage("asm") or "floor" in first.stage("llvm")
    with pytest.raises(KeyError, match="there were import, lower"):
        first.after("inline")


def test_diffs_and_passes_that_change_nothing() -> None:
    dump, error = dump_passes(MODEL)
    assert error is None
    for one in dump.passes[1:]:
        assert one.changed == bool(one.diff), one.label
    lower = dump.passes[1]
    assert "-  %a = onnx.Floor" in lower.diff and "+  %a = core.floor" in lower.diff


def test_a_tree_of_files(tmp_path: Path) -> None:
    with sardonyx.dump(tmp_path / "all"):
        sardonyx.compile(MODEL)
    names = sorted(p.name for p in (tmp_path / "all").iterdir())
    assert names[:3] == ["00-import.mlir", "01-lower.mlir", "02-simplify.mlir"]
    assert names[-3:] == ["09-llvm", "10-llvm-opt", "11-asm"]
    for path in (tmp_path / "all").glob("*.mlir"):
        parse_module(path.read_text(encoding="utf-8"))
    assert {p.stem for p in (tmp_path / "all" / "11-asm").iterdir()} >= {"sdx_model_run"}
    with sardonyx.dump(tmp_path / "few", changed_only=True, diff=True):
        sardonyx.compile(MODEL)
    few = sorted(p.name for p in (tmp_path / "few").iterdir() if p.is_file())
    assert few == [
        "00-import.mlir",
        "01-lower.diff",
        "06-fuse.diff",
        "07-schedule.diff",
        "08-plan-memory.diff",
    ]


def test_what_was_reached_before_an_error_is_kept(tmp_path: Path) -> None:
    wrong = make_model("y = Floor (x)", {"x": np.arange(3)})
    with pytest.raises(sardonyx.CompileError), sardonyx.dump(tmp_path):
        sardonyx.compile(wrong)
    assert [p.name for p in tmp_path.iterdir()] == ["00-import.mlir"]
