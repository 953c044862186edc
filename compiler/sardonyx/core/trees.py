"""Decision trees: rows fall through them, and the leaves they come to vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.rules import tensors
from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes

__all__ = ["AGGREGATES"]

Array = np.ndarray[Any, Any]

AGGREGATES = {"sum": np.add, "min": np.minimum, "max": np.maximum}
_TABLES = ("features", "thresholds", "nan_true", "true_next", "false_next", "roots")
_VOTES = ("leaf_first", "vote_targets", "vote_weights")


def _rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The attribute `dtype`; (rows of x, `targets`)."""
    (x,) = tensors(types, "tree_ensemble")
    if x.rank != 2 or x.dtype not in (dtypes.f32, dtypes.f64):
        raise TypeRuleError(f"tree_ensemble: {x.describe()}; float32 or float64 of rank 2 is needed")
    if attributes["kind"] not in AGGREGATES:
        raise TypeRuleError(f"tree_ensemble: {attributes['kind']!r} is none of {', '.join(AGGREGATES)}")
    features = attributes["features"].array
    most = int(features.max(initial=-1))
    if features.min(initial=0) < 0:
        raise TypeRuleError(f"tree_ensemble: a node tests feature {int(features.min())}")
    if isinstance(x.shape[1], int) and most >= x.shape[1]:
        raise TypeRuleError(f"tree_ensemble: a node tests feature {most} of {x.describe()}")
    return [TensorType(attributes["dtype"], (x.shape[0], attributes["targets"]))]


def _leaves(attributes: Mapping[str, Any], x: Array, root: int) -> Array:
    """The leaf that each row comes to in one tree."""
    features, thresholds, nan_true, true_next, false_next, _ = (attributes[t].array for t in _TABLES)
    node = np.full(len(x), root, np.int64)
    rows = np.flatnonzero(node >= 0)
    while rows.size:
        at = node[rows]
        value = x[rows, features[at]]
        holds = (value <= thresholds[at]) | (np.isnan(value) & nan_true[at])
        node[rows] = np.where(holds, true_next[at], false_next[at])
        rows = rows[node[rows] >= 0]
    return ~node


def _evaluate(attributes: Mapping[str, Any], x: Array) -> Array:
    first, targets, weights = (attributes[t].array for t in _VOTES)
    combine = AGGREGATES[attributes["kind"]]
    shape = (len(x), attributes["targets"])
    total = np.zeros(shape)
    voted = np.zeros(shape, bool)
    for root in attributes["roots"].array.tolist():
        leaf = _leaves(attributes, x, root)
        most = int((first[leaf + 1] - first[leaf]).max(initial=0))
        for number in range(most):
            rows = np.flatnonzero(first[leaf] + number < first[leaf + 1])
            vote = first[leaf[rows]] + number
            target, weight = targets[vote], weights[vote].astype(np.float64)
            joined = combine(total[rows, target], weight)
            total[rows, target] = np.where(voted[rows, target], joined, weight)
            voted[rows, target] = True
    return rounding.to_float(total, attributes["dtype"].numpy)


declare(
    "core.tree_ensemble",
    "x",
    " ".join((*_TABLES, *_VOTES, "targets kind dtype")),
    infer=_rule,
    evaluate=_evaluate,
    doc=(
        "decision trees on the rows of x (rows, features). Node i goes on to true_next[i] if x[features[i]] <= "
        "thresholds[i], or if that is a NaN and nan_true[i]; else to false_next[i]; a number below 0 is the leaf ~number. "
        "Leaf j votes by vote_targets and vote_weights from leaf_first[j] to leaf_first[j + 1]. The votes for each target "
        "are combined in float64 (sum, min, max) in the order of the trees and rounded to `dtype`; without any vote 0"
    ),
    example=(
        "%y = core.tree_ensemble %x {features = dense<[0]> : tensor<1xi64>, thresholds = dense<[0.5]> : tensor<1xf32>, "
        "nan_true = dense<[false]> : tensor<1xi1>, true_next = dense<[-1]> : tensor<1xi64>, "
        "false_next = dense<[-2]> : tensor<1xi64>, roots = dense<[0]> : tensor<1xi64>, "
        "leaf_first = dense<[0, 1, 2]> : tensor<3xi64>, vote_targets = dense<[0, 0]> : tensor<2xi64>, "
        'vote_weights = dense<[1.0, 2.0]> : tensor<2xf32>, targets = 1, kind = "sum", dtype = f32} : '
        '(tensor<?x3xf32, #sdx.dims<"n", 3>>) -> tensor<?x1xf32, #sdx.dims<"n", 1>>'
    ),
)
