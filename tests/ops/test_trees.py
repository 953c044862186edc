"""Tree ensembles of ai.onnx.ml against a plain walk by the operator's text, and against onnxruntime."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.helpers import check, each_engine, run_model

import sardonyx
from sardonyx_runtime import dtypes

Array = np.ndarray[Any, Any]
MODES = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ BRANCH_MEMBER".split()


class Forest:
    """Random trees in the form of TreeEnsemble 5: nodes and leaves by number."""

    def __init__(
        self,
        seed: int,
        *,
        trees: int,
        depth: int,
        features: int,
        targets: int,
        kind: Any,
        modes: str,
        tracks: bool,
    ) -> None:
        self.rng = np.random.RandomState(seed)
        self.kind, self.features, self.targets = np.dtype(kind), features, targets
        self.choice = [MODES.index(m) for m in modes.split()]
        self.tracked = tracks
        self.nodes: list[dict[str, Any]] = []
        self.leaves: list[tuple[int, float]] = []
        self.sets: list[Array] = []
        self.roots = []
        for _ in range(trees):
            self.roots.append(self._node(depth))

    def number(self) -> float:
        return float(self.kind.type(self.rng.choice([-1.5, -1, -0.0, 0.0, 0.5, 1, 1.25, self.rng.randn()])))

    def _node(self, depth: int) -> int:
        at = len(self.nodes)
        mode = int(self.rng.choice(self.choice))
        node = {
            "mode": mode,
            "feature": int(self.rng.randint(self.features)),
            "split": self.number(),
            "tracks": int(self.rng.rand() < 0.5) if self.tracked else 0,
            "set": [self.number() for _ in range(self.rng.randint(1, 4))]
            if MODES[mode] == "BRANCH_MEMBER"
            else [],
        }
        self.nodes.append(node)
        for side in ("true", "false"):
            leaf = depth <= 1 or self.rng.rand() < 0.25
            node[f"{side}_leaf"] = int(leaf)
            node[side] = self._leaf() if leaf else self._node(depth - 1)
        return at

    def _leaf(self) -> int:
        self.leaves.append((int(self.rng.randint(self.targets)), float(self.kind.type(self.rng.randn()))))
        return len(self.leaves) - 1

    def holds(self, node: dict[str, Any], x: float) -> bool:
        """The comparison of a node by the operator's text."""
        if math.isnan(x):
            return bool(node["tracks"]) or MODES[node["mode"]] == "BRANCH_NEQ"
        split = node["split"]
        tests = (x <= split, x < split, x >= split, x > split, x == split, x != split, x in node["set"])
        return bool(tests[node["mode"]])

    def leaf(self, root: int, x: Array) -> int:
        at, is_leaf = root, 0
        while not is_leaf:
            node = self.nodes[at]
            side = "true" if self.holds(node, float(x[node["feature"]])) else "false"
            at, is_leaf = node[side], node[f"{side}_leaf"]
        return at

    def scores(self, x: Array, aggregate: str = "SUM") -> Array:
        total = np.zeros((len(x), self.targets))
        voted = np.zeros(total.shape, bool)
        combine = {"MIN": min, "MAX": max}.get(aggregate, lambda a, b: a + b)
        for row, line in enumerate(x):
            for root in self.roots:
                target, weight = self.leaves[self.leaf(root, line)]
                total[row, target] = combine(total[row, target], weight) if voted[row, target] else weight
                voted[row, target] = True
        return total / len(self.roots) if aggregate == "AVERAGE" else total

    def column(self, name: str) -> list[Any]:
        return [n[name] for n in self.nodes]

    def model(self, **attributes: Any) -> onnx.ModelProto:
        def tensor(values: Any, kind: Any = self.kind) -> onnx.TensorProto:
            return numpy_helper.from_array(np.asarray(values, kind))

        members = [v for n in self.nodes if n["set"] for v in (*n["set"], math.nan)]
        if members:
            attributes["membership_values"] = tensor(members)
        if self.tracked:
            attributes["nodes_missing_value_tracks_true"] = self.column("tracks")
        node = helper.make_node(
            "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=self.targets, tree_roots=self.roots,
            nodes_featureids=self.column("feature"), nodes_splits=tensor(self.column("split")),
            nodes_modes=tensor(self.column("mode"), np.uint8), nodes_truenodeids=self.column("true"),
            nodes_falsenodeids=self.column("false"), nodes_trueleafs=self.column("true_leaf"),
            nodes_falseleafs=self.column("false_leaf"), leaf_targetids=[t for t, _ in self.leaves],
            leaf_weights=tensor([w for _, w in self.leaves]), **attributes,
        )  # fmt: skip
        return ml_model([node], self.kind, ("n", self.features), {"y": self.kind})

    def rows(self, count: int) -> Array:
        x = np.array([[self.number() for _ in range(self.features)] for _ in range(count)], self.kind)
        x[self.rng.rand(*x.shape) < 0.1] = np.nan
        x[self.rng.rand(*x.shape) < 0.03] = -np.inf
        x[self.rng.rand(*x.shape) < 0.03] = np.inf
        return x


