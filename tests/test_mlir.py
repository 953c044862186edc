"""What `sardonyx dump --mlir` prints is read by MLIR's own parser and by xDSL, and nothing is lost on the way.

A tool prints what it has read; our parser has to find the same module in that: operations, types, symbolic
dims, attributes, constants, regions and locations.  (Names of values are not a part of MLIR's modules.)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sardonyx.dumps.stages import MLIR_STAGES, stage_text
from sardonyx.errors import CompileError
from sardonyx.ir.compare import same
from sardonyx.ir.graph import Module, walk
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module
from sardonyx_runtime import dtypes

from .helpers import make_model
from .ir.mlir_readers import each_reader, through_mlir
from .ir.modules import modules
from .passes.random_graphs import CONSTANTS, FEEDS, Graphs
from .tools import load_tool

Through = Callable[[str], str]
# The same examples every time: what a foreign tool cannot read is not to fail a change of ours.
ANY = settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
F = np.float32


def check(through: Through, model: onnx.ModelProto | str, stage: str) -> Module:
    """Fail unless a tool reads a stage as it is; the module of the stage."""
    ours = parse_module(stage_text(model, stage))
    theirs = parse_module(through(stage_text(model, stage, generic=True)))
    assert same(ours, theirs, names=False) is None
    return ours


# --- graphs that have everything -----------------------------------------------------------------------


def control_flow() -> onnx.ModelProto:
    return make_model(Graphs(3).nodes(["x", "z"], 12, 2), FEEDS, constants=CONSTANTS)


def symbolic() -> onnx.ModelProto:
    nodes = [
        "s = Shape (x)",
        "r = Reshape <allowzero = 0> (x, flat)",
        "p = MatMul (r, w)",
        "q = Softmax (p)",
        "n = NonZero (q)",
        "o = Concat <axis = 0> (q, q)",
    ]
    dims = {"x": ["batch", "2*n", 4]}
    return make_model(
        nodes,
        {"x": np.ones((2, 6, 4), F)},
        dims=dims,
        constants={"w": CONSTANTS["w"], "flat": np.array([-1, 4])},
    )


def texts() -> onnx.ModelProto:
    nodes = [
        'c = Constant <value_strings = ["a", "é \\\\ x"]> ()',
        "y = StringConcat (x, c)",
        "z = Equal (y, c)",
    ]
    return make_model(nodes, {"x": np.array(["a", "b"], object)})


def sequences() -> onnx.ModelProto:
    nodes = [
        "s = SequenceConstruct (x, x)",
        "o = Optional (x)",
        "e = SequenceEmpty <dtype = 7> ()",
        "a = SequenceAt (s, i)",
        "g = OptionalGetElement (o)",
        "n = SequenceLength (e)",
        "h = Add (a, g)",
    ]
    constants = {"i": np.array(1)}
    return make_model(nodes, {"x": np.ones((2, 3), F)}, constants=constants, outputs=["h", "n"])


GRAPHS = {f.__name__: f for f in (control_flow, symbolic, texts, sequences)}
each_stage = pytest.mark.parametrize("stage", MLIR_STAGES)


@each_reader
@each_stage
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_a_graph_at_every_stage(through: Through, graph: Callable[[], onnx.ModelProto], stage: str) -> None:
    module = check(through, graph(), stage)
    assert any(op.location.origins for op in walk(module))


@cache
def of_type(name: str) -> onnx.ModelProto:
    """A value of the type that is fed, and constants of it: few elements, many equal ones, many others."""
    dtype = dtypes.by_name(name)
    if dtype is dtypes.string:
        few, same, many = (np.array(["a", "b"] * n, object) for n in (1, 20, 30))
    else:
        least = 2 if dtype is dtypes.f8e8m0 else 0  # has no zero
        few, same = np.array([least, 1]).astype(dtype.numpy), np.ones(40).astype(dtype.numpy)
        many = np.tile(few, 30)
    constants = {"few": few, "same": same, "many": many}
    names = ["x", *constants]
    if dtype.bits == 6:  # no operator takes them
        nodes = []
    else:
        nodes, names = [f"y_{n} = Identity ({n})" for n in names], [f"y_{n}" for n in names]
    dims = {"x": ["batch"]}
    return make_model(nodes, {"x": few}, opset=25, dims=dims, constants=constants, outputs=names)


@each_reader
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_an_element_type_at_every_stage(through: Through, dtype: dtypes.DType) -> None:
    model = of_type(dtype.name)
    for stage in MLIR_STAGES:
        check(through, model, stage)
        for options in ({"elide": None}, {"resources": True}):  # all data in place, or at the end
            ours = parse_module(stage_text(model, stage, **options))
            theirs = parse_module(through(stage_text(model, stage, generic=True, **options)))
            assert same(ours, theirs, names=False) is None
    assert f"tensor<?x{dtype}, #sdx.dims<" in stage_text(model, "core", generic=True)


# --- anything ------------------------------------------------------------------------------------------


@each_reader
@ANY
@given(st.integers(0, 2**20), st.sampled_from(MLIR_STAGES), st.booleans())
def test_random_graphs(through: Through, seed: int, stage: str, symbolic: bool) -> None:
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 6, 1)
    dims = {"x": ["n", 4], "z": ["n", 4]} if symbolic else None
    check(through, make_model(nodes, FEEDS, dims=dims, constants=CONSTANTS, outputs=values[-1:]), stage)


@ANY
@given(modules())
def test_random_modules(module: Module) -> None:
    """More than any pass would make."""
    text = print_module(module, generic=True, elide=None)
    text = re.sub(r"vector<\d+x(!sdx.string|complex<f..>)>", "index", text)  # MLIR has no such vectors
    assert same(parse_module(text), parse_module(through_mlir(text)), names=False) is None


@each_reader
def test_broken_text_is_refused(through: Through) -> None:
    """The tools do look: a type that does not fit its operand is no module for them."""
    text = stage_text(of_type("f32"), "core", generic=True)
    broken = re.sub(r'"core.return"\(%\w+', '"core.return"(%nobody', text)
    assert broken != text
    with pytest.raises(Exception, match=r"nobody|undeclared"):
        through(broken)


# --- real models ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.models
@each_reader
@pytest.mark.parametrize("name", load_tool("fetch_models").MODELS)
def test_real_models(through: Through, name: str) -> None:
    path: Path = load_tool("fetch_models").path_of(name)
    if not path.exists():
        pytest.skip(f"{name} not fetched; `python tools/fetch_models.py {name}` does it")
    for stage in MLIR_STAGES:
        try:
            text = stage_text(path, stage, generic=True)
        except CompileError as error:
            pytest.skip(f"does not compile to {stage}: {str(error).splitlines()[0]}")
        read = parse_module(through(text))
        assert same(parse_module(text), read, names=False) is None
