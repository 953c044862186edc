"""Trees, tables, random numbers and strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from bench_rows.row import Array, Row, floats

ROWS: list[Row] = []
RNG = np.random.RandomState(0)


def model(
    op_type: str, x: Array, output: str, *, domain: str = "ai.onnx.ml", **attributes: Any
) -> ModelProto:
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)
    kinds = {"float": 1, "int64": 7, "string": 8, "double": 11}
    number = 8 if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "bench",
        [helper.make_tensor_value_info("x", number, x.shape)],
        [helper.make_tensor_value_info("y", kinds[output], None)],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def forest(trees: int, leaves: int, features: int, rows: int, kind: Any) -> Row:
    """Trees grown leaf by leaf, as boosting libraries do: unbalanced."""
    tables: dict[str, list[Any]] = {
        k: [] for k in "features splits true false true_leaf false_leaf roots".split()
    }
    leaf_count = 0
    for _ in range(trees):
        first = len(tables["features"])
        tables["roots"].append(first)
        open_branches: list[tuple[int, str]] = []
        for number in range(leaves - 1):
            at = first + number
            tables["features"].append(int(RNG.randint(features)))
            tables["splits"].append(float(RNG.randn()))
            for side in ("true", "false"):
                tables[side].append(0)
                tables[f"{side}_leaf"].append(0)
            if number:
                parent, side = open_branches.pop(RNG.randint(len(open_branches)))
                tables[side][parent] = at
            open_branches += [(at, "true"), (at, "false")]
        for at, side in open_branches:
            tables[side][at], tables[f"{side}_leaf"][at] = leaf_count, 1
            leaf_count += 1
    x = RNG.randn(rows, features).astype(kind)
    made = model(
        "TreeEnsemble", x, "double" if kind is np.float64 else "float", n_targets=1, tree_roots=tables["roots"],
        nodes_featureids=tables["features"], nodes_truenodeids=tables["true"], nodes_falsenodeids=tables["false"],
        nodes_trueleafs=tables["true_leaf"], nodes_falseleafs=tables["false_leaf"],
        nodes_splits=numpy_helper.from_array(np.array(tables["splits"], kind)),
        nodes_modes=numpy_helper.from_array(np.zeros(len(tables["features"]), np.uint8)),
        leaf_targetids=[0] * leaf_count, leaf_weights=numpy_helper.from_array(RNG.randn(leaf_count).astype(kind)),
    )  # fmt: skip
    short = np.dtype(kind).name
    return Row(f"TreeEnsemble {trees} trees {leaves} leaves {rows} rows {short}", (), {"x": x}, given=made)


for _rows in (1, 64, 1024):
    ROWS.append(forest(300, 15, 60, _rows, np.float64))
    ROWS.append(forest(1600, 31, 230, _rows, np.float32))
    ROWS.append(forest(100, 1000, 50, _rows, np.float32))

_WORDS = np.array([f"word {i * 7919 % 5000}" for i in range(10_000)], object)
_KEYS = [f"word {i}" for i in range(4000)]
_NUMBERS = RNG.randint(0, 5000, 10_000)
ROWS += [
    Row("LabelEncoder 4000 strings to int64", (), {"x": _WORDS},
        given=model("LabelEncoder", _WORDS, "int64", keys_strings=_KEYS, values_int64s=list(range(4000)))),
    Row("LabelEncoder 4000 int64 to float", (), {"x": _NUMBERS},
        given=model("LabelEncoder", _NUMBERS, "float", keys_int64s=list(range(4000)), values_floats=[0.5] * 4000)),
    Row("Scaler 1000 x 60", (), {"x": floats(1000, 60)},
        given=model("Scaler", floats(1000, 60), "float", offset=[0.5] * 60, scale=[2.0] * 60)),
    Row("Normalizer L2 1000 x 60", (), {"x": floats(1000, 60)},
        given=model("Normalizer", floats(1000, 60), "float", norm="L2")),
    Row("RandomUniformLike 1000000", ("y = RandomUniformLike (x)",), {"x": floats(1000, 1000)}),
    Row("RandomNormalLike 1000000", ("y = RandomNormalLike (x)",), {"x": floats(1000, 1000)}),
    Row("Bernoulli 1000000", ("y = Bernoulli (x)",), {"x": np.abs(floats(1000, 1000)) % 1}),
    Row("Dropout training 1000000", ("y = Dropout (x, r, t)",), {"x": floats(1000, 1000)},
        {"r": np.array(0.5, np.float32), "t": np.array(True)}),
    Row("StringConcat 10000", ("y = StringConcat (x, x)",), {"x": _WORDS}, opset=20),
    Row("StringSplit 10000", ("y, n = StringSplit (x)",), {"x": _WORDS}, opset=20),
    Row("StringNormalizer lower 10000", ('y = StringNormalizer <case_change_action = "LOWER"> (x)',), {"x": _WORDS}),
    Row("Cast float to string 10000", ("y = Cast <to = 8> (x)",), {"x": floats(10_000)}),
    Row("Cast string to float 10000", ("y = Cast <to = 1> (x)",),
        {"x": np.array([f"{v:.6g}" for v in RNG.randn(10_000)], object)}),
]  # fmt: skip
