"""Differences between the lines before and after a pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sardonyx.explore.changes import changes
from sardonyx.explore.graph import Graph
from sardonyx.explore.lines import Text


def text(*lines: str) -> Text:
    made = Text()
    for line in lines:
        made.add(line)
    return made


LINES = st.lists(st.sampled_from(["%0 = a", "%1 = b", "%x = c", "d", "}"]), max_size=12)


@given(LINES, LINES)
def test_the_counts_are_those_of_the_text(before: list[str], after: list[str]) -> None:
    change = changes(text(*before), text(*after), Graph())
    signs = [line[0] for line in change.text.lines]
    assert (signs.count("-"), signs.count("+")) == (change.removed, change.added)
    assert len(after) - len(before) == change.added - change.removed


@given(LINES)
def test_numbers_of_values_are_no_change(lines: list[str]) -> None:
    renumbered = [line.replace("%0", "%7").replace("%1", "%8") for line in lines]
    assert not changes(text(*lines), text(*renumbered), Graph()).text.lines


def test_lines_of_a_node_stand_together() -> None:
    graph = Graph()
    one, two = graph.set_of((1,)), graph.set_of((2,))
    before, after = Text(), Text()
    before.add("onnx.A", one)
    before.add("onnx.B", two)
    after.add("core.a", one)
    after.add("core.b", two)
    after.add("core.c", two)
    shown = changes(before, after, graph).text.lines
    assert shown[1:] == ["-onnx.A", "+core.a", "-onnx.B", "+core.b", "+core.c"]
