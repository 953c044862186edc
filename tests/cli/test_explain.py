"""`sardonyx explain`."""

from __future__ import annotations

import json
from pathlib import Path

import sardonyx as package

from .conftest import Sardonyx


def test_a_node(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("explain", floor_ge, "--node", "Floor_0")
    assert result.code == 0 and result.err == ""
    for text in (
        "Floor of ai.onnx, version",
        "float[batch, 3]",
        "to GreaterOrEqual_1",
        "schedule",
        "input x",
    ):
        assert text in result.out
    assert "\x1b" not in result.out


def test_each_that_a_pattern_matches(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("explain", floor_ge, "--node", "*_?")
    assert result.code == 0
    assert result.out.index("Floor_0: Floor") < result.out.index("GreaterOrEqual_1: GreaterOrEqual")


def test_json(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("explain", floor_ge, "--node", "Floor_0", "--json")
    assert json.loads(result.out) == json.loads(
        json.dumps([package.explain(str(floor_ge), "Floor_0").to_json()])
    )


def test_no_such_node(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("explain", floor_ge, "--node", "Flor")
    assert result.code == 2 and "the model has no node 'Flor'; did you mean Floor_0?" in result.err
    assert sardonyx("explain", floor_ge).code == 2
