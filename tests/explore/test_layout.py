"""Where nodes stand: no two at the same place, edges downward."""

from __future__ import annotations

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