def ml_model(
    nodes: list[Any], kind: Any, shape: Any, outputs: dict[str, Any], version: int = 5
) -> onnx.ModelProto:
    def info(name: str, dtype: Any, dims: Any) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtypes.by_numpy(dtype).onnx, dims)

    graph = helper.make_graph(
        nodes, "test", [info("x", kind, shape)], [info(n, d, None) for n, d in outputs.items()]
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


ORDERED = "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT"
EVERY = " ".join(MODES)


@each_engine
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("modes, depth", [("BRANCH_LEQ", 4), (ORDERED, 5), (EVERY, 3), (EVERY, 7)])
@pytest.mark.parametrize("tracks", [False, True])
def test_tree_ensemble(kind: Any, modes: str, depth: int, tracks: bool, engine: str) -> None:
    forest = Forest(depth, trees=9, depth=depth, features=5, targets=3, kind=kind, modes=modes, tracks=tracks)
    for rows in (1, 3, 8, 16, 70):
        x = forest.rows(rows)
        check(run_model(forest.model(), [x], engine)[0], forest.scores(x).astype(kind), zero_signs=False)


@each_engine
@pytest.mark.parametrize("aggregate", ["AVERAGE", "SUM", "MIN", "MAX"])
def test_aggregates(aggregate: str, engine: str) -> None:
    forest = Forest(1, trees=6, depth=3, features=4, targets=2, kind=np.float32, modes=ORDERED, tracks=True)
    x = forest.rows(11)
    number = ["AVERAGE", "SUM", "MIN", "MAX"].index(aggregate)
    got = run_model(forest.model(aggregate_function=number), [x], engine)[0]
    check(got, forest.scores(x, aggregate).astype(np.float32), ulp=1, zero_signs=False)


@each_engine
@pytest.mark.parametrize("modes, depth", [("BRANCH_LEQ", 9), (EVERY, 9)])
def test_large_trees_are_walked(modes: str, depth: int, engine: str) -> None:
    forest = Forest(
        5, trees=19, depth=depth, features=7, targets=2, kind=np.float64, modes=modes, tracks=True
    )
    assert max(len(forest.nodes), 64) > 64 * 19 / 4
    for rows in (1, 8, 21):
        x = forest.rows(rows)
        check(run_model(forest.model(), [x], engine)[0], forest.scores(x), zero_signs=False)


@each_engine
def test_float16(engine: str) -> None:
    forest = Forest(2, trees=5, depth=4, features=3, targets=2, kind=np.float16, modes=EVERY, tracks=True)
    x = forest.rows(20)
    check(run_model(forest.model(), [x], engine)[0], forest.scores(x).astype(np.float16), zero_signs=False)


def test_nothing_to_do() -> None:
    """No rows."""
    forest = Forest(2, trees=5, depth=3, features=3, targets=2, kind=np.float32, modes=ORDERED, tracks=False)
    assert sardonyx.compile(forest.model()).run([np.zeros((0, 3), np.float32)])[0].shape == (0, 2)


def softmax(s: Array) -> Array:
    grown = np.exp(s - s.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


@each_engine
@pytest.mark.parametrize("number, transform", [(1, softmax), (2, lambda s: 1 / (1 + np.exp(-s)))])
def test_post_transform(number: int, transform: Any, engine: str) -> None:
    """The numbers of the standard; onnxruntime 1.32 takes 1 for LOGISTIC and 2 for SOFTMAX."""
    forest = Forest(
        3, trees=7, depth=3, features=3, targets=3, kind=np.float32, modes="BRANCH_LEQ", tracks=False
    )
    model, x = forest.model(post_transform=number), forest.rows(9)
    want = transform(forest.scores(x)).astype(np.float32)
    check(run_model(model, [x], engine)[0], want, rtol=1e-5, atol=1e-7)


@each_engine
def test_probit(engine: str) -> None:
    """The inverse of the normal distribution, not the approximation to three digits that others use."""
    special = pytest.importorskip("mpmath")
    forest = Forest(
        3, trees=1, depth=6, features=3, targets=1, kind=np.float32, modes="BRANCH_LEQ", tracks=False
    )
    forest.leaves = [(0, float(np.float32(p))) for p in np.linspace(1e-6, 1 - 1e-6, len(forest.leaves))]
    model, x = forest.model(post_transform=4), forest.rows(50)
    want = [[float(special.sqrt(2) * special.erfinv(2 * p - 1))] for (p,) in forest.scores(x).tolist()]
    check(run_model(model, [x], engine)[0], np.array(want, np.float32), rtol=2e-6, atol=1e-6)


def test_a_tree_with_a_circle_is_refused() -> None:
    forest = Forest(
        3, trees=1, depth=3, features=3, targets=1, kind=np.float32, modes="BRANCH_LEQ", tracks=False
    )
    for node in forest.nodes:
        node["true"], node["true_leaf"] = 0, 0
    with pytest.raises(sardonyx.CompileError, match="circle"):
        sardonyx.compile(forest.model())


def test_a_feature_that_is_not_there_is_refused() -> None:
    forest = Forest(
        3, trees=2, depth=3, features=3, targets=1, kind=np.float32, modes="BRANCH_LEQ", tracks=False
    )
    model = forest.model()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    with pytest.raises(sardonyx.CompileError, match="feature"):
        sardonyx.compile(model)


# -- the operators of versions 1 and 3


def old_tables(forest: Forest) -> tuple[dict[str, list[Any]], dict[int, tuple[int, int]]]:
    """The nodes' attributes of the older operators, and the (tree, id) of each leaf."""
    columns: dict[str, list[Any]] = {
        f"nodes_{c}": []
        for c in "treeids nodeids featureids modes values truenodeids falsenodeids missing_value_tracks_true".split()
    }
    place_of_leaf: dict[int, tuple[int, int]] = {}

    def put(
        tree: int, identity: int, feature: int, mode: str, value: float, yes: int, no: int, tracks: int
    ) -> None:
        row = (tree, identity, feature, mode, value, yes, no, tracks)
        for column, item in zip(columns.values(), row, strict=True):
            column.append(item)

    for tree, root in enumerate(forest.roots):
        count = 0

        def visit(at: int, leaf: int, tree: int = tree) -> int:
            nonlocal count
            identity = count
            count += 1
            if leaf:
                put(tree, identity, 0, "LEAF", 0.0, 0, 0, 0)
                place_of_leaf[at] = (tree, identity)
                return identity
            node = forest.nodes[at]
            row = len(columns["nodes_modes"])
            mode = MODES[node["mode"]]
            put(tree, identity, node["feature"], mode, node["split"], 0, 0, node["tracks"])
            columns["nodes_truenodeids"][row] = visit(node["true"], node["true_leaf"])
            columns["nodes_falsenodeids"][row] = visit(node["false"], node["false_leaf"])
            return identity

        visit(root, 0)
    return columns, place_of_leaf


def regressor(forest: Forest, x_kind: Any, *, double: bool, **attributes: Any) -> onnx.ModelProto:
    columns, places = old_tables(forest)
    weights = [w for _, w in forest.leaves]
    if double:
        columns["nodes_values_as_tensor"] = numpy_helper.from_array(np.array(columns.pop("nodes_values")))
        attributes["target_weights_as_tensor"] = numpy_helper.from_array(np.array(weights))
    else:
        attributes["target_weights"] = weights
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=forest.targets,
        target_treeids=[places[i][0] for i in range(len(weights))],
        target_nodeids=[places[i][1] for i in range(len(weights))],
        target_ids=[t for t, _ in forest.leaves], **columns, **attributes,
    )  # fmt: skip
    return ml_model([node], x_kind, ("n", forest.features), {"y": np.float32}, 3)


WITHOUT_SETS = " ".join(MODES[:-1])


@each_engine
@pytest.mark.parametrize("aggregate", ["AVERAGE", "SUM", "MIN", "MAX"])
@pytest.mark.parametrize("x_kind", [np.float32, np.float64])
def test_regressor(x_kind: Any, aggregate: str, engine: str) -> None:
    double = x_kind is np.float64
    forest = Forest(8, trees=5, depth=4, features=4, targets=2, kind=x_kind, modes=WITHOUT_SETS, tracks=True)
    base = (
        {"base_values_as_tensor": numpy_helper.from_array(np.array([0.5, -1.0]))}
        if double
        else {"base_values": [0.5, -1.0]}
    )
    model = regressor(forest, x_kind, double=double, aggregate_function=aggregate, **base)
    x = forest.rows(13)
    want = (forest.scores(x, aggregate) + np.array([0.5, -1.0])).astype(np.float32)
    check(run_model(model, [x], engine)[0], want, zero_signs=False)


@each_engine
@pytest.mark.parametrize("x_kind", [np.int32, np.int64])
def test_regressor_of_integers(x_kind: Any, engine: str) -> None:
    forest = Forest(
        8, trees=5, depth=4, features=4, targets=2, kind=np.float32, modes=WITHOUT_SETS, tracks=True
    )
    model = regressor(forest, x_kind, double=False)
    x = np.random.RandomState(0).randint(-2, 3, (17, 4)).astype(x_kind)
    want = forest.scores(x.astype(np.float64)).astype(np.float32)
    check(run_model(model, [x], engine)[0], want, zero_signs=False)


def classifier(
    forest: Forest, ids: list[int], weights: list[float], labels: Any, **attributes: Any
) -> onnx.ModelProto:
    columns, places = old_tables(forest)
    of_text = isinstance(labels[0], str)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "z"], domain="ai.onnx.ml",
        class_treeids=[places[i][0] for i in range(len(ids))], class_nodeids=[places[i][1] for i in range(len(ids))],
        class_ids=ids, class_weights=weights, **{f"classlabels_{'strings' if of_text else 'int64s'}": labels},
        **columns, **attributes,
    )  # fmt: skip
    kinds = {"label": np.dtype(object) if of_text else np.int64, "z": np.float32}
    return ml_model([node], np.float32, ("n", forest.features), kinds, 3)


