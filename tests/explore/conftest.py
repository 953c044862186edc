"""Models for the page, and a browser that shows it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.explore import Exploration, explore, render

from ..helpers import make_model

HOSTILE = "</script><script>document.title='caught'</script>\"'&<b>\u2028\n\té漢 ${title}"


def floor_ge() -> onnx.ModelProto:
    """z = floor(x) >= y, with a symbolic first dim."""
    nodes = [
        onnx.helper.make_node("Floor", ["x"], ["f"], name="Floor_0"),
        onnx.helper.make_node("GreaterOrEqual", ["f", "y"], ["z"], name="GreaterOrEqual_1"),
    ]
    inputs = {"x": np.zeros((2, 8), np.float32), "y": np.zeros(8, np.float32)}
    return make_model(nodes, inputs, dims={"x": ["batch", 8]}, outputs=["z"])


def unequal() -> onnx.ModelProto:
    """A model that can be imported, but not lowered: its shapes do not broadcast."""
    model = floor_ge()
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 7
    return model


def unheard() -> onnx.ModelProto:
    """A model that cannot be imported, for an operator that nobody knows."""
    model = floor_ge()
    model.graph.node[1].op_type = "Unheard"
    return model


def layers(count: int) -> onnx.ModelProto:
    """A chain of residual blocks, 6 nodes each: products, a normalisation, an activation, a branch."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 16)).astype(np.float32)
    nodes, last = [], "x"
    for block in range(count):
        steps = (
            ("MatMul", [last, "w"], "a"),
            ("Relu", [f"a{block}"], "b"),
            ("MatMul", [f"b{block}", "w"], "c"),
            ("Tanh", [f"c{block}"], "d"),
            ("Add", [f"d{block}", last], "e"),
            ("Softmax", [f"e{block}"], "f"),
        )
        nodes += [
            onnx.helper.make_node(op, takes, [f"{gives}{block}"], name=f"block{block}/{op}_{gives}")
            for op, takes, gives in steps
        ]
        last = f"f{block}"
    inputs = {"x": np.zeros((4, 16), np.float32)}
    return make_model(nodes, inputs, constants={"w": weight}, dims={"x": ["batch", 16]}, outputs=[last])


def branches() -> onnx.ModelProto:
    """An If whose branches have nodes of their own and use a value from outside."""
    return onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        choose (float[N] x, bool c) => (float[N] y) {
            a = Abs(x)
            b = If(c) <
                then_branch = yes () => (float[N] t) { t = Sqrt(a) },
                else_branch = no () => (float[N] e) { m = Neg(a)  e = Exp(m) }
            >
            y = Floor(b)
        }
    """)


def functions() -> onnx.ModelProto:
    """A function of the model's own, called twice."""
    return onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        calls (float[N] x) => (float[N] y) { a = own.curve(x)  y = own.curve(a) }
        <domain: "own", opset_import: ["" : 21]>
        curve (v) => (w) { u = Abs(v)  w = Sqrt(u) }
    """)


def profile_of(found: Exploration) -> dict[str, Any]:
    """A profile in which the kernels take 1, 2, 3 ... ms, each evenly for the nodes of its first launch."""
    kernels, nodes = [], []
    launched = [kernel for kernel in found.main["kernels"] if kernel["launches"]]
    total = sum(range(len(launched) + 1)) * 1e-3
    for number, kernel in enumerate(launched):
        seconds = (number + 1) * 1e-3
        figures = {"share": seconds / total, "share_of_peak": 0.25, "bound": "memory"}
        kernels.append({"kernel": kernel["symbol"], "seconds": seconds, **figures})
        first = kernel["launches"][0]
        nodes += [
            {"path": "main", "name": found.main["nodes"][n]["name"], "seconds": seconds / len(first)}
            for n in first
        ]
    form = {"format": "sardonyx-profile", "version": 1, "seconds": total, "threads": 1, "runs": 10}
    return {**form, "kernels": kernels, "nodes": nodes}


Page = Callable[..., Path]


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """Writes the page of a model to a file."""

    def write(model: onnx.ModelProto, **options: Any) -> Path:
        path = tmp_path / "page.html"
        path.write_text(render(explore(model, **options)), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium that keeps what is written to its console."""
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (
        "headless=new no-sandbox disable-gpu no-first-run disable-background-networking "
        "disable-component-update disable-sync window-size=1400,900"
    ).split():
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    chromium = webdriver.Chrome(options=options, service=service.Service(driver))
    try:
        yield chromium
    finally:
        chromium.quit()
