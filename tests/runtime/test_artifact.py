"""Exported libraries: what runs them, and what is refused before any of their code runs."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import sardonyx
import sardonyx_runtime
from sardonyx import CompileError, RuntimeFault
from sardonyx.cli.demo_model import demo_model
from sardonyx.codegen.artifact import cpu_text
from sardonyx.codegen.compile import compile_text
from sardonyx.codegen.jit import JitLibrary
from sardonyx.targets.host import host_target
from sardonyx_runtime import artifact
from sardonyx_runtime.cpu import WORDS, has_features, missing_features

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = sys.platform.startswith("linux") and (shutil.which("cc") or shutil.which("ld"))
pytestmark = pytest.mark.skipif(not SYSTEM, reason="libraries are exported on Linux, with a linker")


def build(nodes: list[str], inputs: dict[str, Any], outputs: str, constants: Any = ()) -> Any:
    """A compiled model of nodes in text form; inputs by (TensorProto type, dims)."""
    graph = helper.make_graph(
        [onnx.parser.parse_node(n) for n in nodes],
        "test",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return sardonyx.compile(model, threads=2, cache=False)


def example() -> Any:
    """Weights, a default, a fault, a late output."""
    nodes = ["m = MatMul (x, w)", "y = Relu (m)", "[ratio] q = Div (i, j)", "z = ConstantOfShape (s)"]
    inputs = {"x": (1, ["n", 3]), "i": (6, ["m"]), "s": (7, [2]), "j": (6, [1])}
    weights = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([2], np.int32), "j")]
    return build(nodes, inputs, "yqz", constants)


def feeds() -> dict[str, Any]:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    return {"x": x, "i": np.array([6, 8, -1], np.int32), "s": np.array([2, 3])}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("libraries") / "model.so"
    example().export(path)
    return path


@pytest.fixture
def copy(library: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(library, tmp_path / "copy.so"))


def test_a_library_does_what_the_model_does(library: Path) -> None:
    model, loaded = example(), sardonyx_runtime.load(library)
    assert loaded.signature == model.signature
    for _ in range(2):
        for got, want in zip(loaded.run(feeds()), model.run(feeds()), strict=True):
            assert got.dtype == want.dtype and np.array_equal(got, want)
    with pytest.raises(RuntimeFault, match=r"ratio.*division by zero"):
        loaded.run({**feeds(), "j": np.zeros(1, np.int32)})
    with pytest.raises(RuntimeFault, match="'x'"):
        loaded.run({**feeds(), "x": np.zeros((2, 2), np.float32)})


def test_several_libraries_in_one_process(tmp_path: Path) -> None:
    loaded = []
    for number in range(3):
        constant = numpy_helper.from_array(np.array([number], np.float32), "c")
        path = tmp_path / f"{number}.so"
        build(["y = Add (x, c)"], {"x": (1, ["n"])}, "y", [constant]).export(path)
        loaded.append(sardonyx_runtime.load(path, threads=1))
    x = np.zeros(5, np.float32)
    assert [m.run([x])[0][0] for m in loaded] == [0, 1, 2]


def test_a_library_may_be_replaced_while_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    models = []
    for number in (1, 2):
        constant = numpy_helper.from_array(np.array([number], np.float32), "c")
        build(["y = Add (x, c)"], {"x": (1, ["n"])}, "y", [constant]).export(str(path))
        models.append(sardonyx_runtime.load(str(path)))
    assert [m.run([np.zeros(1, np.float32)])[0][0] for m in models] == [1, 2]
    assert sorted(os.listdir(tmp_path)) == ["model.h", "model.json", "model.so"]


def test_the_runtime_needs_no_compiler(library: Path) -> None:
    code = f"""
import sys
for name in ("llvmlite", "onnx", "sardonyx", "google"):
    sys.modules[name] = None
