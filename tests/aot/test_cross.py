"""Libraries for other systems: run under emulators against the host's results, or looked at where nothing runs them.

Elementwise results equal the host's bit for bit.  Sums of products may differ in their last bits: the vector
width decides in which order they are added up.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np
import pytest

import sardonyx
from sardonyx.cli.demo_model import demo_images, demo_model
from sardonyx.codegen.artifact import exports
from sardonyx.targets import link
from sardonyx.targets.triples import KNOWN, host_triple, parse_triple

from ..helpers import Array, make_model
from .programs import C_LIBRARY, c_program, results_of, same_bits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="needs `pip install sardonyx[cross]`"),
]

EMULATORS = {"aarch64": "qemu-aarch64-static", "riscv64": "qemu-riscv64-static", "x86_64": ""}


def same_numbers(got: Sequence[Array], wanted: Sequence[Array]) -> bool:
    """The same bits, but for NaN: the sign and payload of one that an operation makes is the machine's."""
    return same_bits([_plain(x) for x in got], [_plain(x) for x in wanted])


def _plain(array: Array) -> Array:
    return np.where(array != array, array.dtype.type(0), array)


def program_for(system: str, text: str, files: list[Path], folder: Path) -> list[str]:
    """The command that runs a C program, statically linked with objects for a system."""
    emulator = EMULATORS[system.partition("-")[0]]
    if emulator and shutil.which(emulator) is None:
        pytest.skip(f"needs {emulator}")
    if not emulator and (sys.platform != "linux" or host_triple().machine != "x86_64"):
        pytest.skip("needs an x86-64 with Linux")
    (folder / "main.c").write_text(text)
    # A static program needs no C library where it runs.
    static = system.replace("-gnu", "-musl")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", static, "-static", "-O1", "main.c"]
    done = run([*command, *map(str, files), "-o", "main"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [*([emulator] if emulator else []), str(folder / "main")]


def elementwise() -> tuple[Any, list[Array]]:
    """Every family of scalar code: vectors and tails, transcendental functions, integers, half floats."""
    x = np.concatenate([np.linspace(-9, 9, 61), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]]).astype(
        np.float32
    )
    h = x.astype(np.float16)
    i = np.arange(-33, 34, dtype=np.int64) * 123456789
    nodes = [
        *(
            "a = Exp (x)",
            "b = Tanh (x)",
            "c = Erf (x)",
            "d = Sin (x)",
            "e = Floor (x)",
            "f = GreaterOrEqual (x, y)",
        ),
        *(
            "g = Sqrt (h)",
            "k = Mul (h, h)",
            "l = Mul (i, i)",
            "m = Cast <to = 10> (x)",
            "n = Cast <to = 16> (x)",
        ),
        *(
            "o = Pow (x, y)",
            "p = Cast <to = 1> (n)",
            "q = Sigmoid (h)",
            "r = Abs (i)",
            "s = Cast <to = 3> (i)",
        ),
    ]
    feeds = {"x": x, "y": x[::-1].copy(), "h": h, "i": i}
    model = make_model(nodes, feeds, dims={k: ["n"] for k in feeds})
    return model, list(feeds.values())


@pytest.mark.parametrize("system", ["aarch64-linux-gnu", "riscv64-linux-musl", "x86_64-linux-musl"])
def test_elementwise_results_are_those_of_the_host(system: str, tmp_path: Path) -> None:
    model, feeds = elementwise()
    wanted = sardonyx.compile(model, threads=1).run(feeds)
    sardonyx.compile_to(model, tmp_path / "model.o", target=system)
    command = program_for(system, c_program(feeds, wanted), [tmp_path / "model.o"], tmp_path)
    assert same_numbers(results_of(command, feeds, wanted, tmp_path), wanted)


@pytest.mark.parametrize(
    ("system", "threads"),
    [("aarch64-linux-gnu", 3), ("riscv64-linux-musl", 3), ("riscv64-linux-gnu", 1), ("x86_64-linux-musl", 2)],
)
def test_a_network_gives_the_hosts_results(system: str, threads: int, tmp_path: Path) -> None:
    feeds = [demo_images(40)[0]]
    wanted = sardonyx.compile(demo_model(), threads=1).run(feeds)
    sardonyx.compile_to(demo_model(), tmp_path / "model.a", target=system)
    text = c_program(feeds, wanted, threads=threads)
    command = program_for(system, text, [tmp_path / "model.a"], tmp_path)
    got = results_of(command, feeds, wanted, tmp_path)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert np.array_equal(got[1], wanted[1])


# -- WebAssembly

_NODE = """
const fs = require("fs");
const [wasm, source, target] = process.argv.slice(2);
const compiled = new WebAssembly.Module(fs.readFileSync(wasm));
const m = new WebAssembly.Instance(compiled, {}).exports;
if (m._initialize) m._initialize();
const place = (bytes) => { const at = m.malloc(bytes.length + 1); new Uint8Array(m.memory.buffer).set(bytes, at); return at; };
const words = (list) => place(new Uint8Array(new Uint32Array(list).buffer));
const wide = (list) => place(new Uint8Array(new BigInt64Array(list.map(BigInt)).buffer));
const data = fs.readFileSync(source);
let position = 0;
const inputs = IN_BYTES.map((n) => { position += n; return place(data.subarray(position - n, position)); });
const outputs = OUT_BYTES.map((n) => m.malloc(n + 1));
const context = m.sdx_model_create(1n);
if (context === 0) process.exit(92);
const code = m.sdx_model_run(context, words(inputs), wide(IN_DIMS), words(outputs), wide(Array(RANK + 1).fill(0)));
if (code !== 0) process.exit(code);
const parts = outputs.map((at, i) => Buffer.from(m.memory.buffer.slice(at, at + OUT_BYTES[i])));
fs.writeFileSync(target, Buffer.concat(parts));
m.sdx_model_destroy(context);
"""


def in_node(path: Path, feeds: Sequence[Array], wanted: Sequence[Array], folder: Path) -> list[Array]:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    text = (
        f"const IN_BYTES = {[x.nbytes for x in feeds]}, OUT_BYTES = {[x.nbytes for x in wanted]};\n"
        f"const IN_DIMS = {[d for x in feeds for d in x.shape]}, RANK = {sum(x.ndim for x in wanted)};\n"
    )
    (folder / "run.cjs").write_text(text + _NODE)
    return results_of(["node", folder / "run.cjs", path], feeds, wanted, folder)


def test_webassembly_elementwise(tmp_path: Path) -> None:
    model, feeds = elementwise()
    wanted = sardonyx.compile(model, threads=1).run(feeds)
    sardonyx.compile_to(model, tmp_path / "model.wasm", target="wasm32-wasi")
    assert same_numbers(in_node(tmp_path / "model.wasm", feeds, wanted, tmp_path), wanted)


@pytest.mark.parametrize("features", [[], ["-simd128"]])
def test_webassembly_network(features: list[str], tmp_path: Path) -> None:
    feeds = [demo_images(5)[0]]
    wanted = sardonyx.compile(demo_model(), threads=1).run(feeds)
    sardonyx.compile_to(demo_model(), tmp_path / "model.wasm", target="wasm32", features=features)
    got = in_node(tmp_path / "model.wasm", feeds, wanted, tmp_path)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert np.array_equal(got[1], wanted[1])


# -- Looked at


LINUX = [name for name in KNOWN if "linux" in name]


@pytest.mark.parametrize("system", LINUX)
def test_a_library_of_linux(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lief = pytest.importorskip("lief", reason="needs lief")
    monkeypatch.setattr(link.shutil, "which", lambda name: None)  # not by what this machine has
    sardonyx.compile_to(demo_model(), tmp_path / "model.so", target=system)
    binary = lief.ELF.parse(str(tmp_path / "model.so"))
    machine = {"aarch64": "AARCH64", "x86_64": "X86_64", "riscv64": "RISCV"}[system.partition("-")[0]]
    assert binary.header.machine_type == getattr(lief.ELF.ARCH, machine)
    assert {s.name for s in binary.exported_symbols} == {*exports("sdx_model"), "sdx_cpu", "sdx_gate"}
    assert all(re.match(r"lib(c|m|pthread)\.", name) for name in binary.libraries)
    assert {s.name for s in binary.imported_symbols} <= C_LIBRARY


def test_a_library_of_windows(tmp_path: Path) -> None:
    lief = pytest.importorskip("lief", reason="needs lief")
    sardonyx.compile_to(demo_model(), tmp_path / "model.dll", target="x86_64-windows-gnu", name="demo")
    binary = lief.PE.parse(str(tmp_path / "model.dll"))
    assert binary.header.machine == lief.PE.Header.MACHINE_TYPES.AMD64
    assert {e.name for e in binary.get_export().entries} == {*exports("demo"), "sdx_cpu", "sdx_gate"}
    assert binary.get_export().name == "model.dll"
    # The C library of Windows 10 and later, and the system.
    assert all(re.match(r"(api-ms-win-crt-.*|KERNEL32)\.dll", i.name) for i in binary.imports)


@pytest.mark.parametrize("system", ["aarch64-macos", "x86_64-macos"])
def test_a_library_of_macos(system: str, tmp_path: Path) -> None:
    lief = pytest.importorskip("lief", reason="needs lief")
    sardonyx.compile_to(demo_model(), tmp_path / "model.dylib", target=system)
    binary = lief.MachO.parse(str(tmp_path / "model.dylib")).at(0)
    machine = {"aarch64": "ARM64", "x86_64": "X86_64"}[system.partition("-")[0]]
    assert binary.header.cpu_type == getattr(lief.MachO.Header.CPU_TYPE, machine)
    ours = {f"_{name}" for name in (*exports("sdx_model"), "sdx_cpu", "sdx_gate")}
    linkers = {"__mh_dylib_header", "___dso_handle"}
    assert ours <= {s.name for s in binary.exported_symbols} <= ours | linkers
    libraries = [library.name for library in binary.libraries]
    assert libraries == ["@rpath/model.dylib", "/usr/lib/libSystem.B.dylib"]
    allowed = {f"_{name}" for name in C_LIBRARY} | {"dyld_stub_binder"}
    assert {s.name for s in binary.imported_symbols} <= allowed
    assert binary.has_code_signature or machine == "X86_64"


@pytest.mark.parametrize(
    ("system", "suffix"),
    [
        ("x86_64-windows-gnu", ".lib"),
        ("x86_64-windows-gnu", ".obj"),
        ("aarch64-macos", ".a"),
        ("x86_64-macos", ".o"),
    ],
)
def test_programs_of_systems_that_nothing_runs_here_are_linked(
    system: str, suffix: str, tmp_path: Path
) -> None:
    feeds = [demo_images(2)[0]]
    wanted = sardonyx.compile(demo_model(), threads=1).run(feeds)
    sardonyx.compile_to(demo_model(), tmp_path / f"model{suffix}", target=system)
    (tmp_path / "main.c").write_text(c_program(feeds, wanted))
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        system,
        "main.c",
        f"model{suffix}",
        "-o",
        "main",
    ]
    done = run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "target", ["x86_64-windows-gnu", "aarch64-macos", "wasm32-wasi", "riscv64-linux-gnu"]
)
def test_other_systems_libraries_have_the_same_bytes_each_time(target: str, tmp_path: Path) -> None:
    made = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        output = folder / f"model{parse_triple(target).suffix}"
        sardonyx.compile_to(demo_model(), output, target=target)
        made.append(output.read_bytes())
    assert made[0] == made[1]
    assert str(tmp_path).encode() not in made[0]
