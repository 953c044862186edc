"""The model's graph for the page: nodes, tensors, edges, and the graphs inside of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx.ir.graph import Block, Function, Location, Module, Op, Value, walk
from sardonyx.ir.types import UnrankedType, describe
from sardonyx.ops.registry import find

__all__ = ["Edge", "Graph", "Node", "ScopeGraph", "Tensor", "graph_of"]


@dataclass
class Tensor:
    """A value of the model: its name and, once it is known, its type in a user's words."""

    name: str
    type: str = ""


@dataclass
class Node:
    """A node of the graph.  ``kind`` is node, constant (not drawn), input or output; ``scope`` its graph."""

    name: str
    op: str
    kind: str
    scope: int
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    domain: str = ""
    family: str = ""
    attributes: str = ""
    inner: list[int] = field(default_factory=list)  # scopes of its subgraphs
    function: str = ""  # the model's own function that it calls
    calls: int | None = None  # the function's scope


@dataclass(frozen=True)
class Edge:
    """A tensor on its way; ``captured`` if a subgraph of the consumer uses it."""

    source: int
    target: int
    tensor: int
    captured: bool = False


@dataclass
class ScopeGraph:
    """One graph: the model's, a function's, or that of an attribute of a node (``owner``)."""

    title: str
    owner: int | None
    nodes: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


@dataclass
class Graph:
    """Everything that is drawn; all numbers are indices into these lists."""

    nodes: list[Node] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    scopes: list[ScopeGraph] = field(default_factory=list)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)  # node by path and name
    tensor_of: dict[Value, int] = field(default_factory=dict)  # by the value of the onnx level
    sets: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    _set_numbers: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})
    _of_location: dict[Location, int] = field(default_factory=dict)

    def node_set(self, location: Location) -> int:
        """The number of the set of nodes that a location names; 0 for none."""
        found = self._of_location.get(location)
        if found is None:
            nodes = tuple(sorted(self.nodes_of(location)))
            found = self._of_location[location] = self.set_of(nodes)
        return found

    def nodes_of(self, location: Location) -> list[int]:
        """The nodes that a location names, in its order.

        A location inside a subgraph names the nodes around it too, which say nothing more: they are left out.
        """
        known = (self.numbers.get((o.path, o.name)) for o in location.origins)
        nodes = dict.fromkeys(n for n in known if n is not None)
        around = {owner for n in nodes for owner in self.owners(n)}
        return [n for n in nodes if n not in around]

    def owners(self, node: int) -> Iterator[int]:
        """The nodes in whose subgraphs a node stands, innermost first."""
        while (owner := self.scopes[self.nodes[node].scope].owner) is not None:
            yield owner
            node = owner

    def set_of(self, nodes: tuple[int, ...]) -> int:
        """The number of a set of nodes."""
        found = self._set_numbers.setdefault(nodes, len(self.sets))
        if found == len(self.sets):
            self.sets.append(nodes)
        return found

    def learn(self, op: Op, _: Sequence[Value | None], results: Sequence[Value | None]) -> None:
        """Take the types of a node's results from the core values that it became (see `LowerToCore`)."""
        for result, value in zip(op.results, results, strict=False):
            tensor = self.tensor_of.get(result)
            if tensor is not None and value is not None:
                self.tensors[tensor].type = describe(value.type)


def graph_of(module: Module) -> Graph:
    """The graph of a module of the onnx level."""
    return _Reader().read(module)


