"""Transposes that change the innermost axis."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.kernels.transpose import merged_axes

from ..helpers import check, make_model
from .targets import compile_for
from .test_contract import PATCH, numbers


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("target", ["host", "sse2"])
def test_matrices(dtype: str, symbolic: bool, target: str) -> None:
    sizes = [(1, 5), (2, 33), (3, 50), (4, 4), (16, 16), (17, 31), (40, 65), (5, 0)]
    for rows, columns in sizes if symbolic else sizes[1:6:2]:
        x = numbers((rows, columns), "uint8" if dtype == "bool" else dtype)
        x = x % 2 == 0 if dtype == "bool" else x
        dims = {"x": ["r", "c"]} if symbolic else {}
        compiled = compile_for(PATCH, make_model("y = Transpose (x)", {"x": x}, dims=dims), target)
        for r, c in sizes if symbolic else [(rows, columns)]:
            x = np.resize(x, (r, c))
            check(compiled.run([x])[0], x.T)
        if symbolic:
            break


PERMUTATIONS = [
    (0, 2, 3, 1),
    (0, 3, 1, 2),
    (3, 2, 1, 0),
    (1, 0, 3, 2),
    (2, 0, 1, 3),
    (0, 2, 1, 3),
    (3, 0, 1, 2),
]


@pytest.mark.parametrize("perm", PERMUTATIONS)
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 3, 20, 20), (2, 17, 1, 33)])
def test_permutations(perm: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    model = make_model(f"y = Transpose <perm = {list(perm)}> (x)", {"x": x})
    check(compile_for(PATCH, model).run([x])[0], x.transpose(perm))


def test_axes_merge() -> None:
    assert merged_axes((2, 3, 4, 5), (0, 2, 3, 1)) == ([2, 3, 20], [0, 2, 1])
    assert merged_axes((1, 3, 4, 5), (0, 2, 3, 1)) == ([3, 20], [1, 0])
    assert merged_axes((2, 3, 4), (0, 1, 2)) == ([24], [0])
    assert merged_axes((2, 3, 4), (2, 1, 0)) == ([2, 3, 4], [2, 1, 0])
