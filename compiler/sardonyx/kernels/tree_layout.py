"""Tables of trees as the two tree kernels read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.core.trees import AGGREGATES

__all__ = ["WALKS", "BitTables", "WalkTables", "bit_tables", "identity", "leaf_counts", "walk_tables"]

Array = np.ndarray[Any, Any]
WALKS = 8  # walks under way at a time


def identity(kind: str) -> float:
    """What a leaf that does not vote for a target adds."""
    return {"sum": 0.0, "min": np.inf, "max": -np.inf}[kind]


def _children(attributes: Mapping[str, Any]) -> tuple[Array, Array]:
    return (attributes[k].array.astype(np.int64) for k in ("true_next", "false_next"))  # type: ignore[return-value]


def leaf_counts(attributes: Mapping[str, Any], most: int) -> tuple[Array, Array]:
    """For each node its leaves, were every branch a tree of its own (cut off above ``most``), and its height."""
    yes, no = _children(attributes)
    count, height = np.ones(len(yes), np.int64), np.ones(len(yes), np.int64)
    while True:
        new_count = np.zeros(len(yes), np.int64)
        new_height = np.ones(len(yes), np.int64)
        for child in (yes, no):
            inner = child >= 0
            at = child[inner]
            new_count += np.where(inner, 0, 1)
            new_count[inner] += count[at]
            new_height[inner] = np.maximum(new_height[inner], height[at] + 1)
        new_count = np.minimum(new_count, most + 1)
        if (new_count == count).all() and (new_height == height).all():
            return count, height
        count, height = new_count, new_height


@dataclass
class _Votes:
    """For each tree: the targets it votes for, and for each of them a table of its leaves' weights."""

    first: Array  # by tree: its first entry below; one more at the end
    targets: Array
    tables: Array  # by entry: where its weights begin, minus the slot of the tree's first leaf
    weights: Array


def _votes(attributes: Mapping[str, Any], tree_of_slot: Array, leaf_of_slot: Array, trees: int) -> _Votes:
    """``slots`` are the leaves of all trees in a row, tree by tree."""
    leaf_first = attributes["leaf_first"].array.astype(np.int64)
    vote_targets = attributes["vote_targets"].array.astype(np.int64)
    vote_weights = attributes["vote_weights"].array.astype(np.float64)
    targets, kind = attributes["targets"], attributes["kind"]
    counts = leaf_first[leaf_of_slot + 1] - leaf_first[leaf_of_slot]
    slot = np.repeat(np.arange(len(leaf_of_slot)), counts)
    within = np.arange(len(slot)) - np.repeat(np.cumsum(counts) - counts, counts)
    vote = leaf_first[leaf_of_slot[slot]] + within
    pair = tree_of_slot[slot] * targets + vote_targets[vote]
    pairs, entry = np.unique(pair, return_inverse=True)
    tree = pairs // max(1, targets)
    slots_of_tree = np.bincount(tree_of_slot, minlength=trees)
    start_of_tree = np.cumsum(slots_of_tree) - slots_of_tree
    sizes = slots_of_tree[tree]
    tables = np.cumsum(sizes) - sizes
    weights = np.full(int(sizes.sum()), identity(kind))
    place = tables[entry] + slot - start_of_tree[tree_of_slot[slot]]
    AGGREGATES[kind].at(weights, place, vote_weights[vote])
    first = np.searchsorted(tree, np.arange(trees + 1))
    narrow = weights.astype(np.float32)
    return _Votes(first, pairs % max(1, targets), tables, narrow if (narrow == weights).all() else weights)


@dataclass
class BitTables:
    """Nodes tree by tree; in each tree first those that send a NaN the false way (see tree_bits.py).

    ``ends`` has three numbers per tree: the ends of its nodes of the two kinds, which are padded to pairs, and
    the end of its votes.  ``votes`` has the target of each vote and where its weights, one per leaf, begin.
    """

    features: Array
    thresholds: Array
    masks: Array
    ends: Array
    votes: Array
    weights: Array


