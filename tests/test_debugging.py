"""Debug information: what gdb and perf see of a compiled model, and that nothing of it is there without."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sardonyx
import sardonyx_runtime
from sardonyx import cache
from sardonyx.build_options import Debug
from sardonyx.debugging import debug_source
from sardonyx.frontend.importer import import_model
from sardonyx.ir.graph import Location, Origin
from sardonyx.pass_manager import run_steps
from sardonyx.passes.program import Program, identifier
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target

from .helpers import make_model
from .passes.random_graphs import CONSTANTS, FEEDS, Graphs

NODES = [
    onnx.helper.make_node("MatMul", ["x", "w"], ["m"], name="/encoder/MatMul"),
    onnx.helper.make_node("Floor", ["m"], ["f"], name="Floor_1"),
    onnx.helper.make_node("Softmax", ["f"], ["s"], name="Softmax_2"),
    onnx.helper.make_node("Softmax", ["x"], ["t"], name="Softmax_3"),
]
X = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
INPUTS = {"x": X, "w": np.ones((40, 40), np.float32)}

needs_linker = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang", "ld"))), reason="no linker"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    model = make_model(
        NODES, {"x": X}, dims={"x": ["batch", 40]}, outputs=["s", "t"], constants={"w": INPUTS["w"]}
    )
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("debug")


SCRIPT = """
import sys, numpy as np, sardonyx
model = sardonyx.compile(sys.argv[1], debug=sys.argv[2], debug_dir=sys.argv[3], threads=1)
x = np.ones((64, 40), np.float32)
for _ in range(int(sys.argv[4])):
    model.run([x])
