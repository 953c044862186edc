"""Real models as libraries: equal bit for bit to what runs in the process.  `python tools/fetch_models.py` fetches them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx
import sardonyx_runtime

from ..tools import load_tool
from .programs import same_bits

pytestmark = [
    pytest.mark.models,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

Make = Any


def _text(rng: np.random.Generator, batch: int, length: int) -> dict[str, Any]:
    ids = rng.integers(1, 30000, (batch, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def _picture(rng: np.random.Generator, *shape: int) -> dict[str, Any]:
    return {"x": rng.random(shape, np.float32)}


FEEDS: dict[str, list[Make]] = {
    "minilm": [lambda r: _text(r, 1, 16), lambda r: _text(r, 3, 40)],
    "ocr-cls": [lambda r: _picture(r, 1, 3, 48, 192), lambda r: _picture(r, 3, 3, 48, 96)],
    "ocr-det": [lambda r: _picture(r, 1, 3, 64, 96)],
    "silero-vad": [
        lambda r: {
            "input": r.standard_normal((1, 512)).astype(np.float32),
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(16000),
        }
    ],
}


DIMS = {"silero-vad": {"input.d1": 512}}  # branches differ in rank by the length of the sound


def fetched(name: str) -> Path:
    path: Path = load_tool("fetch_models").path_of(name)
    if not path.exists():
        pytest.skip(f"{path} is not there; `python tools/fetch_models.py` fetches it")
    return path


@pytest.mark.parametrize("weights", ["inside", "beside"])
@pytest.mark.parametrize("name", FEEDS)
def test_a_library_gives_the_same_bits(name: str, weights: str, tmp_path: Path) -> None:
    path = fetched(name)
    model = sardonyx.compile(str(path), threads=2)
    sardonyx.compile_to(path, tmp_path / "model.so", weights=weights, dims=DIMS.get(name))
    loaded = sardonyx_runtime.load(tmp_path / "model.so", threads=2)
    for make in FEEDS[name]:
        feeds = make(np.random.default_rng(7))
        feeds = {n: x for n, x in feeds.items() if n in {a.name for a in model.inputs}}
        assert same_bits(loaded.run(feeds), model.run(feeds))


def test_the_code_of_an_encoder_is_small(tmp_path: Path) -> None:
    if shutil.which("size") is None:
        pytest.skip("needs size")
    sardonyx.compile_to(fetched("minilm"), tmp_path / "model.so")
    command = ["size", "-A", str(tmp_path / "model.so")]
    sizes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (code,) = re.findall(r"^\.text\s+(\d+)", sizes, re.MULTILINE)
    assert 10_000 < int(code) < 1_000_000