def bit_tables(attributes: Mapping[str, Any], counts: Array) -> BitTables:
    """The tables of an ensemble whose trees have at most 64 leaves."""
    yes, no = _children(attributes)
    roots = attributes["roots"].array.astype(np.int64)
    trees = len(roots)
    leaf_number = np.concatenate([counts, [1]])  # by node; the last stands for a leaf
    tree, at, offset = np.arange(trees), roots, np.zeros(trees, np.int64)
    nodes: list[tuple[Array, Array, Array, Array]] = []
    leaves: list[tuple[Array, Array, Array]] = []
    while at.size:
        is_leaf = at < 0
        leaves.append((tree[is_leaf], offset[is_leaf], ~at[is_leaf]))
        tree, at, offset = tree[~is_leaf], at[~is_leaf], offset[~is_leaf]
        width = leaf_number[np.where(yes[at] < 0, len(counts), yes[at])]
        nodes.append((tree, at, offset, width))
        tree, at, offset = (
            np.tile(tree, 2),
            np.concatenate([yes[at], no[at]]),
            np.concatenate([offset, offset + width]),
        )
    leaf_tree, leaf_offset, leaf = (np.concatenate(c) for c in zip(*leaves, strict=True))
    order = np.lexsort((leaf_offset, leaf_tree))
    votes = _votes(attributes, leaf_tree[order], leaf[order], trees)
    node_tree, node, node_offset, node_width = (np.concatenate(c) for c in zip(*nodes, strict=True))
    tracks = attributes["nan_true"].array[node]
    word = np.uint32 if int(leaf_number[roots].max(initial=1)) <= 32 else np.uint64
    # Leaves that a false comparison rules out: those under the true branch.
    ones = (np.uint64(1) << node_width.astype(np.uint64)) - np.uint64(1)
    masks = ~(np.where(node_width >= 64, ~np.uint64(0), ones) << node_offset.astype(np.uint64))
    group = node_tree * 2 + tracks
    sizes = np.bincount(group, minlength=2 * trees)
    padded = sizes + sizes % 2
    starts = np.cumsum(padded) - padded
    features = attributes["features"].array[node]
    sequence = np.lexsort((features, group))
    rank = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[sequence]]
    place = starts[group[sequence]] + rank
    total = int(padded.sum())
    tables = (
        np.zeros(total, np.int32),
        np.full(total, np.inf, attributes["thresholds"].array.dtype),
        np.full(total, ~word(0), word),
    )
    thresholds = attributes["thresholds"].array[node]
    for table, values in zip(tables, (features, thresholds, masks.astype(word)), strict=True):
        table[place] = values[sequence]
    ends = np.cumsum(padded).reshape(-1, 2)
    return BitTables(
        *tables,
        np.concatenate([ends, votes.first[1:, None]], axis=1).astype(np.int32).reshape(-1),
        np.stack([votes.targets, votes.tables], axis=1).astype(np.int32).reshape(-1),
        votes.weights,
    )


@dataclass
class WalkTables:
    """Nodes by pairs: the record of a node's false branch stands behind that of its true branch.

    ``nodes`` has two numbers per record: twice the feature plus a flag, and the record of the true branch.
    The roots stand in front, every second one a filler, in groups of ``WALKS``.  A leaf leads to itself.
    The flag says that a NaN goes the false way or, if no node of the ensemble sends NaNs the true way, that
    the record is no leaf.  ``leaves`` has the leaf of a record, ``heights`` the steps of each group of
    ``WALKS`` trees and then of each tree.
    """

    nodes: Array
    thresholds: Array
    leaves: Array
    heights: Array
    leaf_first: Array
    votes: Array
    weights: Array


def walk_tables(attributes: Mapping[str, Any], heights: Array) -> WalkTables:
    """The tables of any ensemble."""
    yes, no = _children(attributes)
    trees, count = len(attributes["roots"].array), len(yes)
    leaf_first = attributes["leaf_first"].array.astype(np.int32)
    nobody = len(leaf_first) - 1  # a leaf without votes, for the groups' fillers
    padded = -(-trees // WALKS) * WALKS
    roots = np.full(padded, ~nobody, np.int64)
    roots[:trees] = attributes["roots"].array
    first = 2 * padded
    records = np.full(first + 2 * count, ~nobody, np.int64)
    records[0:first:2] = roots
    records[first::2], records[first + 1 :: 2] = yes, no
    inner = records >= 0
    at = records[inner]
    child = np.arange(len(records))
    child[inner] = first + 2 * at
    features = np.zeros(len(records), np.int64)
    features[inner] = attributes["features"].array[at]
    flag = inner.copy()
    flag[inner] &= ~attributes["nan_true"].array[at]
    thresholds = np.full(len(records), np.inf, attributes["thresholds"].array.dtype)
    thresholds[inner] = attributes["thresholds"].array[at]
    steps = np.zeros(padded, np.int64)
    steps[roots >= 0] = heights[roots[roots >= 0]]
    weights = attributes["vote_weights"].array.astype(np.float64)
    narrow = weights.astype(np.float32)
    return WalkTables(
        np.stack([2 * features + flag, child], axis=1).astype(np.int32).reshape(-1),
        thresholds,
        np.where(inner, nobody, ~records).astype(np.int32),
        np.concatenate([steps.reshape(-1, WALKS).max(axis=1), steps]).astype(np.int32),
        np.concatenate([leaf_first, leaf_first[-1:]]),
        attributes["vote_targets"].array.astype(np.int32),
        narrow if (narrow == weights).all() else weights,
    )
