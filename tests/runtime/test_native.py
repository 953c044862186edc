"""What `CompiledModel.run` takes, gives back and refuses."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.helpers import make_model

import sardonyx
from sardonyx import CompileError, RuntimeFault
from sardonyx.codegen.compile import compile_text
from sardonyx.codegen.jit import JitLibrary
from sardonyx.targets.host import host_target
from sardonyx_runtime import frame
from sardonyx_runtime.layout import LAYOUT, Layout

Array = np.ndarray[Any, Any]


def build(
    nodes: list[str], inputs: dict[str, tuple[int, list[Any]]], outputs: list[str], **options: Any
) -> sardonyx.CompiledModel:
    """A compiled model of nodes in text form; inputs by (TensorProto type, dims)."""
    graph = helper.make_graph(
        [onnx.parser.parse_node(n) for n in nodes],
        "test",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        options.pop("constants", None),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return sardonyx.compile(model, **options)


F32, I64, I32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


@pytest.fixture(params=["gate", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs go through the native gate, and without it as where the memory layout is not known."""
    if request.param == "python":
        monkeypatch.setattr(frame, "LAYOUT", None)
    return str(request.param)


@pytest.fixture
def add(way: str) -> sardonyx.CompiledModel:
    return build(["z = Add (x, y)"], {"x": (F32, ["n", 3]), "y": (F32, ["n", 3])}, ["z"], threads=1)


@pytest.fixture
def split(way: str) -> sardonyx.CompiledModel:
    return build(["a = Neg (x)", "b = Abs (x)"], {"x": (F32, ["n"])}, ["a", "b"])


def pair(n: int = 2) -> tuple[Array, Array]:
    x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    return x, x * 10


def test_the_layout_of_arrays_is_known_here() -> None:
    assert LAYOUT is not None


def test_a_wrong_layout_is_noticed() -> None:
    assert LAYOUT is not None
    array = np.zeros((2, 3))
    assert LAYOUT.agrees(array)
    assert not Layout(LAYOUT.items, LAYOUT.cells, LAYOUT.head + 8).agrees(array)


# -- feeds


@pytest.mark.parametrize("make", [lambda x, y: {"y": y, "x": x}, lambda x, y: [x, y], lambda x, y: (x, y)])
def test_feeds_by_name_and_in_order(add: sardonyx.CompiledModel, make: Callable[..., Any]) -> None:
    for n in (2, 5, 2, 0):
        x, y = pair(n)
        for _ in range(2):
            (z,) = add.run(make(x, y))
            assert z.dtype == np.float32 and np.array_equal(z, x + y)


def test_other_mappings(add: sardonyx.CompiledModel) -> None:
    x, y = pair()
    assert np.array_equal(add.run(MappingProxyType({"x": x, "y": y}))[0], x + y)


def misaligned(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    memory[...] = x
    assert not memory.flags.aligned
    return memory


def read_only(x: Array) -> Array:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


class Strange(np.ndarray):
    """A subclass."""


FORMS: dict[str, Callable[[Array], Any]] = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "no strides": lambda x: np.broadcast_to(x, x.shape),
    "misaligned": misaligned,
    "foreign byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": read_only,
    "subclass": lambda x: x.view(Strange),
    "list": lambda x: x.tolist(),
    "integers": lambda x: x.astype(int).tolist(),
    "own dtype object": lambda x: x.astype(np.dtype("f4", metadata={"a": 1})),
}


@pytest.mark.parametrize("form", FORMS)
def test_any_array_of_the_type(add: sardonyx.CompiledModel, form: str) -> None:
    x, y = pair()
    for feeds in ([FORMS[form](x), y], [x, FORMS[form](y)], [x, y]):
        (z,) = add.run(feeds)
        assert np.array_equal(z, x + y) and z.flags.c_contiguous and z.flags.writeable


def test_scalars(way: str) -> None:
    model = build(["z = Add (x, y)"], {"x": (F32, []), "y": (F32, [])}, ["z"])
    for one in (np.float32(1.5), np.array(1.5, np.float32), 1.5, np.array(1.5, ">f4")):
        (z,) = model.run([one, np.float32(2)])
        assert isinstance(z, np.ndarray) and z.shape == () and z == 3.5


def test_python_numbers_have_to_fit(way: str) -> None:
    model = build(["z = Neg (x)"], {"x": (I32, ["n"])}, ["z"])
    assert model.run([[1, 2]])[0].tolist() == [-1, -2]
    for wrong in ([1.5], [2**40], [True], ["a"], [[1], [1, 2]]):
        with pytest.raises(RuntimeFault, match="'x'"):
            model.run([wrong])


