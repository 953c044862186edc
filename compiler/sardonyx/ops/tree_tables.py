"""Trees as ONNX gives them, brought to one form: every node asks ``x <= threshold``.

The other comparisons follow from that one.  ``x < t`` is ``x <= p`` with p the number below t; ``>=`` and
``>`` are the complements, so their branches change places, and so does the way of a NaN.  Equality and set
membership are a binary search among such comparisons.  A node that several branches lead to is one node:
tables of trees are acyclic graphs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.errors import CompileError

__all__ = ["MODES", "Forest", "check_acyclic", "one_comparison"]

Array = np.ndarray[Any, Any]

MODES = {
    name: number
    for number, name in enumerate(
        "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ BRANCH_MEMBER LEAF".split()
    )
}
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _MEMBER, _ = MODES.values()


@dataclass
class Forest:
    """Nodes by number.  A branch to a number below 0 leads to the leaf ~number, a root below 0 is a leaf."""

    features: Array
    thresholds: Array
    nan_true: Array
    true_next: Array
    false_next: Array
    roots: Array


def one_comparison(forest: Forest, modes: Array, members: Sequence[Array]) -> Forest:
    """The forest with all nodes as ``x <= threshold``.

    ``modes`` says what each node of the given forest compares; ``members`` are the sets of the nodes of
    mode BRANCH_MEMBER, in the order of the nodes.
    """
    thresholds, nan_true = forest.thresholds.copy(), forest.nan_true.copy()
    true_next, false_next = forest.true_next.copy(), forest.false_next.copy()
    below = (modes == _LT) | (modes == _GTE)
    with np.errstate(all="ignore"):
        thresholds[below] = _number_below(thresholds[below])
    turned = (modes == _GTE) | (modes == _GT) | (modes == _NEQ)
    true_next[turned], false_next[turned] = false_next[turned], true_next[turned]
    nan_true = np.where(turned, ~nan_true, nan_true)
    nan_true[modes == _NEQ] = (
        False  # a NaN is unlike every number: it took the true branch, now the false one
    )
    never = np.isnan(thresholds) & (modes < _EQ)
    _never_true(thresholds, nan_true, true_next, false_next, never)
    result = Forest(forest.features, thresholds, nan_true, true_next, false_next, forest.roots)
    sets = iter(members)
    found: list[tuple[int, Array]] = []
    for node in np.flatnonzero((modes >= _EQ) & (modes <= _MEMBER)).tolist():
        values = next(sets) if modes[node] == _MEMBER else forest.thresholds[node : node + 1]
        found.append((node, np.unique(values[~np.isnan(values)])))
    return _search_sets(result, found) if found else result


def _number_below(x: Array) -> Array:
    """The next smaller number; a NaN below -inf and for a NaN."""
    return np.where(x == -np.inf, np.nan, np.nextafter(x, np.asarray(-np.inf, x.dtype))).astype(x.dtype)


def _never_true(
    thresholds: Array, nan_true: Array, true_next: Array, false_next: Array, never: Array
) -> None:
    """Comparisons that hold for no number: only NaNs may still take the true branch."""
    if never.any():
        swapped = never & nan_true
        true_next[swapped], false_next[swapped] = false_next[swapped], true_next[swapped]
        thresholds[never] = np.inf
        nan_true[never] = False
        plain = never & ~swapped
        true_next[plain] = false_next[plain]


def _search_sets(forest: Forest, sets: Sequence[tuple[int, Array]]) -> Forest:
    """Nodes that ask for membership in a set of numbers become binary searches among its bounds."""
    tables: list[list[Any]] = [
        t.tolist()
        for t in (forest.features, forest.thresholds, forest.nan_true, forest.true_next, forest.false_next)
    ]
    features, thresholds, nan_true, true_next, false_next = tables
    kind = forest.thresholds.dtype

    def put(node: int, threshold: float, yes: int, no: int) -> int:
        thresholds[node], nan_true[node], true_next[node], false_next[node] = threshold, False, yes, no
        return node

    def add(feature: int, threshold: float, yes: int, no: int) -> int:
        for table, item in zip(tables, (feature, threshold, False, yes, no), strict=True):
            table.append(item)
        return len(features) - 1

    for node, values in sets:
        feature, tracks, inside, outside = features[node], nan_true[node], true_next[node], false_next[node]
        below = _number_below(values)
        bounds = np.stack([below, values], axis=1).reshape(-1)
        bounds = bounds[1:] if len(values) and np.isnan(below[0]) else bounds
        first_inside = len(bounds) % 2 == 1  # the set has -inf

        def search(low: int, high: int, feature: int, regions: tuple[int, int], bounds: Array) -> int:
            """The branch that finds the region of x among those from low to high."""
            if low == high:
                return regions[low % 2]
            middle = (low + high) // 2
            left = search(low, middle, feature, regions, bounds)
            right = search(middle + 1, high, feature, regions, bounds)
            return add(feature, float(bounds[middle]), left, right)

        regions = (inside, outside) if first_inside else (outside, inside)
        branch = search(0, len(bounds), feature, regions, bounds)
        # The node itself: numbers go on to the search, a NaN is outside unless it is told to go the true way.
        put(node, float("inf"), branch, inside if tracks else outside)
    return Forest(
        np.asarray(features, np.int32),
        np.asarray(thresholds, kind),
        np.asarray(nan_true, np.bool_),
        np.asarray(true_next, np.int64),
        np.asarray(false_next, np.int64),
        forest.roots,
    )


def check_acyclic(forest: Forest) -> None:
    """CompileError if a branch leads to no node, or back to where it came from."""
    count = len(forest.features)
    for table in (forest.true_next, forest.false_next, forest.roots):
        if (table >= count).any():
            raise CompileError(
                f"a branch of a tree leads to node {int(table.max())}, but there are {count} nodes"
            )
    waiting = np.unique(forest.roots[forest.roots >= 0])
    for _ in range(count + 1):
        if not waiting.size:
            return
        following = np.concatenate([forest.true_next[waiting], forest.false_next[waiting]])
        waiting = np.unique(following[following >= 0])
    raise CompileError("the branches of a tree lead in a circle")
