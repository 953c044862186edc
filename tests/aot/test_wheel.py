"""Wheels of models: what is in them, and that pip installs them where nothing of Sardonyx is."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import sardonyx_runtime
from sardonyx import CompileError
from sardonyx.aot.glibc import needed_glibc
from sardonyx.aot.python_module import module_text
from sardonyx.aot.wheel import package_model
from sardonyx_runtime import dtypes
from sardonyx_runtime.signature import Argument, Signature

from ..helpers import make_model

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a linker"
)
X = np.array([[1.5, -2, 3]], np.float32)


def named_model() -> onnx.ModelProto:
    """Names that are no identifiers, an optional input, a fault."""
    proto = make_model(
        ["y = Mul (x, scale)", "[ratio] q = Div (i, j)"],
        {"x": X, "scale": np.float32(2), "i": np.array([7]), "j": np.array([2])},
        dims={"x": ["n", 3]},
    )
    graph = proto.graph
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(2, np.float32), "scale"))
    for old, new in (("x", "class"), ("y", "y/out")):
        for value in (*graph.input, *graph.output):
            value.name = new if value.name == old else value.name
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]
    return proto


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package_model(named_model(), "odd-names", tmp_path_factory.mktemp("dist"), version="2.1rc1")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_what_is_in_it(wheel: Path) -> None:
    assert re.fullmatch(r"odd_names-2\.1rc1-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)
    files = contents(wheel)
    info = "odd_names-2.1rc1.dist-info"
    assert {"odd_names/__init__.py", "odd_names/py.typed", "odd_names/model.so"} <= files.keys()
    metadata = files[f"{info}/METADATA"].decode()
    assert "Name: odd-names\nVersion: 2.1rc1\n" in metadata
    assert re.findall(r"^Requires-Dist: (\w+)", metadata, re.MULTILINE) == ["numpy"]
    assert f"Tag: {'-'.join(wheel.stem.split('-')[2:])}\n" in files[f"{info}/WHEEL"].decode()
    rows = list(csv.reader(io.StringIO(files[f"{info}/RECORD"].decode())))
    assert {row[0] for row in rows} == files.keys() and rows[-1] == [f"{info}/RECORD", "", ""]
    for name, digest, size in rows[:-1]:
        got = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        assert (digest, int(size)) == (f"sha256={got}", len(files[name]))
    for name, data in files.items():
        if name.endswith(".py"):
            compile(data, name, "exec")
            assert not re.search(rb"^\s*(from|import) sardonyx", data, re.MULTILINE), name


def test_the_same_model_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    again = package_model(named_model(), "odd-names", tmp_path / "made" / "here", version="2.1rc1")
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()
    assert os.listdir(again.parent) == [again.name]


_RUN = """
import sys
for name in ("llvmlite", "onnx", "sardonyx", "sardonyx_runtime"):
    sys.modules[name] = None
import odd_names
print("numpy" in sys.modules)
import numpy as np
got = odd_names.run(class_=np.array([[1.5, -2, 3]], np.float32),
                    i=np.array([7]), j=np.array([2]))
print(got.y_out.tolist(), got.q.tolist(), type(got).__name__, got._fields)
got = odd_names.run(class_=np.ones((2, 3), np.float32), i=np.array([7]), j=np.array([2]), scale=np.float32(5))
print(got[0].tolist())
try:
    odd_names.run(class_=np.ones((2, 3), np.float32), i=np.array([7]), j=np.array([0]))
except odd_names.RuntimeFault as fault:
    print(str(fault).partition(" in ")[0])
with odd_names.load(threads=1) as model:
    print(model.threads, model.inputs[0].name)