import numpy as np, sardonyx_runtime
model = sardonyx_runtime.load({str(library)!r})
x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
y, q, z = model.run([x, np.array([6, 8, -1], np.int32), np.array([2, 3])])
print(y.tolist(), q.tolist(), z.shape)
loaded = {{name.partition(".")[0] for name in sys.modules if sys.modules[name]}}
print(sorted(loaded & {{"llvmlite", "onnx", "sardonyx", "google", "rich", "ml_dtypes", "tempfile", "argparse"}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        capture_output=True,
        text=True,
        check=True,
    )
    y, q, _ = example().run(feeds())
    assert done.stdout == f"{y.tolist()} {q.tolist()} (2, 3)\n[]\n"


def test_threads(library: Path) -> None:
    assert sardonyx_runtime.load(library, threads=3).threads == 3
    for number in (0, -1):
        with pytest.raises(RuntimeFault, match="1 thread or more"):
            sardonyx_runtime.load(library, threads=number)


# -- from C


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_program_of_the_documentation(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    (program,) = [p for p in re.findall(r"```c\n(.*?)```", text, re.DOTALL) if "main" in p]
    (command,) = [c for c in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if c.startswith("cc ")]
    build(["y = Abs (x)"], {"x": (1, ["n", 3])}, "y").export(tmp_path / "model.so")
    (tmp_path / "program.c").write_text(program)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1 2 3 4 5 6 "), done.stderr


def test_only_the_interface_is_visible(library: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    command = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    page = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"## Symbols of a library\n\n(.*?)\n\n", page, re.DOTALL)
    assert {line.split()[-1] for line in lines} == set(re.findall(r"sdx_\w+", table))


# -- refused


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda b: b"", "empty"),
    "short": (lambda b: b[:10], "cut short"),
    "cut": (lambda b: b[:-1], "cut short"),
    "half": (lambda b: b[: len(b) // 2], "cut short"),
    "a hole": (lambda b: b[: len(b) // 2] + b[len(b) // 2 + 1 :], "damaged"),
    "one bit": (lambda b: b[:5000] + bytes([b[5000] ^ 1]) + b[5001:], "checksum"),
    "something behind": (lambda b: b + b"\n", "changed"),
    "text": (lambda b: b"hello\n" * 100, "no library of Sardonyx"),
    "static library": (lambda b: b"!<arch>\n" + bytes(100), "a static library"),
    "wheel": (lambda b: b"PK\x03\x04" + bytes(100), "a wheel"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(copy: Path, damage: str) -> None:
    change, word = DAMAGES[damage]
    copy.write_bytes(change(copy.read_bytes()))
    with pytest.raises(RuntimeFault, match=word) as fault:
        sardonyx_runtime.load(copy)
    assert str(copy) in str(fault.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFault, match="No such file"):
        sardonyx_runtime.load(tmp_path / "missing.so")
    with pytest.raises(RuntimeFault, match="directory"):
        sardonyx_runtime.load(tmp_path)


def reseal(path: Path, **changes: Any) -> None:
    """Change the description behind a library."""
    data = path.read_bytes()
    size, length = struct.unpack("<QQ", data[-48:-32])
    description = {**json.loads(data[size : size + length]), **changes}
    path.write_bytes(data[:size])
    artifact.seal(path, description)


def test_another_version_of_the_interface(copy: Path) -> None:
    reseal(copy, abi=99, sardonyx="7.0")
    with pytest.raises(RuntimeFault, match=r"version 99.*Sardonyx 7\.0.*version 1"):
        sardonyx_runtime.load(copy)


def test_another_machine(copy: Path) -> None:
    reseal(copy, triple="sparc64-unknown-linux-gnu")
    with pytest.raises(RuntimeFault, match="compiled for sparc64"):
        sardonyx_runtime.load(copy)


@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="features of x86-64")
def test_features_this_cpu_does_not_have(copy: Path) -> None:
    reseal(copy, features=["avx2", "xop", "lwp"])
    with pytest.raises(RuntimeFault, match=r"lwp.*which this one does not have"):
        sardonyx_runtime.load(copy)


def test_another_system(copy: Path) -> None:
    machine = host_target().triple.split("-")[0]
    reseal(copy, triple=f"{machine}-pc-windows-gnu")
    with pytest.raises(RuntimeFault, match=r"windows-gnu, but this is \w+ linux"):
        sardonyx_runtime.load(copy)


def test_a_newer_library_may_say_more(copy: Path) -> None:
    reseal(copy, something_new=[1, 2])
    assert len(sardonyx_runtime.load(copy).run(feeds())) == 3


def test_a_description_that_cannot_be_read(copy: Path) -> None:
    data = copy.read_bytes()
    size, length = struct.unpack("<QQ", data[-48:-32])
    for text in (b"{", b"[]", b"3", b'{"abi": 1}', b"\xff" * length):
        copy.write_bytes(data[:size])
        with copy.open("ab") as file:
            file.write(text)
        check = zlib.crc32(copy.read_bytes())
        with copy.open("ab") as file:
            file.write(struct.pack("<QQI12x16s", size, len(text), check, b"sardonyx-library"))
        with pytest.raises(RuntimeFault, match="description cannot be read"):
            sardonyx_runtime.load(copy)


def test_a_symbol_that_is_not_there(copy: Path) -> None:
    reseal(copy, name="other")
    with pytest.raises(RuntimeFault, match=r"no symbol 'other_run'"):
        sardonyx_runtime.load(copy)


def test_foreign_libraries_and_models(tmp_path: Path) -> None:
    (math,) = [m for m in Path("/proc/self/maps").read_text().split() if "libm.so" in m or "libm-" in m][:1]
    for path, word in ((math, "another ELF"), (tmp_path / "m.onnx", "compile it first")):
        if path != math:
            onnx.save(demo_model(), path)
        with pytest.raises(RuntimeFault, match=rf"no library of Sardonyx.*{word}"):
            sardonyx_runtime.load(path)


def test_a_stripped_library(copy: Path) -> None:
    if shutil.which("strip") is None:
        pytest.skip("needs strip")
    subprocess.run(["strip", str(copy)], check=True)
    with pytest.raises(RuntimeFault, match="lost its last bytes"):
        sardonyx_runtime.load(copy)


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_change_of_a_byte_is_overlooked(library: Path, data: st.DataObject) -> None:
    content = bytearray(library.read_bytes())
    last = len(content) - 1
    place = data.draw(st.one_of(st.integers(0, last), st.integers(last - 47, last)))  # the seal, too
    content[place] ^= data.draw(st.integers(1, 255))
    path = library.with_name("changed.so")
    path.write_bytes(content)
    with pytest.raises(RuntimeFault, match=r"no library|damaged|version"):
        sardonyx_runtime.load(path)


def test_no_library_inside(copy: Path) -> None:
    data = copy.read_bytes()
    size, length = struct.unpack("<QQ", data[-48:-32])
    copy.write_bytes(b"no elf at all")
    artifact.seal(copy, json.loads(data[size : size + length]))
    with pytest.raises(RuntimeFault, match="cannot be loaded"):
        sardonyx_runtime.load(copy)


# -- linkers


def test_no_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("sardonyx.targets.link.find_spec", lambda name: None)
    with pytest.raises(
        CompileError, match=r"needs a linker(.|\n)*cc, gcc(.|\n)*pip install sardonyx\[cross\]"
    ):
        example().export(tmp_path / "model.so")
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(CompileError, match="no-such-compiler"):
        example().export(tmp_path / "model.so")
    assert os.listdir(tmp_path) == []


def test_a_linker_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "broken"
    tool.write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("CC", str(tool))
    with pytest.raises(CompileError, match="no luck"):
        example().export(tmp_path / "model.so")
    assert os.listdir(tmp_path) == ["broken"]


@pytest.mark.skipif(shutil.which("ld") is None, reason="needs ld")
def test_the_linker_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ld").symlink_to(shutil.which("ld"))  # type: ignore[arg-type]
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    example().export(tmp_path / "model.so")
    want = example().run(feeds())
    for got, expected in zip(sardonyx_runtime.load(tmp_path / "model.so").run(feeds()), want, strict=True):
        assert np.array_equal(got, expected)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        example().export(tmp_path / "missing" / "model.so")


# -- the CPU


@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="features of x86-64")
def test_features_agree_with_llvms() -> None:
    target = host_target()
    code = compile_text(target.header + cpu_text(target.triple), target, passes=False)
    module = JitLibrary({"cpu": code}, ["sdx_cpu"], target)
    words = (ctypes.c_int32 * WORDS)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address("sdx_cpu"))(ctypes.addressof(words))
    ours, theirs = has_features(list(words)), llvm.get_host_cpu_features()
    different = {n for n in ours if n in theirs and ours[n] != theirs[n]}
    assert not different
    assert len([n for n in theirs if n in ours]) > 60
    assert missing_features(list(words), target.features) == []


def test_features_need_the_operating_system() -> None:
    words = [0xFFFFFFFF] * WORDS
    words[-1] = 0
    found = has_features(words)
    assert found["sse2"] and not found["avx2"] and not found["avx512f"] and not found["amx-tile"]
    words[-1] = 0xE7
    assert has_features(words)["avx512f"] and not has_features(words)["amx-tile"]
    assert missing_features([0] * WORDS, ["sse2", "no such feature"]) == ["sse2"]


@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="features of x86-64")
def test_one_of_the_levels_has_to_fit(copy: Path) -> None:
    plain, missing = {"cpu": "a", "features": ["sse2"]}, {"cpu": "b", "features": ["xop", "lwp"]}
    reseal(copy, levels=[missing, plain])
    assert len(sardonyx_runtime.load(copy).run(feeds())) == 3
    reseal(copy, levels=[missing, missing])
    with pytest.raises(RuntimeFault, match=r"CPU with .*lwp"):
        sardonyx_runtime.load(copy)
