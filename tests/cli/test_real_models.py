"""Real models from the command line, as the README shows it.  `python tools/fetch_models.py` fetches them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import Sardonyx

pytestmark = pytest.mark.models

ROOT = Path(__file__).resolve().parent.parent.parent
DIMS = {
    "ocr-cls": [["-i", "x=random:1x3x48x192"], ["-i", "x=random:3x3x48x96"]],
    "minilm": [
        ["-d", "batch_size=1", "-d", "sequence_length=16", "-i", "attention_mask=ones"],
        ["-i", "input_ids=random:3x40:0..30000", "-i", "attention_mask=ones:3x40"],
    ],
}


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_models", ROOT / "tools" / "fetch_models.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def fetched(name: str) -> Path:
    path: Path = _tool().path_of(name)
    if not path.exists():
        pytest.skip(f"{path} is not there; `python tools/fetch_models.py` fetches it")
    return path


def test_the_tables_agree() -> None:
    assert set(DIMS) == set(_tool().README_MODELS)


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
