"""Tensors in files beside the model, and what must not be read."""

import os

import numpy as np
import pytest
from onnx import TensorProto, helper

from sardonyx.errors import CompileError
from sardonyx.frontend import import_model
from sardonyx.frontend.tensors import TensorReader


def external(dtype, dims, location, **entries):
    tensor = TensorProto(name="weights", data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "outside.bin").write_bytes(bytes(64))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    return folder


def is_mapped(array):
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def test_offset_and_length(folder):
    reader = TensorReader(folder)
    whole = reader.read(external(TensorProto.FLOAT, [4, 4], "w.bin"))
    part = reader.read(external(TensorProto.FLOAT, [3], "w.bin", offset=8, length=12))
    assert whole.array.tolist() == np.arange(16).reshape(4, 4).tolist()
    assert part.array.tolist() == [2, 3, 4]
    assert is_mapped(whole.array)
    assert is_mapped(part.array)
    assert np.shares_memory(whole.array, part.array)


def test_not_aligned(folder):
    array = TensorReader(folder).read(external(TensorProto.FLOAT, [1], "w.bin", offset=5)).array
    assert array.flags.aligned
    assert array.tobytes() == np.arange(16, dtype=np.float32).tobytes()[5:9]


def test_packed(folder):
    (folder / "four.bin").write_bytes(b"\x21\x0f")
    array = TensorReader(folder).read(external(TensorProto.INT4, [3], "four.bin", length=2)).array
    assert array.astype(int).tolist() == [1, 2, -1]


def test_empty_file(folder):
    (folder / "empty.bin").write_bytes(b"")
    assert TensorReader(folder).read(external(TensorProto.FLOAT, [0], "empty.bin")).shape == (0,)


def test_subfolder_and_inner_link(folder):
    (folder / "data").mkdir()
    (folder / "w.bin").rename(folder / "data" / "w.bin")
    (folder / "link.bin").symlink_to(os.path.join("data", "w.bin"))
    for location in ("data/w.bin", "./data/w.bin", "data/../data/w.bin", "link.bin"):
        assert TensorReader(folder).read(external(TensorProto.FLOAT, [2], location)).array[1] == 1


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("../outside.bin", {}, "is outside of the folder"),
        ("/etc/hostname", {}, "is not a path relative to the model"),
        ("C:\\weights.bin", {}, "is not a path relative"),
        ("\\\\host\\share\\w.bin", {}, "is not a path relative"),
        ("a\0b", {}, "is not a path relative"),
        ("link.bin", {}, "is outside of the folder"),
        ("linked/outside.bin", {}, "is outside of the folder"),
        ("sub", {}, "is not a regular file"),
        ("none.bin", {}, "file 'none.bin' .* is missing in"),
        ("w.bin/deeper", {}, "cannot read"),
        (None, {}, "no location"),
        ("w.bin", {"offset": 56}, "needs the bytes 56 to 72 of .*'w.bin', but that has 64 bytes"),
        ("w.bin", {"offset": 2**70}, "but that has 64 bytes"),
        ("w.bin", {"length": 12}, "needs 16 bytes, but .* has a length of 12"),
        ("w.bin", {"offset": -4}, "offset '-4' .* is not a number"),
        ("w.bin", {"length": "many"}, "length 'many' .* is not a number"),
    ],
)
def test_refused(folder, location, entries, words):
    (folder / "link.bin").symlink_to(folder.parent / "outside.bin")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "sub").mkdir()
    with pytest.raises(CompileError, match=words) as caught:
        TensorReader(folder).read(external(TensorProto.FLOAT, [4], location, **entries))
    assert "tensor 'weights'" in str(caught.value)


def test_strings_are_never_external(folder):
    with pytest.raises(CompileError, match="string_data"):
        TensorReader(folder).read(external(TensorProto.STRING, [1], "w.bin"))


def test_base_dir(model, folder):
    tensor = external(TensorProto.FLOAT, [4], "w.bin", offset=16)
    made = model([helper.make_node("Add", ["x", "weights"], ["y"])], initializer=[tensor])
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    for module in (import_model(path), import_model(made, base_dir=folder)):
        assert module.main.body.ops[0].attributes["value"].array.tolist() == [4, 5, 6, 7]
    for source in (made, made.SerializeToString()):
        with pytest.raises(CompileError, match=r"'weights' has its data in the file 'w\.bin'.*\n.*base_dir"):
            import_model(source)


def test_attribute_with_external_data(model, folder):
    tensor = external(TensorProto.FLOAT, [1], "w.bin", offset=4)
    made = model([helper.make_node("Constant", [], ["y"], value=tensor)])
    (op, _) = import_model(made, base_dir=folder).main.body
    assert op.attributes["value"].array.tolist() == [1]
