"""`sardonyx info`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
