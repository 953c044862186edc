"""What `sardonyx.compile_to` writes, by suffix: each is linked to a C program and does what the model does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import onnx
import pytest

import sardonyx
import sardonyx_runtime
from sardonyx import CompileError
from sardonyx.aot.formats import SUFFIXES, implied_target
from sardonyx.cli.demo_model import demo_images, demo_model
from sardonyx.codegen.artifact import exports
from sardonyx.targets.host import host_target, target_machine

from ..helpers import Array, make_model
from .programs import C_LIBRARY, c_program, results_of, same_bits

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(
    CC is None or not sys.platform.startswith("linux"), reason="needs Linux and a C compiler"
)

FEEDS = [demo_images(3)[0]]


@pytest.fixture(scope="module")
def wanted() -> list[Array]:
    return sardonyx.compile(demo_model(), threads=1).run(FEEDS)


def linked(files: list[Path], program: str, folder: Path) -> Path:
    """The program, built with the files."""
    (folder / "main.c").write_text(program)
    command = ["cc", "main.c", *map(str, files), "-lm", "-o", "main", f"-Wl,-rpath,{folder}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "main"


def as_object(path: Path) -> Path:
    """What the linker takes: LLVM's forms are compiled."""
    machine = target_machine(host_target())
    if path.suffix == ".ll":
        code = machine.emit_object(llvm.parse_assembly(path.read_text()))
    elif path.suffix == ".bc":
        code = machine.emit_object(llvm.parse_bitcode(path.read_bytes()))
    else:
        return path
    path.with_suffix(".o").write_bytes(code)
    return path.with_suffix(".o")


@pytest.mark.parametrize("suffix", [".so", ".o", ".a", ".ll", ".bc", ".s"])
def test_a_program_in_c_runs_it(suffix: str, wanted: list[Array], tmp_path: Path) -> None:
    output = tmp_path / f"model{suffix}"
    files = [output, tmp_path / "model.h", tmp_path / "model.json"]
    assert sardonyx.compile_to(demo_model(), output) == files
    assert set(os.listdir(tmp_path)) == {file.name for file in files}
    program = linked([as_object(output)], c_program(FEEDS, wanted), tmp_path)
    assert same_bits(results_of([program], FEEDS, wanted, tmp_path), wanted)


def test_two_models_in_one_program(tmp_path: Path) -> None:
    """With prefixes of their own, an object and a static library are linked statically."""
    x = np.linspace(-2, 2, 40, dtype=np.float32).reshape(8, 5)
    for prefix, operator, suffix in (("first", "Exp", ".o"), ("second", "Tanh", ".a")):
        model = make_model(f"y = {operator} (x)", {"x": x}, dims={"x": ["n", 5]})
        sardonyx.compile_to(model, tmp_path / f"{prefix}{suffix}", name=prefix)
        text = c_program([x], [x], prefix=prefix)
        (tmp_path / f"{prefix}.c").write_text(text.replace("int main(", f"int {prefix}("))
    main = (
        "int first(int, char **); int second(int, char **);\n"
        "int main(int n, char **a) { return a[3][0] == '1' ? first(3, a) : second(3, a); }\n"
    )
    files = [tmp_path / name for name in ("first.c", "second.c", "first.o", "second.a")]
    program = linked(files, main, tmp_path)
    for which, operator in (("1", "Exp"), ("2", "Tanh")):
        (want,) = sardonyx.compile(make_model(f"y = {operator} (x)", {"x": x})).run([x])
        wrapper = tmp_path / f"run{which}"
        wrapper.write_text(f'#!/bin/sh\nexec {program} "$1" "$2" {which}\n')
        wrapper.chmod(0o755)
        (got,) = results_of([wrapper], [x], [x], tmp_path)
        assert same_bits([got], [want])


