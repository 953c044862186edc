"""Graphs made at random give the same compiled as interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.frontend import import_model
from sardonyx.ir.compare import same
from sardonyx.ir.graph import Module
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module
from sardonyx.pass_manager import PassRun, run_steps
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target

from ..helpers import Array, check, make_model, prepare
from .random_graphs import CONSTANTS, FEEDS, Graphs


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


@pytest.mark.parametrize("seed", range(8))
def test_passes_leave_valid_ir_and_say_whether_they_changed_it(seed: int) -> None:
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 12, 2)
    module = import_model(
        make_model(
            nodes, FEEDS, dims={"x": ["n", 4], "z": ["n", 4]}, constants=CONSTANTS, outputs=values[-1:]
        )
    )
    texts = [print_module(module)]

    def observe(run: PassRun, module: Module) -> None:
        texts.append(print_module(module))
        assert run.changed == (texts[-1] != texts[-2]), run.label
        assert same(parse_module(print_module(module, elide=None)), module) is None, run.label

    run_steps(module, pipeline(host_target()), [observe], verify_each=True)


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
