"""`sardonyx profile`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import Sardonyx


def test_prints_kernels(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("profile", floor_ge, "--runs", "3", "--threads", "1")
    assert result.code == 0
    assert "dims left out: batch=1" in result.out
    assert re.search(r"a run, .* in 1 launches of 1 kernels; 1 threads, 3 runs", result.out)
    assert re.search(r"^\s*[\d.]+ us +[\d.]+% +1 +1 .*k_\w+\.\. +.*Floor_0", result.out, re.M)


@pytest.mark.parametrize(
    ("by", "pattern"), [("node", r"~[\d.]+ us .* Floor +Floor_0"), ("launch", "Floor_0")]
)
def test_other_rows(sardonyx: Sardonyx, floor_ge: Path, by: str, pattern: str) -> None:
    result = sardonyx("profile", floor_ge, "-d", "batch=5", "--runs", "2", "--by", by)
    assert result.code == 0 and re.search(pattern, result.out)
    assert "and 1 more" in sardonyx("profile", floor_ge, "--runs", "1", "--by", "node", "--top", "1").out


def test_writes_json_and_trace(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    files = tmp_path / "times.json", tmp_path / "trace.json"
    result = sardonyx("profile", floor_ge, "--runs", "2", "--json", files[0], "--trace", files[1])
    assert result.code == 0
    assert json.loads(files[0].read_text())["kernels"][0]["nodes"]
    assert any(e["name"] == "run" for e in json.loads(files[1].read_text())["traceEvents"])


def test_wrong_arguments(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    assert sardonyx("profile", floor_ge, "--runs", "0").code == 2
    assert sardonyx("profile", floor_ge, "-i", "q=random").code == 2
    result = sardonyx("profile", floor_ge, "--runs", "1", "--json", tmp_path / "no" / "file")
    assert result.code == 2 and "--json" in result.err
    assert sardonyx("profile", tmp_path / "none.onnx").code != 0
