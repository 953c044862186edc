"""Profiles of compiled models: what is counted is exact, what is timed adds up."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from tests.helpers import make_model

import sardonyx
from sardonyx.profiling import measure
from sardonyx.profiling.results import Profile

RUNS = 4
X = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)


def chain() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="MatMul_0"),
        helper.make_node("Add", ["m", "b"], ["a"], name="Add_1"),
        helper.make_node("Erf", ["a"], ["e"], name="Erf_2"),
        helper.make_node("Softmax", ["e"], ["s"], name="Softmax_3"),
    ]
    constants = {"w": np.ones((128, 256), np.float32), "b": np.ones(256, np.float32)}
    return make_model(nodes, {"x": X}, dims={"x": ["batch", 128]}, constants=constants, outputs=["s"])


@pytest.fixture(scope="module")
def profile() -> Profile:
    made: Profile = sardonyx.compile(chain(), threads=1).profile([X], runs=RUNS)
    return made


def test_every_node_and_launch_is_there(profile: Profile) -> None:
    assert {n.node.name for n in profile.nodes} == {"MatMul_0", "Add_1", "Erf_2", "Softmax_3"}
    assert all(one.calls == 1 and one.threads == 1 for one in profile.launches)
    assert sum(k.launches for k in profile.kernels) == len(profile.launches)
    assert {k.kernel for k in profile.kernels} == {one.kernel for one in profile.launches}


def test_times_add_up(profile: Profile) -> None:
    assert 0 < profile.in_kernels <= profile.seconds
    assert sum(k.seconds for k in profile.kernels) == pytest.approx(profile.in_kernels)
    assert sum(n.seconds for n in profile.nodes) == pytest.approx(profile.in_kernels)
    for one in profile.launches:
        assert 0 < one.busy <= one.seconds  # one thread
    slowest = profile.kernels
    assert all(a.seconds >= b.seconds for a, b in pairwise(slowest))


def test_products_and_bytes_are_counted(profile: Profile) -> None:
    (product,) = [one for one in profile.launches if any(n.name == "MatMul_0" for n in one.nodes)]
    assert product.products == pytest.approx(2 * 64 * 128 * 256, rel=0.1)  # tiles reach over the edge
    memory = 4 * (64 * 128 + 128 * 256 + 256 + 64 * 256)
    assert product.bytes == pytest.approx(memory, rel=0.02)
    assert product.peak_share > 0 and product.bound in ("arithmetic", "memory")


def test_the_costly_node_of_a_kernel_gets_more(profile: Profile) -> None:
    """An error function is some 16 additions; the product of depth 128 is more than both."""
    seconds = {n.node.name: n.seconds for n in profile.nodes}
    (kernel,) = {n.kernels for n in profile.nodes if n.node.name in ("MatMul_0", "Add_1")}
    assert len(kernel) == 1
    assert all(n.estimated for n in profile.nodes if n.kernels == kernel)
    assert seconds["MatMul_0"] > seconds["Add_1"]
    assert seconds["Erf_2"] > 4 * seconds["Add_1"]


@pytest.mark.parametrize("size", [1, 1000, 4096])
def test_memory_of_an_elementwise_node(size: int) -> None:
    x = np.ones(size, np.float32)
    model = make_model(["y = Add (x, x2)"], {"x": x, "x2": x}, dims={"x": ["n"], "x2": ["n"]})
    (launch,) = sardonyx.compile(model, threads=1).profile([x, x], runs=1).launches
    assert launch.bytes == pytest.approx(12 * size, rel=0.1, abs=4 * 64)
    assert launch.operations >= size


def test_a_lookup_touches_what_it_reads() -> None:
    table, indices = np.ones((5000, 64), np.float32), np.arange(3)
    model = make_model(["y = Gather (t, i)"], {"i": indices}, constants={"t": table}, dims={"i": ["n"]})
    (launch,) = sardonyx.compile(model, threads=1).profile([indices], runs=1).launches
    assert 3 * 64 * 4 <= launch.bytes < table.nbytes / 10


def loop_model() -> onnx.ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["still"]),
            helper.make_node("Sin", ["s"], ["t"], name="Sin_in_loop"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, [64, 128]),
        ],
        [
            helper.make_tensor_value_info("still", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [64, 128]),
        ],
    )
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="Loop_0", body=body)
    return make_model([loop], {"n": np.array(1), "x": X}, outputs=["y"])


def test_launches_in_a_loop_are_counted() -> None:
    profile = sardonyx.compile(loop_model(), threads=1).profile([np.array(7), X], runs=RUNS)
    (sine,) = [one for one in profile.launches if any(n.name == "Sin_in_loop" for n in one.nodes)]
    assert sine.calls == 7
    assert sine.bytes == pytest.approx(7 * 2 * X.nbytes, rel=0.05)
    events = [e for e in profile.events if e.launch == sine.number and e.first < 0]
    assert len(events) == 7 * RUNS
    assert any(one.kind == "copy" and one.bytes == 2 * X.nbytes for one in profile.launches)


def test_threads_share_the_range() -> None:
    x = np.ones((4096, 512), np.float32)
    model = make_model(["y = Tanh (x)"], {"x": x}, dims={"x": ["n", 512]})
    profile = sardonyx.compile(model, threads=2).profile([x], runs=RUNS)
    (launch,) = profile.launches
    pieces = [(e.first, e.last) for e in profile.events if e.launch == launch.number and e.first >= 0]
    whole = [e for e in profile.events if e.launch == launch.number and e.first < 0]
    assert len(whole) == RUNS and len(pieces) >= RUNS
    done = sorted(pieces)
    assert sum(last - first for first, last in done) == RUNS * max(last for _, last in done)
    assert 1 <= launch.threads <= 2
    assert launch.busy <= 2 * launch.seconds


def test_the_trace_nests(profile: Profile) -> None:
    trace = json.loads(json.dumps(profile.trace()))
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert sum(e["name"] == "run" for e in events) == RUNS
    assert {e["cat"] for e in events} == {"run", "kernel", "piece"}
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in events)
    open_until: list[float] = []
    for event in events:  # in the order of their starts, outer ones first
        end = event["ts"] + event["dur"]
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + 1e-3
        open_until.append(end)
    threads = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    assert {e["tid"] for e in events} == {e["tid"] for e in threads}


def test_json_has_all_figures(profile: Profile) -> None:
    data = json.loads(json.dumps(profile.to_json()))
    assert data["format"] == "sardonyx-profile" and data["version"] == 1
    assert data["runs"] == RUNS and data["threads"] == 1
    assert len(data["launches"]) == len(profile.launches)
    for row in (*data["kernels"], *data["launches"]):
        assert {n["name"] for n in row["nodes"]} <= {"MatMul_0", "Add_1", "Erf_2", "Softmax_3"}
        assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["seconds"])
    assert sum(k["share"] for k in data["kernels"]) == pytest.approx(
        data["seconds_in_kernels"] / data["seconds"]
    )
    assert data["peak"]["operations_per_second"] > 0


def test_too_many_events_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_RECORDS", 5)
    profile = sardonyx.compile(loop_model(), threads=1).profile([np.array(7), X], runs=2)
    assert profile.truncated and len(profile.events) == 5
    (sine,) = [one for one in profile.launches if any(n.name == "Sin_in_loop" for n in one.nodes)]
    assert sine.calls == 7 and 0 < profile.in_kernels <= profile.seconds  # figures do not come from events


# --- models of every making ---------------------------------------------------------------------------------


def names(profile: Any) -> set[str]:
    return {n.node.name for n in profile.nodes}


def test_a_model_from_the_cache_and_one_with_debug_information(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(chain(), path)
    first = sardonyx.compile(str(path))
    again = sardonyx.compile(str(path))
    debugged = sardonyx.compile(str(path), debug="perf", debug_dir=tmp_path / "debug")
    for model in (first, again, debugged):
        expected = model.run([X])[0]
        profile = model.profile([X], runs=1)
        assert names(profile) == {"MatMul_0", "Add_1", "Erf_2", "Softmax_3"}
        assert model.run([X])[0].tobytes() == expected.tobytes()
    assert all("__k_" in one.kernel for one in profile.launches)


def test_kernels_are_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sardonyx.compile(chain(), cache=False)
    added = []
    original = measure.Objects.add
    monkeypatch.setattr(
        measure.Objects,
        "add",
        lambda self, symbol, text: (added.append(symbol), original(self, symbol, text)),
    )
    model.profile([X], runs=1)
    assert added == ["sdx_model_run"]


def test_profiles_of_other_sizes_need_no_more_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    model = sardonyx.compile(chain(), threads=1)
    small = model.profile([X[:2]], runs=1)
    monkeypatch.setattr(measure, "lower", None)
    large = model.profile([X], runs=1)
    assert sum(one.products for one in large.launches) > 8 * sum(one.products for one in small.launches)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda x: model.profile([x], runs=3), (X[:2], X)))
    assert [[one.bytes for one in p.launches] for p in both] == [
        [one.bytes for one in p.launches] for p in (small, large)
    ]


def test_a_specialised_model() -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="ReduceSum_0", keepdims=0)
    model = make_model([node], {"x": X, "axes": np.array([0])}, outputs=["y"])
    compiled = sardonyx.compile(model)
    for axis in (0, 1):
        profile = compiled.profile([X, np.array([axis])], runs=1)
        assert names(profile) == {"ReduceSum_0"}


def test_a_model_that_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(chain(), path)
    compiled = sardonyx.compile(str(path))
    onnx.save(make_model(["y = Cos (x)"], {"x": X}), path)
    with pytest.raises(sardonyx.CompileError, match="the model has changed since it was compiled"):
        compiled.profile([X])


def test_wrong_feeds_and_runs() -> None:
    compiled = sardonyx.compile(chain())
    with pytest.raises(ValueError, match="at least one run, not 0"):
        compiled.profile([X], runs=0)
    with pytest.raises(sardonyx.RuntimeFault, match="'x'"):
        compiled.profile([X[:, :5]])


def test_a_fault_during_a_profile() -> None:
    model = make_model(["y = Div (a, b)"], {"a": np.array([1, 2]), "b": np.array([1, 2])})
    compiled = sardonyx.compile(model)
    with pytest.raises(sardonyx.RuntimeFault, match="division by zero"):
        compiled.profile([np.array([1, 2]), np.array([1, 0])])
    assert compiled.profile([np.array([1, 2]), np.array([1, 1])], runs=1).launches
