"""The functions of a library that Python does not use: contexts with an allocator, faults in words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import sardonyx
from sardonyx.codegen.compile import compile_text
from sardonyx.codegen.fault_text import fault_text
from sardonyx.codegen.jit import JitLibrary
from sardonyx.targets.host import host_target
from sardonyx_runtime import RuntimeFault, dtypes
from sardonyx_runtime.faults import FAULTS, NO_CONTEXT, explain
from sardonyx_runtime.signature import Argument, Signature

from .test_artifact import SYSTEM

# A quote in a name, a line break, an accent; an empty name.
SIGNATURE = Signature(
    (Argument("x", dtypes.f32, (2,)), Argument("it's\n\x01é", dtypes.f32, ())),
    (),
    ("Div_0 (q)", "", "Größe\t"),
    (("Add_1", "the shapes do not fit"), ("", "100 %\n")),
    1,
    (" in c = Div(a: int64[n], b: int64[3])", ""),
)


class Writer:
    """``sdx_model_error`` of a signature, in this process."""

    def __init__(self) -> None:
        target = host_target()
        text = f'target triple = "{target.triple}"\n{fault_text("sdx_model", SIGNATURE)}'
        self.library = JitLibrary({"text": compile_text(text, target)}, ["sdx_model_error"], target)
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        self.function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self.library.address("sdx_model_error"))

    def write(self, status: tuple[int, int, int, int], size: int) -> tuple[int, bytes]:
        """What it returns, and all bytes of a buffer of which it may use ``size``."""
        context = (ctypes.c_int64 * 16)(0, 1, *status)
        buffer = ctypes.create_string_buffer(b"\xff" * 300, 300)
        count = self.function(ctypes.addressof(context), ctypes.addressof(buffer), size)
        return count, buffer.raw


@pytest.fixture(scope="module")
def writer() -> Writer:
    return Writer()


def shown(text: str) -> bytes:
    return "".join(c if c >= " " else f"\\x{ord(c):02x}" for c in text).encode()


@given(
    st.sampled_from([*FAULTS, 7, 20, 99, -1]),
    st.integers(0, 2),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-1000, 1000)),
    st.integers(0, 200),
)
@settings(max_examples=300, deadline=None)
def test_the_words_are_those_of_python(
    writer: Writer, code: int, number: int, value: int, second: int, size: int
) -> None:
    number = min(number, {1: 1, 2: 1}.get(code, 2))
    want = shown(explain(SIGNATURE, code, number, value, second)[0])
    count, buffer = writer.write((code, number, value, second), 300)
    assert count == len(want)
    assert buffer == want + b"\0" + b"\xff" * (299 - len(want))
    count, cut = writer.write((code, number, value, second), size)
    kept = max(0, min(size - 1, len(want)))
    assert count == len(want)
    assert cut == want[:kept] + b"\0" * (size > 0) + b"\xff" * (300 - kept - (size > 0))


def test_no_fault_has_no_words(writer: Writer) -> None:
    assert writer.write((0, 5, 5, 5), 10) == (0, b"\0" + b"\xff" * 299)


def test_a_context_that_is_none(writer: Writer) -> None:
    buffer = ctypes.create_string_buffer(100)
    assert writer.function(None, ctypes.addressof(buffer), 100) == len(NO_CONTEXT)
    assert buffer.value.decode() == NO_CONTEXT


def test_a_number_that_is_not_there_does_no_harm(writer: Writer) -> None:
    for number in (3, 1 << 40, -1):
        count, buffer = writer.write((16, number, 0, 0), 300)
        assert buffer[:count] == b"node : integer division by zero"


# -- contexts of a library

needs_linker = pytest.mark.skipif(not SYSTEM, reason="libraries are exported on Linux, with a linker")
TAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
GIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Allocator:
    """An allocator that keeps books, and refuses from the call with the number ``refuse`` on."""

    def __init__(self, refuse: int = 1 << 30) -> None:
        self.refuse = refuse
        self.calls = 0
        self.living: dict[int, Any] = {}
        self.take, self.give = TAKE(self._take), GIVE(self._give)

    def _take(self, user: int, size: int, alignment: int) -> int | None:
        assert user == 77 and alignment == 64 and size > 0
        self.calls += 1
        if self.calls > self.refuse:
            return None
        memory = ctypes.create_string_buffer(b"\xaa" * (size + 64), size + 64)
        address = ctypes.addressof(memory) + 63 & -64
        self.living[address] = memory
        return address

    def _give(self, user: int, memory: int) -> None:
        assert user == 77
        del self.living[memory]


def bound(library: ctypes.CDLL, name: str, result: Any, *kinds: Any) -> Callable[..., Any]:
    function = library[name]
    function.restype, function.argtypes = result, kinds
    return function


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """An arena chunk, strings, an output of late size, a fault of a node."""
    nodes = (
        "v = NonZero (x)",
        "t = StringConcat (s, s)",
        "a = Softmax (x)",
        "y = CumSum (a, axis)",
        "[ratio] q = Div (i, j)",
    )
    inputs = {"x": (1, ["n"]), "s": (8, ["m"]), "i": (7, [1]), "j": (7, [1])}
    graph = helper.make_graph(
        [onnx.parser.parse_node(n) for n in nodes],
        "test",
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in "vtyq"],
        [numpy_helper.from_array(np.array(0), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path_factory.mktemp("libraries") / "model.so"
    sardonyx.compile(model, cache=False).export(path)
    return ctypes.CDLL(str(path))


def run(library: ctypes.CDLL, context: int, divisor: int = 2) -> tuple[int, Any]:
    """One run: the status, and the addresses of the outputs."""
    text = ctypes.create_string_buffer((2).to_bytes(8, "little") + b"ab" + b"\0" * 8)
    x = np.array([0, 1, 2], np.float32)
    arrays = [x, np.array([ctypes.addressof(text)] * 2), np.array([7]), np.array([divisor])]
    results = [None, np.empty(2, np.int64), np.empty(3, np.float32), np.empty(1, np.int64)]
    inputs = (ctypes.c_void_p * 4)(*(a.ctypes.data for a in arrays))
    outputs = (ctypes.c_void_p * 4)(*(None if r is None else r.ctypes.data for r in results))
    dims, sizes = (ctypes.c_int64 * 4)(3, 2, 1, 1), (ctypes.c_int64 * 6)()
    entry = bound(library, "sdx_model_run", ctypes.c_int32, *[ctypes.c_void_p] * 5)
    code = entry(context, inputs, dims, outputs, sizes)
    if code == 0:
        assert list((ctypes.c_int64 * 2).from_address(outputs[0])) == [1, 2]
        assert ctypes.string_at(int(results[1][1]) + 8, 4) == b"abab"
        assert results[3][0] == 7 // divisor and abs(results[2][2] - 1) < 1e-6
    return code, outputs[0]


@needs_linker
def test_an_allocator_of_the_users(library: ctypes.CDLL) -> None:
    kinds = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    create = bound(library, "sdx_model_create_with", ctypes.c_void_p, *kinds)
    destroy = bound(library, "sdx_model_destroy", None, ctypes.c_void_p)
    release = bound(library, "sdx_model_free", None, ctypes.c_void_p, ctypes.c_void_p)
    books = Allocator()
    context = create(2, books.take, books.give, 77)
    for _ in range(3):
        code, late = run(library, context)
        assert code == 0 and late in books.living
        release(context, late)
    release(context, None)
    assert len(books.living) >= 2  # the context and its strings at least
    destroy(context)
    assert not books.living
    seen = set()
    for refuse in range(books.calls):
        books = Allocator(refuse)
        context = create(1, books.take, books.give, 77)
        if context is None:
            assert refuse == 0
            continue
        codes = [run(library, context) for _ in range(3)]
        seen |= {code for code, _ in codes}
        for _, late in codes:
            release(context, late)
        destroy(context)
        assert not books.living
    assert seen == {0, 4, 6}


@needs_linker
def test_the_librarys_own_allocator(library: ctypes.CDLL) -> None:
    create = bound(library, "sdx_model_create", ctypes.c_void_p, ctypes.c_int64)
    destroy = bound(library, "sdx_model_destroy", None, ctypes.c_void_p)
    release = bound(library, "sdx_model_free", None, ctypes.c_void_p, ctypes.c_void_p)
    words = bound(library, "sdx_model_error", ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)
    context = create(1)
    code, late = run(library, context, 0)
    assert code == 16
    release(context, late)
    buffer = ctypes.create_string_buffer(200)
    count = words(context, buffer, 200)
    assert buffer.value.startswith(b"node ratio: integer division by zero in ") and b" = Div(" in buffer.value
    assert count == len(buffer.value)
    code, late = run(library, context)
    assert code == 0 and words(context, buffer, 200) == 0
    release(context, late)
    destroy(context)
    destroy(None)


def test_python_knows_unknown_codes() -> None:
    assert "code 9" in explain(SIGNATURE, 9, 1 << 50, 0, 0)[0]
    assert issubclass(RuntimeFault, Exception)
