"""Strings between Python and native code: natively and in Python alike."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers import make_model

import sardonyx
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.strings import decode, encode

TEXTS = [
    "",
    "a",
    "seven77",
    "eight888",
    "nine99999",
    "ß",
    "語" * 30,
    "\x00",
    "a\x00b",
    "\U0001f600",
    "x" * 5000,
]


@pytest.fixture(scope="module")
def gate() -> Any:
    x = np.array(["a"], object)
    compiled = sardonyx.compile(make_model("y = Identity (x)", {"x": x}))
    code = compiled._code
    assert code is not None and code.gate is not None
    return code.gate


def objects(texts: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def crosses(texts: list[Any], gate: Any) -> None:
    """There and back, each way by each means."""
    array = objects(texts)
    for way in (gate, None):
        addresses, owner = encode(array, "x", way)
        for back in (gate, None):
            got = decode(addresses, back)
            assert got.tolist() == texts
            assert all(type(t) is str for t in got.tolist())
        del owner


def test_texts_of_all_kinds(gate: Any) -> None:
    crosses(TEXTS, gate)
    crosses([], gate)
    crosses(["\udcff", "a\udc80"], gate)  # bytes that are no UTF-8


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=20))
def test_any_text(gate: Any, texts: list[str]) -> None:
    crosses(texts, gate)


def test_bytes_and_numpy_strings(gate: Any) -> None:
    for way in (gate, None):
        addresses, owner = encode(objects([b"ab", np.str_("c"), "d"]), "x", way)
        assert decode(addresses, gate).tolist() == ["ab", "c", "d"]
        del owner


@pytest.mark.parametrize("wrong", [None, 3, ["a"], "\ud800"])
def test_what_is_no_string(gate: Any, wrong: Any) -> None:
    with pytest.raises(RuntimeFault, match="the input 'x' holds"):
        encode(objects(["a", wrong]), "x", gate)


def test_no_reference_is_lost(gate: Any) -> None:
    texts = [f"text {i}" for i in range(50)]
    array = objects(texts)
    before = [sys.getrefcount(t) for t in texts], sys.getrefcount(None)
    for _ in range(100):
        addresses, owner = encode(array, "x", gate)
        decode(addresses, gate)
        del owner
    assert [sys.getrefcount(t) for t in texts] == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100


def test_shapes_are_kept(gate: Any) -> None:
    array = np.array([["a", "b", "c"], ["d", "e", "f"]], object)
    addresses, owner = encode(array, "x", gate)
    assert addresses.shape == (2, 3)
    assert decode(addresses, gate).tolist() == array.tolist()
    del owner
