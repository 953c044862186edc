"""Operators that users register: of core ops, and as functions in C."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.helpers import check, each_engine, make_model, run_model

import sardonyx
from sardonyx import register_operator

Array = np.ndarray[Any, Any]
DOCS = Path(__file__).resolve().parent.parent / "docs" / "extending.md"

SOURCE = """
#include <stdint.h>
int32_t scale_add(const void *const *inputs, const int64_t *const *input_dims,
                  void *const *outputs, const int64_t *const *output_dims) {
    const float *x = inputs[0], *y = inputs[1], *factor = inputs[2];
    int64_t n = input_dims[0][0] * input_dims[0][1];
    float *z = outputs[0];
    for (int64_t i = 0; i < n; i++) z[i] = x[i] + *factor * y[i];
    return 0;
}
int32_t row_lengths(const void *const *inputs, const int64_t *const *input_dims,
                    void *const *outputs, const int64_t *const *output_dims) {
    const double *x = inputs[0];
    const int64_t *bias = inputs[1];
    const char *word = inputs[2];
    double *sums = outputs[0];
    int64_t *lengths = outputs[1];
    if (word[0] == 'e') return 42;
    for (int64_t i = 0; i < input_dims[0][0]; i++) {
        sums[i] = 0;
        for (int64_t j = 0; j < input_dims[0][1]; j++) sums[i] += x[i * input_dims[0][1] + j];
        lengths[i] = input_dims[0][1] + bias[0] + bias[1];
    }
    return output_dims[1][0] == input_dims[0][0] ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("library")
    source, output = folder / "f.c", folder / "libf.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(output)], check=True)
    return output


def model(
    op_type: str,
    domain: str,
    inputs: dict[str, Array],
    outputs: list[str],
    dims: Any = None,
    **attributes: Any,
) -> Any:
    node = helper.make_node(op_type, list(inputs), outputs, name="node", domain=domain, **attributes)
    made = make_model([node], inputs, dims=dims)
    made.opset_import.append(helper.make_opsetid(domain, 1))
    return made


@each_engine
def test_an_operator_of_core_ops(domain: str, engine: str) -> None:
    @register_operator(
        "ScaledDifference", domain=domain, inputs=["x: T", "y: T", "z?: T"], outputs=["d: T"],
        attributes={"factor": 2.0, "axis?": int, "powers": list[int]}, types={"T": ["float", "double"]},
    )  # fmt: skip
    def scaled_difference(
        b: Any, x: Any, y: Any, z: Any = None, *, factor: float, powers: Any, axis: Any = None
    ) -> Any:
        assert axis is None and powers == (1, 2)
        x, y = b.broadcast(x, y)
        difference = b.mul(b.sub(x, y), b.full(factor, x))
        return difference if z is None else b.add(difference, b.broadcast_to(z, difference.type.shape))

    x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2, 3])
    made = model(
        "ScaledDifference", domain, {"x": x, "y": y}, ["d"], {"x": ["n", 3]}, factor=0.5, powers=[1, 2]
    )
    check(run_model(made, [x, y], engine)[0], (x - y) * 0.5)
    with pytest.raises(sardonyx.CompileError, match="powers"):
        run_model(model("ScaledDifference", domain, {"x": x, "y": y}, ["d"]), [x, y], engine)
    wrong = x.astype(np.int32)
    with pytest.raises(sardonyx.CompileError, match="int32"):
        run_model(
            model("ScaledDifference", domain, {"x": wrong, "y": wrong}, ["d"], powers=[1, 2]),
            [wrong, wrong],
            engine,
        )


@each_engine
def test_versions(domain: str, engine: str) -> None:
    for since in (1, 2):

        @register_operator("Version", domain=domain, since=since, inputs=["x: float"], outputs=["y: float"])
        def version(b: Any, x: Any, since: int = since) -> Any:
            return b.add(x, b.full(since, x))

    x = np.zeros(3, np.float32)
    for since in (1, 2):
        made = model("Version", domain, {"x": x}, ["y"])
        made.opset_import[-1].version = since
        check(run_model(made, [x], engine)[0], np.full(3, since, np.float32))


@each_engine
def test_a_function_in_c(library: Path, domain: str, engine: str) -> None:
    register_operator(
        "ScaleAdd", domain=domain, inputs=["x: float", "y: float"], outputs=["z: float"],
        attributes={"factor": 3.0}, library=str(library), symbol="scale_add",
    )  # fmt: skip
    x, y = np.random.RandomState(0).randn(2, 4, 5).astype(np.float32)
    made = model("ScaleAdd", domain, {"x": x, "y": y}, ["z"], {"x": ["n", "m"], "y": ["n", "m"]}, factor=0.5)
    check(run_model(made, [x, y], engine)[0], x + np.float32(0.5) * y, ulp=1)
    # Between nodes of ours, and with results that others use.
    nodes = list(made.graph.node)
    around = make_model(
        ["a = Transpose <perm = [1, 0]> (x)", "b = Abs (a)", nodes[0], "out = Neg (z)"],
        {"x": x, "y": y}, dims={"x": ["m", "n"], "y": ["n", "m"]}, outputs=["out"],
    )  # fmt: skip
    around.graph.node[2].input[0] = "b"
    around.opset_import.append(helper.make_opsetid(domain, 1))
    turned = np.ascontiguousarray(y.T)
    check(run_model(around, [x, turned], engine)[0], -(np.abs(x.T) + np.float32(0.5) * turned), ulp=1)


