"""The interpreter of the core level: signatures, dims, faults; and that passes change no result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sardonyx.core.interpret import interpret
from sardonyx.errors import RuntimeFault
from sardonyx.frontend import import_model
from sardonyx.pass_manager import run_steps
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target

from ..case_files import Case, read_cases
from ..helpers import check, make_model, prepare

CASES = [c for c in read_cases(Path(__file__).parents[1] / "ops" / "elementwise_cases.txt") if not c.fails]

ONES = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_passes_change_no_result(case: Case) -> None:
    model = make_model(
        case.nodes, case.inputs, opset=case.opset, constants=case.constants, outputs=list(case.outputs)
    )
    module = import_model(model)
    run_steps(module, pipeline(host_target())[:6])
    got = interpret(module.main, [case.inputs[a.name] for a in module.main.arguments])
    for fused, plain in zip(got, prepare(model)(case.inputs), strict=True):
        check(fused, plain, nan_bits=True)


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ([], ("2 inputs", "0 are given")),
        ([ONES, ONES.astype(np.float64)], ("'y'", "float[n, 3]", "double[2, 3]")),
        ([ONES, ONES[0]], ("'y'", "float[3]")),
        ([ONES, np.ones((4, 3), np.float32)], ("'y'", "[4, 3]", "n, which is 2")),
        ([ONES, np.ones((2, 4), np.float32)], ("'y'", "axis 1", "3")),
    ],
)
def test_feeds_that_do_not_fit(feeds: list[np.ndarray], words: tuple[str, ...]) -> None:
    dims = {"x": ["n", 3], "y": ["n", 3]}
    run = prepare(make_model("z = Add (x, y)", {"x": ONES, "y": ONES}, dims=dims))
    with pytest.raises(RuntimeFault) as fault:
        run(feeds)
    assert all(word in str(fault.value) for word in words), str(fault.value)


def test_results_are_owned() -> None:
    x = ONES.copy()
    (y,) = prepare(make_model("y = Identity (x)", {"x": x}))([x])
    x[:] = 5
    check(y, ONES)


def test_an_index_out_of_range_names_the_node() -> None:
    x, indices = np.arange(4), np.array([0, -4, 3])
    run = prepare(make_model("[pick] y = Gather (x, i)", {"x": x, "i": indices}))
    check(run([x, indices])[0], np.array([0, 0, 3]))
    for wrong in (4, -5):
        with pytest.raises(RuntimeFault, match=f"pick.*{wrong}.*4") as fault:
            run([x, np.array([0, wrong, 1])])
        assert fault.value.node == "pick"


def test_dims_read_from_data() -> None:
    x, shape = np.arange(6), np.array([2, 3])
    run = prepare(make_model("[fold] y = Reshape (x, s)", {"x": x, "s": shape}))
    check(run([x, shape])[0], x.reshape(2, 3))
    with pytest.raises(RuntimeFault, match="fold"):
        run([x, np.array([2, 4])])


def test_dims_as_values() -> None:
    nodes = ["s = Shape (x)", "one = Constant <value_ints = [1]> ()", "y = Add (s, one)"]
    run = prepare(make_model(nodes, {"x": ONES}, dims={"x": ["n", "m"]}))
    check(run([ONES])[0], np.array([3, 4]))
