"""`sardonyx explore`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import sardonyx.explore.layout as layout

from .conftest import Sardonyx, Save


def test_it_writes_a_page(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    result = sardonyx("explore", floor_ge, "-o", tmp_path / "page.html")
    assert result.code == 0, result.err
    assert result.out.startswith(f"{tmp_path / 'page.html'}: ")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_it_opens_the_page(
    sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    assert sardonyx("explore", floor_ge, "-o", tmp_path / "page.html", "--open").code == 0
    assert opened == [(tmp_path / "page.html").as_uri()]


def test_the_page_is_named_after_the_model(
    sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sardonyx("explore", floor_ge, "--node", "Floor*").code == 0
    assert (tmp_path / "floor_ge.html").exists()


def test_a_model_that_does_not_compile_gives_a_page(sardonyx: Sardonyx, save: Save, tmp_path: Path) -> None:
    model = save(["a = Floor (x)", "z = com.example.Unheard (a)"])
    result = sardonyx("explore", model, "-o", tmp_path / "page.html")
    assert result.code == 3
    assert "Unheard" in result.err
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--node", "Conv*"], "no node matches 'Conv*'"),
        (["--profile", "none.json"], "cannot read 'none.json'"),
        (["-o", "no/such/folder/page.html"], "cannot write"),
    ],
)
def test_usage_errors(sardonyx: Sardonyx, floor_ge: Path, arguments: list[str], message: str) -> None:
    result = sardonyx("explore", floor_ge, *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "times.json'"),
        ("{}", "this is no profile"),
        (
            '{"format": "sardonyx-profile", "version": 1, "seconds": 1, "kernels": [], "nodes": []}',
            "of another model",
        ),
    ],
)
def test_profiles_that_do_not_fit(
    sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "times.json").write_text(text, encoding="utf-8")
    result = sardonyx("explore", floor_ge, "--profile", tmp_path / "times.json")
    assert result.code == 2
    assert message in result.err


def test_a_missing_library_is_named(
    sardonyx: Sardonyx, floor_ge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "from_edges", None)
    result = sardonyx("explore", floor_ge)
    assert result.code == 2
    assert "sardonyx[explore]" in result.err


def test_operators_of_the_users_own(sardonyx: Sardonyx, save: Save, domain: str, tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(
        f"""
import sardonyx

@sardonyx.register_operator("Twice", domain="{domain}", inputs=["x: T"], outputs=["y: T"], types={{"T": ["float"]}})
def twice(b, x):
    return b.op("core.add", x, x)
""",
        encoding="utf-8",
    )
    node = onnx.helper.make_node("Twice", ["x"], ["z"], name="Twice_0", domain=domain)
    model = save([node], outputs=["z"], opset=21)
    loaded = onnx.load(model)
    if domain not in {o.domain for o in loaded.opset_import}:
        loaded.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        onnx.save(loaded, model)
    result = sardonyx("explore", model, "-o", tmp_path / "page.html", "--load", plugin)
    assert result.code == 0, result.err


def test_ir_text_is_refused(sardonyx: Sardonyx, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("", encoding="utf-8")
    result = sardonyx("explore", path)
    assert result.code == 2
    assert "IR text" in result.err