def test_the_objects_interface(tmp_path: Path) -> None:
    """Defined are the documented symbols, undefined those of the C library."""
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    output = tmp_path / "model.o"
    sardonyx.compile_to(demo_model(), output, name="demo")
    lines = subprocess.run(
        ["nm", str(output)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    kinds = [line.split()[-2:] for line in lines]
    assert {name for kind, name in kinds if kind in "TRDBW"} == set(exports("demo"))
    undefined = {name for kind, name in kinds if kind == "U"} - {"_GLOBAL_OFFSET_TABLE_"}
    assert undefined <= C_LIBRARY


def test_a_library_needs_the_c_library_only(tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    output = tmp_path / "model.so"
    sardonyx.compile_to(demo_model(), output)

    def readelf(option: str) -> list[str]:
        command = ["readelf", "-W", option, str(output)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    needed = [re.findall(r"\[(.*)\]", line)[0] for line in readelf("-d") if "(NEEDED)" in line]
    assert all(re.match(r"lib(c|m|pthread)\.so", name) for name in needed)
    names = {line.split()[7] for line in readelf("--dyn-syms") if " UND " in line and len(line.split()) > 7}
    assert {n.partition("@")[0] for n in names} <= C_LIBRARY


def test_dims_are_fixed(tmp_path: Path, wanted: list[Array]) -> None:
    output = tmp_path / "model.so"
    sardonyx.compile_to(demo_model(), output, dims={"batch": 3}, threads=2)
    loaded = sardonyx_runtime.load(output)
    assert loaded.inputs[0].shape == (3, 1, 28, 28) and loaded.outputs[0].shape == (3, 4)
    assert loaded.threads == 2
    assert same_bits(loaded.run(FEEDS), wanted)
    with pytest.raises(sardonyx.RuntimeFault, match=r"image.*\[3, 1, 28, 28\]"):
        loaded.run([FEEDS[0][:2]])


def test_a_model_of_this_process_for_another(tmp_path: Path) -> None:
    model = sardonyx.compile(demo_model())
    files = model.export(tmp_path / "model.o", target="aarch64-linux-gnu", dims={"batch": 1})
    assert files[0].read_bytes()[18:20] == b"\xb7\x00"  # e_machine of AArch64


def test_a_prefix(tmp_path: Path, wanted: list[Array]) -> None:
    sardonyx.compile_to(demo_model(), tmp_path / "model.so", name="stripes")
    assert same_bits(sardonyx_runtime.load(tmp_path / "model.so").run(FEEDS), wanted)


# -- refused


@pytest.mark.parametrize("name", ["model", "model.onnx", "model.so.1", ".so"])
def test_unknown_suffixes(name: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        sardonyx.compile_to(demo_model(), tmp_path / name)
    assert all(suffix in str(error.value) for suffix in SUFFIXES)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"bath": 1}, "no input has a dim 'bath'(.|\n)*did you mean 'batch'"),
        ({"batch": -1}, "'batch' cannot be -1"),
    ],
)
def test_dims_that_cannot_be_fixed(dims: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=message):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", dims=dims)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "cannot use 0 threads"),
        ({"weights": "insde"}, "cannot go to 'insde'(.|\n)*say inside, beside"),
        ({"weights": "model.o"}, "cannot be the library and the file"),
    ],
)
def test_options_that_mean_nothing(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CompileError, match=message):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", **options)
    assert os.listdir(tmp_path) == []


def test_weights_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", weights=tmp_path / "missing" / "w")


def test_dims_of_a_lowered_model(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(sardonyx.stage_text(demo_model(), "core", elide=None))
    with pytest.raises(CompileError, match="before nodes are lowered"):
        sardonyx.compile_to(tmp_path / "model.mlir", tmp_path / "model.o", dims={"batch": 1})
    assert sardonyx.compile_to(tmp_path / "model.mlir", tmp_path / "model.o")


@pytest.mark.parametrize("prefix", ["", "3d", "a-b", "naïve", "x y"])
def test_prefixes_that_are_no_names(prefix: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot begin the names of symbols"):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", name=prefix)


def test_a_model_that_needs_values_to_be_compiled(tmp_path: Path) -> None:
    axes = np.array([0], np.int64)
    model = make_model("y = ReduceSum (x, axes)", {"x": np.zeros((2, 3), np.float32), "axes": axes})
    with pytest.raises(CompileError, match=r"cannot be made ahead of time(.|\n)*'axes' a constant"):
        sardonyx.compile_to(model, tmp_path / "model.so")
    with pytest.raises(CompileError, match="cannot be made ahead of time"):
        sardonyx.compile(model).export(tmp_path / "model.so")
    assert os.listdir(tmp_path) == []


def test_a_model_that_has_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    x = np.zeros(3, np.float32)
    onnx.save(make_model("y = Add (x, c)", {"x": x}, constants={"c": x}), path)
    compiled = sardonyx.compile(str(path))
    onnx.save(make_model("y = Add (x, c)", {"x": x}, constants={"c": x + 1}), path)
    with pytest.raises(CompileError, match="has changed since"):
        compiled.export(tmp_path / "model.so")


# -- the same bytes every time

_TWICE = """
import sys, sardonyx
from sardonyx.codegen.artifact import exports
from sardonyx.cli.demo_model import demo_model
for suffix in (".so", ".a", ".bc"):
    sardonyx.compile_to(demo_model(), sys.argv[1] + suffix)
"""


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    made = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", _TWICE, str(folder / "model")], env=environment, check=True)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0].keys() == made[1].keys() >= {"model.so", "model.a", "model.bc", "model.h", "model.json"}
    for name, data in made[0].items():
        assert data == made[1][name], name
        assert str(tmp_path).encode() not in data and b".sardonyx-" not in data, name


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_weights_on_another_disk(tmp_path: Path, wanted: list[Array]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        there = Path(folder) / "demo.weights"
        files = sardonyx.compile_to(demo_model(), tmp_path / "model.so", weights=there)
        assert files[1] == there and os.listdir(folder) == ["demo.weights"]
        with sardonyx_runtime.load(tmp_path / "model.so") as model:
            assert same_bits(model.run(FEEDS), wanted)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("model.wasm", "wasm32-wasi"),
        ("model.DLL", "x86_64-windows-gnu"),
        ("model.dylib", None),
        ("a.o", None),
    ],
)
def test_the_system_that_a_suffix_stands_for(name: str, target: str | None) -> None:
    """No target need be given where only one system has such libraries, and it is not this one."""
    assert implied_target(Path(name)) == target