print("ml_dtypes" in sys.modules)
"""
_PRINTED = """\
False
[[3.0, -4.0, 6.0]] [3] Outputs ('y_out', 'q')
[[5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
node ratio: integer division by zero
1 class
False
"""


def test_pip_installs_it(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(tmp_path / "site"), str(wheel)], check=True)
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (_PRINTED, "")
    shown = subprocess.run(
        [sys.executable, "-m", "odd_names._runtime", "info", str(tmp_path / "site/odd_names/model.so")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "input class" in shown.stdout


@pytest.mark.slow
def test_in_a_bare_environment(wheel: Path, tmp_path: Path) -> None:
    """With what pip fetches for it, and nothing else; the types are those that a checker sees."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    install = [str(python), "-m", "pip", "install", "--quiet"]
    if subprocess.run([*install, "numpy"], env=clean, check=False).returncode:
        pytest.skip("pip cannot fetch numpy")
    subprocess.run([*install, str(wheel)], env=clean, check=True)
    listed = subprocess.run(
        [*install[:3], "list", "--format=freeze"], env=clean, capture_output=True, check=True
    )
    names = {line.partition("==")[0] for line in listed.stdout.decode().split()}
    assert names == {"numpy", "odd-names", "pip", "setuptools"} - ({"setuptools"} - names)
    done = subprocess.run([str(python), "-c", _RUN], env=clean, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (_PRINTED, "")
    program = tmp_path / "program.py"
    program.write_text(
        "import odd_names, numpy as np\n"
        "r = odd_names.run(class_=np.ones((1, 3), np.float32), i=np.array([7]), j=np.array([1]))\n"
        "reveal_type(r.y_out)\nodd_names.run(class_=3)\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", str(python), str(program)],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"Revealed type is .*ndarray\[.*float(32|ing\[.*32Bit)", checked.stdout), checked.stdout
    assert "Missing named argument" in checked.stdout


def test_types_of_ml_dtypes_are_asked_for(tmp_path: Path) -> None:
    small = make_model("y = Neg (x)", {"x": np.zeros(3, ml_dtypes.bfloat16)})
    files = contents(package_model(small, "small", tmp_path))
    metadata = next(data for name, data in files.items() if name.endswith("METADATA")).decode()
    assert re.findall(r"^Requires-Dist: (\w+)", metadata, re.MULTILINE) == ["numpy", "ml_dtypes"]


def test_dims_and_threads(tmp_path: Path) -> None:
    files = contents(package_model(named_model(), "fixed", tmp_path, dims={"n": 4}, threads=3))
    source = files["fixed/__init__.py"].decode()
    assert "float[4, 3]" in source and "(default: 3)" in source


@pytest.mark.parametrize(
    ("name", "version", "word"),
    [
        ("Upper", "1.0", "small letters"),
        ("3d", "1.0", "small letters"),
        ("class", "1.0", "small letters"),
        ("a b", "1.0", "small letters"),
        ("json", "1.0", "another package"),
        ("sardonyx-runtime", "1.0", "another package"),
        ("fine", "one", "no version"),
        ("fine", "1.0\nx", "no version"),
    ],
)
def test_names_and_versions_that_are_none(name: str, version: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=word):
        package_model(named_model(), name, tmp_path / "dist", version=version)
    assert not (tmp_path / "dist").exists()


def test_any_names_make_a_module() -> None:
    odd = ["None", "def", "feeds", "a'b", '"""', "\\", "\n", "é", "count", "", "a-b", "a_b"]
    arguments = tuple(Argument(name, dtypes.ALL[i], ("n",)) for i, name in enumerate(odd))
    optional = Argument("maybe", dtypes.f32, (1,), np.zeros(1, np.float32))
    for signature in (Signature((*arguments, optional), arguments), Signature((), ())):
        text = module_text("made", "model.so", "1.0", signature, None)
        space: dict[str, Any] = {}
        exec(compile(text.replace("from made._runtime import RuntimeFault", ""), "made", "exec"), space)
        assert space["run"].__kwdefaults__ == ({"maybe": None} if signature.inputs else None)
        assert len(space["Outputs"]._fields) == len(signature.outputs)


def test_versions_of_glibc() -> None:
    """As readelf lists them, of libraries that need some."""
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    maps = Path("/proc/self/maps").read_text().split()
    paths = sorted({p for p in maps if re.search(r"/lib(m|stdc\+\+|z|crypto)\.so|multiarray.*\.so", p)})
    seen = set()
    for path in paths:
        text = subprocess.run(["readelf", "-V", path], capture_output=True, text=True, check=True).stdout
        needs = text.partition("Version needs section")[2]
        versions = [(int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", needs)]
        assert needed_glibc(Path(path)) == max(versions, default=None), path
        seen.add(needed_glibc(Path(path)))
    assert len(seen) > 1
    with pytest.raises(ValueError, match="no 64-bit ELF"):
        needed_glibc(Path(__file__))


def test_from_the_command_line(tmp_path: Path) -> None:
    onnx.save(named_model(), tmp_path / "m.onnx")
    command = [sys.executable, "-m", "sardonyx", "package", "m.onnx", "--name", "net"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert done.returncode == 0 and done.stdout.startswith(f"dist/{wheel.name}: ")
    done = subprocess.run(
        [*command[:3], "info", f"dist/{wheel.name}"], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"input class" in done.stdout
    done = subprocess.run(
        [*command, "--version", "x"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "no version" in done.stderr


@pytest.mark.parametrize(
    "target", ["x86_64-windows-gnu", "aarch64-macos", "wasm32-wasi", "powerpc64le-linux-gnu"]
)
def test_systems_without_wheels(target: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"Linux on x86_64, aarch64, riscv64 so far, not for \w+"):
        package_model(named_model(), "net", tmp_path / "dist", target=target)
    assert not (tmp_path / "dist").exists()


def test_several_levels(tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("levels of x86-64")
    wheel = package_model(named_model(), "levels", tmp_path, cpu="x86-64-v2,x86-64-v3")
    (tmp_path / "model.so").write_bytes(contents(wheel)["levels/model.so"])
    with sardonyx_runtime.load(tmp_path / "model.so") as model:
        got = model.run({"class": X, "i": np.array([7]), "j": np.array([2])})
    assert np.array_equal(got[0], 2 * X)
