"""`sardonyx ops` and the table behind it."""

from __future__ import annotations

import json

import pytest

from sardonyx.operator_table import Support, operator_rows, ranges

from .conftest import Sardonyx


def test_lists_what_is_supported(sardonyx: Sardonyx) -> None:
    result = sardonyx("ops")
    assert result.code == 0
    lines = result.out.splitlines()
    assert any(line.split()[:3] == ["Floor", "ai.onnx", "1-28"] for line in lines)
    assert any(line.split()[:3] == ["GreaterOrEqual", "ai.onnx", "12-28"] for line in lines)
    assert "operators of ai.onnx" in lines[-1]


def test_all_lists_the_others_too(sardonyx: Sardonyx) -> None:
    everything = json.loads(sardonyx("ops", "--all", "--format", "json").out)
    supported = json.loads(sardonyx("ops", "--format", "json").out)
    assert len(everything) > len(supported)
    for entry in supported:
        assert {"direct", "function body"} & set(entry["versions"].values())


def test_one_operator_with_its_types(sardonyx: Sardonyx) -> None:
    result = sardonyx("ops", "--operator", "Floor")
    assert result.code == 0
    assert "since version 13: direct" in result.out
    assert "bfloat16, double, float, float16" in result.out


def test_unknown_operator(sardonyx: Sardonyx) -> None:
    result = sardonyx("ops", "--operator", "Flor")
    assert result.code == 2
    assert "did you mean 'Floor'?" in result.err


def test_markdown(sardonyx: Sardonyx) -> None:
    lines = sardonyx("ops", "--format", "markdown").out.splitlines()
    assert lines[1] == "| --- | --- | --- | --- | --- |"
    assert all(line.count("|") == 6 for line in lines)


def test_deprecated_operators() -> None:
    (row,) = operator_rows("Upsample")
    assert row.versions[10] is Support.DEPRECATED


@pytest.mark.parametrize(
    ("have", "text"), [([1, 6, 13], "1-28"), ([6], "6-12"), ([1, 13], "1-5, 13-28"), ([], "")]
)
def test_ranges_of_opsets(have: list[int], text: str) -> None:
    assert ranges(have, [1, 6, 13], 28) == text


def test_a_single_opset() -> None:
    assert ranges([28], [13, 28], 28) == "28"
