"""Real models from the command line, as the README shows it.  `python tools/fetch_models.py` fetches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..tools import load_tool
from .conftest import Sardonyx

pytestmark = pytest.mark.models

DIMS = {
    "ocr-cls": [["-i", "x=random:1x3x48x192"], ["-i", "x=random:3x3x48x96"]],
    "minilm": [
        ["-d", "batch_size=1", "-d", "sequence_length=16", "-i", "attention_mask=ones"],
        ["-i", "input_ids=random:3x40:0..30000", "-i", "attention_mask=ones:3x40"],
    ],
}


def fetched(name: str) -> Path:
    path: Path = load_tool("fetch_models").path_of(name)
    if not path.exists():
        pytest.skip(f"{path} is not there; `python tools/fetch_models.py` fetches it")
    return path


def test_the_tables_agree() -> None:
    assert set(DIMS) == set(load_tool("fetch_models").README_MODELS)


@pytest.mark.parametrize("name", DIMS)
def test_info(sardonyx: Sardonyx, name: str) -> None:
    result = sardonyx("info", fetched(name))
    assert result.code == 0, result.err
    assert "kernels" in result.out


@pytest.mark.parametrize(("name", "number"), [(n, i) for n, sizes in DIMS.items() for i in range(len(sizes))])
def test_equals_the_reference(sardonyx: Sardonyx, name: str, number: int) -> None:
    result = sardonyx("run", fetched(name), *DIMS[name][number], "--compare")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize("name", DIMS)
def test_equals_onnxruntime(sardonyx: Sardonyx, name: str) -> None:
    pytest.importorskip("onnxruntime")
    result = sardonyx("run", fetched(name), *DIMS[name][0], "--compare", "onnxruntime")
    assert result.code == 0, result.out + result.err
