"""Where nodes stand: no two at the same place, edges downward."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.explore.graph import Edge, Graph, Node, ScopeGraph
from sardonyx.explore.layout import BOX, lay_out


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs without cycles, some nodes alone, some parts apart."""
    count = draw(st.integers(1, 25))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    chosen = draw(st.lists(pairs, max_size=40))
    scope = ScopeGraph("g", None, list(range(count)), [Edge(a, b, 0) for a, b in chosen if a < b])
    return Graph([Node(str(n), "Op", "node", 0) for n in range(count)], [], [scope])


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_nodes_stand_apart_and_edges_go_down(graph: Graph) -> None:
    picture = lay_out(graph)
    assert picture.places.keys() == set(range(len(graph.nodes)))
    places = list(picture.places.values())
    for i, (x, y) in enumerate(places):
        assert BOX[0] / 2 <= x <= picture.size[0] and BOX[1] / 2 <= y <= picture.size[1]
        for u, v in places[i + 1 :]:
            assert abs(x - u) >= BOX[0] or abs(y - v) >= BOX[1]
    for edge in graph.scopes[0].edges:
        way = picture.ways[edge.source, edge.target]
        assert way[0] == picture.places[edge.source] and way[-1] == picture.places[edge.target]
        heights = [y for _, y in way]
        assert heights == sorted(heights) and len(set(heights)) == len(heights)


def test_a_deep_graph_with_many_long_edges_is_laid_out_in_time() -> None:
    """Every node of a chain of 3,000 reads one mask: 4.5 million places if all edges were laid out."""
    count = 3000
    chain = [Edge(n, n + 1, 0) for n in range(1, count)]
    masks = [Edge(0, n, 1) for n in range(2, count)]
    scope = ScopeGraph("g", None, list(range(count + 1)), [*chain, Edge(0, 1, 1), *masks])
    graph = Graph([Node(str(n), "Op", "node", 0) for n in range(count + 1)], [], [scope])
    start = time.process_time()
    picture = lay_out(graph)
    assert time.process_time() - start < 20  # seconds; on an idle machine it is one or two
    assert len(picture.ways) == len(scope.edges)
    for way in picture.ways.values():
        heights = [y for _, y in way]
        assert heights == sorted(heights)


def test_a_very_deep_graph_is_no_danger_to_the_stack() -> None:
    count = 30_000
    scope = ScopeGraph("g", None, list(range(count)), [Edge(n, n + 1, 0) for n in range(count - 1)])
    picture = lay_out(Graph([Node(str(n), "Op", "node", 0) for n in range(count)], [], [scope]))
    heights = [picture.places[n][1] for n in range(count)]
    assert heights == sorted(heights)
