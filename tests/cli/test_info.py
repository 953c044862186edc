"""`sardonyx info`."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from .conftest import Sardonyx, Save


def test_facts_of_a_model(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("info", floor_ge)
    assert result.code == 0
    assert "float[batch, 3]" in result.out
    assert "bool[batch, 3]" in result.out
    assert "ai.onnx 21" in result.out
    assert "Floor" in result.out and "GreaterOrEqual" in result.out
    assert "kernels" in result.out and "k_" in result.out
    assert "Floor_0" in result.out


def test_without_compiling(sardonyx: Sardonyx, save: Save) -> None:
    path = save("z = ImageDecoder (x)", inputs={"x": np.zeros((2,), np.uint8)})
    result = sardonyx("info", path, "--no-compile")
    assert result.code == 0
    assert "ImageDecoder" in result.out and "kernels" not in result.out


def test_parameters_are_counted(sardonyx: Sardonyx, save: Save) -> None:
    path = save("z = Add (x, w)", constants={"w": np.ones((5, 1, 3), np.float32)})
    result = sardonyx("info", path)
    assert result.code == 0
    assert "15 in 1 tensors, 60 bytes" in result.out


def test_the_facts_come_before_a_compile_error(sardonyx: Sardonyx, save: Save) -> None:
    path = save("z = ImageDecoder (x)", inputs={"x": np.zeros((2,), np.uint8)})
    result = sardonyx("info", path)
    assert result.code == 3
    assert "uint8[2]" in result.out


@pytest.mark.parametrize("suffix", ["so", "o", "json"])
def test_of_an_output(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "so" and (not sys.platform.startswith("linux") or shutil.which("cc") is None):
        pytest.skip("needs Linux and a linker")
    output = tmp_path / ("out.o" if suffix == "json" else f"out.{suffix}")
    assert sardonyx("compile", floor_ge, "-o", output, "--name", "net").code == 0
    result = sardonyx("info", tmp_path / f"out.{suffix}")
    assert result.code == 0
    rows = dict(line.split("  ", 1) for line in result.out.splitlines())
    facts = {name.strip(): value.strip() for name, value in rows.items()}
    assert facts["model"] == f"SHA-256 {hashlib.sha256(floor_ge.read_bytes()).hexdigest()}"
    assert facts["nodes"] == "2" and facts["input x"] == "f32[batch, 3]"
    assert facts["interface"].endswith("symbols net_...") and facts["code"].endswith(" KB")
    assert ("file out.o" in facts) == (suffix != "so")


def test_of_outputs_that_say_nothing(sardonyx: Sardonyx, tmp_path: Path) -> None:
    for name, text, word in (
        ("a.so", b"text", "no library of Sardonyx"),
        ("a.o", b"text", "not beside it"),
        ("a.json", b"{}", "no manifest"),
        ("a.whl", b"text", "no wheel"),
    ):
        (tmp_path / name).write_bytes(text)
        result = sardonyx("info", tmp_path / name)
        assert result.code == 2 and word in " ".join(result.err.split()), name
        (tmp_path / name).unlink()
