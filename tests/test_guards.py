"""The order of the layers: every module imports from its own layer and those below, never from above."""

from __future__ import annotations

import pytest
from tests.test_layers import GRAPH

# From the bottom to the top.  A module belongs to the layer with the longest name that it begins with.
LAYERS = (
    ("sardonyx_runtime", "what a compiled model needs to run"),
    (
        "sardonyx.ir sardonyx.errors sardonyx.cache sardonyx.interpreter",
        "the data structure; services without a level",
    ),
    ("sardonyx.core", "tensor ops"),
    ("sardonyx.frontend", "protobuf to IR"),
    ("sardonyx.ops sardonyx.loop", "operators in core ops; loop nests"),
    ("sardonyx.kernels", "loops of each kind of group"),
    ("sardonyx.passes", "from nodes to a scheduled program"),
    ("sardonyx.pass_manager sardonyx.pipeline sardonyx.targets", "the passes in order; machines"),
    ("sardonyx.codegen", "LLVM IR, objects, the process"),
    (
        "sardonyx.parts sardonyx.model_cache sardonyx.source sardonyx.dumps "
        "sardonyx.reproducer sardonyx.build_options sardonyx.build sardonyx.aot "
        "sardonyx.loading sardonyx.debugging",
        "stages as text; compiled models in memory, cache, file",
    ),
    (
        "sardonyx.model sardonyx.specialised sardonyx.extension sardonyx.operator_table "
        "sardonyx.diagnosis sardonyx.explore "
        "sardonyx.listings sardonyx.profiling "
        "sardonyx.explanations",
        "what a program calls",
    ),
    ("sardonyx sardonyx.cli sardonyx.__main__", "what a user calls"),
)
PLACES = {prefix: number for number, (prefixes, _) in enumerate(LAYERS) for prefix in prefixes.split()}


def layer(module: str) -> int:
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        found = PLACES.get(".".join(parts[:length]))
        if found is not None and (length > 1 or len(parts) == 1 or parts[0] == "sardonyx_runtime"):
            return found
    raise AssertionError(f"{module} is in no layer: give it a place in LAYERS")


@pytest.mark.parametrize("module", GRAPH)
def test_imports_go_down(module: str) -> None:
    up = {target for target in GRAPH[module] if layer(target) > layer(module)}
    assert not up, f"{module} (layer {layer(module)}) imports from above: {sorted(up)}"
