"""Which files outside of a model hold its tensors."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

__all__ = ["external_files"]


def external_files(model: onnx.ModelProto) -> list[str]:
    """The locations of all external data of a model, sorted."""
    nodes = [n for f in model.functions for n in f.node]
    tensors = [*_tensors(model.graph), *_node_tensors(nodes)]
    found = {
        entry.value
        for tensor in tensors
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sorted(found)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: list[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for graph in attribute.graphs:
                yield from _tensors(graph)