"""


def run_gdb(path: Path, folder: Path, *commands: str) -> str:
    """What gdb prints of commands given before and during a run of the model."""
    options = ("set pagination off", "set debuginfod enabled off", "set breakpoint pending on", "set width 0")
    script = [part for command in (*options, *commands) for part in ("-ex", command)]
    program = [sys.executable, "-c", SCRIPT, str(path), "gdb", str(folder), "1"]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", *script, "--args", *program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip("gdb may not trace processes here")
    return done.stdout + done.stderr


# --- the same results, other symbols ----------------------------------------------------------------------


@needs_linker
@pytest.mark.parametrize("debug", [True, "gdb", "perf"])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_the_same(path: Path, folder: Path, debug: bool | str, threads: int) -> None:
    plain = sardonyx.compile(str(path)).run([X])
    model = sardonyx.compile(str(path), debug=debug, debug_dir=folder, threads=threads)
    for _ in range(3):
        assert model.run([X])[0].tobytes() == plain[0].tobytes()


def symbols(path: Path, named: bool) -> list[str]:
    return list(program_of(path, named).kernels)


def program_of(path: Path, named: bool) -> Program:
    module = import_model(str(path))
    run_steps(module, pipeline(host_target(), named=named))
    return Program.from_module(module)


def test_kernels_are_shared_without_debug_and_named_with(path: Path) -> None:
    plain, named = symbols(path, False), symbols(path, True)
    assert all(re.fullmatch("k_[0-9a-f]{32}", s) for s in plain)
    assert {"Softmax_2", "Softmax_3"} <= {s.partition("__k_")[0] for s in named}
    assert any("encoder_MatMul" in s for s in named)
    assert {s[-34:] for s in named} == set(plain)
    assert len(named) > len(plain)


def test_identifiers_are_short_plain_and_different() -> None:
    def of(*names: str) -> str:
        return identifier(Location(tuple(Origin("main", n, "Op") for n in names)))

    assert of("Conv_3") == "Conv_3"
    assert of("/layer.0/Add", "Relü") == "layer_0_Add_Rel"
    assert of("7") == "n7" and of("") == "node"
    long = [of(f"{'x' * 60}{i}", "y") for i in range(20)]
    assert len(set(long)) == 20 and all(re.fullmatch(r"\w{1,48}", n, re.ASCII) for n in long)


@needs_linker
def test_files_of_a_debugged_model(path: Path, folder: Path) -> None:
    sardonyx.compile(str(path), debug=True, debug_dir=folder)
    before = {p.name for p in folder.iterdir()}
    sardonyx.compile(str(path), debug=True, debug_dir=folder)
    assert {p.name for p in folder.iterdir()} == before  # nothing is made twice
    texts = [p for p in folder.glob("*.mlir") if not p.name.startswith("main-")]
    assert texts and all(p.read_text().startswith("func @") for p in texts)
    assert any("loc(" in p.read_text() for p in texts)
    (library,) = folder.glob("model-*.so")
    assert all(p.stat().st_mtime <= library.stat().st_mtime for p in texts)  # else gdb warns


@needs_linker
def test_the_folder_of_the_cache(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path))
    sardonyx.compile(str(path), debug=True).run([X])
    assert cache.info().kinds["debug"][0] >= 4
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "0")
    sardonyx.compile(str(path), debug=True).run([X])  # a temporary folder


def test_refuses_what_makes_no_sense(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="debug is False, True, 'gdb' or 'perf', not 'lldb'"):
        sardonyx.compile(str(path), debug="lldb")
    with pytest.raises(ValueError, match="debug_dir is for"):
        sardonyx.compile(str(path), debug_dir=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(sardonyx.CompileError, match="choose another debug_dir"):
        sardonyx.compile(str(path), debug=True, debug_dir=tmp_path / "file")


@needs_linker
def test_a_debugged_model_with_functions_of_users(tmp_path: Path, folder: Path, domain: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "twice.c", tmp_path / "twice.so"
    source.write_text(
        "#include <stdint.h>\n"
        "int twice(const void **in, const int64_t **in_dims, void **out, const int64_t **out_dims) {\n"
        "  const float *x = in[0]; float *y = out[0];\n"
        "  for (int64_t i = 0; i < in_dims[0][0]; i++) y[i] = 2 * x[i];\n  return 0;\n}\n"
    )
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    sardonyx.register_operator(
        "DebuggedTwice",
        domain=domain,
        inputs=["x: float"],
        outputs=["y: float"],
        library=str(library),
        symbol="twice",
    )
    node = onnx.helper.make_node("DebuggedTwice", ["x"], ["y"], domain=domain)
    model = make_model([node], {"x": X[0]}, outputs=["y"])
    model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    (y,) = sardonyx.compile(model, debug=True, debug_dir=folder).run([X[0]])
    np.testing.assert_array_equal(y, 2 * X[0])


@needs_linker
def test_a_specialised_model_can_be_debugged(folder: Path) -> None:
    node = onnx.helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="ReduceSum_0", keepdims=0)
    model = make_model([node], {"x": X, "axes": np.array([0])}, outputs=["y"])
    (y,) = sardonyx.compile(model, debug=True, debug_dir=folder).run([X, np.array([1])])
    np.testing.assert_allclose(y, X.sum(1), rtol=1e-5)
    assert any(p.name.startswith("ReduceSum_0") for p in folder.iterdir())


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_random_graphs(folder: Path, seed: int, rows: int) -> None:
    """Chains, branches and loops compute the same bits with debug information and while they are profiled."""
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 8, 1)
    dims = {"x": ["n", 4], "z": ["n", 4]}
    model = make_model(nodes, FEEDS, dims=dims, constants=CONSTANTS, outputs=[values[-1]])
    x, z = np.random.default_rng(seed).standard_normal((2, rows, 4)).astype(np.float32)
    feeds = {**FEEDS, "x": x, "z": z}
    plain = sardonyx.compile(model)
    expected = plain.run(feeds)[0].tobytes()
    debugged = sardonyx.compile(model, debug="perf", debug_dir=folder)
    assert debugged.run(feeds)[0].tobytes() == expected
    for compiled in (plain, debugged):
        profile = compiled.profile(feeds, runs=1)
        assert compiled.run(feeds)[0].tobytes() == expected
        assert profile.in_kernels <= profile.seconds
        assert sum(n.seconds for n in profile.nodes) == pytest.approx(
            sum(one.seconds for one in profile.launches if one.nodes)
        )
    kernels = {one.kernel for one in plain.profile(feeds, runs=1).launches if one.kind == "kernel"}
    assert kernels <= {one.symbol for one in plain.listing()}


# --- tools ------------------------------------------------------------------------------------------------


@needs_linker
@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_gdb_shows_nodes_lines_and_values(path: Path, folder: Path) -> None:
    out = run_gdb(
        path, folder,
        "break Floor_1", "run", "info symbol $pc", "bt 8", "list", "up", "info args", "print out[0]", "info locals",
    )  # fmt: skip
    assert re.search(r"^\w*encoder_MatMul\w*__k_[0-9a-f]{32} \+ \d+ in section \.text of .*model-", out, re.M)
    frames = re.findall(r"^#(\d+) .*?([\w/ +]+) \(.*\) (?:at|from) (\S+)", out, re.M)
    assert frames[0][1].strip().endswith("Floor_1") and ".mlir:" in frames[0][2]
    assert "__k_" in frames[1][1] and ".mlir:" in frames[1][2]
    assert any(re.search(r"run .*Floor_1", name) and "main-" in at for _, name, at in frames)
    assert any("sdx_gate" in name for _, name, _ in frames)  # the way back to Python is not lost
    file, _, number = frames[0][2].partition(":")
    line = (folder / file).read_text().splitlines()[int(number) - 1]
    assert f"{number}\t{line}" in out
    assert re.search(r"^i(_\d+)? = (\d+|<optimized out>)", out, re.M)
    assert "begin = 0" in out and re.search(r"^\$1 = -?[\d.]", out, re.M)


@pytest.mark.skipif(shutil.which("perf") is None, reason="no perf")
@pytest.mark.parametrize("debug", [pytest.param("gdb", marks=[needs_linker, pytest.mark.slow]), "perf"])
def test_perf_shows_nodes(path: Path, folder: Path, tmp_path: Path, debug: str) -> None:
    data = tmp_path / "perf.data"
    program = [sys.executable, "-c", SCRIPT, str(path), debug, str(folder), "20000"]
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-o", str(data), "--"]
    if subprocess.run([*record, "true"], capture_output=True, check=False).returncode:
        pytest.skip("perf may not record here")
    subprocess.run([*record, *program], capture_output=True, timeout=300, check=True)
    report = subprocess.run(
        ["perf", "report", "-i", str(data), "--stdio", "--sort", "sym"],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert re.search(r"\[\.\] Softmax_2__k_", report.stdout)
    assert re.search(r"\[\.\] \w*encoder_MatMul\w*__k_", report.stdout)


def test_the_map_for_perf_covers_the_code(path: Path, folder: Path) -> None:
    if not os.access("/tmp", os.W_OK):
        pytest.skip("perf reads /tmp")
    place = Path(f"/tmp/perf-{os.getpid()}.map")
    before = place.read_text().splitlines() if place.exists() else []
    model = sardonyx.compile(str(path), debug="perf", debug_dir=folder)
    lines = [line.split(" ", 2) for line in place.read_text().splitlines()[len(before) :]]
    names = [name for _, _, name in lines]
    assert {"sdx_model_run", "sdx_model_run.body"} <= set(names)
    assert [n for n in names if n.startswith("Softmax_2__k_") and not n.endswith(".task")]
    spans = sorted((int(start, 16), int(start, 16) + int(size, 16)) for start, size, _ in lines)
    assert all(start < end for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    model.run([X])


@needs_linker
@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
def test_an_exported_library_keeps_names_and_lines(path: Path, folder: Path, tmp_path: Path) -> None:
    model = sardonyx.compile(str(path), debug=True, debug_dir=folder)
    library = tmp_path / "model.so"
    model.export(library)
    elf = subprocess.run(["readelf", "-sSW", library], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Softmax_2__k_[0-9a-f]{32}\b", elf) and ".debug_line" in elf
    y = sardonyx_runtime.load(library).run([X])[0]
    assert y.tobytes() == model.run([X])[0].tobytes()
    sardonyx.compile(str(path)).export(tmp_path / "plain.so")
    plain = subprocess.run(
        ["readelf", "-sSW", tmp_path / "plain.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "Softmax" not in plain and ".debug_line" not in plain


@needs_linker
def test_a_library_made_ahead_of_time_has_its_texts_beside_it(path: Path, tmp_path: Path) -> None:
    library = tmp_path / "model.so"
    assert sardonyx.compile_to(path, library, debug=True)[0] == library
    texts = {p.name.rpartition("-")[0] for p in (tmp_path / "model.so.debug").iterdir()}
    assert {"Softmax_2", "Softmax_3", "main"} <= texts
    assert (
        sardonyx_runtime.load(library).run([X])[0].tobytes() == sardonyx.compile(path).run([X])[0].tobytes()
    )
    assert b"Softmax_2__k_" in library.read_bytes()


def test_texts_are_those_of_the_lines(tmp_path: Path, path: Path) -> None:
    for function in program_of(path, named=True).kernels.values():
        source = debug_source(Debug(tmp_path), function)
        lines = (tmp_path / source.file).read_text().splitlines()
        for op, number in source.lines.items():
            assert f"{op.name} " in lines[number - 1] + " "
