"""Where the nodes stand: layers from top to bottom by fast-sugiyama, subgraphs in frames at the right.

Every graph is laid out by itself, with boxes of one size.  The frames of a node's subgraphs stand to the
right of the graph that it is in, as near to the height of the node as the frames above leave room for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

from sardonyx.explore.graph import Graph

try:
    from fast_sugiyama import from_edges
except ImportError:  # it is an extra
    from_edges = None  # type: ignore[assignment]

__all__ = ["BOX", "Frame", "LayoutMissing", "Picture", "Point", "check_library", "lay_out"]

BOX = (168, 40)  # width and height of a node
_SPACING = (196, 84)  # from the middle of a node to that of the next, across and down
_GAP = 48  # around frames
_MOST_BENDS = 60_000  # places where edges pass layers; laying out as many takes some seconds
_STACK = 512 << 20  # bytes, of which only what is used is ever there
_TITLE = 28  # height of a frame's title

Point = tuple[float, float]


class LayoutMissing(Exception):
    """The library that lays graphs out is not installed."""


@dataclass(frozen=True)
class Frame:
    """The rectangle around a subgraph."""

    scope: int
    x: float
    y: float
    width: float
    height: float


@dataclass
class Picture:
    """Middles of nodes, ways of edges (by source and target), frames; from (0, 0) to ``size``."""

    places: dict[int, Point] = field(default_factory=dict)
    ways: dict[tuple[int, int], list[Point]] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    size: Point = (0, 0)

    def take(self, other: Picture, x: float, y: float) -> None:
        """Put another picture at a place in this one."""
        self.places.update({n: (px + x, py + y) for n, (px, py) in other.places.items()})
        self.ways.update({e: [(px + x, py + y) for px, py in way] for e, way in other.ways.items()})
        self.frames += [Frame(f.scope, f.x + x, f.y + y, f.width, f.height) for f in other.frames]
        self.size = (max(self.size[0], x + other.size[0]), max(self.size[1], y + other.size[1]))


def check_library() -> None:
    """LayoutMissing if the library is not there."""
    if from_edges is None:
        raise LayoutMissing


def lay_out(graph: Graph) -> Picture:
    """The picture of a graph.  LayoutMissing if the library is not there."""
    check_library()
    picture = _scope(graph, 0) if graph.scopes else Picture()
    functions = [n for n, s in enumerate(graph.scopes) if s.owner is None and n > 0]
    for number in functions:  # the model's own functions, below
        inner = _scope(graph, number)
        _framed(picture, inner, number, 0, picture.size[1] + _GAP)
    return picture


def _scope(graph: Graph, number: int) -> Picture:
    """One graph with the frames of the subgraphs in it."""
    scope = graph.scopes[number]
    drawn = [n for n in scope.nodes if graph.nodes[n].kind != "constant"]
    shown = set(drawn)
    edges = {(e.source, e.target) for e in scope.edges if e.source in shown and e.target in shown}
    picture = _flat(drawn, sorted(edges))
    right = picture.size[0] + _GAP
    below = 0.0
    for owner in sorted(
        (n for n in scope.nodes if graph.nodes[n].inner and n in picture.places),
        key=lambda n: picture.places[n][1],
    ):
        for inner_number in graph.nodes[owner].inner:
            inner = _scope(graph, inner_number)
            y = max(below, picture.places[owner][1] - BOX[1])
            _framed(picture, inner, inner_number, right, y)
            below = y + inner.size[1] + _TITLE + 2 * _GAP
    return picture


def _framed(picture: Picture, inner: Picture, scope: int, x: float, y: float) -> None:
    width, height = inner.size[0] + _GAP, inner.size[1] + _GAP + _TITLE
    picture.frames.append(Frame(scope, x, y, width, height))
    picture.take(inner, x + _GAP / 2, y + _TITLE + _GAP / 2)
    picture.size = (max(picture.size[0], x + width), max(picture.size[1], y + height))


def _flat(nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> Picture:
    """Nodes in layers; parts that are not connected stand beside each other."""
    picture = Picture()
    left = 0.0
    joined: set[int] = set()
    edges, skipped = _without_longest(edges)
    # The library knows nodes by numbers from 0; those it adds on long edges get the numbers behind.
    numbers = {n: i for i, n in enumerate(dict.fromkeys(n for edge in edges for n in edge))}
    names = list(numbers)
    links = [(numbers[a], numbers[b]) for a, b in edges]
    layouts = _laid_out(links) if links else []
    for positions, _, _, pieces in layouts:
        spots = {int(n): (x / 72 * _SPACING[0], y / 72 * _SPACING[1]) for n, (x, y) in positions}
        low_x = min(x for x, _ in spots.values())
        high_y = max(y for _, y in spots.values())
        spots = {n: (left + x - low_x + BOX[0] / 2, high_y - y + BOX[1] / 2) for n, (x, y) in spots.items()}
        here = {names[n]: spot for n, spot in spots.items() if n < len(names)}
        picture.places.update(here)
        joined |= here.keys()
        for way in _ways(pieces, len(names)):
            points = [spots[n] for n in way]
            picture.ways[names[way[0]], names[way[-1]]] = _simple(points)
        left = max(x for x, _ in spots.values()) + BOX[0] / 2 + _GAP
    lonely = [n for n in nodes if n not in joined]
    across = max(1, round(len(lonely) ** 0.5))
    for position, node in enumerate(lonely):
        row, column = divmod(position, across)
        picture.places[node] = (left + BOX[0] / 2 + column * _SPACING[0], BOX[1] / 2 + row * _SPACING[1])
    picture.ways.update({(a, b): [picture.places[a], picture.places[b]] for a, b in skipped})
    if picture.places:
        picture.size = (
            max(x for x, _ in picture.places.values()) + BOX[0] / 2,
            max(y for _, y in picture.places.values()) + BOX[1] / 2,
        )
    return picture


def _laid_out(links: list[tuple[int, int]]) -> Sequence[Any]:
    """What the library makes of the edges: for each connected part its positions, size and pieces of edges.

    It walks along the graph by recursion, which a deep one would end with a signal on an ordinary stack.
    """
    outer = threading.stack_size(_STACK)
    try:
        with ThreadPoolExecutor(1, "sardonyx-layout") as executor:
            return executor.submit(lambda: from_edges(links, dummy_vertices=True)).result()
    finally:
        threading.stack_size(outer)


def _without_longest(edges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The edges that are laid out, and those left out because they would pass through too many layers in all.

    Each layer that an edge passes costs a place in it.  A mask that every layer of a deep model reads would
    take minutes; such edges are drawn straight instead, the longest first.
    """
    sources: dict[int, list[int]] = {}
    for a, b in edges:
        sources.setdefault(b, []).append(a)
    layers: dict[int, int] = {}
    for node in TopologicalSorter(sources).static_order():
        layers[node] = max((layers[source] + 1 for source in sources.get(node, ())), default=0)
    spans = sorted(((layers[b] - layers[a], (a, b)) for a, b in edges))
    kept: list[tuple[int, int]] = []
    bends = 0
    for span, edge in spans:
        bends += span - 1
        if bends > _MOST_BENDS:
            break
        kept.append(edge)
    return sorted(kept), [edge for _, edge in spans[len(kept) :]]


def _ways(links: Iterable[tuple[int | str, int | str]], real: int) -> list[list[int]]:
    """The links put together to ways from node to node; numbers from ``real`` on are places on the way."""
    onward: dict[int, int] = {}
    first: list[tuple[int, int]] = []
    for a, b in links:
        source, target = int(a), int(b)
        if source >= real:
            onward[source] = target
        else:
            first.append((source, target))
    ways = []
    for source, target in first:
        way = [source, target]
        while way[-1] >= real:
            way.append(onward[way[-1]])
        ways.append(way)
    return ways


def _simple(points: list[Point]) -> list[Point]:
    """The way without the points that lie straight between their neighbours."""
    kept = points[:1]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        if abs((before[0] + after[0]) / 2 - at[0]) > 1:
            kept.append(at)
    return [*kept, points[-1]]