class _Reader:
    def __init__(self) -> None:
        self.graph = Graph()
        self.producer: dict[Value, int] = {}

    def read(self, module: Module) -> Graph:
        functions: dict[str, int] = {}
        for function in module.functions.values():
            main = function.name == "main"
            title = function.attributes.get("graph_name") or "graph" if main else function.name
            functions[function.name] = self.scope(function.body, title, None, _output_names(function))
        for node in self.graph.nodes:
            node.calls = functions.get(node.function)
        return self.graph

    def scope(self, block: Block, title: str, owner: int | None, outputs: tuple[str, ...]) -> int:
        graph = self.graph
        number = len(graph.scopes)
        scope = ScopeGraph(title, owner)
        graph.scopes.append(scope)
        for argument in block.arguments:
            node = self.add(Node(argument.name, "input", "input", number))
            self.define(argument, node)
        for op in block.ops[:-1]:
            if op.location.origins and op.level == "onnx":
                self.node(op, scope, number)
            else:  # initializers, and the input that is left out: values without a node
                for result in op.results:
                    self.tensor(result)
        for position, result in enumerate(block.terminator.operands):
            name = outputs[position] if position < len(outputs) else result.name
            node = self.add(Node(name, "output", "output", number))
            self.use(result, node, scope)
        return number

    def add(self, node: Node) -> int:
        self.graph.nodes.append(node)
        number = len(self.graph.nodes) - 1
        self.graph.scopes[node.scope].nodes.append(number)
        return number

    def node(self, op: Op, scope: ScopeGraph, number: int) -> None:
        origin = op.location.origins[0]
        domain = str(op.attributes.get("sdx.domain", ""))
        entry = find(op.kind, domain, int(op.attributes.get("sdx.opset", 1)))
        family = entry.function.__module__.rpartition(".")[2] if entry else "other"
        constant = not op.operands and not op.regions and op.kind == "Constant"
        kind = "constant" if constant else "node"
        shown = ", ".join(
            f"{key}={_short(value)}" for key, value in op.attributes.items() if not key.startswith("sdx.")
        )
        me = self.add(
            Node(origin.name, op.kind, kind, number, domain=domain, family=family, attributes=shown)
        )
        self.graph.nodes[me].function = str(op.attributes.get("sdx.function", ""))
        self.graph.numbers[origin.path, origin.name] = me
        for operand in op.operands:
            self.use(operand, me, scope)
        for result in op.results:
            self.define(result, me)
        for position, region in enumerate(op.regions):
            title = f"{origin.name}, subgraph {position}" if len(op.regions) > 1 else f"{origin.name}, body"
            inner = self.scope(region, title, me, ())
            self.graph.nodes[me].inner.append(inner)
        for value in _captured(op):
            source = self.producer.get(value)
            if source is not None and self.graph.nodes[source].scope == number:
                scope.edges.append(Edge(source, me, self.tensor(value), captured=True))

    def tensor(self, value: Value) -> int:
        found = self.graph.tensor_of.get(value)
        if found is None:
            found = self.graph.tensor_of[value] = len(self.graph.tensors)
            known = not isinstance(value.type, UnrankedType)
            self.graph.tensors.append(Tensor(value.name, describe(value.type) if known else ""))
        return found

    def define(self, value: Value, node: int) -> None:
        self.producer[value] = node
        self.graph.nodes[node].outputs.append(self.tensor(value))

    def use(self, value: Value, node: int, scope: ScopeGraph) -> None:
        tensor = self.tensor(value)
        self.graph.nodes[node].inputs.append(tensor)
        source = self.producer.get(value)
        if source is not None and self.graph.nodes[source].scope == self.graph.nodes[node].scope:
            scope.edges.append(Edge(source, node, tensor))


def _captured(op: Op) -> list[Value]:
    """The values from outside that the regions of an op use, each once."""
    inside = {id(block) for o in walk(op) for block in o.regions}
    found: dict[Value, None] = {}
    for inner in walk(op):
        if inner is not op:
            for operand in inner.operands:
                owner = operand.owner
                block = owner.block if isinstance(owner, Op) else owner
                if id(block) not in inside:
                    found[operand] = None
    return list(found)


def _output_names(function: Function) -> tuple[str, ...]:
    names: Any = function.attributes.get("outputs", ())
    return tuple(map(str, names))


def _short(value: Any, most: int = 60) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