REFUSED: dict[str, tuple[Any, list[str]]] = {
    "missing": ({"x": pair()[0]}, ["'y'", "float[n, 3]", "missing"]),
    "unknown": ({"x": pair()[0], "y": pair()[1], "w": 1}, ["'w'", "'x'", "'y'"]),
    "misspelt": ({"x": pair()[0], "Y": pair()[1]}, ["'Y'", "'y'"]),
    "too few": ([pair()[0]], ["1 feeds", "2 inputs"]),
    "too many": ([*pair(), 1], ["3 feeds", "2 inputs"]),
    "one array": (pair()[0], ["float32[2, 3]", "dict", "list"]),
    "a set": ({1}, ["set", "dict"]),
    "type": ([pair()[0].astype(float), pair()[1]], ["'x'", "float64[2, 3]", "float[n, 3]", "astype"]),
    "integer": ([pair()[0], pair()[1].astype(int)], ["'y'", "int64[2, 3]", "float[n, 3]"]),
    "rank": ([pair()[0][0], pair()[1]], ["'x'", "[3]", "rank 1", "float[n, 3]"]),
    "extent": ([np.zeros((2, 4), "f4"), pair()[1]], ["'x'", "[2, 4]", "axis 1", "is 4", "expected 3"]),
    "symbol": ([pair(2)[0], pair(5)[1]], ["'y'", "axis 0", "is 5", "n is 2", "'x'"]),
    "none": ([None, pair()[1]], ["'x'", "NoneType", "float[n, 3]"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_feeds_name_the_input(add: sardonyx.CompiledModel, case: str) -> None:
    feeds, words = REFUSED[case]
    for _ in range(2):
        with pytest.raises(RuntimeFault) as fault:
            add.run(feeds)
        assert all(word in str(fault.value) for word in words), str(fault.value)
        x, y = pair()
        assert np.array_equal(add.run([x, y])[0], x + y)


def test_defaults_of_inputs_that_are_initialisers(way: str) -> None:
    constant = onnx.numpy_helper.from_array(np.full(3, 7, np.float32), "y")
    model = build(["z = Add (x, y)"], {"x": (F32, [3]), "y": (F32, [3])}, ["z"], constants=[constant])
    x = np.arange(3, dtype=np.float32)
    for feeds in ({"x": x}, [x]):
        assert model.run(feeds)[0].tolist() == [7, 8, 9]
    assert model.run([x, x])[0].tolist() == [0, 2, 4]


# -- outputs


def test_outputs_by_name(split: sardonyx.CompiledModel) -> None:
    x = np.array([-1, 2], np.float32)
    for _ in range(2):
        assert [r.tolist() for r in split.run([x])] == [[1, -2], [1, 2]]
        assert [r.tolist() for r in split.run([x], ["b"])] == [[1, 2]]
        assert [r.tolist() for r in split.run([x], ["b", "a", "b"])] == [[1, 2], [1, -2], [1, 2]]
        assert split.run([x], []) == []
        with pytest.raises(RuntimeFault, match=r"no output 'c'; the outputs are a, b"):
            split.run([x], ["c"])


def test_results_belong_to_the_caller(split: sardonyx.CompiledModel) -> None:
    x = np.array([1, 2], np.float32)
    first = split.run([x])
    second = split.run([x * 2])
    assert first[0].tolist() == [-1, -2] and second[0].tolist() == [-2, -4]
    first[0][:] = 0
    assert split.run([x])[0].tolist() == [-1, -2]


def test_out_arrays(split: sardonyx.CompiledModel) -> None:
    x = np.array([-1, 2], np.float32)
    a, b = np.zeros(2, np.float32), np.zeros(2, np.float32)
    for out in ([a, b], {"a": a, "b": b}):
        results = split.run([x], out=out)
        assert results[0] is a and results[1] is b
        assert a.tolist() == [1, -2] and b.tolist() == [1, 2]
        a[:], b[:] = 0, 0
    for partial in ([None, b], {"b": b}):
        results = split.run([x], out=partial)
        assert results[0] is not a and results[0].tolist() == [1, -2] and results[1] is b
    assert split.run([x], ["b"], out={"b": b})[0] is b


def test_out_array_of_a_subclass(split: sardonyx.CompiledModel) -> None:
    a = np.zeros(2, np.float32).view(Strange)
    assert split.run([np.ones(2, np.float32)], out={"a": a})[0] is a and a.tolist() == [-1, -1]


OUT_REFUSED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "type": (lambda: [np.zeros(2), None], ["'a'", "float64[2]", "float32", "[2]"]),
    "shape": (lambda: [np.zeros(3, "f4"), None], ["'a'", "float32[3]", "[2]"]),
    "rank": (lambda: [np.zeros((2, 1), "f4"), None], ["'a'", "[2, 1]"]),
    "strides": (lambda: {"b": np.zeros(4, "f4")[::2]}, ["'b'", "not contiguous"]),
    "read-only": (lambda: {"b": read_only(np.zeros(2, "f4"))}, ["'b'", "read-only"]),
    "misaligned": (lambda: {"b": misaligned(np.zeros(2, "f4"))}, ["'b'", "not aligned"]),
    "foreign": (lambda: {"b": np.zeros(2, ">f4")}, ["'b'", ">f4"]),
    "no array": (lambda: {"b": [0.0, 0.0]}, ["'b'", "list"]),
    "unknown": (lambda: {"c": np.zeros(2, "f4")}, ["'c'", "a, b"]),
    "number": (lambda: [np.zeros(2, "f4")], ["1 out arrays", "2 outputs"]),
    "one array": (lambda: np.zeros(2, "f4"), ["ndarray", "dict"]),
    "twice": (lambda: [x := np.zeros(2, "f4"), x], ["'b'", "shares memory"]),
}


@pytest.mark.parametrize("case", OUT_REFUSED)
def test_refused_out_arrays(split: sardonyx.CompiledModel, case: str) -> None:
    make, words = OUT_REFUSED[case]
    x = np.array([-1, 2], np.float32)
    with pytest.raises(RuntimeFault) as fault:
        split.run([x], out=make())
    assert all(word in str(fault.value) for word in words), str(fault.value)
    assert split.run([x])[0].tolist() == [1, -2]


def test_out_may_be_an_input(split: sardonyx.CompiledModel) -> None:
    """Each output is right even where writing one early would change what another reads."""
    x = np.array([-1, 2], np.float32)
    a, b = split.run([x], out={"a": x})
    assert a is x and a.tolist() == [1, -2] and b.tolist() == [1, 2]


def test_out_may_overlap_an_input(way: str) -> None:
    model = build(["z = Add (x, y)"], {"x": (F32, ["n"]), "y": (F32, ["n"])}, ["z"])
    memory = np.arange(101, dtype=np.float32)
    x, out = memory[:100], memory[1:]
    want = x + x
    assert np.array_equal(model.run([x, x], out=[out])[0], want)


# -- several threads


def test_several_threads_at_once(way: str) -> None:
    model = build(["t = Exp (x)", "z = Sub (t, x)"], {"x": (F32, ["n"])}, ["z"], threads=2)
    failures = []

    def work(seed: int) -> None:
        for i in range(60):
            x = np.full(1 + 997 * ((seed + i) % 5), seed, np.float32)
            (z,) = model.run({"x": x})
            if z.shape != x.shape or not np.allclose(z, np.exp(x) - x, rtol=1e-5):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    nodes = ["m = MatMul (x, w)", "s = Softmax <axis = -1> (m)", "e = Exp (s)", "z = Mul (e, m)"]
    weights = onnx.numpy_helper.from_array(rng.standard_normal((200, 300), np.float32), "w")
    x = rng.standard_normal((700, 200), np.float32)
    want = None
    for threads in (1, 2, 3, 4, 8):
        model = build(nodes, {"x": (F32, ["n", 200])}, ["z"], constants=[weights], threads=threads)
        for _ in range(3):
            (z,) = model.run([x])
            want = z if want is None else want
            assert np.array_equal(z, want)


def test_the_lock_is_released(way: str) -> None:
    """Another thread counts on while one long run goes on."""
    model = build(["a = Sin (x)", "b = Cos (a)", "z = Exp (b)"], {"x": (F32, ["n"])}, ["z"], threads=1)
    x = np.zeros(20_000_000, np.float32)
    out = [np.zeros_like(x)]
    counts = [0]
    started, stop = threading.Event(), threading.Event()

    def count() -> None:
        started.set()
        while not stop.is_set():
            counts[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    before = counts[0]
    model.run([x], out=out)
    during = counts[0] - before
    stop.set()
    thread.join()
    assert during > 1000


# -- faults


def test_division_by_zero_names_the_node(way: str) -> None:
    model = build(["[ratio] z = Div (x, y)"], {"x": (I32, ["n"]), "y": (I32, ["n"])}, ["z"])
    one = np.ones(4, np.int32)
    for _ in range(3):
        with pytest.raises(RuntimeFault, match=r"ratio.*division by zero") as fault:
            model.run([one, np.array([1, 1, 0, 1], np.int32)])
        assert fault.value.code == 16 and fault.value.node == "ratio"
        assert model.run([one, one])[0].tolist() == [1, 1, 1, 1]


def test_shapes_that_do_not_broadcast_name_the_node(way: str) -> None:
    model = build(["[sum] z = Add (x, y)"], {"x": (F32, ["n"]), "y": (F32, ["m"])}, ["z"])
    assert model.run([np.ones(3, "f4"), np.ones(1, "f4")])[0].shape == (3,)
    with pytest.raises(RuntimeFault, match=r"sum.*3 and 2") as fault:
        model.run([np.ones(3, "f4"), np.ones(2, "f4")])
    assert fault.value.code == 2 and fault.value.node == "sum"


# -- sizes that the data decide


@pytest.fixture
def fill(way: str) -> sardonyx.CompiledModel:
    return build(["[fill] z = ConstantOfShape (s)"], {"s": (I64, [2])}, ["z"])


def shape(*dims: int) -> list[Array]:
    return [np.array(dims, np.int64)]


def test_late_outputs(fill: sardonyx.CompiledModel) -> None:
    kept = []
    for dims in ((2, 3), (0, 5), (1, 1), (300, 400), (2, 3)):
        (z,) = fill.run(shape(*dims))
        assert z.shape == dims and z.dtype == np.float32 and not z.any() and z.flags.writeable
        z[...] = len(kept)
        kept.append(z)
    for value, z in enumerate(kept):
        assert (z == value).all()


def test_late_outputs_are_freed_once(fill: sardonyx.CompiledModel) -> None:
    """A gigabyte and more of late outputs does not stay, and a view keeps its memory alone."""
    resource = pytest.importorskip("resource")
    (view,) = [fill.run(shape(1000, 1000))[0][5:7, 1:]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        fill.run(shape(1000, 1000))
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert not view.any()


def test_late_outputs_take_no_out_array(fill: sardonyx.CompiledModel) -> None:
    with pytest.raises(RuntimeFault, match="'z' is known only after the run"):
        fill.run(shape(2, 2), out=[np.zeros((2, 2), "f4")])
    assert fill.run(shape(2, 2), out=[None])[0].shape == (2, 2)


@pytest.mark.parametrize(
    ("dims", "code"),
    [
        ((-1, 3), 3),
        ((2, -(2**63)), 3),
        ((2**40, 2**40), 5),
        ((2**62, 2), 5),
        ((2**63 - 1, 2**63 - 1), 5),
        ((2**45, 1), 4),
    ],
)
def test_sizes_that_cannot_be(fill: sardonyx.CompiledModel, dims: tuple[int, int], code: int) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeFault) as fault:
            fill.run(shape(*dims))
        assert fault.value.code == code
        assert ("fill" in str(fault.value)) == (code == 3)
    assert fill.run(shape(2, 2))[0].shape == (2, 2)


def test_a_fault_after_a_late_output_frees_it(way: str) -> None:
    model = build(
        ["z = ConstantOfShape (s)", "[ratio] q = Div (x, y)"],
        {"s": (I64, [1]), "x": (I32, [1]), "y": (I32, [1])},
        ["z", "q"],
    )
    one, zero = np.ones(1, np.int32), np.zeros(1, np.int32)
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        with pytest.raises(RuntimeFault, match="ratio"):
            model.run([np.array([1_000_000]), one, zero])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert [r.tolist() for r in model.run([np.array([2]), one, one])] == [[0, 0], [1]]


def test_reshape_by_a_fed_shape(way: str) -> None:
    model = build(["[shape] z = Reshape (x, s)"], {"x": (F32, ["n"]), "s": (I64, [2])}, ["z"])
    x = np.arange(6, dtype=np.float32)
    assert model.run([x, np.array([2, 3])])[0].tolist() == x.reshape(2, 3).tolist()
    with pytest.raises(RuntimeFault, match="shape"):
        model.run([x, np.array([2, 4])])


def test_outputs_beyond_memory(way: str) -> None:
    model = build(["[tile] z = Add (x, y)"], {"x": (F32, ["n", 1]), "y": (F32, ["m"])}, ["z"])
    big = np.broadcast_to(np.zeros(1, "f4"), (1 << 23,)).copy()
    with pytest.raises(RuntimeFault, match="'z'") as fault:
        model.run([big.reshape(-1, 1), big])  # 256 TiB
    assert fault.value.code == 4


def test_empty_tensors(split: sardonyx.CompiledModel) -> None:
    for _ in range(2):
        assert [r.shape for r in split.run([np.zeros(0, np.float32)])] == [(0,), (0,)]


def test_a_model_without_inputs(way: str) -> None:
    try:
        model = build(["z = Constant <value_floats = [1.0, 2.0]> ()"], {}, ["z"])
    except CompileError:
        pytest.skip("not yet compiled")
    for feeds in ({}, [], ()):
        assert model.run(feeds)[0].tolist() == [1, 2]


def test_strings_of_the_signature(add: sardonyx.CompiledModel) -> None:
    assert [a.describe() for a in add.inputs] == ["float[n, 3]", "float[n, 3]"]
    assert [(a.name, a.describe()) for a in add.outputs] == [("z", "float[n, 3]")]


def test_the_callers_floating_point_state() -> None:
    """Denormals are kept in a thread that flushes them, and that thread flushes them after the run too."""
    target = host_target()
    if not target.triple.startswith("x86_64"):
        pytest.skip("sets MXCSR")
    text = f"""target triple = "{target.triple}"
    declare void @llvm.x86.sse.ldmxcsr(ptr)
    declare void @llvm.x86.sse.stmxcsr(ptr)
    define void @set(ptr %state) nounwind {{
      call void @llvm.x86.sse.ldmxcsr(ptr %state)
      ret void
    }}
    define void @get(ptr %state) nounwind {{
      call void @llvm.x86.sse.stmxcsr(ptr %state)
      ret void
    }}"""
    library = JitLibrary({"state": compile_text(text, target)}, ["set", "get"], target)
    functions = {n: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(n)) for n in ("set", "get")}
    model = build(["z = Mul (x, x)"], {"x": (F32, [64])}, ["z"], threads=1)
    x = np.full(64, 1e-21, np.float32)
    (usual,) = model.run([x])
    assert usual.any()
    seen: list[Any] = []

    def work() -> None:
        state = ctypes.c_uint32(0x9FC0)
        functions["set"](ctypes.addressof(state))
        (z,) = model.run([x])
        functions["get"](ctypes.addressof(state))
        seen.extend([z, state.value])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert np.array_equal(seen[0], usual) and seen[1] & 0xFFC0 == 0x9FC0


@pytest.mark.parametrize(
    ("node", "feeds", "dims", "bad", "message"),
    [
        (
            "Div", {"a": [1, 2], "b": [1, 1]}, {"a": ["n"], "b": ["n"]}, [[1, 2], [0, 1]],
            "node it: integer division by zero in r = Div(a: int64[n], b: int64[n])",
        ),
        (
            "Mod", {"a": [[1, 2]], "b": [1, 1]}, {"a": ["k", "n"]}, [[[1, 2]], [0, 1]],
            "node it: integer division by zero in r = Mod(a: int64[k, n], b: int64[2])",
        ),
        (
            "Gather", {"t": [5, 6, 7], "i": [1]}, {"i": ["n"]}, [[5, 6, 7], [9]],
            "node it: the index 9 is out of range in r = Gather(t: int64[3], i: int64[n])",
        ),
        (
            "Reshape", {"t": [1, 2], "s": [2, 1]}, {}, [[1, 2], [1, -5]],
            "node it: a dim computed from the data is -5 in r = Reshape(s: int64[2])",
        ),
    ],
)  # fmt: skip
def test_a_fault_names_node_tensors_and_types(
    node: str, feeds: dict[str, Any], dims: dict[str, Any], bad: list[Any], message: str
) -> None:
    arrays = {name: np.array(values) for name, values in feeds.items()}
    one = onnx.helper.make_node(node, list(arrays), ["r"], name="it")
    model = sardonyx.compile(make_model([one], arrays, dims=dims))
    with pytest.raises(RuntimeFault) as fault:
        model.run([np.array(v) for v in bad])
    assert str(fault.value) == message and fault.value.node == "it"
