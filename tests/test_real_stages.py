"""Real models through the passes: the IR verifies after each, and the text of every stage runs like the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx
from sardonyx.errors import NeedsConstant
from sardonyx.pass_manager import run_steps
from sardonyx.pipeline import pipeline
from sardonyx.source import open_source
from sardonyx.targets.host import host_target

from .helpers import check
from .tools import load_tool

pytestmark = [pytest.mark.models, pytest.mark.slow]

TOOL: Any = load_tool("fetch_models")


def fetched(name: str) -> Path:
    path: Path = TOOL.path_of(name)
    if not path.exists():
        pytest.skip(f"{path} is not there; `python tools/fetch_models.py --all` fetches it")
    return path


@pytest.mark.parametrize("name", sorted(TOOL.MODELS))
def test_the_ir_verifies_after_each_pass(name: str) -> None:
    source = open_source(str(fetched(name)))
    try:
        run_steps(source.module(), pipeline(host_target()), verify_each=True)
    except NeedsConstant as error:
        pytest.skip(f"is compiled per value: {error.reason}")


@pytest.mark.parametrize("stage", ["onnx", "resolved", "core", "fused", "loop", "planned"])
def test_text_of_every_stage_runs(tmp_path: Path, stage: str) -> None:
    model = str(fetched("ocr-cls"))
    text = tmp_path / f"{stage}.mlir"
    text.write_text(sardonyx.stage_text(model, stage, resources=True), encoding="utf-8")
    feeds = {"x": np.linspace(-1, 1, 3 * 48 * 192, dtype=np.float32).reshape(1, 3, 48, 192)}
    for got, want in zip(sardonyx.compile(text).run(feeds), sardonyx.compile(model).run(feeds), strict=True):
        check(got, want)
