"""What a pass changed: the difference between the lines before and after it, in hunks.

Values without a name are numbered by the printer, so that one op more would renumber all lines behind.
Lines are compared with these numbers left out, and shown with them.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from sardonyx.explore.graph import Graph
from sardonyx.explore.lines import Text

__all__ = ["Change", "changes"]

_NUMBER = re.compile(r"%\d+\b")
_CONTEXT = 2  # unchanged lines shown around a change
_MOST_COMPARED = 20_000  # lines; longer texts are only told to differ


@dataclass(frozen=True)
class Change:
    """Lines taken out and put in, and the difference as text; its first character is ``-``, ``+``, space or @."""

    removed: int
    added: int
    text: Text


def changes(before: Text, after: Text, graph: Graph) -> Change:
    """The difference of two texts of the same module."""
    old, new = ([_NUMBER.sub("%", line) for line in text.lines] for text in (before, after))
    if old == new:
        return Change(0, 0, Text())
    if max(len(old), len(new)) > _MOST_COMPARED:
        text = Text()
        text.add(f"@ the texts differ; with {len(new):,} lines they are too long to be compared")
        return Change(len(old), len(new), text)
    shown = Text()
    removed = added = 0
    # Junk heuristics would drop lines that are frequent in a long text, closing braces as well as copies.
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) > 2000)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        shown.add(f"@ line {group[0][3] + 1}")
        for tag, a, b, c, d in group:
            if tag == "equal":
                _put(shown, " ", after, range(c, d))
                continue
            removed += b - a
            added += d - c
            for sign, number in _by_node(before, after, range(a, b), range(c, d), graph):
                _put(shown, sign, before if sign == "-" else after, [number])
    return Change(removed, added, shown)


def _put(shown: Text, sign: str, text: Text, numbers: Sequence[int]) -> None:
    for number in numbers:
        shown.add(sign + text.lines[number], text.sets[number])


def _by_node(
    before: Text, after: Text, old: Sequence[int], new: Sequence[int], graph: Graph
) -> Iterator[tuple[str, int]]:
    """Replaced lines, both in their order: what is new stands below the line of the same node if it can."""

    def nodes(text: Text, number: int) -> set[int]:
        return set(graph.sets[text.sets[number]])

    later = Counter(node for number in old for node in nodes(before, number))
    left = deque(new)
    for number in old:
        yield "-", number
        mine = nodes(before, number)
        later -= Counter(mine)
        while left and (nodes(after, left[0]) & mine or not nodes(after, left[0]) & later.keys()):
            yield "+", left.popleft()
    for number in left:
        yield "+", number
