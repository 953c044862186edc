"""Hypothesis strategies for dims, types, attributes and modules.  They make more than any pass would."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Origin
from sardonyx.ir.types import (
    BufferType,
    IndexType,
    MapType,
    NoneType,
    OptionalType,
    SequenceType,
    TensorType,
    UnrankedType,
    VectorType,
)
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import (
    broadcast_dim,
    ceildiv,
    floordiv,
    maximum,
    minimum,
    modulo,
    symbol,
)

SYMBOLS = ("batch", "h", "w", "seq.len", "if", "max", 'a "b"', "x\\y\n", "ä", "ﬁ", "0")

symbols = st.sampled_from(SYMBOLS).map(symbol)
small = st.integers(-4, 9)
positive = st.integers(1, 9)


def _total(function):
    """A dim function that gives its first argument where two constants do not broadcast."""

    def build(a, b):
        try:
            return function(a, b)
        except ValueError:
            return a

    return build


def _deeper(inner):
    pairs = st.tuples(inner, inner)
    functions = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, maximum, minimum)
    divisions = (floordiv, ceildiv, modulo)
    return st.one_of(
        *[pairs.map(lambda p, f=f: f(*p)) for f in functions],
        *[st.tuples(inner, positive).map(lambda p, f=f: f(*p)) for f in divisions],
        pairs.map(lambda p: _total(broadcast_dim)(*p)),
    )


dims = st.recursive(symbols | small, _deeper, max_leaves=6)
extents = st.integers(0, 7) | dims.filter(lambda d: not isinstance(d, int))
shapes = st.lists(extents, max_size=4).map(tuple)

texts = st.text(max_size=12) | st.sampled_from(
    [
        "",
        "x",
        "x_1",
        "7",
        "_7",
        "/enc/Add_output_0",
        "a:0",
        "a$b",
        "a-b",
        "%",
        "a|b",
        "(,)",
        '"',
        "\\",
        "0x41",
        "é",
    ]
)
element_types = st.sampled_from(dtypes.ALL)
tensors = st.builds(TensorType, element_types, shapes)
types = st.recursive(
    tensors
    | st.builds(UnrankedType, st.none() | element_types)
    | st.builds(VectorType, element_types, st.sampled_from([1, 4, 16]))
    | st.builds(BufferType, element_types)
    | st.sampled_from([NoneType(), IndexType()]),
    lambda inner: (
        inner.map(SequenceType) | inner.map(OptionalType) | st.builds(MapType, element_types, inner)
    ),
    max_leaves=3,
)


@st.composite
def dense(draw):
    """A constant of any element type, of random bits where every bit pattern is an element."""
    dtype = draw(element_types)
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    size = int(np.prod(shape))
    if dtype is dtypes.string:
        items = draw(st.lists(st.text(max_size=4) | st.binary(max_size=4), min_size=size, max_size=size))
        array = np.empty(size, object)
        array[:] = items
        return Dense(array.reshape(shape), dtype)
    if draw(st.booleans()):
        return Dense(np.full(shape, draw(st.integers(0, 1)), dtype.numpy), dtype)
    raw = np.frombuffer(
        draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize)), np.uint8
    )
    if dtype.bits < 8:
        raw = raw & ((1 << dtype.bits) - 1)
    if dtype.kind == "signed" and dtype.bits < 8:  # a nibble's sign goes into the upper bits
        return Dense((raw.astype(np.int8) - (1 << dtype.bits - 1)).astype(dtype.numpy).reshape(shape), dtype)
    return Dense(raw.view(dtype.numpy).reshape(shape), dtype)


attributes = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=12),
        st.binary(max_size=12),
        element_types,
        types,
        dims,
        shapes,
        dense(),
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
dictionaries = st.dictionaries(
    st.from_regex(r"[a-z_]{1,6}", fullmatch=True) | texts.filter(bool), attributes, max_size=3
)
origins = st.builds(Origin, texts, texts, texts, st.lists(texts, max_size=3).map(tuple))
locations = st.lists(origins, max_size=3, unique=True).map(lambda found: Location(tuple(found)))


def _fill(draw, block, visible, depth):
    visible = visible + block.arguments
    for _ in range(draw(st.integers(0, 3))):
        operands = draw(st.lists(st.sampled_from(visible), max_size=3)) if visible else []
        regions = []
        for _ in range(draw(st.integers(0, 2)) if depth else 0):
            regions.append(
                Block(draw(st.lists(types, max_size=2)), draw(st.lists(texts, min_size=2, max_size=2)))
            )
            _fill(draw, regions[-1], visible, depth - 1)
        results = draw(st.lists(types, max_size=3))
        name = draw(st.sampled_from(["test.one", "test.two", "other.kind.of_op"]))
        op = block.append(Op(name, operands, results, draw(dictionaries), regions, draw(locations)))
        for result in op.results:
            result.name = draw(texts)
        visible = visible + op.results
    block.append(Op("test.yield", draw(st.lists(st.sampled_from(visible), max_size=2)) if visible else []))


@st.composite
def modules(draw):
    """A module that the verifier accepts, of ops without declarations."""
    module = Module(attributes=draw(dictionaries))
    for name in draw(st.lists(texts.filter(bool), min_size=1, max_size=2, unique=True)):
        body = Block(draw(st.lists(types, max_size=3)), draw(st.lists(texts, min_size=3, max_size=3)))
        _fill(draw, body, [], 2)
        module.add(Function(name, body, draw(dictionaries), draw(locations)))
    return module
