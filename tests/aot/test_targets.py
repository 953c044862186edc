"""Targets by name: triples, CPUs and features, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import sardonyx
from sardonyx import CompileError
from sardonyx.cli.demo_model import demo_model
from sardonyx.targets import link
from sardonyx.targets.cpus import targets_for
from sardonyx.targets.host import host_target
from sardonyx.targets.llvm_targets import implied_features, known_names
from sardonyx.targets.triples import KNOWN, parse_triple

NAMES = {
    "aarch64-linux-gnu": "aarch64-unknown-linux-gnu",
    "arm64-linux-musl": "aarch64-unknown-linux-musl",
    "x86_64-pc-linux-gnu": "x86_64-unknown-linux-gnu",
    "AMD64-Windows": "x86_64-w64-windows-gnu",
    "x86_64-pc-windows-msvc": "x86_64-pc-windows-msvc",
    "x86_64-w64-mingw32": "x86_64-w64-windows-gnu",
    "arm64-apple-darwin23.1.0": "arm64-apple-macosx11.0.0",
    "x86_64-macos": "x86_64-apple-macosx11.0.0",
    "wasm32": "wasm32-unknown-wasi",
    "wasm32-wasip1": "wasm32-unknown-wasi",
    "riscv64-linux": "riscv64-unknown-linux-gnu",
    "loongarch64-unknown-none": "loongarch64-unknown-none",
}


@pytest.mark.parametrize("name", NAMES)
def test_short_names_and_llvms(name: str) -> None:
    assert parse_triple(name).llvm == NAMES[name]


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_is_its_own_short_name(name: str) -> None:
    system = parse_triple(name)
    assert system.short == name
    assert parse_triple(system.llvm) == system


def test_features_of_the_levels_are_those_of_the_psabi() -> None:
    """System V ABI for x86-64, "Micro-architecture levels": each has all of the one before and some more."""
    v1, v2, v3, v4 = (
        set(targets_for("x86_64-linux-gnu", cpu, ())[0].features)
        for cpu in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
    )
    assert v1 < v2 < v3 < v4
    assert {"sse4.1", "sse4.2", "ssse3", "popcnt"} <= v2 - v1
    assert {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"} <= v3 - v2
    assert v4 - v3 == {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def test_the_shape_of_the_vector_unit() -> None:
    shapes = {
        ("x86_64-linux-gnu", "x86-64-v2"): (16, 16),
        ("x86_64-linux-gnu", "x86-64-v3"): (32, 16),
        ("x86_64-linux-gnu", "sapphirerapids"): (64, 32),
        ("aarch64-linux-gnu", None): (16, 32),
        ("riscv64-linux-gnu", None): (16, 32),
    }
    for (triple, cpu), shape in shapes.items():
        (target,) = targets_for(triple, cpu, ())
        assert (target.vector_bytes, target.registers) == shape


def test_nothing_of_the_host_is_mixed_in() -> None:
    (target,) = targets_for("aarch64-linux-gnu", None, ())
    assert "neon" in target.features and not set(target.features) & set(host_target().features) - {"neon"}
    (plain,) = targets_for("x86_64-linux-gnu", None, ())
    assert plain.cpu == "x86-64" and "avx" not in plain.features and not plain.without


def test_features_are_added_and_taken_away() -> None:
    (target,) = targets_for("x86_64-linux-gnu", "x86-64-v3", ["-fma", "+avx512f", "popcnt"])
    assert "avx512f" in target.features and "popcnt" in target.features
    assert "fma" not in target.features or "fma" in target.without
    (without,) = targets_for("x86_64-linux-gnu", "x86-64-v3", ["-avx2"])
    assert "avx2" not in without.features and "avx2" in without.without and without.vector_bytes == 16


def test_what_llvm_says_a_cpu_has() -> None:
    triple = "x86_64-unknown-linux-gnu"
    assert implied_features(triple, "x86-64-v3", "", ("avx2", "avx512f")) == ("avx2",)
    assert implied_features(triple, "x86-64-v3", "+avx512f", ("avx2", "avx512f")) == ("avx2", "avx512f")
    assert {"x86-64-v3", "znver4"} <= set(known_names(triple).cpus)
    assert {"avx2", "sse4.1"} <= set(known_names(triple).features)


def test_the_host_by_name() -> None:
    (native,) = targets_for(None, "native", ())
    assert native == host_target() == targets_for(None, None, ())[0]


# -- refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "arch64-linux-gnu"}, "no target 'arch64-linux-gnu'(.|\n)*did you mean aarch64-linux-gnu"),
        ({"target": "x86_64-linux-gnu", "cpu": "skylak"}, "no CPU 'skylak'(.|\n)*skylake"),
        ({"target": "aarch64-linux-gnu", "cpu": "cortex-a7x"}, "no CPU 'cortex-a7x'(.|\n)*cortex-a7"),
        ({"target": "x86_64-linux-gnu", "features": ["avx3"]}, "no feature 'avx3'(.|\n)*avx2"),
        ({"target": "s390x-linux-gnu"}, "highest byte first"),
        ({"target": "riscv64-linux-gnu", "cpu": "native"}, "'native' is the CPU of this machine"),
    ],
)
def test_unknown_names(options: dict[str, str], message: str, tmp_path: Path) -> None:
    if host_target().machine == "riscv64" and options.get("cpu") == "native":
        pytest.skip("this machine is that target")
    with pytest.raises(CompileError, match=message):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("model.dll", "x86_64-linux-gnu", r"end in \.so, not in \.dll(.|\n)*--target x86_64-windows-gnu"),
        ("model.so", "x86_64-windows-gnu", r"end in \.dll, not in \.so(.|\n)*linux"),
        ("model.wasm", "x86_64-linux-gnu", r"--target wasm32-wasi"),
        ("model.so", "loongarch64-linux-gnu", "no library can be linked(.|\n)*write an object"),
    ],
)
def test_libraries_of_other_systems(name: str, target: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=message):
        sardonyx.compile_to(demo_model(), tmp_path / name, target=target)


def test_no_linker_for_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    monkeypatch.setattr(link.shutil, "which", lambda name: None)
    for target in ("aarch64-linux-musl", "x86_64-windows-gnu", "aarch64-macos", "wasm32-wasi"):
        if parse_triple(target).machine == host_target().machine and "linux" in target:
            continue
        output = tmp_path / f"model{parse_triple(target).suffix}"
        with pytest.raises(CompileError, match=r"needs a linker(.|\n)*pip install sardonyx\[cross\]"):
            sardonyx.compile_to(demo_model(), output, target=target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["x86_64-windows-gnu", "wasm32-wasi"])
def test_weights_beside_where_files_cannot_be_mapped(target: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="not on"):
        sardonyx.compile_to(demo_model(), tmp_path / "model.o", target=target, weights="beside")
    assert not list(tmp_path.iterdir())


# -- objects of all systems need no linker

OBJECTS = {
    "x86_64-linux-gnu": b"\x7fELF\x02\x01\x01",
    "aarch64-linux-gnu": b"\x7fELF\x02\x01\x01",
    "riscv64-linux-musl": b"\x7fELF\x02\x01\x01",
    "loongarch64-linux-gnu": b"\x7fELF\x02\x01\x01",
    "x86_64-windows-gnu": b"\x64\x86",
    "aarch64-macos": b"\xcf\xfa\xed\xfe",
    "wasm32-wasi": b"\0asm",
}


@pytest.mark.parametrize("target", OBJECTS)
def test_objects(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link.shutil, "which", lambda name: None)
    output = tmp_path / "model.o"
    sardonyx.compile_to(demo_model(), output, target=target)
    assert output.read_bytes().startswith(OBJECTS[target])
