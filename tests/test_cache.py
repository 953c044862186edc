"""The cache on disk: found again, never trusted blindly, shared by processes, bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx
from sardonyx import build as build_module
from sardonyx import cache, model_cache
from sardonyx import model as driver
from sardonyx_runtime.signature import Signature


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "cache"
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(place))
    monkeypatch.delenv("SARDONYX_CACHE_SIZE", raising=False)
    yield place


def entries(folder: Path, kind: str = "") -> list[Path]:
    """The files of the cache, or of one kind of entries."""
    return sorted(
        p for p in folder.rglob("*") if p.is_file() and (not kind or kind in p.parts) and p.name != ".tidied"
    )


# -- entries


def test_what_is_written_is_read() -> None:
    for data in (b"", b"a", bytes(range(256)) * 1000, bytes(5 << 20)):
        assert cache.write("things", "abcdef", data[:7], data[7:])
        found = cache.read("things", "abcdef")
        assert found is not None and bytes(found) == data


def test_data_is_aligned() -> None:
    cache.write("things", "abcdef", bytes(100))
    found = np.frombuffer(cache.read("things", "abcdef"), np.uint8)  # type: ignore[call-overload]
    assert found.__array_interface__["data"][0] % 64 == 0


def test_what_was_not_written_is_not_there() -> None:
    assert cache.read("things", "abcdef") is None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda b: b"",
    "cut in the header": lambda b: b[:20],
    "cut in the data": lambda b: b[:-1],
    "longer": lambda b: b + b"\0",
    "one bit": lambda b: b[:-5] + bytes([b[-5] ^ 4]) + b[-4:],
    "a bit of the header": lambda b: b[:8] + bytes([b[8] ^ 1]) + b[9:],
    "another file": lambda b: b"#!/bin/sh\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("size", [1000, 5 << 20])
def test_damaged_entries_are_absent(folder: Path, damage: str, size: int) -> None:
    cache.write("things", "abcdef", bytes(size))
    (path,) = entries(folder)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert cache.read("things", "abcdef") is None
    assert cache.write("things", "abcdef", bytes(size))
    assert cache.read("things", "abcdef") is not None


def test_an_entry_outlives_its_removal() -> None:
    cache.write("things", "abcdef", b"x" * 10_000)
    found = cache.read("things", "abcdef")
    cache.clear()
    assert found is not None and bytes(found) == b"x" * 10_000


@pytest.mark.skipif(not hasattr(os, "chown") or os.getuid() != 0, reason="only root gives files away")
def test_entries_of_other_users_are_absent(folder: Path) -> None:
    cache.write("things", "abcdef", b"code")
    (path,) = entries(folder)
    os.chown(path, 12345, -1)
    if os.geteuid() != 12345:
        assert cache.read("things", "abcdef") is None


# -- where, how much


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.folder() == tmp_path / "cache"
    monkeypatch.delenv("SARDONYX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "sardonyx"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache" / "sardonyx"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2 << 30),
        ("0", 0),
        ("1000", 1000),
        ("1.5k", 1536),
        ("3M", 3 << 20),
        ("2GiB", 2 << 30),
        ("x", 2 << 30),
    ],
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", text)
    assert cache.limit() == size
    assert cache.enabled() == (size > 0)


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for number in range(10):
        cache.write("things", f"{number}key", bytes(1000))
    for age, path in enumerate(reversed(entries(folder))):  # 0 is the oldest
        os.utime(path, ns=(0, 10**18 - age * 10**9))
    assert cache.read("things", "0key") is not None  # used just now
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "4500")
    cache.trim()
    assert [p.name for p in entries(folder)] == ["0key", "7key", "8key", "9key"]


def test_too_large_for_the_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "10000")
    assert not cache.write("things", "abcdef", bytes(6000))
    assert entries(folder) == []


def test_tidying_waits_a_minute(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    cache.trim()
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "64k")
    for number in range(4):
        cache.write("things", f"{number}key", bytes(500))
    cache.tidy()
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "1")
    monkeypatch.setattr(cache, "_written", 0)
    cache.tidy()
    assert cache.info().entries == 4
    os.utime(folder / "v1" / ".tidied", (0, 0))
    cache.tidy()
    assert cache.info().entries == 0


def test_rubbish_goes(folder: Path) -> None:
    cache.write("things", "abcdef", b"data")
    (path,) = entries(folder)
    old, new = path.with_name(".new-old"), path.with_name(".new-new")
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (0, time.time() - 7200))
    cache.trim()
    assert entries(folder) == sorted([path, new])
    assert cache.info().entries == 1


def test_info_and_clear() -> None:
    assert cache.info().entries == 0 and cache.clear() == 0
    cache.write("things", "abcdef", bytes(100))
    cache.write("others", "abcdef", bytes(36))
    info = cache.info()
    assert info.kinds == {"things": (1, 164), "others": (1, 100)}
    assert (info.entries, info.bytes) == (2, 264)
    assert cache.clear() == 264 and cache.info().entries == 0


# -- models


def model(factor: float = 2, size: int = 3) -> onnx.ModelProto:
    nodes = ["y = Mul (x, factor)", "[ratio] z = Div (i, j)"]
    graph = helper.make_graph(
        [onnx.parser.parse_node(n) for n in nodes],
        "test",
        [
            helper.make_tensor_value_info("x", 1, ["n", size]),
            helper.make_tensor_value_info("i", 6, ["m"]),
            helper.make_tensor_value_info("j", 6, ["m"]),
        ],
        [helper.make_empty_tensor_value_info(n) for n in "yz"],
        [
            numpy_helper.from_array(np.full(size, factor, np.float32), "factor"),
            numpy_helper.from_array(np.array([7], np.int32), "j"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def feeds(size: int = 3) -> dict[str, Any]:
    return {"x": np.ones((2, size), np.float32), "i": np.array([14], np.int32)}


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one whenever a model is really compiled."""
    seen: list[str] = []
    original = build_module.build

    def build(*args: Any, **options: Any) -> Any:
        seen.append("build")
        return original(*args, **options)

    monkeypatch.setattr(build_module, "build", build)
    return seen


