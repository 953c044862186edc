"""The command line in this process, and small models as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from sardonyx.cli.main import main

from ..helpers import make_model


@dataclass(frozen=True)
class Result:
    """What a command printed and returned."""

    code: int
    out: str
    err: str


Sardonyx = Callable[..., Result]


@pytest.fixture
def sardonyx(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Sardonyx:
    """Runs a command line, its output being no terminal."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)

    return run


Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Saves a model of nodes in ONNX's text form."""

    def write(nodes: str | Sequence[str | onnx.NodeProto], name: str = "model", **options: object) -> Path:
        inputs = {"x": np.zeros((2, 3), np.float32), "y": np.zeros(3, np.float32)}
        path = tmp_path / f"{name}.onnx"
        onnx.save(make_model(nodes, options.pop("inputs", inputs), **options), path)  # type: ignore[arg-type]
        return path

    return write


@pytest.fixture
def floor_ge(save: Save) -> Path:
    """z = x' >= y for x' = floor(x), with a symbolic first dim."""
    nodes = [
        onnx.helper.make_node("Floor", ["x"], ["f"], name="Floor_0"),
        onnx.helper.make_node("GreaterOrEqual", ["f", "y"], ["z"], name="GreaterOrEqual_1"),
    ]
    return save(nodes, "floor_ge", dims={"x": ["batch", 3]}, outputs=["z"])
