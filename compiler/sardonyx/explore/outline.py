"""The graph of a model that cannot be imported: its nodes and edges as the file names them, no types."""

from __future__ import annotations

from sardonyx.explore.graph import Edge, Graph, Node, ScopeGraph, Tensor
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx.frontend.order import collect_nodes

__all__ = ["outline_of"]


def outline_of(model: ModelSource) -> Graph:
    """The outermost graph of a model.  CompileError if the file holds none."""
    proto, _ = load_model(model)
    graph = Graph()
    scope = ScopeGraph(proto.graph.name or "graph", None)
    graph.scopes.append(scope)
    tensors: dict[str, int] = {}
    producer: dict[str, int] = {}

    def tensor(name: str) -> int:
        number = tensors.setdefault(name, len(graph.tensors))
        if number == len(graph.tensors):
            graph.tensors.append(Tensor(name))
        return number

    def add(node: Node) -> int:
        scope.nodes.append(len(graph.nodes))
        graph.nodes.append(node)
        return scope.nodes[-1]

    constants = {one.name for one in proto.graph.initializer}
    for value in proto.graph.input:
        if value.name not in constants:
            producer[value.name] = add(Node(value.name, "input", "input", 0, outputs=[tensor(value.name)]))
    nodes = collect_nodes(proto.graph.node, "main")
    for node in nodes:
        (origin,) = node.location.origins
        inputs = [tensor(name) for name in node.inputs if name]
        outputs = [tensor(name) for name in node.outputs if name]
        kind = "constant" if origin.op_type == "Constant" else "node"
        number = add(Node(origin.name, origin.op_type, kind, 0, inputs, outputs, node.proto.domain))
        graph.numbers["main", origin.name] = number
        producer.update(dict.fromkeys(filter(None, node.outputs), number))
    for value in proto.graph.output:
        add(Node(value.name, "output", "output", 0, inputs=[tensor(value.name)]))
    names = list(tensors)
    for number, made in enumerate(graph.nodes):
        sources = [(producer[names[t]], t) for t in made.inputs if names[t] in producer]
        # A file with a cycle is one that cannot be imported: edges back are left out.
        scope.edges += [Edge(source, number, t) for source, t in sources if source < number]
    return graph