def check(compiled: sardonyx.CompiledModel, factor: float = 2, size: int = 3) -> None:
    y, z = compiled.run(feeds(size))
    assert np.array_equal(y, np.full((2, size), factor, np.float32)) and z.tolist() == [2]


def test_a_second_compilation_reads_the_cache(tmp_path: Path, builds: list[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    first = sardonyx.compile(path)
    second = sardonyx.compile(str(path), threads=1)
    third = sardonyx.compile(path.read_bytes())
    assert builds == ["build"]
    for compiled in (first, second, third):
        check(compiled)
        assert [a.describe() for a in compiled.inputs] == ["float[n, 3]", "int32[m]", "int32[m]"]
        assert compiled.run([feeds()["x"], feeds()["i"]])[1].tolist() == [2]  # the default of j
        with pytest.raises(sardonyx.RuntimeFault, match="ratio"):
            compiled.run({**feeds(), "j": np.zeros(1, np.int32)})
    assert second.signature == first.signature


def test_without_the_cache(tmp_path: Path, folder: Path, builds: list[str]) -> None:
    data = model().SerializeToString()
    for _ in range(2):
        check(sardonyx.compile(data, cache=False))
    assert len(builds) == 2 and entries(folder) == []


def test_switched_off(monkeypatch: pytest.MonkeyPatch, folder: Path, builds: list[str]) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "0")
    data = model().SerializeToString()
    for _ in range(2):
        check(sardonyx.compile(data))
    assert len(builds) == 2 and entries(folder) == []


def test_objects_are_found_again(folder: Path, builds: list[str]) -> None:
    """Models that differ in their weights share the code."""
    sardonyx.compile(model(2).SerializeToString())
    objects = entries(folder, "objects")
    check(sardonyx.compile(model(3).SerializeToString()), 3)
    assert entries(folder, "objects") == objects and len(builds) == 2
    check(sardonyx.compile(model(3)), 3)  # a ModelProto has no bytes of its own: compiled, from its objects
    assert len(builds) == 3


def test_a_changed_file_is_compiled_anew(tmp_path: Path, builds: list[str]) -> None:
    path = tmp_path / "model.onnx"
    for factor in (2, 3, 2):
        onnx.save(model(factor), path)
        check(sardonyx.compile(path), factor)
    assert len(builds) == 2


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_models_are_compiled_anew(folder: Path, builds: list[str], damage: str) -> None:
    data = model().SerializeToString()
    sardonyx.compile(data)
    for path in entries(folder):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    check(sardonyx.compile(data))
    check(sardonyx.compile(data))
    assert len(builds) == 2


def test_an_entry_of_nonsense_is_absent(builds: list[str]) -> None:
    """The checksum is right, the contents are not what this version writes."""
    data = model().SerializeToString()
    source = model_cache.source_of(data)
    assert source is not None
    key = model_cache._key(source, driver.host_target())
    for nonsense in (b"", b"x" * 100, (2).to_bytes(8, "little") + b"{}", (1 << 60).to_bytes(8, "little")):
        cache.write("models", key, nonsense)
        check(sardonyx.compile(data))
    assert len(builds) >= 4  # more when the sources change meanwhile


def test_external_data_is_part_of_the_model(tmp_path: Path, builds: list[str]) -> None:
    size = 1000

    def save(place: Path, factor: float) -> Path:
        place.mkdir(exist_ok=True)
        onnx.save(
            model(factor, size),
            place / "m.onnx",
            save_as_external_data=True,
            location="w.bin",
            size_threshold=0,
        )
        return place / "m.onnx"

    first, second = save(tmp_path / "a", 2), save(tmp_path / "b", 3)
    assert first.read_bytes() == second.read_bytes()
    for path, factor in ((first, 2), (first, 2), (second, 3), (first, 2)):
        check(sardonyx.compile(path), factor, size)
    count = len(builds)
    assert count >= 3
    (first.parent / "w.bin").write_bytes((second.parent / "w.bin").read_bytes())
    check(sardonyx.compile(first), 3, size)
    assert len(builds) == count + 1
    (first.parent / "w.bin").unlink()
    with pytest.raises(sardonyx.CompileError):
        sardonyx.compile(first)


def test_errors_are_the_same_with_the_cache(tmp_path: Path) -> None:
    with pytest.raises(sardonyx.CompileError, match="no file"):
        sardonyx.compile(tmp_path / "missing.onnx")
    with pytest.raises(sardonyx.CompileError, match="folder"):
        sardonyx.compile(tmp_path)
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(sardonyx.CompileError):
        sardonyx.compile(tmp_path / "empty.onnx")


def test_signature_as_json() -> None:
    compiled = sardonyx.compile(model())
    again = Signature.from_json(compiled.signature.to_json())
    assert again == compiled.signature
    assert np.array_equal(again.inputs[2].default, [7])  # type: ignore[arg-type]


# -- folders and processes


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "file" / "cache"))
    check(sardonyx.compile(model().SerializeToString()))
    assert cache.info().entries == 0 and cache.clear() == 0


