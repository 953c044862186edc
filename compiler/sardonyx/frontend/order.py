"""The nodes of one graph: names, locations, single assignment, topological order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import onnx

from sardonyx.errors import CompileError
from sardonyx.frontend.schemas import did_you_mean
from sardonyx.ir.graph import Location, Origin

__all__ = ["Node", "captures", "check_text", "collect_nodes", "in_order", "subgraphs"]


@dataclass(slots=True, eq=False)
class Node:
    """A node as found in the file, with what is asked of it more than once."""

    proto: onnx.NodeProto
    index: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    captured: tuple[str, ...]
    location: Location

    @property
    def name(self) -> str:
        return self.location.origins[0].name


def collect_nodes(protos: Sequence[onnx.NodeProto], path: str) -> list[Node]:
    """The nodes with unique names: their own where they have one, else ``Floor_3``, operator and position."""
    given = [p.name for p in protos]
    reserved = set(given)
    used: set[str] = set()
    nodes = []
    for index, proto in enumerate(protos):
        op_type, name = proto.op_type, given[index]
        inputs, outputs = tuple(proto.input), tuple(proto.output)
        check_text((op_type, name, proto.domain, *inputs, *outputs), path)
        if not name or name in used:
            name = f"{name or op_type}_{index}"
            while name in reserved or name in used:
                name += "_"
        used.add(name)
        location = Location((Origin(path, name, op_type, outputs),))
        inner = subgraphs(proto)
        captured = tuple(dict.fromkeys(n for g in inner for n in captures(g))) if inner else ()
        nodes.append(Node(proto, index, inputs, outputs, captured, location))
    return nodes


def check_text(names: Iterable[str], path: str) -> None:
    """CompileError for a name that is no UTF-8: protobuf hands it over as bytes."""
    for name in names:
        if type(name) is not str:
            raise CompileError(f"{path} contains the name {name!r}, which is not UTF-8")


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among the node's attributes."""
    return [a.g for a in node.attribute if a.HasField("g")] if len(node.attribute) else []


def captures(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a subgraph uses and does not define (with repetitions)."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own.update(t.values.name for t in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    own.add("")
    for node in graph.node:
        yield from (name for name in node.input if name not in own)
        for inner in subgraphs(node):
            yield from (name for name in captures(inner) if name not in own)
    yield from (v.name for v in graph.output if v.name not in own)


def in_order(nodes: list[Node], own: Collection[str], outer: Callable[[str], bool], path: str) -> list[Node]:
    """The nodes, each after the nodes whose outputs it uses: as they are if that holds, else sorted.

    ``own`` are the names of the graph's inputs and initializers, ``outer`` tells whether a name is visible
    from an enclosing graph.  CompileError for a name defined twice, one not defined at all, and cycles.
    """
    producer: dict[str, int] = {}
    for node in nodes:
        for name in node.outputs:
            if not name:
                continue
            if name in producer or name in own:
                by = "a graph input or initializer"
                if name in producer:
                    by = f"node {nodes[producer[name]].name!r}"
                raise CompileError(
                    f"the output {name!r} is defined already, by {by}; names must be unique in a graph",
                    location=node.location,
                )
            producer[name] = node.index
    sorted_already = True
    for node in nodes:
        for name in node.inputs:
            found = producer.get(name)
            if found is None:
                if name and name not in own and not outer(name):
                    raise _undefined(node, name, [*producer, *own])
            elif found >= node.index:
                sorted_already = False
                _refuse_ambiguous(name, node, outer)
        for name in node.captured:
            if producer.get(name, -1) >= node.index:
                sorted_already = False
                _refuse_ambiguous(name, node, outer)
    return nodes if sorted_already else _sorted(nodes, producer, path)


def _refuse_ambiguous(name: str, node: Node, outer: Callable[[str], bool]) -> None:
    if outer(name):
        raise CompileError(
            f"the input {name!r} is ambiguous: an enclosing graph defines it and so does a later node",
            location=node.location,
        )


def _undefined(node: Node, name: str, known: Sequence[str]) -> CompileError:
    return CompileError(
        f"the input {list(node.inputs).index(name)} {name!r} is not defined: "
        "no node, graph input or initializer has that name",
        location=node.location,
        hint=did_you_mean(name, known),
    )


def _sorted(nodes: list[Node], producer: dict[str, int], path: str) -> list[Node]:
    """A stable topological sort: of all nodes that are ready, the first of the file goes first."""
    needs = [
        {producer[name] for name in (*node.inputs, *node.captured) if name in producer} for node in nodes
    ]
    users: list[list[int]] = [[] for _ in nodes]
    for index, wanted in enumerate(needs):
        for other in wanted:
            users[other].append(index)
    missing = [len(wanted) for wanted in needs]
    ready = [index for index, count in enumerate(missing) if not count]
    order: list[Node] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(nodes[index])
        for user in users[index]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        raise _cycle(nodes, needs, missing, path)
    return order


def _cycle(nodes: list[Node], needs: list[set[int]], missing: list[int], path: str) -> CompileError:
    """Names one cycle: every node that is left needs another one that is left."""
    trail: list[int] = []
    index = next(i for i, count in enumerate(missing) if count)
    while index not in trail:
        trail.append(index)
        index = min(i for i in needs[index] if missing[i])
    found = trail[trail.index(index) :][::-1]
    start = found.index(min(found))
    cycle = [nodes[i] for i in found[start:] + found[:start]]
    text = " -> ".join(repr(n.name) for n in [*cycle, cycle[0]])
    return CompileError(
        f"the nodes of {path} form a cycle: {text}",
        location=Location(tuple(n.location.origins[0] for n in cycle)),
    )