@each_engine
def test_shapes_types_and_faults_of_a_function_in_c(library: Path, domain: str, engine: str) -> None:
    def shapes(x: Any, *, bias: Any, word: str) -> Any:
        return [x[:1], x[:1]]

    register_operator(
        "RowLengths", domain=domain, inputs=["x: T"], outputs=["sums: T", "lengths: int64"],
        attributes={"bias": [1, 2], "word": "fine"}, types={"T": ["double"]},
        library=str(library), symbol="row_lengths", shapes=shapes,
    )  # fmt: skip
    x = np.random.RandomState(0).randn(4, 5)
    made = model("RowLengths", domain, {"x": x}, ["sums", "lengths"], {"x": ["n", 5]}, bias=[10, 20])
    sums, lengths = run_model(made, [x], engine)
    check(sums, x.sum(axis=1), rtol=1e-12)
    check(lengths, np.full(4, 35))
    failing = model("RowLengths", domain, {"x": x}, ["sums", "lengths"], word="error")
    with pytest.raises(sardonyx.RuntimeFault, match="42") as caught:
        run_model(failing, [x], engine)
    assert caught.value.code == 18


@each_engine
def test_an_address(domain: str, engine: str) -> None:
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)

    @kind
    def nothing(*arguments: Any) -> int:
        return 7

    address = ctypes.cast(nothing, ctypes.c_void_p).value
    register_operator("Seven", domain=domain, inputs=["x: float"], outputs=["y: float"], address=address or 0)
    x = np.zeros(3, np.float32)
    with pytest.raises(sardonyx.RuntimeFault, match="7"):
        run_model(model("Seven", domain, {"x": x}, ["y"]), [x], engine)


def test_what_is_refused(domain: str, library: Path) -> None:
    plain: Any = {"inputs": ["x: float"], "outputs": ["y: float"]}
    with pytest.raises(ValueError, match="default domain"):
        register_operator("A", domain="", **plain)(lambda b, x: x)
    with pytest.raises(ValueError, match="no input or output"):
        register_operator("A", domain=domain, inputs=["x"], outputs=["y: float"])(lambda b, x: x)
    with pytest.raises(ValueError, match="no element type"):
        register_operator("A", domain=domain, inputs=["x: T"], outputs=["y: float"])(lambda b, x: x)
    with pytest.raises(ValueError, match="attribute 'a'"):
        register_operator("A", domain=domain, attributes={"a": object()}, **plain)(lambda b, x: x)
    with pytest.raises(sardonyx.CompileError, match="not_there"):
        register_operator("A", domain=domain, library=str(library), symbol="not_there", **plain)
    register_operator("A", domain=domain, **plain)(lambda b, x: x)
    with pytest.raises(ValueError, match="already"):
        register_operator("A", domain=domain, **plain)(lambda b, x: x)


def test_no_export_with_functions_in_c(library: Path, domain: str, tmp_path: Path) -> None:
    register_operator(
        "ScaleAdd", domain=domain, inputs=["x: float", "y: float"], outputs=["z: float"],
        attributes={"factor": 3.0}, library=str(library), symbol="scale_add",
    )  # fmt: skip
    x = np.zeros((2, 2), np.float32)
    compiled = sardonyx.compile(model("ScaleAdd", domain, {"x": x, "y": x}, ["z"]))
    with pytest.raises(sardonyx.CompileError, match="external"):
        compiled.export(tmp_path / "model.so")


@each_engine
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "x_shape, y_shape, attributes",
    [
        ((3, 4), (4, 5), {"alpha": 0.5}),
        ((4, 3), (4, 5), {"transA": 1}),
        ((3, 4), (5, 4), {"transB": 1, "alpha": 2.0}),
        ((2, 4, 3), (2, 5, 4), {"transA": 1, "transB": 1}),
        ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        ((4, 2, 3), (2, 4, 5), {"transBatchA": 1, "transA": 1}),
        ((2, 3, 4), (4, 2, 5), {"transBatchB": 1}),
        ((2, 6, 3, 4), (5, 2, 6, 4), {"transBatchB": 1, "transB": 1}),
    ],
)
def test_fused_matmul(x_shape: Any, y_shape: Any, attributes: Any, kind: Any, engine: str) -> None:
    rng = np.random.RandomState(0)
    x, y = rng.randn(*x_shape).astype(kind), rng.randn(*y_shape).astype(kind)
    made = model("FusedMatMul", "com.microsoft", {"x": x, "y": y}, ["z"], **attributes)

    def turned(value: Array, letter: str) -> Array:
        if attributes.get(f"transBatch{letter}"):
            value = np.moveaxis(value, 0, -2)
        return value.swapaxes(-1, -2) if attributes.get(f"trans{letter}") else value

    want = attributes.get("alpha", 1.0) * (
        turned(x, "A").astype(np.float64) @ turned(y, "B").astype(np.float64)
    )
    tolerance = 2e-3 if kind is np.float16 else 1e-5
    check(run_model(made, [x, y], engine)[0], want.astype(kind), rtol=tolerance, atol=tolerance)
    if kind is np.float32 and engine == "compiled":
        ort = pytest.importorskip("onnxruntime")
        made.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        try:
            session = ort.InferenceSession(made.SerializeToString())
        except Exception as error:  # its shape inference takes fewer combinations than its kernel
            pytest.skip(str(error))
        check(session.run(None, {"x": x, "y": y})[0], want.astype(kind), rtol=1e-5, atol=1e-5)


def test_the_documentation_runs(tmp_path: Path) -> None:
    """Every block of docs/extending.md, in order, in one process; the C sources as the files they name."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    text = DOCS.read_text(encoding="utf-8")
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if language == "c" and block.startswith("/* "):
            (tmp_path / block.split()[1]).write_text(block)
    shell = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    for line in shell:
        subprocess.run(line.split(), cwd=tmp_path, check=True)
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
