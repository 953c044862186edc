"""Types: their text is MLIR's and is parsed back, equal types are equal values."""

from __future__ import annotations

import pytest
from hypothesis import given

from sardonyx.ir.parser import IRSyntaxError, parse_type
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
    describe,
)
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import floordiv, symbol

from .modules import types

BATCH = symbol("batch")
ROWS = TensorType(dtypes.f32, (BATCH, 3))


@given(types)
def test_text_is_parsed_back(kind):
    again = parse_type(str(kind))
    assert again == kind
    assert hash(again) == hash(kind)
    assert type(again) is type(kind)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (TensorType(dtypes.f32, ()), "tensor<f32>", "float[]"),
        (TensorType(dtypes.u8, (2, 3)), "tensor<2x3xui8>", "uint8[2, 3]"),
        (ROWS, 'tensor<?x3xf32, #sdx.dims<"batch", 3>>', "float[batch, 3]"),
        (
            TensorType(dtypes.c64, (floordiv(symbol('h "x"'), 2),)),
            r"""tensor<?xcomplex<f32>, #sdx.dims<"floordiv('h \"x\"', 2)">>""",
            """complex64[floordiv('h "x"', 2)]""",
        ),
        (TensorType(dtypes.string, (1,)), "tensor<1x!sdx.string>", "string[1]"),
        (UnrankedType(dtypes.f16), "tensor<*xf16>", "float16[?]"),
        (UnrankedType(None), "!sdx.unknown", "unknown[?]"),
        (SequenceType(ROWS), f"!sdx.seq<{ROWS}>", "sequence of float[batch, 3]"),
        (
            OptionalType(SequenceType(ROWS)),
            f"!sdx.optional<!sdx.seq<{ROWS}>>",
            "optional sequence of float[batch, 3]",
        ),
        (MapType(dtypes.i64, ROWS), f"!sdx.map<i64, {ROWS}>", "map from int64 to float[batch, 3]"),
        (NoneType(), "none", "nothing"),
        (IndexType(), "index", "index"),
        (VectorType(dtypes.bf16), "bf16", "bf16"),
        (VectorType(dtypes.bf16, 16), "vector<16xbf16>", "vector<16xbf16>"),
        (BufferType(dtypes.string), "!sdx.buffer<!sdx.string>", "!sdx.buffer<!sdx.string>"),
    ],
    ids=str,
)
def test_text(kind, text, words):
    assert str(kind) == text
    assert parse_type(text) == kind
    assert describe(kind) == words


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_element_type(dtype):
    assert parse_type(f"tensor<2x{dtype}>") == TensorType(dtype, (2,))
    assert parse_type(str(dtype)) == VectorType(dtype)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tensor<>",
        "tensor<2x>",
        "tensor<2xf33>",
        "tensor<-1xf32>",
        "tensor<?xf32>",
        "vector<2x2xf32>",
        "!sdx.seq",
        "!sdx.seq<f32",
        "!sdx.other",
        "f33",
        "f32 f32",
        "!sdx.map<tensor<f32>, f32>",
        "complex<i8>",
        "tensor<f32",
    ],
)
def test_malformed(text):
    with pytest.raises(IRSyntaxError):
        parse_type(text)


def test_sizes():
    assert TensorType(dtypes.f32, (2, 3)).size == 6
    assert ROWS.size == BATCH * 3
    assert TensorType(dtypes.f32, (2, 3)).is_static
    assert not ROWS.is_static
    assert ROWS.rank == 2


def test_equality():
    assert TensorType(dtypes.f32, (BATCH + 1 - 1, 3)) == ROWS
    assert TensorType(dtypes.f16, (BATCH, 3)) != ROWS
    assert SequenceType(ROWS) != OptionalType(ROWS)
    assert len({ROWS, TensorType(dtypes.f32, (BATCH, 3)), NoneType(), NoneType()}) == 2
