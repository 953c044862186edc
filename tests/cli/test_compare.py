"""Comparing two outputs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.cli.compare import compare_arrays, ulp_distance

FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_one_ulp_apart(dtype: Any) -> None:
    info = ml_dtypes.finfo(dtype)
    tiny = np.array([info.smallest_subnormal], dtype)
    zero, one = np.zeros(1, dtype), np.ones(1, dtype)
    assert ulp_distance(tiny, zero) == 1
    assert ulp_distance(tiny, -tiny) == 2
    assert ulp_distance(zero, -zero) == 0
    assert ulp_distance(one, (one + np.array(info.eps, dtype)).astype(dtype)) == 1


def test_distances_do_not_overflow() -> None:
    largest = np.array([np.finfo(np.float64).max])
    assert ulp_distance(largest, -largest) == 2 * int(largest.view(np.uint64)[0])


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.uint64, np.bool_, np.complex64])
def test_equal_is_identical(dtype: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    result = compare_arrays(array, array.copy())
    assert result.good and result.verdict == "identical"
    assert result.max_absolute == 0


def test_zeros_of_unlike_sign_are_equal_but_not_identical() -> None:
    result = compare_arrays(np.array([0.0]), np.array([-0.0]))
    assert result.verdict == "equal" and result.max_ulp == 0


def test_within_the_tolerance() -> None:
    result = compare_arrays(np.float32([1, 1000]), np.float32([1.00001, 1000.01]))
    assert result.verdict == "equal"
    assert result.max_absolute == pytest.approx(0.01, rel=1e-2)
    assert result.max_ulp is not None and result.max_ulp > 1


@pytest.mark.parametrize(
    ("got", "want"),
    [
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, np.nan]),
        ([np.inf], [-np.inf]),
        ([np.inf], [1e30]),
        ([1.0], [1.1]),
    ],
)
def test_floats_that_differ(got: list[float], want: list[float]) -> None:
    result = compare_arrays(np.float32(got), np.float32(want))
    assert not result.good
    assert "elements beyond" in result.why and "instead of" in result.why


def test_nan_equals_nan_and_infinity_itself() -> None:
    array = np.float32([np.nan, np.inf, -np.inf])
    assert compare_arrays(array, array.copy()).verdict == "identical"


def test_integers_are_compared_exactly() -> None:
    big = np.array([2**63 + 1], np.uint64)
    result = compare_arrays(big, big - np.uint64(1))
    assert not result.good and "1 of 1 elements" in result.why


@pytest.mark.parametrize(
    ("got", "want"), [(np.zeros(2, np.float32), np.zeros(2)), (np.zeros((2, 1)), np.zeros((1, 2)))]
)
def test_other_type_or_shape(got: Any, want: Any) -> None:
    result = compare_arrays(got, want)
    assert not result.good and "instead of" in result.why


def test_strings() -> None:
    words = np.array(["a", "b"], object)
    assert compare_arrays(words, words.copy()).good
    assert not compare_arrays(words, words[::-1]).good


@pytest.mark.parametrize("dtype", FLOATS)
def test_nothing_to_compare(dtype: Any) -> None:
    assert compare_arrays(np.zeros((0, 3), dtype), np.zeros((0, 3), dtype)).verdict == "identical"
