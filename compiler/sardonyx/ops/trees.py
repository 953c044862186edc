"""Tree ensembles of ai.onnx.ml: TreeEnsemble, and the regressor and classifier that it replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.ops.ml_scores import best_class, class_labels, post_transform, second_class
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.tree_tables import MODES, Forest, check_acyclic, one_comparison
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []

Array = np.ndarray[Any, Any]
ML = "ai.onnx.ml"
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(
    b: Builder,
    x: Value,
    *,
    tree_roots: tuple[int, ...],
    nodes_featureids: tuple[int, ...],
    nodes_splits: Dense,
    nodes_modes: Dense,
    nodes_truenodeids: tuple[int, ...],
    nodes_falsenodeids: tuple[int, ...],
    nodes_trueleafs: tuple[int, ...],
    nodes_falseleafs: tuple[int, ...],
    leaf_targetids: tuple[int, ...],
    leaf_weights: Dense,
    n_targets: int | None = None,
    aggregate_function: int = 1,
    post_transform: int = 0,
    membership_values: Dense | None = None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None = None,
    nodes_hitrates: Dense | None = None,
) -> Value:
    """The splits and weights have the type of x; float16 is compared as the float32 it is exactly."""
    modes = nodes_modes.array.astype(np.uint8)
    count, leaves = len(modes), len(leaf_targetids)
    _same_length(
        nodes_featureids, nodes_truenodeids, nodes_falsenodeids, nodes_trueleafs, nodes_falseleafs,
        nodes_splits.array, what="nodes", length=count,
    )  # fmt: skip
    _same_length(leaf_weights.array, what="leaf", length=leaves)
    if (modes > MODES["BRANCH_MEMBER"]).any():
        raise CompileError(f"nodes_modes has the number {int(modes.max())}; modes are 0 to 6")
    kind = dtypes.f64 if x.type.dtype is dtypes.f64 else dtypes.f32
    if tree_roots and not 0 <= min(tree_roots) <= max(tree_roots) < count:
        raise CompileError(
            f"tree_roots are {min(tree_roots)} to {max(tree_roots)}, but there are {count} nodes"
        )
    forest = Forest(
        np.asarray(nodes_featureids, np.int32),
        nodes_splits.array.astype(kind.numpy),
        _tracks(nodes_missing_value_tracks_true, count),
        _branch(nodes_truenodeids, nodes_trueleafs, count, leaves),
        _branch(nodes_falsenodeids, nodes_falseleafs, count, leaves),
        np.asarray(tree_roots, np.int64),
    )
    targets = n_targets if n_targets is not None else max(leaf_targetids, default=0) + 1
    members = _members(membership_values, int((modes == MODES["BRANCH_MEMBER"]).sum()), kind)
    votes = (np.arange(leaves + 1), np.asarray(leaf_targetids, np.int32), leaf_weights.array)
    aggregate = _AGGREGATES[aggregate_function]
    forest = one_comparison(forest, modes, members)
    score = _scores(b, b.convert(x, kind), forest, votes, targets, aggregate, x.type.dtype)
    return _transformed(b, score, _TRANSFORMS[post_transform])


def _branch(ids: Sequence[int], is_leaf: Sequence[int], nodes: int, leaves: int) -> Array:
    """Where a branch of each node leads."""
    at, leaf = np.asarray(ids, np.int64), np.asarray(is_leaf) != 0
    if ((at < 0) | (at >= np.where(leaf, leaves, nodes))).any():
        raise CompileError("a branch of a node leads to no node and no leaf")
    return np.asarray(np.where(leaf, ~at, at))


def _same_length(*tables: Any, what: str, length: int) -> None:
    if any(len(t) != length for t in tables):
        raise CompileError(
            f"the attributes {what}_* have unlike lengths: {', '.join(str(len(t)) for t in tables)}"
        )


def _tracks(given: Sequence[int] | None, count: int) -> Array:
    if given is None or len(given) == 0:
        return np.zeros(count, bool)
    _same_length(given, what="nodes", length=count)
    return np.asarray(np.asarray(given) != 0)


def _members(values: Dense | None, wanted: int, kind: DType) -> list[Array]:
    """The sets of the membership nodes, which NaNs end."""
    flat = np.zeros(0) if values is None else values.array.reshape(-1)
    ends = np.flatnonzero(np.isnan(flat))
    parts = np.split(flat.astype(kind.numpy), ends + 1)
    sets: list[Array] = [s[:-1] for s in parts[:-1]]
    sets += [s for s in parts[-1:] if len(s)]  # what stands behind the last NaN is a set if there is anything
    if len(sets) != wanted:
        raise CompileError(f"membership_values has {len(sets)} sets for {wanted} nodes of mode BRANCH_MEMBER")
    return sets


def _scores(
    b: Builder,
    x: Value,
    forest: Forest,
    votes: tuple[Any, Any, Any],
    targets: int,
    aggregate: str,
    dtype: DType,
) -> Value:
    """The combined votes of the leaves, without base values."""
    check_acyclic(forest)
    first, vote_targets, weights = votes
    if len(vote_targets) and not 0 <= int(vote_targets.min()) <= int(vote_targets.max()) < targets:
        raise CompileError(f"a leaf votes for target {int(vote_targets.max())} of {targets}")
    if isinstance(x.type.shape[1], Dim):
        least = int(forest.features.max(initial=-1)) + 1
        b.require("at_least", x.type.shape[1], least, f"the trees test feature {least - 1} of {x.name}")
    averaged = aggregate == "AVERAGE" and len(forest.roots)
    wide = dtypes.f64 if averaged else dtype
    score = b.op(
        "core.tree_ensemble",
        x,
        features=Dense(forest.features.astype(np.int32)),
        thresholds=Dense(forest.thresholds),
        nan_true=Dense(forest.nan_true),
        true_next=Dense(forest.true_next.astype(np.int32)),
        false_next=Dense(forest.false_next.astype(np.int32)),
        roots=Dense(forest.roots.astype(np.int32)),
        leaf_first=Dense(np.asarray(first, np.int32)),
        vote_targets=Dense(np.asarray(vote_targets, np.int32)),
        vote_weights=Dense(np.asarray(weights)),
        targets=targets,
        kind="sum" if aggregate in ("SUM", "AVERAGE") else aggregate.lower(),
        dtype=wide,
    )
    return b.convert(b.div(score, b.full(len(forest.roots), score)), dtype) if averaged else score


def _transformed(b: Builder, score: Value, name: str) -> Value:
    if score.type.dtype is dtypes.f16:
        return b.convert(post_transform(b, b.convert(score, dtypes.f32), name), dtypes.f16)
    return post_transform(b, score, name)


# -- the operators of versions 1 and 3


def _choose(floats: Any, tensor: Dense | None) -> Array:
    """An attribute that is there as floats or as a tensor of doubles."""
    if tensor is not None:
        return np.asarray(tensor.array).reshape(-1)
    return np.asarray(() if floats is None else floats, np.float32)


def _old_forest(
    x: Value, nodes: dict[str, Any], vote_nodes: Sequence[tuple[int, int]]
) -> tuple[Forest, Array, Array]:
    """The forest of nodes that are named by (tree, id); ``(forest, first votes of the leaves, order of the votes)``."""
    keys = list(zip(nodes["nodes_treeids"], nodes["nodes_nodeids"], strict=True))
    number = {key: i for i, key in enumerate(keys)}
    if len(number) != len(keys):
        raise CompileError("two nodes of a tree have the same id")
    unknown = set(nodes["nodes_modes"]) - (MODES.keys() - {"BRANCH_MEMBER"})
    if unknown:
        raise CompileError(f"nodes_modes has {sorted(unknown)[0]!r}; known are {', '.join(MODES)}")
    modes = np.array([MODES[m] for m in nodes["nodes_modes"]], np.uint8)
    is_leaf = modes == MODES["LEAF"]
    leaf_number = np.cumsum(is_leaf) - 1
    target = np.where(is_leaf, ~leaf_number, np.cumsum(~is_leaf) - 1)  # where a branch to this node goes
    trees = np.asarray(nodes["nodes_treeids"])
    kept = np.flatnonzero(~is_leaf)

    def branch(ids: Sequence[int]) -> Array:
        try:
            return np.array([target[number[int(trees[i]), ids[int(i)]]] for i in kept], np.int64)
        except KeyError as error:
            raise CompileError(
                f"a branch leads to the node {error.args[0][1]} that tree {error.args[0][0]} lacks"
            ) from None

    true_next, false_next = branch(nodes["nodes_truenodeids"]), branch(nodes["nodes_falsenodeids"])
    values = _choose(nodes["nodes_values"], nodes.get("nodes_values_as_tensor"))
    _same_length(nodes["nodes_featureids"], values, modes, what="nodes", length=len(keys))
    wide = x.type.dtype not in (dtypes.f32,) or values.dtype == np.float64
    forest = Forest(
        np.asarray(nodes["nodes_featureids"], np.int32)[kept],
        values[kept].astype(np.float64 if wide else np.float32),
        _tracks(nodes["nodes_missing_value_tracks_true"], len(keys))[kept],
        true_next,
        false_next,
        np.array([target[i] for i in _roots(trees, kept, true_next, false_next, target)], np.int64),
    )
    order = np.array(
        [leaf_number[number[key]] if is_leaf[number[key]] else -1 for key in vote_nodes], np.int64
    )
    if (order < 0).any():
        raise CompileError("a weight belongs to a node that is no leaf")
    sequence = np.argsort(order, kind="stable")
    first = np.searchsorted(order[sequence], np.arange(int(is_leaf.sum()) + 1))
    return one_comparison(forest, modes[kept], ()), first, sequence


def _roots(trees: Array, kept: Array, true_next: Array, false_next: Array, target: Array) -> list[int]:
    """The node of each tree that no branch leads to, in the order of the trees."""
    reached = set(true_next.tolist()) | set(false_next.tolist())
    roots: dict[int, int] = {}
    for i, (tree, at) in enumerate(zip(trees.tolist(), target.tolist(), strict=True)):
        if at not in reached:
            if tree in roots:
                raise CompileError(f"tree {tree} has two roots")
            roots[tree] = i
    missing = set(trees.tolist()) - roots.keys()
    if missing:
        raise CompileError(f"tree {min(missing)} has no root: its branches lead in a circle")
    return list(roots.values())


@onnx_op("TreeEnsembleRegressor", since=1, domain=ML)
def tree_ensemble_regressor(
    b: Builder,
    x: Value,
    *,
    n_targets: int | None = None,
    aggregate_function: str = "SUM",
    post_transform: str = "NONE",
    base_values: Any = None,
    base_values_as_tensor: Dense | None = None,
    target_treeids: tuple[int, ...] = (),
    target_nodeids: tuple[int, ...] = (),
    target_ids: tuple[int, ...] = (),
    target_weights: Any = None,
    target_weights_as_tensor: Dense | None = None,
    nodes_values: Any = None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None = None,
    nodes_hitrates: Any = None,
    nodes_hitrates_as_tensor: Dense | None = None,
    **nodes: Any,
) -> Value:
    """The result is float32 whatever x is; it is rounded once, from a sum in float64."""
    weights = _choose(target_weights, target_weights_as_tensor)
    _same_length(target_nodeids, target_ids, weights, what="target", length=len(target_treeids))
    nodes |= {
        "nodes_values": nodes_values,
        "nodes_missing_value_tracks_true": nodes_missing_value_tracks_true,
    }
    forest, first, order = _old_forest(x, nodes, list(zip(target_treeids, target_nodeids, strict=True)))
    targets = n_targets if n_targets is not None else max(target_ids, default=0) + 1
    votes = (first, np.asarray(target_ids, np.int32)[order], weights[order])
    wide = b.convert(x, dtypes.by_numpy(forest.thresholds.dtype))
    if aggregate_function not in _AGGREGATES:
        raise CompileError(
            f"aggregate_function is {aggregate_function!r}; known are {', '.join(_AGGREGATES)}"
        )
    score = _scores(b, wide, forest, votes, targets, aggregate_function, dtypes.f64)
    score = _with_base(b, score, _choose(base_values, base_values_as_tensor))
    return _transformed(b, b.convert(score, dtypes.f32), post_transform)


def _with_base(b: Builder, score: Value, base: Array) -> Value:
    if not len(base):
        return score
    _same_length(base, what="base", length=int(score.type.shape[1]))
    return b.add(score, b.broadcast_to(b.constant(base.astype(np.float64)), score.type.shape))


@onnx_op("TreeEnsembleClassifier", since=1, domain=ML)
def tree_ensemble_classifier(
    b: Builder,
    x: Value,
    *,
    post_transform: str = "NONE",
    base_values: Any = None,
    base_values_as_tensor: Dense | None = None,
    class_treeids: tuple[int, ...] = (),
    class_nodeids: tuple[int, ...] = (),
    class_ids: tuple[int, ...] = (),
    class_weights: Any = None,
    class_weights_as_tensor: Dense | None = None,
    classlabels_int64s: tuple[int, ...] = (),
    classlabels_strings: tuple[str, ...] = (),
    nodes_values: Any = None,
    nodes_missing_value_tracks_true: tuple[int, ...] | None = None,
    nodes_hitrates: Any = None,
    nodes_hitrates_as_tensor: Dense | None = None,
    **nodes: Any,
) -> tuple[Value, Value]:
    """The class with the highest score, and the scores.

    Two classes may share one column of weights: the score of the other is then its complement, see
    :func:`sardonyx.ops.ml_scores.second_class`.
    """
    weights = _choose(class_weights, class_weights_as_tensor)
    _same_length(class_nodeids, class_ids, weights, what="class", length=len(class_treeids))
    nodes |= {
        "nodes_values": nodes_values,
        "nodes_missing_value_tracks_true": nodes_missing_value_tracks_true,
    }
    forest, first, order = _old_forest(x, nodes, list(zip(class_treeids, class_nodeids, strict=True)))
    labels = len(classlabels_int64s) or len(classlabels_strings)
    votes = (first, np.asarray(class_ids, np.int32)[order], weights[order])
    wide = b.convert(x, dtypes.by_numpy(forest.thresholds.dtype))
    base = _choose(base_values, base_values_as_tensor)
    score = _scores(b, wide, forest, votes, labels, "SUM", dtypes.f64)
    named = classlabels_int64s or classlabels_strings
    if labels == 2 and len(set(class_ids)) == 1:
        positive = not (weights < 0).any()
        shared = b.op("core.slice", score, starts=(0, class_ids[0]), sizes=(x.type.shape[0], 1), steps=(1, 1))
        label, z = second_class(b, shared, class_ids[0], base, positive, post_transform)
    else:
        score = b.convert(_with_base(b, score, base), dtypes.f32)
        label, z = best_class(b, score), _transformed(b, score, post_transform)
    return class_labels(b, label, named), z
