"""Header and manifest beside an output."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

import sardonyx
from sardonyx import CompileError
from sardonyx.cli.demo_model import demo_model
from sardonyx_runtime.signature import Signature


def test_the_manifest_says_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "demo.onnx").write_bytes(demo_model().SerializeToString())
    written = sardonyx.compile_to(tmp_path / "demo.onnx", tmp_path / "net.o", name="net")
    assert written == [tmp_path / f"net.{suffix}" for suffix in ("o", "h", "json")]
    manifest = json.loads((tmp_path / "net.json").read_text(encoding="utf-8"))
    model = sardonyx.compile(demo_model(), threads=1)
    assert Signature.from_json(manifest["signature"]) == model.signature
    assert manifest["model"] == hashlib.sha256((tmp_path / "demo.onnx").read_bytes()).hexdigest()
    assert manifest["nodes"] == len(demo_model().graph.node)
    assert manifest["opsets"] == {"ai.onnx": demo_model().opset_import[0].version}
    assert manifest["sardonyx"] == sardonyx.__version__
    assert "net_run" in manifest["symbols"] and 500 < manifest["code"] < (tmp_path / "net.o").stat().st_size
    assert len(manifest["arena"]) == model.signature.chunks
    for path in written[:2]:
        data = path.read_bytes()
        state = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        assert manifest["files"].pop(path.name) == state
    assert not manifest["files"]


@pytest.mark.parametrize("name", ["net.h", "net.json"])
def test_files_of_others_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"my": "file"}', encoding="utf-8")
    with pytest.raises(CompileError, match=rf"{name}(.|\n)*another"):
        sardonyx.compile_to(demo_model(), tmp_path / "net.o")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_our_own_are_replaced(tmp_path: Path) -> None:
    sardonyx.compile_to(demo_model(), tmp_path / "net.o", name="first")
    sardonyx.compile_to(demo_model(), tmp_path / "net.o", name="second")
    assert "second_run" in (tmp_path / "net.h").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "net.json").read_text(encoding="utf-8"))["name"] == "second"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a linker"
)
def test_of_a_compiled_model(tmp_path: Path) -> None:
    model = sardonyx.compile(demo_model(), threads=1)
    assert model.export(tmp_path / "net.so") == [tmp_path / f"net.{suffix}" for suffix in ("so", "h", "json")]


def test_the_documentation_knows_every_key(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "abi.md").read_text(encoding="utf-8")
    sardonyx.compile_to(demo_model(), tmp_path / "net.o", threads=2)
    manifest = json.loads((tmp_path / "net.json").read_text(encoding="utf-8"))
    keys = {*manifest, *manifest["signature"], *manifest["files"]["net.o"]}
    assert not {key for key in keys if f"`{key}`" not in page}
