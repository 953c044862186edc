"""`sardonyx compile`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import sardonyx_runtime

from .conftest import Sardonyx, Save

LINKED = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@LINKED
def test_it_prints_what_it_wrote(sardonyx: Sardonyx, floor_ge: Path, here: Path) -> None:
    result = sardonyx(
        "compile", floor_ge, "-o", "out.so", "--threads", "3", "--dim", "batch=2", "--name", "ge"
    )
    assert result.code == 0, result.err
    names = re.findall(r"^(\S+): [\d.]+ \w+$", result.out, re.MULTILINE)
    assert sorted(names) == sorted(set(os.listdir(here)) - {floor_ge.name})
    assert names[0] == "out.so"
    loaded = sardonyx_runtime.load("out.so")
    assert loaded.threads == 3 and loaded.inputs[0].shape == (2, 3)


def test_quiet(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("compile", floor_ge, "-o", "out.o", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert Path("out.o").exists()


def test_another_system_and_weights_beside(sardonyx: Sardonyx, floor_ge: Path, here: Path) -> None:
    options = ["--target", "aarch64-linux-gnu", "--cpu", "cortex-a53", "--features", "+fullfp16,-lse"]
    result = sardonyx("compile", floor_ge, "-o", "out.o", *options, "--weights", "beside")
    assert result.code == 0, result.err
    assert {"out.o", "out.weights"} <= set(os.listdir(here))
    assert Path("out.o").read_bytes()[18:20] == b"\xb7\x00"  # e_machine of AArch64


REFUSED = {
    "a suffix": (["-o", "out.exe"], 3, "'out.exe' has the suffix '.exe'"),
    "a folder": (["-o", "missing/out.o"], 2, "there is no folder 'missing'"),
    "a size": (["-o", "out.o", "--dim", "batch"], 2, "is not of the form NAME=SIZE"),
    "a size in words": (["-o", "out.o", "--dim", "batch=two"], 2, "is not of the form NAME=SIZE"),
    "a dim": (["-o", "out.o", "--dim", "bach=2"], 3, "did you mean 'batch'"),
    "a triple": (["-o", "out.o", "--target", "aarch65-linux"], 3, "did you mean aarch64-linux"),
    "a cpu": (["-o", "out.o", "--target", "x86_64-linux-gnu", "--cpu", "x86-64-v9"], 3, "x86-64-v4"),
    "a feature": (["-o", "out.o", "--features", "neno"], 3, "no feature 'neno'"),
    "threads": (["-o", "out.o", "--threads", "0"], 2, "threads"),
    "a prefix": (["-o", "out.o", "--name", "2d"], 3, "cannot begin the names of symbols"),
    "a system": (["-o", "out.dll", "--target", "aarch64-linux-gnu"], 3, "--target x86_64-windows-gnu"),
    "no output": ([], 2, "--output"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, sardonyx: Sardonyx, floor_ge: Path, here: Path) -> None:
    options, code, message = REFUSED[what]
    result = sardonyx("compile", floor_ge, *options)
    assert result.code == code
    assert message in result.err and "Traceback" not in result.err
    assert os.listdir(here) == [floor_ge.name]


def test_a_model_that_cannot_be_compiled_ahead(sardonyx: Sardonyx, save: Save) -> None:
    inputs = {"x": np.zeros((2, 3), np.float32), "a": np.array([0])}
    result = sardonyx("compile", save("y = ReduceSum (x, a)", inputs=inputs), "-o", "out.o")
    assert result.code == 3
    assert "cannot be made ahead of time" in result.err and "'a' a constant" in result.err