@each_engine
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -3, 5]])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_classifier(labels: list[int], transform: str, engine: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    forest = Forest(
        8, trees=25, depth=4, features=4, targets=3, kind=np.float32, modes="BRANCH_LT", tracks=True
    )
    ids, weights = [t for t, _ in forest.leaves], [abs(w) for _, w in forest.leaves]
    model = classifier(forest, ids, weights, labels, post_transform=transform)
    x = forest.rows(33)
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    got = run_model(model, [x], engine)
    check(got[0], want[0])
    check(got[1], want[1], rtol=2e-6, atol=1e-7)


@each_engine
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("column, base", [(0, None), (1, None), (0, [0.25])])
def test_two_classes_with_one_score(
    transform: str, positive: bool, column: int, base: Any, engine: str
) -> None:
    """With base values for the second column onnxruntime leaves out the votes."""
    ort = pytest.importorskip("onnxruntime")
    forest = Forest(
        4, trees=5, depth=3, features=4, targets=1, kind=np.float32, modes="BRANCH_LEQ", tracks=False
    )
    weights = [abs(w) / 4 if positive else w for _, w in forest.leaves]
    given = {} if base is None else {"base_values": base}
    model = classifier(forest, [column] * len(weights), weights, [5, 6], post_transform=transform, **given)
    x = forest.rows(40)
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    got = run_model(model, [x], engine)
    check(got[0], want[0])
    check(got[1], want[1], rtol=2e-6, atol=1e-7)
