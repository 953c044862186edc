"""Graphs made at random give the same compiled as interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from ..helpers import Array, check, make_model, prepare
from .random_graphs import CONSTANTS, Graphs


def feeds_of(random: np.random.Generator, rows: int) -> dict[str, Array]:
    return {
        "x": random.normal(size=(rows, 4)).astype(np.float32),
        "z": random.normal(size=(rows, 4)).astype(np.float32),
        "trips": np.array(random.integers(0, 4)),
        "flag": np.array(bool(random.integers(2))),
    }


def compare(seed: int, *, symbolic: bool) -> None:
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 10, 2)
    outputs = [values[-1], values[len(values) // 2 + 1]]
    random = np.random.default_rng(seed)
    dims = {"x": ["n", 4], "z": ["n", 4]} if symbolic else None
    model = make_model(nodes, feeds_of(random, 5), dims=dims, constants=CONSTANTS, outputs=outputs)
    compiled, interpreted = prepare(model, "compiled"), prepare(model, "interpreter")
    for rows in (5, 1, 17) if symbolic else (5,):
        feeds = feeds_of(random, rows)
        for got, want in zip(compiled(feeds), interpreted(feeds), strict=True):
            size = float(np.abs(want[np.isfinite(want)]).max(initial=1))
            check(got, want, rtol=1e-3, atol=1e-3 * size, zero_signs=False)


@pytest.mark.parametrize("symbolic", [False, True])
# Seed 75 once read a product twice from one epilogue.
@pytest.mark.parametrize("seed", [*range(6), 75])
def test_random_graph(seed: int, symbolic: bool) -> None:
    compare(seed, symbolic=symbolic)


@pytest.mark.slow
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", range(6, 120))
def test_many_random_graphs(seed: int, symbolic: bool) -> None:
    compare(seed, symbolic=symbolic)
