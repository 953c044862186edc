"""Real models as libraries: without the compiler, bit for bit what the JIT's code computes.

`python tools/fetch_models.py --all` fetches them.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx
from sardonyx import CompileError
from sardonyx.cli.feeds import make_feeds
from sardonyx.specialised import SpecialisedModel

from ..tools import load_tool

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.models,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a linker"
    ),
]

_PROGRAM = """
import pickle, sys
for name in ("llvmlite", "onnx", "sardonyx"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
import sardonyx_runtime
with open(sys.argv[3], "rb") as file:
    feeds = pickle.load(file)
with sardonyx_runtime.load(sys.argv[2], threads=2) as model:
    results = [model.run(f) for f in feeds for _ in range(2)]
with open(sys.argv[4], "wb") as file:
    pickle.dump(results, file)
"""


def same_bits(got: Any, want: Any) -> bool:
    return bool(
        got.dtype == want.dtype
        and got.shape == want.shape
        and (np.array_equal(got, want) if got.dtype == object else got.tobytes() == want.tobytes())
    )


@pytest.mark.parametrize("name", sorted(load_tool("fetch_models").MODELS))
def test_the_library_computes_the_same(name: str, tmp_path: Path) -> None:
    path = load_tool("fetch_models").path_of(name)
    if not path.exists():
        pytest.skip(f"{path} is not there; `python tools/fetch_models.py {name}` fetches it")
    model = sardonyx.compile(path, threads=2)
    if isinstance(model, SpecialisedModel):
        with pytest.raises(CompileError, match="depends on what is fed"):
            sardonyx.compile_to(path, tmp_path / "model.so")
        return
    sardonyx.compile_to(path, tmp_path / "model.so")
    made = load_tool("bench_models").FEEDS.get(name)
    feeds = [make() for make in made] if made else [make_feeds(model.inputs, {}, {}, 0).arrays]
    (tmp_path / "feeds").write_bytes(pickle.dumps(feeds))
    arguments = [str(ROOT / "runtime"), *(str(tmp_path / n) for n in ("model.so", "feeds", "results"))]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = pickle.loads((tmp_path / "results").read_bytes())
    for number, fed in enumerate(feeds):
        want = model.run(fed)
        for got in results[2 * number : 2 * number + 2]:
            assert all(same_bits(g, w) for g, w in zip(got, want, strict=True)), name


def test_the_benchmark_of_the_first_result(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    if not load_tool("fetch_models").path_of("trees").exists():
        pytest.skip("`python tools/fetch_models.py trees` fetches the model")
    load_tool("bench_models")
    assert load_tool("bench_start").main(["--model", "trees", "--rounds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "| sardonyx | " in printed and "| onnxruntime | " in printed and "times as quick" in printed
