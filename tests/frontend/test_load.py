"""Files that are no models, and the ways to hand a model over."""

import os

import onnx
import pytest
from onnx import helper

from sardonyx.errors import CompileError
from sardonyx.frontend import import_model, load_model


@pytest.fixture
def floor(model):
    return model([helper.make_node("Floor", ["x"], ["y"])])


def test_path_bytes_and_proto(floor, tmp_path):
    path = tmp_path / "floor.onnx"
    path.write_bytes(floor.SerializeToString())
    assert load_model(floor) == (floor, None)
    assert load_model(floor.SerializeToString()) == (floor, None)
    assert load_model(path) == load_model(str(path)) == (floor, str(tmp_path))


def test_the_folder_of_a_relative_path_is_absolute(floor, tmp_path, monkeypatch):
    (tmp_path / "floor.onnx").write_bytes(floor.SerializeToString())
    monkeypatch.chdir(tmp_path)
    assert load_model("floor.onnx")[1] == os.getcwd()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no graph"),
        (b"some text, not a model\n", "cannot be parsed"),
        (b"PK\x03\x04rest of an archive", "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\x80\x02}q\x00.", "pickle"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "holds no graph"),
    ],
)
def test_not_a_model(tmp_path, content, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(CompileError, match=words) as caught:
        load_model(path)
    assert "m.onnx" in str(caught.value)
    with pytest.raises(CompileError, match="the given bytes"):
        load_model(content)


def test_cut_short(floor, tmp_path):
    path = tmp_path / "cut.onnx"
    path.write_bytes(floor.SerializeToString()[:-7])
    with pytest.raises(CompileError, match=r"cut\.onnx.*cut short"):
        load_model(path)


def test_no_file(tmp_path):
    with pytest.raises(CompileError, match=r"there is no file .*none\.onnx"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(CompileError, match="is a folder"):
        load_model(tmp_path)
    with pytest.raises(CompileError, match="cannot read"):
        load_model("a\0b")


def test_wrong_type():
    with pytest.raises(CompileError, match="got int"):
        load_model(3)


def test_versions(floor):
    floor.ir_version = 2
    with pytest.raises(CompileError, match="ir_version 2; the oldest that is supported is 3"):
        import_model(floor)
    floor.ClearField("ir_version")  # left out by some hand-made models
    assert import_model(floor).main.attributes["ir_version"] == 0
    floor.ir_version = 99  # says nothing about the operators
    import_model(floor)


def test_no_graph():
    with pytest.raises(CompileError, match="has no graph"):
        import_model(onnx.ModelProto(ir_version=8))


@pytest.mark.parametrize(
    ("imports", "words"),
    [
        ([], "does not say which opset"),
        ([("", 29)], "imports opset 29 of ai.onnx, but the newest that is known is 28"),
        ([("", 0)], "opset 0 of the domain ai.onnx; opsets start at 1"),
        ([("", 13), ("ai.onnx", 14)], "two opsets of the domain ai.onnx: 13 and 14"),
    ],
)
def test_opset_imports(floor, imports, words):
    del floor.opset_import[:]
    floor.opset_import.extend(helper.make_opsetid(*i) for i in imports)
    with pytest.raises(CompileError, match=words):
        import_model(floor)


def test_the_default_domain_has_two_names(floor):
    floor.opset_import[0].domain = "ai.onnx"
    floor.graph.node[0].domain = "ai.onnx"
    (op, _) = import_model(floor).main.body
    assert op.name == "onnx.Floor"
    assert op.attributes == {"sdx.opset": 21}
