"""`sardonyx demo`, and its model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from sardonyx.cli.demo_model import CLASSES, demo_images, demo_model
from sardonyx.cli.engines import Engine, outputs_of
from sardonyx.dumps.stages import Stage

from .conftest import Sardonyx


def test_the_model_is_valid() -> None:
    onnx.checker.check_model(demo_model(), full_check=True)


@pytest.mark.parametrize("engine", Engine)
def test_the_model_knows_its_stripes(engine: Engine) -> None:
    if engine is Engine.ONNXRUNTIME:
        pytest.importorskip("onnxruntime")
    images, labels = demo_images(16, seed=3)
    probabilities, sure = outputs_of(engine, demo_model(), {"image": images})
    np.testing.assert_array_equal(probabilities.argmax(1), labels)
    assert sure.any(1).sum() >= 8


def test_demo(sardonyx: Sardonyx) -> None:
    result = sardonyx("demo", "--threads", "1")
    assert result.code == 0, result.err
    for stage in Stage:
        assert f"\n{stage} " in result.out
    assert any(name in result.out for name in CLASSES)
    assert "per run" in result.out
    assert "DIFFERS" not in result.out