START = "import sys, sardonyx\nfrom tests.test_cache import *\n"


def in_process(code: str, start: str = START) -> subprocess.Popen[str]:
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-c", start + code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=Path(__file__).parents[1],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ends_well(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def test_a_folder_that_is_read_only(folder: Path, monkeypatch: pytest.MonkeyPatch, builds: list[str]) -> None:
    data, other = model().SerializeToString(), model(3).SerializeToString()
    sardonyx.compile(data)
    before = entries(folder)

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError

    for name in ("utime", "unlink", "replace", "mkdir"):
        monkeypatch.setattr(cache.os, name, refuse)
    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    check(sardonyx.compile(data))
    assert len(builds) == 1
    for _ in range(2):
        check(sardonyx.compile(other), 3)
    assert len(builds) == 3 and entries(folder) == before
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "1k")
    cache.trim()
    assert entries(folder) == before


def test_processes_at_once(folder: Path) -> None:
    """Several processes compile the same models into an empty cache, while one clears it all the time."""
    code = """
for round in range(3):
    for factor in range(4):
        check(sardonyx.compile(model(factor).SerializeToString()), factor)
"""
    workers = [in_process(code) for _ in range(3)]
    clearer = in_process("for _ in range(100):\n    cache.clear(); cache.trim(); time.sleep(0.02)\n")
    for process in (*workers, clearer):
        ends_well(process)
    ends_well(in_process(code))
    assert len(entries(folder, "models")) >= 4  # more when the sources change meanwhile
    assert not [p for p in entries(folder) if p.name.startswith(".new-")]


def test_a_full_cache_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_SIZE", "60k")
    for factor in range(8):
        check(sardonyx.compile(model(factor).SerializeToString()), factor)
        assert cache.info().bytes <= 60 << 10
    assert cache.info().kinds["models"][0] >= 2


def test_reading_the_cache_loads_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(), path)
    code = f"""
sardonyx.compile({str(path)!r})
print("sardonyx.build" in sys.modules)
"""
    # (The sources are part of the key, and may change between two processes while they are worked on.)
    loaded = [ends_well(in_process(code, start="import sys, sardonyx")) for _ in range(3)]
    assert loaded[0] == "True\n" and "False\n" in loaded
